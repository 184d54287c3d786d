"""Fields of a line of the access log, as rows: names, where they come from, values. What writes a line, as text or as
JSON, is generated from them; so will be what other formats need.

Used by `access_log` and `log_plan`. A row of a group is about one protocol, and asked where the group applies alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry.log_values import bare, cut, quoted

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.variables import ListenerFacts

CLIENT_CLOSED: Final = 499
"""Status in the log of a request whose client left before there was one."""

Value = Callable[["Exchange", float], "str | int | None"]
"""Of an exchange that ended, that many seconds after its head was read. None: it has none."""
Write = Callable[["Exchange", float], str]
"""What writes fields of one, with a separator before each."""


@dataclass(frozen=True, slots=True)
class Field:
    """A row. `what`: where the value comes from, for people."""

    name: str
    what: str
    value: Value
    is_prose: bool = False
    """Text for people: quoted in text lines whatever it is."""
    absent: str = ""
    """What stands in a text line for an empty text."""

    def text(self, x: Exchange, took: float) -> str:
        """Its part of a text line."""
        value = self.value(x, took)
        if value is None:
            return ""
        if isinstance(value, int):
            return f" {self.name}={value}"
        return f" {self.name}={quoted(value) if self.is_prose else bare(value) if value else self.absent}"

    def json(self, x: Exchange, took: float) -> str:
        """Its part of a JSON line."""
        value = self.value(x, took)
        if value is None:
            return ""
        return f',"{self.name}":{value if isinstance(value, int) else quoted(value)}'


@dataclass(frozen=True, slots=True)
class Group:
    """Fields about one protocol, in the order of a line. `applies`: whether an exchange has some of them."""

    applies: Callable[[Exchange], bool]
    fields: tuple[Field, ...]

    def text(self, x: Exchange) -> str:
        return "".join([field.text(x, 0.0) for field in self.fields])

    def json(self, x: Exchange) -> str:
        return "".join([field.json(x, 0.0) for field in self.fields])


def target_of(x: Exchange) -> str:
    """Path and query that the client asked for."""
    return cut(x.asked_target.decode("latin-1"))


def _route(plan: Any) -> str | None:  # Any: a RoutePlan, which is above this package
    if plan is None:
        return None
    _, _, namespace, name, _ = plan.key.split("/")
    return f"{namespace}/{name}"


def _rule(plan: Any) -> str | None:
    return None if plan is None else plan.rule or str(plan.rule_index)


def _listener(x: Exchange) -> ListenerFacts:
    assert x.listener is not None  # else there is no plan of a log either
    return x.listener


def _grpc_status(x: Exchange) -> int | None:
    return None if x.grpc is None else x.grpc.status


# --- A2A: what is known of a call (`dataplane/a2a`)


def _of_agent(name: str) -> Value:
    def value(x: Exchange, took: float) -> str | int | None:
        found: str | int | None = getattr(x.agent_call, name, None)
        return cut(found) or None if isinstance(found, str) else found

    return value


_A2A: Final = Group(
    lambda x: x.agent_call is not None,
    (
        Field("a2a.method", "method of a call of an A2A agent", _of_agent("method")),
        Field("a2a.task.id", "the task that it is about, or made", _of_agent("task")),
        Field("a2a.task.state", "state of that task, as the agent reported it last", _of_agent("state")),
        Field("a2a.error.code", "code of the JSON-RPC error that the agent answered with", _of_agent("error")),
    ),
)


# --- MCP: attributes of a message (`dataplane/backends/mcp/visit`)


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


_MCP: Final = Group(
    lambda x: x.attributes is not None and "mcp" in x.attributes,
    (
        Field("mcp.method.name", "method of a message to MCP servers", _of_message("", "methodName")),
        Field("mcp.session.id", "its session, by a name that opens nothing", _of_message("", "sessionId")),
        Field("mcp.target", "the target that it is for", _of_message("*", "target")),
        Field("gen_ai.tool.name", "the tool that is called", _of_message("tool", "name")),
        Field("gen_ai.prompt.name", "the prompt that is asked for", _of_message("prompt", "name")),
        Field("mcp.resource.uri", "the resource that is asked for", _of_message("resource", "name")),
    ),
)

GROUPS: Final = (_A2A, _MCP)

FIELDS: Final[tuple[Field, ...]] = (
    Field("gateway", "namespace/name of the Gateway", lambda x, took: _listener(x).gateway),
    Field("listener", "section name of the listener", lambda x, took: _listener(x).name),
    Field("route", "namespace/name of the route", lambda x, took: _route(x.plan)),
    Field("route_rule", "name of the rule, or its index", lambda x, took: _rule(x.plan)),
    Field(
        "endpoint",
        "address and port of the endpoint last tried",
        lambda x, took: x.endpoint.label if x.endpoint else None,
    ),
    Field("src.addr", "IP address of the client", lambda x, took: x.peer, absent="-"),
    Field("http.method", "request method", lambda x, took: x.method.decode()),
    Field(
        "http.host",
        "canonical host name that the client asked for",
        lambda x, took: x.asked_host.decode("latin-1"),
        absent="-",
    ),
    Field("http.path", "canonical path with query that the client asked for", lambda x, took: target_of(x)),
    Field("http.version", "protocol version of the request", lambda x, took: x.version.decode()),
    Field(
        "http.status",
        "status of the response; 499 when the client left before it",
        lambda x, took: x.status or CLIENT_CLOSED,
    ),
    Field("protocol", "http", lambda x, took: "http"),
    Field("request.bytes", "request body bytes received", lambda x, took: x.body_bytes),
    Field("response.bytes", "response body bytes sent", lambda x, took: x.response_bytes),
    Field("grpc.status", "status of a gRPC call; absent where it has none", lambda x, took: _grpc_status(x)),
    Field("retry.attempt", "tries after the first, when there were any", lambda x, took: x.attempt or None),
    Field(
        "retry.given_up",
        "why a try that a policy called for was not made",
        lambda x, took: (x.retries.given_up or None) if x.retries else None,
    ),
    *_A2A.fields,
    *_MCP.fields,
    Field(
        "error",
        "what went wrong, for operators",
        lambda x, took: cut(x.detail) if x.reason and x.detail else None,
        is_prose=True,
    ),
    Field("reason", "code of an answer that the gateway made itself", lambda x, took: x.reason or None),
    Field(
        "duration",
        "from the end of the request head to the last byte, ms",
        lambda x, took: f"{took * 1e3:.3f}ms",
    ),
)
"""Default fields in the order of a line (decisions, Access log). The exchange has a listener. The line with all of them
is written out in `access_log`; a test compares the two."""


NAMES: Final = frozenset(field.name for field in FIELDS)


@lru_cache(64)
def writers(removed: frozenset[str]) -> tuple[Write, Write]:
    """Functions that write what is left of the default fields: as text, as JSON. Both begin with a separator."""
    left = [field for field in FIELDS if field.name not in removed]
    return _writer([field.text for field in left]), _writer([field.json for field in left])


def _writer(parts: Sequence[Write]) -> Write:
    return lambda x, took: "".join([part(x, took) for part in parts])
