from html.parser import HTMLParser

import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fairpul import FairPULClassifier
from fairpul.datasets import make_underdiagnosed
from fairpul.notebook import html_table


class Cells(HTMLParser):
    """Text of the cells of all tables, and the tags that occur."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def fitted():
    data = make_underdiagnosed(4000, random_state=0)
    classifier = FairPULClassifier(random_state=0, label_frequency={"f": 0.3, "m": 0.7})
    return classifier.fit(data.X, data.labeled, sensitive_features=data.group)


def test_text_of_a_table_is_escaped():
    cells = Cells(html_table("a < b", [["group"], ["<script>alert('x')</script>"]]))
    assert "script" not in cells.tags
    assert cells.text == ["a < b", "group", "<script>alert('x')</script>"]


def test_hostile_group_names_stay_text_in_a_rule(make_rule):
    cut = ((0.5, 1.0),)
    rule = make_rule(["<img src=x onerror=alert(1)>", ("a&b", 1)], [cut, cut])
    cells = Cells(rule._repr_html_())
    assert "img" not in cells.tags
    assert "<img src=x onerror=alert(1)>" in cells.text
    assert "('a&b', 1)" in cells.text


def test_a_rule_shows_its_cuts_and_realized_rates(fitted):
    rule = fitted.rule_
    text = Cells(rule._repr_html_()).text
    for key, cuts in zip(rule.groups, rule.cuts, strict=True):
        start = text.index(key)
        assert text[start + 1] == f"accept score >= {cuts[0][0]:.6g}"
        assert text[start + 2] == str(rule.realized[key]["tpr"])


def test_a_classifier_adds_its_rule_below_the_diagram_once_fitted(fitted):
    table = fitted.rule_._repr_html_()
    for page in (fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"]):
        assert page.endswith(table)
        assert "sk-top-container" in page
    assert "<caption>" not in FairPULClassifier()._repr_html_()


def test_display_as_text_leaves_no_html(fitted):
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert set(fitted._repr_mimebundle_()) == {"text/plain"}


def test_a_pipeline_around_it_is_drawn_by_scikit_learn_alone(fitted):
    page = make_pipeline(FairPULClassifier(LogisticRegression()))._repr_html_()
    assert "FairPULClassifier" in page
    assert "<caption>" not in page
