import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from fairpul import (
    Capacity,
    GroupCounts,
    GroupScores,
    RecallFloor,
    audit,
    fit_rule,
)
from fairpul.datasets import make_underdiagnosed
from fairpul.report.exhibits import exhibits
from fairpul.report.html import to_html
from fairpul.report.tables import break_evens
from fairpul.report.words import cuts_text, headline, sentences

HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted' & <b>bold</b></script><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }} ${7} \u202e\u2028 </style>",
)


def scores_of(groups=("f", "m"), n_samples=3000):
    frequency = np.linspace(0.3, 0.7, len(groups))
    data = make_underdiagnosed(
        n_samples, groups=groups, label_frequency=frequency, random_state=1
    )
    return GroupScores(data.score, data.labeled, data.group)


class Outline(HTMLParser):
    """Elements of a page, its ids, and the text outside of scripts and styles."""

    VOID = ("meta", "link", "input", "br", "img", "hr")

    def __init__(self, text):
        super().__init__()
        self.elements, self.ids, self.text, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text.append(data)


@pytest.fixture(scope="module")
def numbers():
    return exhibits(audit(scores_of(), capacity=0.2))


@pytest.fixture(scope="module")
def page(numbers):
    return to_html(numbers, title="An audit", source="rows.csv", fingerprint="abc")


def test_the_page_leads_with_the_finding(numbers, page):
    text = "".join(Outline(page).text)
    assert text.index(headline(numbers.audit)) < text.index("Rates by group")


def test_every_rate_and_interval_of_the_audit_is_on_the_page(numbers, page):
    text = "".join(Outline(page).text)
    for rates in numbers.audit.rates.values():
        for rate in rates.values():
            assert f"{100 * rate.estimate:.1f}%" in text
            assert f"{100 * rate.low:.1f} to {100 * rate.high:.1f}%" in text


def test_the_page_is_well_formed_with_unique_ids(page):
    outline = Outline(page)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    referred = {
        name
        for _, attributes in outline.elements
        for key in ("aria-labelledby", "for")
        for name in (attributes.get(key) or "").split()
    }
    assert referred <= set(outline.ids)


def test_the_page_refers_to_no_other_file(page):
    for tag, attributes in Outline(page).elements:
        for name in ("src", "href", "srcset", "data", "action"):
            address = attributes.get(name)
            assert address is None or address.startswith(("#", "data:")), (tag, address)
    assert "@import" not in page


def test_the_page_is_under_three_megabytes(page):
    assert len(page.encode()) < 3_000_000


def test_the_same_numbers_give_the_same_bytes(page):
    again = exhibits(audit(scores_of(), capacity=0.2))
    assert (
        to_html(again, title="An audit", source="rows.csv", fingerprint="abc") == page
    )


def test_a_date_is_on_the_page_only_if_given(numbers, page):
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", "".join(Outline(page).text))
    assert "2024-05-06" in to_html(numbers, date="2024-05-06")


def test_hostile_names_stay_text():
    scores = scores_of(HOSTILE)
    page = to_html(
        exhibits(audit(scores, capacity=0.2)), title=HOSTILE[1], source=HOSTILE[0]
    )
    outline = Outline(page)
    scripts = [attributes for tag, attributes in outline.elements if tag == "script"]
    assert len(scripts) == 3  # the data, the libraries, the explorer
    assert not [tag for tag, _ in outline.elements if tag in ("img", "b")]
    text = "".join(outline.text)
    for name in HOSTILE:
        assert name in text


def test_the_data_of_the_explorer_survive_hostile_names():
    page = to_html(exhibits(audit(scores_of(HOSTILE), capacity=0.2)))
    found = re.search(r'id="explorer-data">(.*?)</script>', page, re.DOTALL)
    assert set(json.loads(found[1])["groups"]) == set(HOSTILE)


def test_the_explorer_shows_the_rules_that_fit_rule_finds(numbers):
    scores = scores_of()
    known = numbers.audit.knowledge.label_frequency
    for key, goal in (
        ("recall|4|0", RecallFloor(0.8, assured=True)),
        ("capacity|4|0", Capacity(0.2)),
    ):
        rule = fit_rule(scores, objective=goal, label_frequency=known)
        shown = numbers.explorer.cells[key]["groups"]
        for group, one in zip(rule.groups, shown, strict=True):
            tpr = rule.realized[group]["tpr"].estimate
            assert one["tpr"][0] == pytest.approx(tpr, abs=5e-5)  # four digits


def test_more_granted_bias_leaves_more_open(numbers):
    for cell in numbers.explorer.cells.values():
        widths = [high - low for _, low, high in cell["gap"]]
        assert (np.diff(widths) >= -1e-4).all()  # four digits


def test_a_granted_bias_leaves_false_positive_rates_open(numbers):
    for cell in numbers.explorer.cells.values():
        for left_open in cell["open"][1:]:
            assert "false positive rates" in left_open


@pytest.mark.parametrize("counted", [False, True])
def test_the_cuts_on_the_page_are_where_decisions_change(counted):
    scores = scores_of()
    rows = GroupCounts.from_scores(scores) if counted else scores
    found = exhibits(audit(rows, threshold=0.2)).cuts
    for number, key in enumerate(scores.groups):
        score = scores.score[scores.rows(number)]
        # The bin of the threshold reaches a little below it.
        least = score[score >= 0.2].min() if not counted else 0.2
        assert found[key] == pytest.approx(least, abs=2e-3 if counted else 0)


