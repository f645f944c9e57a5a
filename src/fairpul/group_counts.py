"""The mergeable table of counts per group and bin: all that the method needs of rows.

Adds up over machines, engines and sites, because it holds integers only. Everything
that takes :class:`fairpul.GroupScores` takes it too, unless it needs the rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from os import PathLike
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairpul._groups import typed
from fairpul.binning import BINS, FINE_BINS, check_bins
from fairpul.cells import (
    WEIGHT_UNIT,
    Cells,
    Integers,
    add_cells,
    check_weight_scale,
)
from fairpul.counting import (
    Columns,
    Refinement,
    check_one_unlabeled_code,
    count_arrays,
    count_eagerly,
    count_lazily,
)
from fairpul.counts_file import read_fields, write_fields
from fairpul.disclosure import suppressed
from fairpul.group_scores import GroupScores
from fairpul.operating_points import OperatingPoints

# Rows counted at a time: the sums of their limbs stay below 2**53.
_CHUNK = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class GroupCounts:
    r"""Rows and labeled rows per group and bin of the score.

    Built by :meth:`from_frame`, :meth:`from_batches` or :meth:`from_scores`; tables of
    parts of the data add up to the table of the whole, whatever the parts.

    Attributes
    ----------
    groups : tuple
        Keys of the groups.
    codes, bin : ndarray of shape (n_cells,)
        Group number and bin number of each cell that holds a row, sorted.
    sums : ndarray of shape (n_cells, 2) or (n_cells, 6)
        int64: rows and labeled rows; where rows are weighted also the sums of w, of w
        over labeled rows, of :math:`w^2` and of :math:`w^2` over labeled rows, in
        units of :math:`2^{-20}`.
    base_bins : int
        Number of bins that the table was counted with.
    refined : dict
        Group key -> bins of these that are resolved to ``2**26`` bins.
    invalid : dict
        Rows that were not counted, by the reason why.
    misplaced : ndarray of shape (n_groups, 2)
        After suppression: how many rows, and labeled rows, any cut takes for being on
        its other side, at most.
    model : str or None
        What the scores come from; tables of different models do not add up.

    Notes
    -----
    Bins are :math:`\lfloor f^{1/4} \cdot bins \rfloor`. A rule fitted on the table cuts
    between bins: its rates differ from those of the best rule on the rows by no more
    than the rows in its threshold bins. :func:`fairpul.refining.refine_rule` resolves
    these bins.

    Examples
    --------
    >>> import pandas as pd
    >>> site = pd.DataFrame({"p": [0.9, 0.2, 0.8, None], "dx": [1, 0, 1, 0],
    ...                      "sex": ["f", "f", "m", "m"]})
    >>> a = GroupCounts.from_frame(site, score="p", labeled="dx", group="sex")
    >>> a + a
    GroupCounts(6 rows, 4 labeled, groups 'f', 'm', 4096 bins, 2 rows invalid)
    """

    groups: tuple[Hashable, ...]
    codes: NDArray[np.intp]
    bin: Integers
    sums: Integers
    base_bins: int
    refined: dict[Hashable, tuple[int, ...]]
    invalid: dict[str, int]
    misplaced: Integers
    model: str | None = None

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        score: str,
        labeled: str,
        group: str | Sequence[str] | None = None,
        sample_weight: str | None = None,
        bins: int = BINS,
        refine: Refinement | None = None,
        model: str | None = None,
    ) -> GroupCounts:
        """Count a frame where it is; rows of a lazy frame are never collected.

        Parameters
        ----------
        frame : data frame
            Any frame that narwhals knows: pandas, Arrow, Polars, DuckDB, ibis, Dask,
            PySpark. One aggregation; Dask and Spark run it on their cluster.
        score, labeled : str
            Names of the columns: scores in [0, 1]; 1 or True for labeled and 0, -1 or
            False for unlabeled rows. Rows with anything else are counted as invalid.
        group : str or list of str, optional
            One or several columns of strings, integers or booleans; several form
            intersectional groups. None puts all rows into one group.
        sample_weight : str, optional
            Sampling weights below 2**21, rounded down to multiples of 2**-20.
        bins : int, default=4096
            A power of two.
        refine : mapping, optional
            Group key -> bins to resolve to 2**26 bins;
            :func:`fairpul.refining.refine_rule` finds out which.
        model : str, optional
            What the scores come from, such as the model's version.
        """
        columns = _columns(score, labeled, group, sample_weight)
        wanted = check_bins(bins), _check_refinement(refine, bins)
        table = nw.from_native(frame)
        if isinstance(table, nw.LazyFrame):
            cells = [count_lazily(table, columns, *wanted)]
        else:
            cells = [count_eagerly(part, columns, *wanted) for part in _slices(table)]
        check_one_unlabeled_code(cells)
        return _table(cells, *wanted, model)

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[Any],
        *,
        score: str,
        labeled: str,
        group: str | Sequence[str] | None = None,
        sample_weight: str | None = None,
        bins: int = BINS,
        refine: Refinement | None = None,
        model: str | None = None,
    ) -> GroupCounts:
        """Count batches of rows as they come: Arrow record batches or eager frames.

        For engines without a narwhals backend and for streams (Ray, Arrow Flight,
        ``mapInArrow``). Parameters as in :meth:`from_frame`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"p": [0.9, 0.2], "dx": [True, False]})
        >>> GroupCounts.from_batches(table.to_batches(), score="p", labeled="dx")
        GroupCounts(2 rows, 1 labeled, groups 'all', 4096 bins)
        """
        columns = _columns(score, labeled, group, sample_weight)
        wanted = check_bins(bins), _check_refinement(refine, bins)
        merged: list[Cells] = []
        for batch in batches:
            for part in _slices(_eager(batch)):
                merged.append(count_eagerly(part, columns, *wanted))
            if len(merged) > 16:
                merged = [add_cells(merged)]
        check_one_unlabeled_code(merged)
        return _table(merged, *wanted, model)

    @classmethod
    def from_scores(
        cls,
        scores: GroupScores,
        *,
        bins: int = BINS,
        refine: Refinement | None = None,
        model: str | None = None,
    ) -> GroupCounts:
        """Count the rows of a :class:`fairpul.GroupScores`; clusters are lost."""
        wanted = check_bins(bins), _check_refinement(refine, bins)
        weight = scores.sample_weight
        cells = []
        for start in range(0, len(scores), _CHUNK):
            rows = slice(start, start + _CHUNK)
            cells.append(
                count_arrays(
                    scores.score[rows],
                    scores.labeled[rows],
                    scores.codes[rows],
                    scores.groups,
                    None if weight is None else weight[rows],
                    *wanted,
                )
            )
        return _table(cells, *wanted, model)

    def __repr__(self) -> str:
        groups = ", ".join(map(repr, self.groups))
        n, labeled = self.sums[:, :2].sum(axis=0).tolist()
        text = f"{n} rows, {labeled} labeled, groups {groups}, {self.base_bins} bins"
        n_refined = sum(map(len, self.refined.values()))
        n_invalid = sum(self.invalid.values())
        text += f", {n_refined} of them refined" if n_refined else ""
        text += f", {n_invalid} rows invalid" if n_invalid else ""
        return f"GroupCounts({text})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupCounts):
            return NotImplemented
        return (
            self._kind == other._kind
            and [*map(typed, self.groups)] == [*map(typed, other.groups)]
            and self.invalid == other.invalid
            and np.array_equal(self.codes, other.codes)
            and np.array_equal(self.bin, other.bin)
            and np.array_equal(self.sums, other.sums)
            and np.array_equal(self.misplaced, other.misplaced)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays and mappings

    def __add__(self, other: GroupCounts) -> GroupCounts:
        """Table of the rows of both; tables counted differently are refused."""
        if not isinstance(other, GroupCounts):
            return NotImplemented
        unlike = [
            f"{name} ({mine!r} and {theirs!r})"
            for (name, mine), theirs in zip(
                self._kind.items(), other._kind.values(), strict=True
            )
            if mine != theirs
        ]
        if unlike:
            raise ValueError(
                f"These tables of counts do not add up: they differ in "
                f"{', '.join(unlike)}. Count both alike."
            )
        cells = add_cells([self._cells, other._cells])
        misplaced = np.zeros((len(cells.groups), 2), dtype=np.int64)
        place = {typed(key): number for number, key in enumerate(cells.groups)}
        for part in (self, other):
            misplaced[[place[typed(key)] for key in part.groups]] += part.misplaced
        return replace(
            self,
            groups=cells.groups,
            codes=cells.codes,
            bin=cells.bin,
            sums=cells.sums,
            invalid=cells.invalid,
            misplaced=misplaced,
        )

    @property
    def bins(self) -> int:
        """Number of bins that bin numbers refer to: 2**26 where any is refined."""
        return FINE_BINS if self.refined else self.base_bins

    @property
    def weighted(self) -> bool:
        """Whether the rows had sampling weights."""
        return bool(self.sums.shape[1] > 2)

    def points(self, number: int) -> OperatingPoints:
        """Return the operating points of a group; their cuts are bin numbers."""
        return self._points[number]

    def hull(self, number: int) -> OperatingPoints:
        """Return the upper concave hull of a group's operating points."""
        return self.points(number).hull()

    def resolvable(self, number: int) -> NDArray[np.bool_]:
        """Which bins of a group, from the highest on, refining could split.

        Element ``j`` belongs to the rows between the operating points ``j`` and
        ``j + 1``.
        """
        cells = self._cells_of(number)
        several = self.sums[cells, 0] > 1
        resolved = self.refined.get(self.groups[number], ())
        return np.asarray(several & ~np.isin(self.base_bins_of(number), resolved))

    def base_bins_of(self, number: int) -> Integers:
        """Return the numbers of these bins among the bins counted at first."""
        return self.bin[self._cells_of(number)] // (self.bins // self.base_bins)

    def heaviest_bin_at(self, number: int, positions: Iterable[int]) -> float:
        """Largest share of a group in a resolvable bin next to some of its cuts."""
        accepted = self.points(number).accepted
        mass = np.where(self.resolvable(number), np.diff(accepted), 0) / accepted[-1]
        beside = [mass[max(0, j - 1) : j + 1].max(initial=0.0) for j in positions]
        return float(max(beside))

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of each group among all rows, by weight."""
        mass = self._totals[:, 2 if self.weighted else 0]
        return np.asarray(mass / mass.sum())

    def n_effective(self, number: int) -> float:
        """Return the effective number of rows of a group, (sum w)^2 / sum w^2."""
        return self._kish(number, 0)

    def m_effective(self, number: int) -> float:
        """Return the effective number of labeled rows of a group."""
        return self._kish(number, 1)

    def check_every_group_is_labeled(self) -> None:
        """Refuse a table from which some group's TPR cannot be told."""
        mass = self._totals[:, 3 if self.weighted else 1]
        empty = [key for key, m in zip(self.groups, mass, strict=True) if m == 0]
        if empty or not self.groups:
            raise ValueError(
                f"Groups {empty!r} have no labeled row, so their TPR is unknown. "
                "Merge them with another group or filter them out before counting; "
                f"invalid rows: {self.invalid!r}."
            )
        if np.array_equal(self._totals[:, 0], self._totals[:, 1]):
            raise ValueError(
                "Labeled and unlabeled rows are both required, got labeled rows only."
            )

    def coarsen(
        self, bins: int | None = None, *, suppress_below: int | None = None
    ) -> GroupCounts:
        """Table with fewer bins and without small cells, to share with others.

        Parameters
        ----------
        bins : int, optional
            A power of two, at most ``base_bins``; None keeps them.
        suppress_below : int, optional
            Smallest number of labeled, and of unlabeled, rows that a cell may hold
            unless it holds none. Smaller ones move to neighboring bins.

        Returns
        -------
        GroupCounts
            Every group keeps its totals. What bins cost: a rule's gaps may grow by the
            share of rows in its threshold bins (``fit_rule`` warns above 0.1%).
            Suppression leaves fewer than ``suppress_below`` labeled and as many
            unlabeled rows of each group on the wrong side of any cut; how many is
            written in ``misplaced``.
        """
        wanted = self.base_bins if bins is None else check_bins(bins)
        if wanted > self.base_bins:
            raise ValueError(
                f"The table has {self.base_bins} bins, which cannot become {wanted}."
            )
        number = self.bin // (self.bins // wanted)
        cells = add_cells([replace(self._cells, bin=number)])
        coarse = replace(
            self,
            codes=cells.codes,
            bin=cells.bin,
            sums=cells.sums,
            base_bins=wanted,
            refined={},
        )
        if suppress_below is None:
            return coarse
        shown, off = suppressed(coarse._cells, suppress_below)
        return replace(
            coarse,
            codes=shown.codes,
            bin=shown.bin,
            sums=shown.sums,
            misplaced=self.misplaced + off,
        )

    def write_parquet(self, path: str | PathLike[str]) -> None:
        """Write the table to a file; an existing one is replaced in one step."""
        write_fields(
            {field.name: getattr(self, field.name) for field in fields(self)}, path
        )

    @classmethod
    def read_parquet(cls, path: str | PathLike[str]) -> GroupCounts:
        """Table back from :meth:`write_parquet`, checked."""
        return cls(**read_fields(path))

    @property
    def _kind(self) -> dict[str, Any]:
        """What tables must have in common to add up."""
        refined = {typed(key): bins for key, bins in self.refined.items()}
        return {
            "bins": self.base_bins,
            "refined bins": refined,
            "weights": self.weighted,
            "model": self.model,
        }

    @property
    def _cells(self) -> Cells:
        return Cells(self.groups, self.codes, self.bin, self.sums, self.invalid)

    @cached_property
    def _totals(self) -> Integers:
        totals = np.zeros((len(self.groups), self.sums.shape[1]), dtype=np.int64)
        np.add.at(totals, self.codes, self.sums)
        return totals

    def _cells_of(self, number: int) -> NDArray[np.intp]:
        """Cells of a group that have weight, from the highest bin on."""
        mass = self.sums[:, 2 if self.weighted else 0]
        return np.flatnonzero((self.codes == number) & (mass > 0))[::-1]

    @cached_property
    def _points(self) -> list[OperatingPoints]:
        return [self._points_of(number) for number in range(len(self.groups))]

    def _points_of(self, number: int) -> OperatingPoints:
        cells = self._cells_of(number)
        cut = self.bin[cells].astype(np.float64)
        cut[-1] = 0.0
        columns = (2, 3) if self.weighted else (0, 1)
        accepted, labeled = (
            np.concatenate([[0], np.cumsum(self.sums[cells, c])]) for c in columns
        )
        if self.weighted:
            accepted, labeled = accepted / WEIGHT_UNIT, labeled / WEIGHT_UNIT
        return OperatingPoints(np.concatenate([[np.inf], cut]), accepted, labeled)

    def _kish(self, number: int, labeled: int) -> float:
        totals = self._totals[number].astype(np.float64)
        if not self.weighted:
            return float(totals[labeled])
        mass, squares = totals[2 + labeled], totals[4 + labeled]
        return float(mass**2 / squares / WEIGHT_UNIT)


