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
# The finding in words:

print(report.gaps["tpr"])
for text in report.warnings:
    print("-", text)
