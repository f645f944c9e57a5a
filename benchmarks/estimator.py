"""What FairPULClassifier adds to its base models, and what sharpening does."""

from collections import defaultdict
from functools import partial
from unittest import mock

import numpy as np
from timing import cpu_seconds

from fairpul import FairPULClassifier
from fairpul.crossfit import crossfit
from fairpul.datasets import make_underdiagnosed
from fairpul.label_frequency import PeakRate, _sharpening

HEADER = ["study", "what", "n", "seconds", "value", "spread"]
READINGS = ("bare", "subsample", "all rows")
# Sharpening all rows, to see what a subsample loses, takes long beyond this.
_MOST_SHARPENED = 100_000


def measure_estimator(sizes, repeats):
    """Rows of the results: study, what, n, CPU seconds, a value and its spread."""
    for n in sizes:
        data = make_underdiagnosed(n, random_state=0)
        for name, base in _base_models():
            for kind, group in (("integers", _codes(data)), ("strings", data.group)):
                seconds, added = _added(base, data, group, repeats)
                what = f"{name}, groups as {kind}"
                yield "added by the classifier", what, n, seconds, *added
    for n in sizes:
        for reading, (seconds, bias, spread) in _readings(n, repeats).items():
            yield "label frequency", reading, n, seconds, bias, spread


def _base_models():
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    yield "logistic", make_pipeline(StandardScaler(), LogisticRegression())
    yield "boosting", HistGradientBoostingClassifier(random_state=0)


def _added(base, data, group, repeats):
    """CPU seconds of cross-fitting; median and spread of the share that a fit adds."""
    known = dict(zip(np.unique(group), data.label_frequency.values(), strict=True))
    model = FairPULClassifier(base, label_frequency=known, random_state=0)
    fit = partial(model.fit, data.X, data.labeled, sensitive_features=group)
    labeled = data.labeled == 1
    alone = partial(crossfit, base, data.X, labeled, _codes(data), random_state=0)
    fit()  # caches and pages
    pairs = [(cpu_seconds(alone), cpu_seconds(fit)) for _ in range(repeats)]
    crossfits, fits = np.array(pairs).T
    added = fits / crossfits - 1
    return float(np.median(crossfits)), (float(np.median(added)), float(added.std()))


def _readings(n, repeats):
    """By reading: CPU seconds, bias and spread of the label frequencies that it gives.

    The score is that of boosted trees, cross-fitted: an order with noise.
    """
    seconds, errors = defaultdict(list), defaultdict(list)
    trees = dict(_base_models())["boosting"]
    for seed in range(repeats):
        data = make_underdiagnosed(n, random_state=seed)
        fitted = crossfit(
            trees, data.X, data.labeled == 1, _codes(data), random_state=seed
        )
        for reading in READINGS:
            if reading == "all rows" and n > _MOST_SHARPENED:
                continue
            limit = n if reading == "all rows" else _sharpening._MOST_ROWS
            found = {}
            with mock.patch.object(_sharpening, "_MOST_ROWS", limit):
                read = partial(_read, found, reading, data, fitted, seed)
                seconds[reading].append(cpu_seconds(read))
            errors[reading] += [
                c.estimate - data.label_frequency[s] for s, c in found.items()
            ]
    return {
        reading: (
            float(np.median(seconds[reading])),
            float(np.mean(errors[reading])),
            float(np.std(errors[reading])),
        )
        for reading in seconds
    }


def _read(found, reading, data, fitted, seed):
    estimator = PeakRate(random_state=seed)
    X = None if reading == "bare" else data.X
    found |= estimator.estimate(
        fitted.score, data.labeled, group=data.group, X=X, folds=fitted.folds
    )


def _codes(data):
    return np.unique(data.group, return_inverse=True)[1]