def _columns(
    score: str, labeled: str, group: str | Sequence[str] | None, weight: str | None
) -> Columns:
    names = () if group is None else (group,) if isinstance(group, str) else group
    return Columns(score, labeled, tuple(names), weight)


def _check_refinement(
    refine: Refinement | None, bins: int
) -> dict[Hashable, tuple[int, ...]]:
    wanted = {key: tuple(sorted(set(b))) for key, b in (refine or {}).items() if b}
    numbers = [number for one in wanted.values() for number in one]
    if numbers and not 0 <= min(numbers) <= max(numbers) <= bins:
        raise ValueError(
            f"refine must name bins from 0 to {bins}, got {min(numbers)} to "
            f"{max(numbers)}."
        )
    return wanted


def _eager(batch: Any) -> nw.DataFrame[Any]:
    if nw.dependencies.is_into_dataframe(batch):
        return nw.from_native(batch, eager_only=True)
    return nw.DataFrame.from_arrow(batch, backend="pyarrow")


def _slices(frame: nw.DataFrame[Any]) -> Iterator[nw.DataFrame[Any]]:
    for start in range(0, max(1, len(frame)), _CHUNK):
        yield frame[start : start + _CHUNK]


def _table(
    cells: Sequence[Cells],
    bins: int,
    refined: dict[Hashable, tuple[int, ...]],
    model: str | None,
) -> GroupCounts:
    if not cells:
        raise ValueError("There is no batch to count.")
    merged = add_cells(cells)
    if merged.sums.shape[1] > 2:
        check_weight_scale(merged.sums)
    return GroupCounts(
        merged.groups,
        merged.codes,
        merged.bin,
        merged.sums,
        bins,
        refined,
        merged.invalid,
        np.zeros((len(merged.groups), 2), dtype=np.int64),
        model,
    )
