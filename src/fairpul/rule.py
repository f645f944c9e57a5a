"""The decision rule: cuts and weights of each group, and what to expect of it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpul._groups import codes_of, key_from_json, key_to_json
from fairpul._validation import check_row_id, check_score
from fairpul.binning import bin_of, check_bins, least_score
from fairpul.cuts import Cuts, acceptance, decided
from fairpul.draw import (
    accepted_integers,
    draw_by_content,
    draw_by_id,
    draw_integers,
)
from fairpul.frames import decide_frame
from fairpul.label_frequency import LabelFrequency
from fairpul.notebook import html_table
from fairpul.objectives import (
    Capacity,
    MinimumCost,
    Objective,
    RecallFloor,
    check_tolerance,
)
from fairpul.rates import Rates
from fairpul.sql import decision_expression

#: Version of the JSON layout; rules of another version are refused.
FORMAT = 1
_OBJECTIVES = {kind.__name__: kind for kind in (MinimumCost, RecallFloor, Capacity)}


@dataclass(frozen=True)
class DecisionRule:
    """One table of cuts per group: accept the rows whose score reaches the cut.

    A group with several cuts draws lots: each cut is in force with its weight. Built
    by :func:`fairpul.fit_rule`; prints as a table and persists as JSON.

    Attributes
    ----------
    groups : tuple
        Keys of the groups.
    cuts : tuple
        For each group, pairs (cut, weight) from strict to lenient. A row is accepted
        with the summed weight of the cuts that its score reaches. An infinite cut
        accepts nobody, a cut of 0 everybody.
    expected : Rates
        Rates of the exact mixture, of which optimality and certificate speak.
    realized : Rates
        Rates of the cuts above, after snapping.
    certificate : float
        How much better than the exact mixture any rule could be, at most.
    objective_value : float
        Of the exact mixture: its cost, its selection rate (:class:`RecallFloor`) or
        its overall recall (:class:`Capacity`).
    cost_of_snapping : float
        How much worse the objective is after snapping.
    constraint, tolerance, objective
        What was asked for; the tolerance by rate.
    label_frequency : dict
        Group key -> :class:`fairpul.label_frequency.LabelFrequency`.
    seed : int
        Salt of the lottery; 0 for a rule without one.
    lottery_share : dict
        Group key -> share of the group's rows that are drawn by lot.
    bins : int or None
        Of a rule fitted on counts: cuts are bin numbers, and a score is compared by
        the number of its bin among so many (:func:`fairpul.binning.bin_of`).
    """

    groups: tuple[Hashable, ...]
    cuts: tuple[Cuts, ...]
    expected: Rates
    realized: Rates
    certificate: float
    objective_value: float
    cost_of_snapping: float
    constraint: str | None
    tolerance: Mapping[str, float]
    objective: Objective
    label_frequency: Mapping[Hashable, LabelFrequency]
    seed: int
    lottery_share: Mapping[Hashable, float]
    bins: int | None = None

    __hash__ = None  # type: ignore[assignment]  # holds mappings

    @property
    def has_lottery(self) -> bool:
        """Whether some rows are drawn by lot."""
        return any(len(cuts) > 1 for cuts in self.cuts)

    def acceptance_probability(
        self, score: ArrayLike, group: Any = None
    ) -> NDArray[np.float64]:
        """Probability that each row is accepted: 0 or 1 unless a lottery touches it.

        Parameters
        ----------
        score : array-like of shape (n_rows,)
            Scores of the same classifier that the rule was fitted for.
        group : array-like of shape (n_rows,) or (n_rows, n_columns)
            Group of each row; a group that the rule does not know is an error.
        """
        column = check_score(score)
        codes = codes_of(group, self.groups, len(column))
        return acceptance(self._compared(column), codes, self.cuts)

    def decide(
        self,
        score: ArrayLike,
        group: Any = None,
        *,
        row_id: ArrayLike | None = None,
    ) -> NDArray[np.int64]:
        """Decision on each row: 1 accepted, 0 not.

        Parameters
        ----------
        score, group : array-like
            As in :meth:`acceptance_probability`.
        row_id : array-like of shape (n_rows,), optional
            Integers or strings that name the rows. The draw of a row then depends on
            its id alone. Without ids it depends on the row's group and score and on
            how often these came before in the batch.
        """
        column = check_score(score)
        codes = codes_of(group, self.groups, len(column))
        decision, drawn = decided(self._compared(column), codes, self.cuts)
        if row_id is not None:
            ids = check_row_id(row_id, len(column))[drawn]
        if not len(drawn):
            return decision
        column, codes = column[drawn], codes[drawn]
        probability = acceptance(self._compared(column), codes, self.cuts)
        if row_id is not None:
            decision[drawn] = self._draw_by_id(ids, probability)
        else:
            decision[drawn] = self._draw_by_content(column, codes, probability)
        return decision

    def to_sql(
        self,
        dialect: str,
        *,
        score: str,
        group: str | list[str] | None = None,
        row_id: str | None = None,
    ) -> str:
        """Write the decision as SQL: 1, 0, or -1 for invalid rows.

        Parameters
        ----------
        dialect : {"duckdb", "spark"}
            Engine that will read it.
        score, group : str
            Names of the columns; a list of names for intersectional groups.
        row_id : str, optional
            Name of an integer column, required for a rule with a lottery.

        Examples
        --------
        >>> from fairpul import RecallFloor, fit_rule
        >>> score, labeled = [0.9] * 60 + [0.2] * 40, [1] * 55 + [0] * 45
        >>> rule = fit_rule(score, labeled, label_frequency=1.0,
        ...                 objective=RecallFloor(0.8))
        >>> print(rule.to_sql("duckdb", score="p"))  # doctest: +ELLIPSIS
        CASE WHEN "p" IS NULL OR ...
        """
        return decision_expression(
            dialect,
            self.groups,
            self.cuts,
            self.seed,
            self.bins,
            score=score,
            group=group,
            row_id=row_id,
        )

    def apply(
        self,
        frame: Any,
        *,
        score: str,
        group: str | list[str] | None = None,
        row_id: str | None = None,
        probability: bool = False,
    ) -> Any:
        """Frame with a column ``decision``: 1, 0, or -1 for invalid rows.

        Parameters
        ----------
        frame : data frame
            Any frame that narwhals knows: pandas, Polars, Arrow, or the lazy frame of
            an engine (Polars, DuckDB, ibis, Dask, PySpark). Lazy frames stay lazy.
        score, group : str
            Names of the columns; a list of names for intersectional groups. Rows
            without a score in [0, 1] or with an unknown group get the decision -1.
        row_id : str, optional
            Name of an integer column that names the rows, required for a rule with a
            lottery: the same id gets the same decision on every engine.
        probability : bool, default=False
            Add a column ``acceptance_probability`` too, null for invalid rows.

        Returns
        -------
        data frame
            The same kind of frame with the column or columns added.

        Examples
        --------
        >>> import pandas as pd
        >>> from fairpul import RecallFloor, fit_rule
        >>> score, labeled = [0.9] * 60 + [0.2] * 40, [1] * 55 + [0] * 45
        >>> rule = fit_rule(score, labeled, label_frequency=1.0,
        ...                 objective=RecallFloor(0.8))
        >>> frame = pd.DataFrame({"p": [0.95, 0.2, None]})
        >>> rule.apply(frame, score="p")["decision"].tolist()
        [1, 0, -1]
        """
        return decide_frame(
            frame,
            self,
            score=score,
            group=group,
            row_id=row_id,
            probability=probability,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in the JSON form."""
        return {
            "format": FORMAT,
            "groups": [key_to_json(key) for key in self.groups],
            "cuts": [
                [[None if np.isinf(cut) else cut, weight] for cut, weight in cuts]
                for cuts in self.cuts
            ],
            "bins": self.bins,
            "seed": self.seed,
            "constraint": self.constraint,
            "tolerance": dict(self.tolerance),
            "objective": _objective_to_dict(self.objective),
            "objective_value": self.objective_value,
            "certificate": self.certificate,
            "cost_of_snapping": self.cost_of_snapping,
            "lottery_share": [self.lottery_share[key] for key in self.groups],
            "label_frequency": [
                asdict(self.label_frequency[key]) for key in self.groups
            ],
            "expected": self.expected.to_dict(),
            "realized": self.realized.to_dict(),
        }

    def to_json(self) -> str:
        """Rule as JSON text; floats survive the round trip to the last digit."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> DecisionRule:
        """Rule back from :meth:`to_json`, checked."""
        fields = json.loads(text)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            found = fields.get("format") if isinstance(fields, dict) else None
            raise ValueError(
                f"A fairpul rule of format {FORMAT} is required, got {found!r}. "
                "Export the rule again with this version."
            )
        missing = sorted(_FIELDS - fields.keys())
        if missing:
            raise ValueError(f"The rule lacks the fields {missing!r}.")
        try:
            return cls._from_fields(fields)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(
                f"The fields of the rule are damaged ({error!r}). Export it again."
            ) from error

    @classmethod
    def _from_fields(cls, fields: Mapping[str, Any]) -> DecisionRule:
        groups = tuple(key_from_json(key) for key in fields["groups"])
        bins = None if fields["bins"] is None else check_bins(fields["bins"])
        cuts = tuple(_cuts_from_json(cuts, bins) for cuts in fields["cuts"])
        if not 0 < len(groups) == len(cuts) == len(set(groups)):
            raise ValueError(
                f"A rule needs one list of cuts for each of its distinct groups, got "
                f"{len(cuts)} for {list(groups)!r}."
            )
        for name in ("lottery_share", "label_frequency"):
            if len(fields[name]) != len(groups):
                raise ValueError(
                    f"A rule needs one {name} for each of its groups "
                    f"{list(groups)!r}, got {fields[name]!r}."
                )
        if type(fields["seed"]) is not int:
            raise ValueError(f"The seed must be an integer, got {fields['seed']!r}.")
        return cls(
            groups=groups,
            cuts=cuts,
            expected=Rates.from_dict(fields["expected"]),
            realized=Rates.from_dict(fields["realized"]),
            certificate=float(fields["certificate"]),
            objective_value=float(fields["objective_value"]),
            cost_of_snapping=float(fields["cost_of_snapping"]),
            constraint=fields["constraint"],
            tolerance=check_tolerance(fields["constraint"], fields["tolerance"]),
            objective=_objective_from_dict(fields["objective"]),
            label_frequency={
                key: LabelFrequency(**values)
                for key, values in zip(groups, fields["label_frequency"], strict=True)
            },
            seed=fields["seed"],
            lottery_share=dict(zip(groups, fields["lottery_share"], strict=True)),
            bins=bins,
        )

    def __repr__(self) -> str:
        head = f"DecisionRule({self.constraint or 'no constraint'}, {self.objective})"
        width = max(len(str(key)) for key in self.groups)
        return "\n".join(
            [head]
            + [
                f"  {key!s:<{width}}  {_describe(cuts, self.bins)}"
                for key, cuts in zip(self.groups, self.cuts, strict=True)
            ]
        )

    def _repr_html_(self) -> str:
        rates = {"tpr": "TPR", "selection_rate": "selection rate", "fpr": "FPR"}
        rows = [["group", "decision", *rates.values()]]
        for key, cuts in zip(self.groups, self.cuts, strict=True):
            values = [str(self.realized[key][name]) for name in rates]
            rows.append([str(key), _describe(cuts, self.bins), *values])
        what = f"{self.constraint or 'no constraint'}, {self.objective}"
        return html_table(f"Decision rule: {what}", rows)

    def _compared(self, score: NDArray[Any]) -> NDArray[Any]:
        """Return what cuts are compared with: the score or the number of its bin."""
        return score if self.bins is None else bin_of(score, self.bins)

    def _draw_by_id(
        self, ids: NDArray[Any], probability: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        if ids.dtype.kind in "iu":  # in integers, as the engines compare
            drawn = draw_integers(ids, self.seed)
            return np.asarray(drawn < accepted_integers(probability))
        return np.asarray(draw_by_id(ids, self.seed) < probability)

    def _draw_by_content(
        self,
        score: NDArray[Any],
        codes: NDArray[np.intp],
        probability: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        accepted = np.zeros(len(score), dtype=bool)
        for number in np.unique(codes):
            rows = np.flatnonzero(codes == number)
            draw = draw_by_content(score[rows], self.groups[number], self.seed)
            accepted[rows] = draw < probability[rows]
        return accepted


_FIELDS = {
    "groups",
    "cuts",
    "bins",
    "seed",
    "constraint",
    "tolerance",
    "objective",
    "objective_value",
    "certificate",
    "cost_of_snapping",
    "lottery_share",
    "label_frequency",
    "expected",
    "realized",
}


def _cuts_from_json(values: Any, bins: int | None) -> Cuts:
    cuts = tuple((np.inf if cut is None else float(cut), float(w)) for cut, w in values)
    weights = [weight for _, weight in cuts]
    descending = all(a[0] > b[0] for a, b in pairwise(cuts))
    last = 1 if bins is None else bins
    inside = all(0 <= cut <= last or cut == np.inf for cut, _ in cuts)
    inside &= bins is None or all(cut % 1 == 0 or cut == np.inf for cut, _ in cuts)
    positive = all(weight > 0 for weight in weights)
    if not (descending and inside and positive and abs(sum(weights) - 1) <= 1e-9):
        raise ValueError(
            f"Cuts must fall from strict to lenient, each in [0, {last}] or null (bin "
            "numbers of a binned rule are whole), with positive weights that sum to "
            f"1, got {values!r}."
        )
    return cuts


def _objective_to_dict(objective: Objective) -> dict[str, Any]:
    return {"name": type(objective).__name__, **asdict(objective)}


def _objective_from_dict(fields: Mapping[str, Any]) -> Objective:
    values = dict(fields)
    kind = _OBJECTIVES.get(values.pop("name", None))
    if kind is None:
        raise ValueError(f"Unknown objective in the rule: {fields!r}.")
    if values.get("floor") is not None:
        values["floor"] = RecallFloor(**values["floor"])
    return kind(**values)


def _describe(cuts: Cuts, bins: int | None) -> str:
    parts = []
    for cut, weight in cuts:
        if np.isinf(cut):
            text = "accept nobody"
        elif cut == 0:
            text = "accept everybody"
        else:
            text = f"accept score >= {least_score(cut, bins):.6g}"
            text += "" if bins is None else f" (bin {cut:.0f} of {bins})"
        parts.append(text if len(cuts) == 1 else f"{weight:.1%}: {text}")
    return "; ".join(parts)
