"""Log fields of MCP: attributes of a message (`dataplane/backends/mcp/visit`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry.log_field import OWN, Field, Group, Value
from dataplane.telemetry.log_values import cut

if TYPE_CHECKING:
    from dataplane.exchange import Exchange


def _of_message(item: str, name: str) -> Value:
    """`item`: of which item it is: "" none, "*" what the message is about."""

    def value(x: Exchange, took: float) -> str | None:
        values: Any = None if x.attributes is None else x.attributes.get("mcp")  # a dict of attributes, or None
        if item and values is not None:
            if item == "*":
                values = next((each for each in values.values() if type(each) is dict), None)
            else:
                values = values.get(item)
        found = None if values is None else values.get(name)
        return None if not found else cut(found)

    return value


GROUP: Final = Group(
    lambda x: x.attributes is not None and "mcp" in x.attributes,
    (
        Field("mcp.method.name", "method of a message to MCP servers", _of_message("", "methodName")),
        Field("mcp.session.id", "its session, by a name that opens nothing", _of_message("", "sessionId")),
        Field(
            "mcp.target",
            "the target that it is for",
            _of_message("*", "target"),
            attribute=f"{OWN}mcp.target",
        ),
        Field("gen_ai.tool.name", "the tool that is called", _of_message("tool", "name")),
        Field("gen_ai.prompt.name", "the prompt that is asked for", _of_message("prompt", "name")),
        Field("mcp.resource.uri", "the resource that is asked for", _of_message("resource", "name")),
    ),
)
