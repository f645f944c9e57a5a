"""
What does a smaller gap cost?
=============================

The best rule at each tolerance, for two constraints. Equal opportunity moves one rate
and costs little. Equalized odds must make the better-scored group worse.
"""

# %%
import matplotlib.pyplot as plt

from fairpul import GroupScores, MinimumCost, frontier
from fairpul.datasets import make_underdiagnosed
from fairpul.plotting import FrontierDisplay

data = make_underdiagnosed(8000, random_state=0)
scores = GroupScores(data.score, data.labeled, data.group)

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, constraint in zip(axes, ("equal_opportunity", "equalized_odds"), strict=True):
    curve = frontier(
        scores,
        constraint=constraint,
        objective=MinimumCost(false_negative=4),
        label_frequency={"f": 0.3, "m": 0.7},
    )
    FrontierDisplay.from_frontier(curve, ax=ax)
    ax.set_title(constraint.replace("_", " "))

# %%
# A tolerance buys most at the start. It also shrinks the lottery of equalized odds:

for tolerance, rule in list(zip(curve.tolerances, curve.rules, strict=True))[::5]:
    share = max(rule.lottery_share.values())
    print(f"tolerance {tolerance:.2f}: at most {share:.0%} of a group by lot")
