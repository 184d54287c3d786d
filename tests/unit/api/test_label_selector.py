"""Which labels a selector selects: meta/v1 LabelSelector."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.schema.label_selector import LabelSelector

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
