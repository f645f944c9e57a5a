"""The lottery's draw of each row: fixed by the salt and the row, not by its order.

Integer row ids are drawn with a polynomial that any data engine can compute with
``*``, ``+`` and ``%`` on 64-bit integers, so that every engine decides alike. Other ids
and the content of a row are hashed to 64 bits.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul._groups import typed

#: Draws of integer ids are multiples of 1 / PRIME, a Mersenne prime.
PRIME = 2**31 - 1
#: A second prime modulus: with PRIME it tells any two ids closer than 2**61 apart.
SECOND_PRIME = 2**31 - 19

_GOLDEN_RATIO = 0.6180339887498949
_UNIT = 2.0**-53


def polynomial(salt: int) -> tuple[int, int, int, int, int]:
    """Coefficients a, b, c, d, e in [0, PRIME) of a salt's draw; a and e are not 0.

    The draw of an integer id is ``((a x + b) x + c) x + d + e y`` mod PRIME, divided by
    PRIME, where x is the id mod PRIME and y the id mod SECOND_PRIME.
    """
    start = np.uint64(salt & (2**64 - 1)) ^ np.uint64(0x5851F42D4C957F2D)
    parts = _mix(start + np.arange(1, 6, dtype=np.uint64) * np.uint64(2**32 + 1))
    a, b, c, d, e = (int(part) % PRIME for part in parts)
    return max(a, 1), b, c, d, max(e, 1)


def draw_integers(row_id: NDArray[Any], salt: int) -> NDArray[np.int64]:
    """Draw of each integer id, in [0, PRIME).

    Examples
    --------
    >>> import numpy as np
    >>> draws = draw_integers(np.arange(100_000), salt=7) / PRIME
    >>> bool(abs(draws.mean() - 0.5) < 0.005)
    True
    """
    a, b, c, d, e = polynomial(salt)
    if row_id.dtype.itemsize < 8:  # the primes do not fit into 8 or 16 bits
        row_id = row_id.astype(np.int64)
    x = (row_id % PRIME).astype(np.int64)
    y = (row_id % SECOND_PRIME).astype(np.int64)
    cubic = ((a * x + b) % PRIME * x + c) % PRIME * x + d
    return np.asarray((cubic % PRIME + e * y % PRIME) % PRIME)


def accepted_integers(probability: NDArray[np.float64]) -> NDArray[np.int64]:
    """Integer threshold of a probability: ids with a draw below it are accepted."""
    return np.ceil(probability * PRIME).astype(np.int64)


def draw_by_id(row_id: NDArray[Any], salt: int) -> NDArray[np.float64]:
    """Draw in [0, 1) of each row from its id, integers or strings."""
    if row_id.dtype.kind in "iu":
        return np.asarray(draw_integers(row_id, salt) / PRIME)
    return _uniform(_hash_text(row_id.astype(str), salt))


def draw_by_content(
    score: NDArray[Any], key: Hashable, salt: int
) -> NDArray[np.float64]:
    """Draw in [0, 1) of each row of one group from its score and its occurrence.

    The j-th row of a content gets ``frac(hash + j * golden ratio)``: rows of one
    content are accepted evenly, in number, whatever their order.
    """
    content = (score.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    start = _hash_text(np.array([ascii(typed(key))]), salt)[0]
    hashed = _uniform(_mix(content ^ start))
    return np.asarray((hashed + _occurrence(content) * _GOLDEN_RATIO) % 1.0)


def _occurrence(content: NDArray[np.uint64]) -> NDArray[np.intp]:
    """How often each content came before in the array."""
    order = np.argsort(content, kind="stable")
    ranked = content[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    lengths = np.diff(np.append(starts, len(ranked)))
    occurrence = np.empty(len(content), dtype=np.intp)
    occurrence[order] = np.arange(len(content)) - np.repeat(starts, lengths)
    return occurrence


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64-bit words so that every input bit moves every output bit."""
    with np.errstate(over="ignore"):
        value = value + np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(value ^ (value >> np.uint64(31)))


def _hash_text(text: NDArray[np.str_], salt: int) -> NDArray[np.uint64]:
    """Hash strings character by character, all rows at once; padding is skipped."""
    state = np.full(len(text), salt & (2**64 - 1), dtype=np.uint64)
    if not len(text) or not text.dtype.itemsize:
        return _mix(state)
    native = np.ascontiguousarray(text, dtype=text.dtype.newbyteorder("="))
    characters = native.view(np.uint32).reshape(len(text), -1)
    for column in characters.T:
        state = np.where(column > 0, _mix(state ^ column), state)
    return _mix(state)


def _uniform(hashed: NDArray[np.uint64]) -> NDArray[np.float64]:
    return np.asarray((hashed >> np.uint64(11)) * _UNIT)
