"""What a proxy takes as MCP servers behind one endpoint: names that can be told apart, paths that are one line."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.backends.registry import KINDS
from dataplane.chain.filter import Refused
from dataplane.mcp import plans
from gatewright.wire.v1 import backend_pb2


def message(*targets: dict[str, Any]) -> backend_pb2.McpBackend:
    return backend_pb2.McpBackend(
        targets=[backend_pb2.McpTarget(**{"name": "one", "backend": "b", **each}) for each in targets]
    )


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        ([{"name": ""}], "targets[0].name: must be set"),
        ([{"name": "a_b"}], "targets[0].name: must be set, without _"),
        ([{"name": "a+b"}], "targets[0].name: must be set, without _"),
        ([{"name": "a:b"}], "targets[0].name: must be set, without _"),
        ([{"name": "a"}, {"name": "a"}], "a is there twice"),
        ([{"backend": ""}], "targets[0].backend: must be set"),
        ([{"path": "mcp"}], "targets[0].path: must begin with /"),
        ([{"path": "/a b"}], "targets[0].path: has a space"),
        ([{"path": "/a\r\nb: c"}], "targets[0].path: must begin with / and be printable ASCII"),
        ([{"path": "/\u00e9"}], "targets[0].path: must begin with / and be printable ASCII"),
        ([{"name": f"t{number}"} for number in range(plans.MAX_TARGETS + 1)], "more than 1024"),
    ],
)
def test_what_cannot_be_told_apart_or_asked_is_refused(targets: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(Refused, match=r"mcp\.targets") as refused:
        plans.check(message(*targets))
    assert reason in str(refused.value)


def plan(of: backend_pb2.McpBackend) -> plans.McpPlan:
    """As the table makes it."""
    row = KINDS["mcp"]
    made = row.plan(of, row.parts(of), None)
    assert isinstance(made, plans.McpPlan)
    return made


def test_as_many_servers_as_may_be_are_taken() -> None:
    made = message(*({"name": f"t{number}"} for number in range(1024)))
    plans.check(made)
    assert len(plan(made).by_name) == 1024
