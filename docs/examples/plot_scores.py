"""
Look at the score before the rule
=================================

Is it spread alike in the groups, and does it say what it claims about labels?
"""

# %%
# Labeled rows stand for all positives of a group; unlabeled ones are a mixture.

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from fairpul import GroupScores, RecallFloor, fit_rule
from fairpul.datasets import make_underdiagnosed
from fairpul.plotting import CalibrationDisplay, ScoreDistributionDisplay

data = make_underdiagnosed(8000, random_state=0)
score = cross_val_predict(
    LogisticRegression(max_iter=1000), data.X, data.labeled, method="predict_proba"
)[:, 1]
scores = GroupScores(score, data.labeled, data.group)
rule = fit_rule(scores, objective=RecallFloor(0.8))
ScoreDistributionDisplay.from_scores(scores, rule=rule)

# %%
# The model does not know the group. It claims too much for group f, whose positives are
# labeled less often, and too little for group m. Rules with one cut per group do not
# mind: only the order within a group matters.

CalibrationDisplay.from_scores(scores)