def test_decisions_that_follow_no_score_have_no_cut():
    scores = scores_of()
    decision = np.arange(len(scores)) % 2
    report = audit(
        labeled=scores.labeled,
        group=np.array(scores.groups)[scores.codes],
        score=scores.score,
        decision=decision,
    )
    assert exhibits(report).cuts == {}


def test_recall_overall_is_that_of_all_labeled_rows_if_all_positives_are_labeled():
    scores = scores_of()
    report = audit(scores, threshold=0.2, label_frequency={"f": 1.0, "m": 1.0})
    accepted = scores.score[scores.labeled] >= 0.2
    assert exhibits(report).recall == pytest.approx(accepted.mean())


def test_the_fingerprint_changes_with_any_label_and_any_decision():
    data = make_underdiagnosed(1000, random_state=1)
    decision = data.score >= 0.2
    first = np.arange(1000) == 0
    found = {
        exhibits(audit(labeled=labels, group=data.group, decision=accepted)).fingerprint
        for labels, accepted in (
            (data.labeled, decision),
            (data.labeled, decision ^ first),
            (data.labeled ^ first, decision),
        )
    }
    assert len(found) == 3


def test_a_gap_that_is_not_shown_needs_no_explanation():
    scores = scores_of()
    rule = fit_rule(scores, objective=Capacity(0.2))
    report = audit(scores, rule=rule)
    assert report.gaps["tpr"].low == 0
    assert not any("recall" in row["what"] for row in break_evens(report))


@pytest.fixture(scope="module")
def lots():
    """Scores, and a rule that draws lots on them."""
    scores = scores_of()
    rule = fit_rule(
        scores,
        constraint="equalized_odds",
        objective=Capacity(0.2),
        label_frequency={"f": 0.3, "m": 0.7},
        random_state=0,
    )
    assert rule.has_lottery
    return scores, rule


def test_a_rule_with_a_lottery_says_whom_it_touches(lots):
    scores, rule = lots
    page = to_html(exhibits(audit(scores, rule=rule), rule))
    text = "".join(Outline(page).text)
    assert "The audited rule" in text
    for key, share in rule.lottery_share.items():
        if share > 0:
            assert f"In group {key}, chance decides about {100 * share:.1f}%" in text


def test_the_chances_in_words_are_those_of_the_decisions(lots):
    _, rule = lots
    for key, cuts in zip(rule.groups, rule.cuts, strict=True):
        words = cuts_text(cuts)
        for cut, _ in cuts:
            if not math.isinf(cut):
                (chance,) = rule.acceptance_probability([cut], [key])
                certain, drawn = f"at least {cut:#.3g}", f"{chance:.1%} from {cut:#.3g}"
                assert (certain if chance > 1 - 1e-9 else drawn) in words


def test_the_finding_is_drawn_as_it_is_told(numbers, page):
    lowest = min(rates["tpr"].estimate for rates in numbers.audit.rates.values())
    drawings = re.findall(r'<path class="found" d="([^"]*)"/><path d="([^"]*)"/>', page)
    assert [found.count("h0") + rest.count("h0") for found, rest in drawings] == [
        100
    ] * 2
    assert drawings[0][0].count("h0") == round(100 * lowest)
    assert f"{round(100 * lowest)} are found" in headline(numbers.audit)


def test_a_gap_that_is_not_shown_is_not_drawn():
    scores = scores_of()
    rule = fit_rule(scores, objective=Capacity(0.2))
    assert 'class="found"' not in to_html(exhibits(audit(scores, rule=rule), rule))


def test_decisions_without_a_score_leave_out_what_needs_one():
    data = make_underdiagnosed(2000, random_state=1)
    report = audit(labeled=data.labeled, group=data.group, decision=data.score >= 0.2)
    page = to_html(exhibits(report))
    assert "Explorer" not in "".join(Outline(page).text)
    assert "vegaEmbed" not in page


def test_one_group_has_rates_and_no_gap():
    scores = scores_of()
    one = GroupScores(scores.score, scores.labeled, None)
    text = "".join(Outline(to_html(exhibits(audit(one, threshold=0.2)))).text)
    assert "Gaps between groups" not in text
    assert "of the positives are selected" in text


def test_nothing_is_promised(page):
    text = "".join(Outline(page).text).lower().replace("fairpul", "")
    assert not re.search(r"\b(un)?fair(ness|ly)?\b|\bunbiased\b", text)


def test_a_gap_that_is_not_determined_is_not_called_one():
    data = make_underdiagnosed(600, random_state=3, label_frequency=0.5)
    rng = np.random.default_rng(0)
    report = audit(
        labeled=data.labeled, group=data.group, decision=rng.random(600) < 0.5
    )
    assert report.gaps["tpr"].low == 0
    assert "do not settle" in headline(report)
    assert not any("explain the gap away" in text for text in sentences(report))


def test_an_audit_writes_its_own_page(tmp_path):
    report = audit(scores_of(), capacity=0.2)
    path = tmp_path / "page.html"
    assert report.to_html(path) == path.read_text("utf-8")
    assert headline(report) in path.read_text("utf-8")
