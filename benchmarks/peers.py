"""Time one other library on the same rows; run in an environment of its own.

    python benchmarks/peers.py fairlearn rows.csv --rows 10_000 100_000

Every peer fits equalized odds of two groups, by its documented default. What it does
not fit (a label frequency) it cannot be blamed for: labels stand for classes here.
"""

import argparse
import csv
import logging
import warnings
from importlib.metadata import version

import numpy as np
from rows import make_rows
from timing import cpu_ratio, peak_memory


def fairlearn(score, labeled, group):
    """ThresholdOptimizer on given scores."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Given(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return X[:, 0]

        def __sklearn_is_fitted__(self):
            return True

    def task():
        ThresholdOptimizer(
            estimator=Given(),
            constraints="equalized_odds",
            prefit=True,
            predict_method="predict",
        ).fit(score[:, None], labeled, sensitive_features=group)

    return task


def error_parity(score, labeled, group):
    """RelaxedThresholdOptimizer at tolerance 0."""
    from error_parity import RelaxedThresholdOptimizer

    def task():
        RelaxedThresholdOptimizer(
            predictor=lambda X: X, constraint="equalized_odds", tolerance=0.0
        ).fit(X=score, y=labeled, group=group)

    return task


def aif360(score, labeled, group):
    """EqOddsPostprocessing of the decisions at the median score."""
    import pandas as pd
    from aif360.algorithms.postprocessing import EqOddsPostprocessing
    from aif360.datasets import BinaryLabelDataset

    def dataset(label):
        return BinaryLabelDataset(
            df=pd.DataFrame({"label": label * 1.0, "group": group * 1.0}),
            label_names=["label"],
            protected_attribute_names=["group"],
        )

    truth, predicted = dataset(labeled), dataset(score > np.median(score))

    def task():
        EqOddsPostprocessing([{"group": 0}], [{"group": 1}], seed=0).fit(
            truth, predicted
        )

    return task


def oxonfair(score, labeled, group):
    """DeepFairPredictor, accuracy under a bound on equalized odds."""
    from oxonfair import DeepFairPredictor
    from oxonfair import group_metrics as metrics

    logits = np.log(np.column_stack([1 - score, score]) + 1e-300)

    def task():
        predictor = DeepFairPredictor(labeled, logits, groups=group)
        predictor.fit(metrics.accuracy, metrics.equalized_odds, 0.0)

    return task


PEERS = {
    "fairlearn": fairlearn,
    "error-parity": error_parity,
    "aif360": aif360,
    "oxonfair": oxonfair,
}


def main():
    """Time one peer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("output")
    parser.add_argument("--rows", type=int, nargs="+", required=True)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    name = f"{arguments.peer} {version(arguments.peer)}"
    with open(arguments.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for n in arguments.rows:
            score, labeled, group, _ = make_rows("continuous", n, 2)
            task = PEERS[arguments.peer](score, labeled.astype(int), group)
            seconds, sort = cpu_ratio(task, score, arguments.repeats)
            memory = peak_memory(task, score)
            row = [name, "equalized_odds", "continuous", 2, n]
            writer.writerow([*row, seconds, sort, seconds / sort, memory])
            file.flush()


if __name__ == "__main__":
    main()
