"""The mergeable table of counts per group and bin: all that the method needs of rows.

Adds up over machines, engines and sites, because it holds integers only. Everything
that takes :class:`fairpul.GroupScores` takes it too, unless it needs the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul._groups import EVERYBODY, typed
from fairpul.binning import (
    BINS,
    FINE_BINS,
    Refinement,
    bin_of,
    check_bins,
    check_refinement,
)
from fairpul.cells import Cells, add_cells
from fairpul.counting import count_batches, count_frame, count_scores
from fairpul.counts_file import read_fields, write_fields
from fairpul.disclosure import suppressed
from fairpul.fixed_point import WEIGHT_UNIT, Integers
from fairpul.frame_columns import Columns
from fairpul.group_scores import GroupScores
from fairpul.operating_points import OperatingPoints


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
        its other side, at most; of weighted rows their weight, in the units of
        ``sums``.
    model : str or None
        What the scores come from; tables of different models do not add up.
    sources : tuple of callables
        Count the parts of the table again, with some bins resolved; of tables counted
        with ``refine=True``. They are neither compared nor written to files.

    Notes
    -----
    Bins are :math:`\lfloor f^{1/4} \cdot bins \rfloor`. A rule fitted on the table cuts
    between bins: its rates differ from those of the best rule on the rows by no more
    than the rows in its threshold bins. Counted with ``refine=True``, the table lets
    :func:`fairpul.fit_rule` resolve these bins.

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
    sources: tuple[Callable[..., GroupCounts], ...] = ()

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
        refine: Refinement | bool | None = None,
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
        refine : bool or mapping, optional
            True: the frame is kept, and :func:`fairpul.fit_rule` counts it again, with
            the bins where the rule cuts resolved to 2**26 bins, until the rule is the
            one of the rows up to 1e-5; one to three more passes are usual. Auditing
            such a rule counts once more; a frontier takes the table as it is. A
            mapping from group keys to bins resolves these now.
        model : str, optional
            What the scores come from, such as the model's version.

        Examples
        --------
        >>> import pandas as pd
        >>> from fairpul import fit_rule
        >>> from fairpul.datasets import make_underdiagnosed
        >>> data = make_underdiagnosed(20_000, random_state=0)
        >>> frame = pd.DataFrame(
        ...     {"p": data.score, "dx": data.labeled, "sex": data.group}
        ... )
        >>> counts = GroupCounts.from_frame(
        ...     frame, score="p", labeled="dx", group="sex", bins=256, refine=True
        ... )
        >>> exact = fit_rule(data.score, data.labeled, data.group, label_frequency=0.8)
        >>> rule = fit_rule(counts, label_frequency=0.8)
        >>> abs(rule.objective_value - exact.objective_value) < 1e-5
        True
        """
        columns = Columns.named(score, labeled, group, sample_weight)
        return cls._counted(partial(count_frame, frame, columns), bins, refine, model)

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
        refine: Refinement | bool | None = None,
        model: str | None = None,
    ) -> GroupCounts:
        """Count batches of rows as they come: Arrow record batches or eager frames.

        For engines without a narwhals backend and for streams (Ray, Arrow Flight,
        ``mapInArrow``). Parameters as in :meth:`from_frame`; ``refine=True`` reads the
        batches anew, so it needs a list or the like, not an iterator.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"p": [0.9, 0.2], "dx": [True, False]})
        >>> GroupCounts.from_batches(table.to_batches(), score="p", labeled="dx")
        GroupCounts(2 rows, 1 labeled, groups 'all', 4096 bins)
        """
        if refine is True and isinstance(batches, Iterator):
            raise ValueError(
                "refine=True reads the batches more than once, got an iterator. Pass a "
                "list, or count with a function: fairpul.refining.refine_rule."
            )
        columns = Columns.named(score, labeled, group, sample_weight)
        count = partial(count_batches, batches, columns)
        return cls._counted(count, bins, refine, model)

    @classmethod
    def from_scores(
        cls,
        scores: GroupScores,
        *,
        bins: int = BINS,
        refine: Refinement | bool | None = None,
        model: str | None = None,
    ) -> GroupCounts:
        """Count the rows of a :class:`fairpul.GroupScores`; clusters are lost."""
        if not isinstance(scores, GroupScores):
            raise TypeError(
                f"from_scores takes GroupScores, got a {type(scores).__name__}. Wrap "
                "arrays: GroupScores(score, labeled, group)."
            )
        return cls._counted(partial(count_scores, scores), bins, refine, model)

    @classmethod
    def _counted(
        cls,
        count: Callable[[int, Refinement], Cells],
        bins: int,
        refine: Refinement | bool | None,
        model: str | None,
    ) -> GroupCounts:
        resolved = check_refinement(refine, check_bins(bins))
        if not (model is None or isinstance(model, str)):
            raise TypeError(f"model must be text, got {model!r}.")
        cells = count(int(bins), resolved)
        again = partial(cls._counted, count, bins, model=model)
        return cls(
            cells.groups,
            cells.codes,
            cells.bin,
            cells.sums,
            int(bins),
            resolved,
            cells.invalid,
            np.zeros((len(cells.groups), 2), dtype=np.int64),
            model,
            (again,) if refine is True else (),
        )

    def recount(self, refine: Refinement) -> GroupCounts:
        """Count the rows of a table counted with ``refine=True`` again.

        Parameters
        ----------
        refine : mapping
            Group key -> bins to resolve to 2**26 bins.
        """
        if not self.sources:
            raise ValueError(
                "The rows of this table cannot be counted again: it, or a part of it, "
                "was not counted with refine=True."
            )
        first, *others = [source(refine=refine) for source in self.sources]
        return sum(others, first)

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
        kinds = [self._kind, other._kind]
        if self.groups and other.groups:  # of no rows, group columns cannot be told
            for table, kind in zip((self, other), kinds, strict=True):
                kind["group columns"] = table._n_group_columns
        unlike = [
            f"{name} ({mine!r} and {theirs!r})"
            for (name, mine), theirs in zip(
                kinds[0].items(), kinds[1].values(), strict=True
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
            sources=(
                self.sources + other.sources if self.sources and other.sources else ()
            ),
        )

    def __radd__(self, other: Any) -> GroupCounts:
        """Start of a ``sum``, which adds to 0."""
        return self if other == 0 else NotImplemented

    @property
    def bins(self) -> int:
        """Number of bins that bin numbers refer to: 2**26 where any is refined."""
        return FINE_BINS if self.refined else self.base_bins

    @property
    def weighted(self) -> bool:
        """Whether the rows had sampling weights."""
        return bool(self.sums.shape[1] > 2)

    def cells_of(self, number: int) -> NDArray[np.intp]:
        """Return the cells of a group that have weight, from the highest bin on."""
        mass = self.sums[:, 2 if self.weighted else 0]
        return np.flatnonzero((self.codes == number) & (mass > 0))[::-1]

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
        cells = self.cells_of(number)
        several = self.sums[cells, 0] > 1
        resolved = self.refined.get(self.groups[number], ())
        return np.asarray(several & ~np.isin(self.base_bins_of(number), resolved))

    def base_bins_of(self, number: int) -> Integers:
        """Return the numbers of these bins among the bins counted at first."""
        return self.bin[self.cells_of(number)] // (self.bins // self.base_bins)

    def heaviest_bin_at(self, number: int, positions: Iterable[int]) -> float:
        """Largest share of a group in a resolvable bin next to some of its cuts."""
        accepted = self.points(number).accepted
        mass = np.where(self.resolvable(number), np.diff(accepted), 0) / accepted[-1]
        beside = [mass[max(0, j - 1) : j + 1].max(initial=0.0) for j in positions]
        return float(max(beside))

    def bin_at(self, number: int, score: float) -> int:
        """Return the number of the bin that counts a score of a group."""
        coarse, fine = (
            int(bin_of(np.array([score]), bins)[0])
            for bins in (self.base_bins, self.bins)
        )
        resolved = self.refined.get(self.groups[number], ())
        wide = self.bins // self.base_bins
        return fine if coarse in resolved else coarse * wide

    def share_in_bin(self, number: int, bin: int) -> float:
        """Share of a group, by weight, in one bin."""
        mass = self.sums[self.codes == number, 2 if self.weighted else 0]
        within = self.bin[self.codes == number] == bin
        return float(mass[within].sum() / mass.sum())

    @property
    def cost_of_suppression(self) -> dict[Hashable, dict[str, float]]:
        """How far off the rates of any cut may be after :meth:`coarsen`, by group.

        Empty of a table without suppressed cells.
        """
        columns = [2, 3] if self.weighted else [0, 1]
        share = self.misplaced / np.maximum(self._totals[:, columns], 1)
        return {
            key: {"selection_rate": float(rows), "tpr": float(labeled)}
            for key, (rows, labeled) in zip(self.groups, share, strict=True)
            if rows > 0
        }

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
            unlabeled rows of each group on the wrong side of any cut; the table keeps
            count, also when tables add up (``cost_of_suppression``).
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
            sources=(),
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
    def _n_group_columns(self) -> int:
        if self.groups == (EVERYBODY,):
            return 0
        return len(self.groups[0]) if isinstance(self.groups[0], tuple) else 1

    @property
    def _cells(self) -> Cells:
        return Cells(self.groups, self.codes, self.bin, self.sums, self.invalid)

    @cached_property
    def _totals(self) -> Integers:
        totals = np.zeros((len(self.groups), self.sums.shape[1]), dtype=np.int64)
        np.add.at(totals, self.codes, self.sums)
        return totals

    @cached_property
    def _points(self) -> list[OperatingPoints]:
        return [self._points_of(number) for number in range(len(self.groups))]

    def _points_of(self, number: int) -> OperatingPoints:
        cells = self.cells_of(number)
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
