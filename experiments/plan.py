"""What runs: the cells of the paper's tables and figures, and the methods in each."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.methods import METHODS, UPSAMPLED

_DIRECT = ("Unconstrained PU", "Direct EO", "Direct EOP", "Recall floor")
_BOUNDS = ("Everyone positive", "Sampling noise", "Sampling noise, oracle")
#: Rows that the paper lacks and every table of ours has.
EXTRAS = (*_DIRECT, *_BOUNDS)
_FAIR = ("Agarwal", "Hardt", "Chzhen")
_PU = ("uPU", "wPU", "Bagging")
_OURS = ("FairPUL-EO", "FairPUL-EOP", *EXTRAS)
_EVERY = ("Oracle", "Naive", *_FAIR, *_PU, *_OURS)
_VARIANTS = tuple(
    name
    for name in METHODS
    if name.startswith("FairPUL")
    and name.endswith(")")
    and not name.endswith(("(upsampled)", "(group in X)"))
)
_EXACT = ("FairPUL-EO (exact)", "FairPUL-EOP (exact)")
_IN_VS_POST = ("Naive", "Agarwal", "Pre", *_OURS)
_LABEL_RATES = ("Naive", *_OURS)

SYNTHETIC_RATES = (1.0, 0.8, 0.6, 0.4, 0.2)
SYNTHETIC_TRIALS = 5
EXTRA_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Cell:
    """One data set, base model and labeling rate, with the methods to run on it.

    ``extra_share`` is the share of the pool of unlabeled rows that is added in the
    study of unlabeled rows, None elsewhere.
    """

    dataset: str
    base: str
    rate: float
    methods: tuple[str, ...]
    extra_share: float | None = None

    def __str__(self) -> str:
        return f"{self.dataset} {self.base} rate {self.rate}"


def table_cells() -> list[Cell]:
    """Cells of the four tables; a cell that two of them share appears once."""
    cells = [
        Cell("german", "Lin.SVM", 0.9, (*_EVERY, "Pre", *_VARIANTS)),
        Cell("compas", "Lin.SVM", 0.9, (*_EVERY, "Pre", *_VARIANTS)),
        Cell(
            "drug",
            "Lin.SVM",
            0.9,
            (*_EVERY, *_VARIANTS, *(f"{name} (upsampled)" for name in UPSAMPLED)),
        ),
        Cell(
            "compas",
            "Lin.LR",
            0.9,
            (*_EVERY, "Pre", *_VARIANTS, *(f"{n} (group in X)" for n in UPSAMPLED)),
        ),
        Cell("compas", "SVM", 0.9, (*_EVERY, *_EXACT)),
        Cell(
            "compas",
            "MLP",
            0.9,
            (*(name for name in _EVERY if name not in ("Agarwal", "Bagging")), "nnPU"),
        ),
        Cell("german", "Lin.LR", 0.9, _IN_VS_POST),
    ]
    for dataset in ("compas", "german"):
        for base in ("Lin.SVM", "Lin.LR"):
            cells.append(Cell(dataset, base, 1.0, _IN_VS_POST))
            cells += [Cell(dataset, base, rate, _LABEL_RATES) for rate in (0.8, 0.5)]
    return cells


def synthetic_cells() -> list[Cell]:
    """Cells of the figure on two Gaussian groups."""
    return [Cell("synthetic", "Lin.LR", rate, _EVERY) for rate in SYNTHETIC_RATES]


def unlabeled_cells() -> list[Cell]:
    """Cells of the figure on extra unlabeled rows."""
    methods = ("FairPUL-EOP", "Everyone positive", "Direct EOP")
    return [Cell("compas", "Lin.LR", 0.9, methods, share) for share in EXTRA_SHARES]


def main_cells() -> list[Cell]:
    """Cells that also run on 40 splits.

    Our method fits five models and stays out where a model takes seconds.
    """
    brief = ("Oracle", "Naive", "uPU", "FairPUL-EO", "FairPUL-EOP", *_EXACT, *_BOUNDS)
    main = (*brief, *_DIRECT)
    transductive = ("FairPUL-EO (test rows)", "FairPUL-EOP (test rows)")
    upsampled = tuple(f"{name} (upsampled)" for name in UPSAMPLED)
    return [
        Cell("german", "Lin.SVM", 0.9, (*main, *transductive)),
        Cell("compas", "Lin.LR", 0.9, main),
        Cell("compas", "Lin.SVM", 0.9, brief),
        Cell("compas", "SVM", 0.9, brief),
        Cell("drug", "Lin.SVM", 0.9, (*main, *upsampled)),
    ]
