"""Status of MCP backends: names of targets with which names of tools become too long for clients are named."""

from __future__ import annotations

import pytest

from tests.unit.translate.test_program import CLASS, GATEWAY, world

BACKEND = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: tools, namespace: default, generation: 1}
spec:
  mcp:
    targets: [%s]
---
"""
LONG, SHORT = "l" * 33, "s" * 32


def accepted(*names: str) -> tuple[str, str]:
    """Status and message of the condition."""
    targets = ", ".join(f"{{name: {name}, static: {{host: a.example, port: 80}}}}" for name in names)
    body = world(CLASS, GATEWAY, BACKEND % targets).program.status("GatewayBackend", "default", "tools")
    assert body is not None
    (found,) = [each for each in body["conditions"] if each["type"] == "Accepted"]
    return found["status"], found["message"]


def test_a_long_name_is_a_warning_where_names_of_tools_begin_with_it() -> None:
    status, message = accepted(LONG, SHORT)
    assert status == "True" and "may exceed 64 characters" in message
    assert LONG in message and SHORT not in message


@pytest.mark.parametrize("names", [(LONG,), (SHORT, "other")])
def test_otherwise_there_is_none(names: tuple[str, ...]) -> None:
    assert accepted(*names) == ("True", "")


def test_of_many_the_first_are_named() -> None:
    _, message = accepted(*(f"{LONG}{number}" for number in range(10)))
    assert message.count(LONG) == 8
