"""What becomes of each policy where it cannot be built, and what several of one kind come to."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain.filter import FRONTEND, OF_KIND, SETTING, STEP, Row
from dataplane.filters.registry import ROWS


def names(flag: str) -> list[str]:
    return [row.name for row in ROWS if getattr(row, flag)]


def test_a_policy_of_a_listener_or_a_kind_of_backends_that_refuses_says_what_is_in_its_place() -> None:
    for row in ROWS:
        assert (row.closed is not None) == (row.kind in (FRONTEND, OF_KIND) and row.refuses), row.name
        assert (row.merged is not None) == (row.kind == OF_KIND), row.name


def test_of_which_policies_several_hold_at_once() -> None:
    assert sorted(names("many")) == ["network_authorization", "request_mirror"]
    assert sorted(names("combine")) == ["authorization", "header_modifiers"]


def test_what_counts_or_remembers_does_so_for_each_target() -> None:
    assert sorted(names("per_target")) == [
        "backend_ext_auth",
        "backend_transformation",
        "endpoint_picker",
        "ext_auth",
        "rate_limit",
    ]
    assert names("task") == []  # none needs a Task


def test_credentials_stay_out_of_the_log_where_their_policy_cannot_be_built() -> None:
    empty: Any = None
    hiding = [row.name for row in ROWS if row.hides is not Row("x", row.build, STEP, "").hides]
    assert hiding == ["jwt_authentication", "basic_authentication", "api_key_authentication"]
    plain = Row("x", lambda config, env: None, STEP, "")
    assert plain.hides(empty) is None and list(plain.secrets(empty)) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_policy_has_a_place(row: Row) -> None:
    assert bool(row.plan_field) == (row.kind in (SETTING, FRONTEND)) and row.reason
