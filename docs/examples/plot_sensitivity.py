"""
How much labeling bias does a finding survive?
==============================================

If accepted positives are labeled more often than rejected ones, recall read from labels
is too high. The band shows all true gaps that are possible when that ratio is bounded.
"""

# %%
from fairpul import GroupScores, audit
from fairpul.datasets import make_underdiagnosed
from fairpul.plotting import SensitivityDisplay

data = make_underdiagnosed(8000, random_state=0)
scores = GroupScores(data.score, data.labeled, data.group)
report = audit(scores, capacity=0.4, label_frequency={"f": 0.3, "m": 0.7})
SensitivityDisplay.from_audit(report)

# %%
# The same as numbers, with what the finding survives at the lower end of its interval:

print("gap:", report.gaps["tpr"])
bias = report.sensitivity["labeling_bias"]
print(f"one group's labels alone: {bias.estimate:.1f}, at least {bias.low:.1f}")
both = report.sensitivity["labeling_bias_both"]
print(f"both, in opposite directions: {both.estimate:.1f}, at least {both.low:.1f}")
