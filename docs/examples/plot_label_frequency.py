"""
How often are positives labeled? What the data leave open
=========================================================

Labels bound the label frequency from below and from nowhere else. With an anchor, a
region of positives only, the lower end of what is possible is the answer.
"""

# %%
# Two groups, labeled at rates of .3 and .6. On the left some rows are surely positive;
# on the right the posterior is at most .7 anywhere.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from fairpul import GroupScores
from fairpul.label_frequency import LabelFrequencyWarning, resolve_label_frequency
from fairpul.plotting import LabelFrequencyDisplay

truth = {"f": 0.3, "m": 0.6}
rng = np.random.default_rng(0)
group = rng.choice(["f", "m"], size=12_000)
frequency = np.where(group == "f", truth["f"], truth["m"])
shape = np.minimum(1, 1.4 * rng.beta(0.5, 1.5, size=len(group)))

figure, axes = plt.subplots(1, 2, figsize=(10, 2.4), layout="constrained", sharey=True)
for ax, highest in zip(axes, (1.0, 0.7), strict=True):
    score = frequency * highest * shape
    labeled = rng.random(len(group)) < score
    scores = GroupScores(score, labeled, group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelFrequencyWarning)
        found = resolve_label_frequency("peak_rate", None, scores)
    LabelFrequencyDisplay.from_label_frequency(found, ax=ax)
    for number, key in enumerate(found):
        ax.plot(truth[key], number, "|", color="black", ms=14, mew=2)
    ax.set_title(f"posterior up to {highest:g}", fontsize=10)
    for key, one in found.items():
        print(f"up to {highest:g}, {key}: {one.estimate:.2f} (truth {truth[key]:.1f})")

# %%
# Black ticks are the truth. It is inside the bar in both cases, for the bar is what
# data show. The marker stands on the assumption of an anchor: on the right it reads off
# :math:`.7 c` instead of :math:`c`, and nothing in the data gives that away. Equal
# opportunity and recall floors use none of this.
