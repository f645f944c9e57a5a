import pytest

from fairpul.cli.options import Condition, parse_priors


def test_a_group_whose_name_has_dots_is_found():
    audit = {"rates": {"a.b": {"tpr": {"low": 0.5}}, "a": {"tpr": {"low": 0.1}}}}
    assert Condition.parse("rates.a.b.tpr.low>=0.5").holds(audit)
    assert not Condition.parse("rates.a.tpr.low >= 0.5").holds(audit)


def test_an_undefined_number_is_not_compared():
    with pytest.raises(ValueError, match="undefined"):
        Condition.parse("gaps.fpr.low > 0").holds({"gaps": {"fpr": {"low": None}}})


def test_one_prior_serves_all_groups():
    assert parse_priors(["0.1"], ["f", "m"]) == 0.1


def test_a_group_whose_name_has_an_equals_sign_is_found():
    assert parse_priors(["a=b=0.1"], ["a=b"]) == {"a=b": 0.1}
