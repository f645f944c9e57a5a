"""Scores, labels and groups to measure with; NumPy alone, so that peers can read it."""

import numpy as np

SCENARIOS = ("continuous", "tied", "rare", "tiny group")


def make_rows(scenario, n, k, seed=0):
    """Score, label and integer group of each row, and the label frequency by group.

    Scores are P(labeled), from Beta distributed posteriors that differ by group. Tied:
    rounded to two decimals. Rare: one row in a thousand is positive. Tiny group: the
    last group has one row in a thousand (200 at least).
    """
    rng = np.random.default_rng(seed)
    group = rng.integers(0, k, n)
    if scenario == "tiny group":
        group = rng.integers(0, max(1, k - 1), n)
        group[rng.choice(n, max(200, n // 1000), replace=False)] = k - 1
    odd = group % 2
    posterior = rng.beta(0.02, 20, n) if scenario == "rare" else rng.beta(1, 2 + odd)
    score = posterior * np.where(odd, 0.8, 0.5)
    if scenario == "tied":
        score = np.round(score, 2)
    labeled = rng.random(n) < score
    for number in range(k):  # every group needs a labeled row
        labeled[np.argmax(group == number)] = True
    frequency = {number: 0.8 if number % 2 else 0.5 for number in range(k)}
    return score, labeled, group, frequency
