"""Log fields of A2A: what is known of a call (`dataplane/a2a`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.telemetry.log_field import OWN, Field, Group, Value
from dataplane.telemetry.log_values import cut

if TYPE_CHECKING:
    from dataplane.exchange import Exchange


def _of_agent(name: str) -> Value:
    def value(x: Exchange, took: float) -> str | int | None:
        found: str | int | None = getattr(x.agent_call, name, None)
        return cut(found) or None if isinstance(found, str) else found

    return value


GROUP: Final = Group(
    lambda x: x.agent_call is not None,
    (
        Field("a2a.method", "method of a call of an A2A agent", _of_agent("method"), attribute=f"{OWN}a2a.method"),
        Field("a2a.task.id", "the task that it is about, or made", _of_agent("task"), attribute=f"{OWN}a2a.task.id"),
        Field(
            "a2a.task.state",
            "state of that task, as the agent reported it last",
            _of_agent("state"),
            attribute=f"{OWN}a2a.task.state",
        ),
        Field(
            "a2a.error.code",
            "code of the JSON-RPC error that the agent answered with",
            _of_agent("error"),
            attribute=f"{OWN}a2a.error.code",
        ),
    ),
)
