"""Which labels a selector selects: meta/v1 LabelSelector."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.schema.label_selector import LabelSelector
from gatewright.api.schema.selector_text import LONGEST, parsed

LABELS = {"team": "red", "tier": ""}


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        ({}, True),
        ({"matchLabels": {"team": "red"}}, True),
        ({"matchLabels": {"team": "blue"}}, False),
        ({"matchLabels": {"team": "red", "absent": "x"}}, False),
        ({"matchLabels": {"absent": ""}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["blue", "red"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["blue"]}]}, False),
        ({"matchExpressions": [{"key": "absent", "operator": "In", "values": ["blue"]}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["blue"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["blue", "red"]}]}, False),
        ({"matchExpressions": [{"key": "absent", "operator": "NotIn", "values": ["blue"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "absent", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "absent", "operator": "DoesNotExist"}]}, True),
        (
            {"matchLabels": {"team": "red"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
            False,
        ),
        (
            {"matchLabels": {"team": "blue"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]},
            False,
        ),
    ],
)
def test_selector(selector: dict[str, Any], selects: bool) -> None:
    assert LabelSelector.model_validate(selector).matches(LABELS) is selects


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        ("team=red", True),
        ("team==red", True),
        (" team = red ", True),
        ("team=blue", False),
        ("team=", False),
        ("tier=", True),
        ("absent=", False),
        ("team!=blue", True),
        ("team!=red", False),
        ("absent!=red", True),
        ("team in (blue,red)", True),
        ("team in ( blue , red )", True),
        ("team in (blue)", False),
        ("tier in ()", True),
        ("team notin (blue)", True),
        ("team notin (blue, red)", False),
        ("absent notin (blue)", True),
        ("team", True),
        ("absent", False),
        ("!absent", True),
        ("! team", False),
        ("team=red,tier", True),
        ("team=red,!tier", False),
        ("team in (blue,red),team notin (green,blue),tier", True),
        ("example.com/team", False),
        ("!example.com/team", True),
    ],
)
def test_a_selector_as_text(text: str, selects: bool) -> None:
    assert parsed(text).matches(LABELS) is selects


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"a selector has between 1 and {LONGEST} characters"),
        ("  ", f"a selector has between 1 and {LONGEST} characters"),
        ("a" + " " * LONGEST, f"a selector has between 1 and {LONGEST} characters"),
        ("team=red,", "'' is no requirement: write KEY=VALUE"),
        ("team=red,tier=a b", "'tier=a b' is no requirement"),
        ("team in red", "'team in red' is no requirement"),
        ("team in (red", "'team in (red' is no requirement"),
        ("team is (red)", "'team is (red)' is no requirement"),
        ("-team", "'-team' is no requirement"),
        ("a" * 64, f"'{'a' * 64}' is no requirement"),
        ("team=" + "a" * 64, "is no requirement"),
        ("!team=red", "'!team=red' is no requirement"),
    ],
)
def test_a_text_that_is_no_selector(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        parsed(text)
    assert str(raised.value).startswith(message) or message in str(raised.value)


def test_a_selector_of_as_many_characters_as_there_may_be() -> None:
    text = "team=red" + " " * (LONGEST - 8)
    assert parsed(text).matches(LABELS)
    assert parsed(f"{'a' * 63}!={'b' * 63}").matches(LABELS)
