"""
How often are positives labeled? What the data leave open
=========================================================

Labels bound the label frequency from below and from nowhere else. With an anchor, a
region of positives only, the lower end is the answer.
"""

# %%
import warnings

import matplotlib.pyplot as plt

from fairpul import GroupScores
from fairpul.datasets import make_underdiagnosed
from fairpul.label_frequency import LabelFrequencyWarning, resolve_label_frequency
from fairpul.plotting import LabelFrequencyDisplay

figure, axes = plt.subplots(1, 2, figsize=(10, 2.4), layout="constrained", sharey=True)
for ax, anchor in zip(axes, (0.15, 0.0), strict=True):
    data = make_underdiagnosed(8000, anchor_share=anchor, random_state=0)
    scores = GroupScores(data.score, data.labeled, data.group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelFrequencyWarning)
        found = resolve_label_frequency("peak_rate", None, scores, X=data.X)
    LabelFrequencyDisplay.from_label_frequency(found, ax=ax)
    for number, key in enumerate(found):
        ax.plot(data.label_frequency[key], number, "|", color="black", ms=22, mew=2)
    ax.set_title("with an anchor" if anchor else "without one", fontsize=10)

# %%
# Black ticks are the truth. Without the anchor the estimate of group f, whose symptoms
# are weak, is far too low: no region of its scores is made of positives only. Equal
# opportunity and recall floors do not use any of this.

for key, one in found.items():
    print(f"{key}: {one.estimate:.2f} in [{one.low:.2f}, {one.high:.2f}]")
