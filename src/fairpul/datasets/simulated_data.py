"""Positive-unlabeled rows with the truth beside them, and their exact rates.

Within a class and a group the features are independent Gaussians of one variance, so
the log odds of the posterior are Gaussian too, and every rate has a closed form.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, ndtr

from fairpul._groups import encode_groups
from fairpul.datasets.labeling import by_group


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedData:
    """Positive-unlabeled rows, and beside them the truth that users never see.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features; the group is not among them.
    labeled : ndarray of shape (n_samples,)
        1 for labeled positives, 0 for unlabeled rows: all that a method may learn from.
    group : ndarray of shape (n_samples,)
        Group of each row.
    feature_names : tuple of str
        Names of the columns of ``X``.
    y_true : ndarray of shape (n_samples,)
        True class.
    posterior : ndarray of shape (n_samples,)
        P(positive) given the features and the group.
    label_frequency, class_prior : dict
        P(labeled given positive) and P(positive) in the population, by group.
    separation : dict
        Distance of the class means in standard deviations, by group.
    anchor_share : float
        Share of the positives with a feature that no negative has: posterior 1.
    """

    X: NDArray[np.float64]
    labeled: NDArray[np.int64]
    group: NDArray[Any]
    feature_names: tuple[str, ...]
    y_true: NDArray[np.int64]
    posterior: NDArray[np.float64]
    label_frequency: dict[Hashable, float]
    class_prior: dict[Hashable, float]
    separation: dict[Hashable, float]
    anchor_share: float = 0.0

    def __repr__(self) -> str:
        """Sizes and groups, not the arrays."""
        n_rows, n_features = self.X.shape
        groups = ", ".join(map(repr, self.class_prior))
        return f"SimulatedData({n_rows} rows, {n_features} features, groups {groups})"

    @property
    def score(self) -> NDArray[np.float64]:
        """P(labeled) given features and group: label frequency times posterior."""
        codes, keys = encode_groups(self.group, len(self.group))
        frequency = np.array([self.label_frequency[key] for key in keys])
        return frequency[codes] * self.posterior

    def population_rates(
        self, threshold: float | Mapping[Any, float]
    ) -> dict[Hashable, dict[str, float]]:
        r"""TPR, FPR and selection rate of "accept posterior >= threshold", by group.

        Parameters
        ----------
        threshold : float or mapping
            Cut on the posterior in [0, 1], one for all or one for each group.

        Returns
        -------
        dict
            By group: ``{"tpr", "fpr", "selection_rate"}`` of the population, not of
            the rows at hand.

        Notes
        -----
        With separation D, prior :math:`\pi`, anchor share a and
        :math:`b = \mathrm{logit}\,\pi + \log(1 - a) - \mathrm{logit}\,t`:
        :math:`\mathrm{TPR} = a + (1 - a)\,\Phi(b / D + D / 2)` and
        :math:`\mathrm{FPR} = \Phi(b / D - D / 2)`.

        Examples
        --------
        >>> from fairpul.datasets import make_two_groups
        >>> rates = make_two_groups(random_state=0).population_rates(0.5)
        >>> {key: round(rate["tpr"], 3) for key, rate in rates.items()}
        {'a': 0.943, 'b': 0.577}
        """
        cuts = by_group(threshold, tuple(self.class_prior), "threshold")
        for key, cut in cuts.items():
            if not 0 <= cut <= 1:
                raise ValueError(f"A threshold in [0, 1] is required, got {key}: {cut}")
        return {key: self._rates_at(key, cut) for key, cut in cuts.items()}

    def _rates_at(self, key: Hashable, cut: float) -> dict[str, float]:
        prior, distance = self.class_prior[key], self.separation[key]
        offset = logit(prior) + np.log1p(-self.anchor_share) - logit(cut)
        beyond_anchor = ndtr(offset / distance + distance / 2)
        tpr = float(self.anchor_share + (1 - self.anchor_share) * beyond_anchor)
        fpr = float(ndtr(offset / distance - distance / 2))
        return {
            "tpr": tpr,
            "fpr": fpr,
            "selection_rate": prior * tpr + (1 - prior) * fpr,
        }
