"""
Under-diagnosis: find the gap, fix it, look again
=================================================

A disease is recorded for 30% of the diseased women and 70% of the diseased men. Which
share of the diseased does a referral rule find in each group?
"""

# %%
# A score for a record of the disease, out of fold, from gradient boosting. The
# estimator makes it, and a rule with it.

import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingClassifier

from fairpul import FairPULClassifier, RecallFloor, audit
from fairpul.datasets import make_underdiagnosed
from fairpul.plotting import GroupCurvesDisplay, IntervalsDisplay

known = {"f": 0.3, "m": 0.7}  # so that the FPR can be shown, too
last_year = make_underdiagnosed(8000, random_state=0)
this_year = make_underdiagnosed(8000, random_state=1)

model = FairPULClassifier(
    HistGradientBoostingClassifier(max_iter=50, random_state=0),
    objective=RecallFloor(0.8),
    label_frequency=known,
    random_state=0,
)
model.fit(last_year.X, last_year.labeled, sensitive_features=last_year.group)

# %%
# One threshold for all, with as many referrals as the rule has:

score = model.decision_function(this_year.X)
rows = {"labeled": this_year.labeled, "group": this_year.group, "score": score}
share = model.rule_.decide(score, this_year.group).mean()
before = audit(**rows, capacity=share, label_frequency=known)
after = audit(**rows, rule=model.rule_, label_frequency=known)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
IntervalsDisplay.from_rates(before.rates, ax=axes[0])
IntervalsDisplay.from_rates(after.rates, ax=axes[1])
figure.suptitle("One threshold for all (left), one per group (right)")

# %%
# The rule is a point on each group's operating curve, at one height. What group f pays
# is seen on the horizontal axis: more of its patients are referred.

from fairpul import GroupScores

scores = GroupScores(score, this_year.labeled, this_year.group)
GroupCurvesDisplay.from_scores(scores, rule=model.rule_)

# %%
# The change, paired by patient, with intervals:

change = before.compare(after)
print("f:  ", change.rates["f"]["tpr"])
print("m:  ", change.rates["m"]["tpr"])
print("gap:", change.gaps["tpr"])
