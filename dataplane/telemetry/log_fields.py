"""Fields of a line of the access log: their names, where they come from, and how values are written.

Used by `access_log` and `log_plan`. Values are what clients sent: none of them can forge another field or another line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from gatewright.cel.budget import START
from gatewright.cel.values import NONE, Uint

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.variables import ListenerFacts

CLIENT_CLOSED: Final = 499
"""Status in the log of a request whose client left before there was one."""

OWN: Final = frozenset({"level", "time", "scope"})
"""Keys of a JSON line that are no fields of a request."""

is_name = re.compile(r'[^\s"=\\\x00-\x20\x7f]+').fullmatch
"""A name that needs no quoting in any format."""

_is_bare = re.compile(r"[!#-\[\]-~]+").fullmatch

_not_ascii = re.compile(r"[^\x00-\x7e]").sub
"""In a JSON text it is within strings, and may be escaped: some of it ends a line for some readers."""


MAX_FIELD: Final = 8192
"""Characters of a field; what is more is cut off and counted in its place."""


def cut(text: str) -> str:
    """As much of a value as a field may have; a mark says how many characters are missing."""
    return text if len(text) <= MAX_FIELD else f"{text[:MAX_FIELD]}...+{len(text) - MAX_FIELD}"


def target_of(x: Exchange) -> str:
    """Path and query that the client asked for."""
    return cut(x.asked_target.decode("latin-1"))


def _route(plan: Any) -> str:  # Any: a RoutePlan, which is above this room
    _, _, namespace, name, _ = plan.key.split("/")
    return f"{namespace}/{name}"


def _rule(plan: Any) -> str:
    return plan.rule or str(plan.rule_index)


def _listener(x: Exchange) -> ListenerFacts:
    assert x.listener is not None  # else there is no plan of a log either
    return x.listener


def _text_if(begin: str, value: str | None) -> str:
    return f"{begin}{bare(value)}" if value else ""


def _json_if(name: str, value: str | None) -> str:
    return f',"{name}":{quoted(value)}' if value else ""


def _agent(x: Exchange, name: str) -> str | None:
    """A text of the call of an agent."""
    text: str | None = getattr(x.agent_call, name, None)
    return None if text is None else cut(text)


def _error_of(x: Exchange) -> int | None:
    return None if x.agent_call is None else x.agent_call.error


def is_mcp(x: Exchange) -> bool:
    """It is a message to MCP servers."""
    return x.attributes is not None and "mcp" in x.attributes


_OF_MCP: Final = (
    # name of the field, what it is; where it stands: of which item ("": none, "*": what it is about), its name
    ("mcp.method.name", "method of a message to MCP servers", "", "methodName"),
    ("mcp.session.id", "its session, by a name that opens nothing", "", "sessionId"),
    ("mcp.target", "the target that it is for", "*", "target"),
    ("gen_ai.tool.name", "the tool that is called", "tool", "name"),
    ("gen_ai.prompt.name", "the prompt that is asked for", "prompt", "name"),
    ("mcp.resource.uri", "the resource that is asked for", "resource", "name"),
)


def _mcp(values: Any, item: str, name: str) -> str | None:  # Any: a dict of attributes, or None
    """A text of a message to MCP servers, of its attributes."""
    if item and values is not None:
        if item == "*":
            values = next((each for each in values.values() if type(each) is dict), None)
        else:
            values = values.get(item)
    value = None if values is None else values.get(name)
    return None if value is None else cut(value)


def _mcp_row(name: str, what: str, item: str, key: str) -> tuple[str, str, Write, Write]:
    def value(x: Exchange) -> str | None:
        return _mcp(None if x.attributes is None else x.attributes.get("mcp"), item, key)

    return (
        name,
        what,
        lambda x, took: _text_if(f" {name}=", value(x)),
        lambda x, took: _json_if(name, value(x)),
    )


def mcp_text(x: Exchange) -> str:
    """The fields of a message to MCP servers in a text line."""
    values: Any = None if x.attributes is None else x.attributes.get("mcp")
    found = [(name, _mcp(values, item, key)) for name, _, item, key in _OF_MCP]
    return "".join([f" {name}={bare(value)}" for name, value in found if value])


def mcp_json(x: Exchange) -> str:
    """The same in a JSON line."""
    values: Any = None if x.attributes is None else x.attributes.get("mcp")
    found = [(name, _mcp(values, item, key)) for name, _, item, key in _OF_MCP]
    return "".join([f',"{name}":{quoted(value)}' for name, value in found if value])


def agent_text(x: Exchange) -> str:
    """The fields of a call of an agent in a text line."""
    return "".join([row[2](x, 0.0) for row in _AGENT_ROWS])


def agent_json(x: Exchange) -> str:
    """The same in a JSON line."""
    return "".join([row[3](x, 0.0) for row in _AGENT_ROWS])


def bare(text: str) -> str:
    """Text in a text line, quoted where its end could be misread."""
    return text if _is_bare(text) else quoted(text)


def text_of(value: Any) -> str | None:
    """A value in a text line: text as it is, quoted where its end could be misread; what is no text, number or bool as
    JSON. None: it has none. Raises CelError for what has no JSON."""
    if isinstance(value, str):
        return bare(cut(value))
    text = json_of(value)
    if text is None or _is_bare(text):
        return text
    return bare(json.loads(text)) if text[0] == '"' else quoted(text)


def json_of(value: Any) -> str | None:
    """A value in a JSON line. None: it has none. Raises CelError for what has no JSON."""
    kind = type(value)
    if isinstance(value, str):
        return quoted(cut(str(value)))  # a secret's text is "<redacted>"
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if value is None or value is NONE:
        return None
    if kind is float and not math.isfinite(value):
        return f'"{value}"'
    from gatewright.cel.functions import json_text  # with the language: not before an attribute asks for it

    text = json_text.write(list(START), value)
    if len(text) > MAX_FIELD:  # what is left of it is no JSON any more
        return quoted(cut(text))
    return _not_ascii(lambda match: json.dumps(match[0])[1:-1], text)


def quoted(text: str) -> str:
    """JSON's quoting: no line break or control character gets into a line."""
    return json.dumps(text)


Write = Callable[["Exchange", float], str]
"""Fields of an exchange that ended, that many seconds after its head was read."""

FIELDS: Final[tuple[tuple[str, str, Write, Write], ...]] = (
    # name, where it comes from, and what writes its part of a line: of text, of JSON
    (
        "gateway",
        "namespace/name of the Gateway",
        lambda x, took: f" gateway={bare(_listener(x).gateway)}",
        lambda x, took: f',"gateway":{quoted(_listener(x).gateway)}',
    ),
    (
        "listener",
        "section name of the listener",
        lambda x, took: f" listener={bare(_listener(x).name)}",
        lambda x, took: f',"listener":{quoted(_listener(x).name)}',
    ),
    (
        "route",
        "namespace/name of the route",
        lambda x, took: _text_if(" route=", _route(x.plan) if x.plan else None),
        lambda x, took: _json_if("route", _route(x.plan) if x.plan else None),
    ),
    (
        "route_rule",
        "name of the rule, or its index",
        lambda x, took: _text_if(" route_rule=", _rule(x.plan) if x.plan else None),
        lambda x, took: _json_if("route_rule", _rule(x.plan) if x.plan else None),
    ),
    (
        "endpoint",
        "address and port of the endpoint last tried",
        lambda x, took: f" endpoint={x.endpoint.label}" if x.endpoint else "",
        lambda x, took: _json_if("endpoint", x.endpoint.label if x.endpoint else None),
    ),
    (
        "src.addr",
        "IP address of the client",
        lambda x, took: f" src.addr={x.peer or '-'}",
        lambda x, took: f',"src.addr":"{x.peer}"',
    ),
    (
        "http.method",
        "request method",
        lambda x, took: f" http.method={x.method.decode()}",
        lambda x, took: f',"http.method":"{x.method.decode()}"',
    ),
    (
        "http.host",
        "canonical host name that the client asked for",
        lambda x, took: f" http.host={x.asked_host.decode('latin-1') or '-'}",
        lambda x, took: f',"http.host":{quoted(x.asked_host.decode("latin-1"))}',
    ),
    (
        "http.path",
        "canonical path with query that the client asked for",
        lambda x, took: f" http.path={bare(target_of(x))}",
        lambda x, took: f',"http.path":{quoted(target_of(x))}',
    ),
    (
        "http.version",
        "protocol version of the request",
        lambda x, took: f" http.version={x.version.decode()}",
        lambda x, took: f',"http.version":"{x.version.decode()}"',
    ),
    (
        "http.status",
        "status of the response; 499 when the client left before it",
        lambda x, took: f" http.status={x.status or CLIENT_CLOSED}",
        lambda x, took: f',"http.status":{x.status or CLIENT_CLOSED}',
    ),
    (
        "protocol",
        "http",
        lambda x, took: " protocol=http",
        lambda x, took: ',"protocol":"http"',
    ),
    (
        "request.bytes",
        "request body bytes received",
        lambda x, took: f" request.bytes={x.body_bytes}",
        lambda x, took: f',"request.bytes":{x.body_bytes}',
    ),
    (
        "response.bytes",
        "response body bytes sent",
        lambda x, took: f" response.bytes={x.response_bytes}",
        lambda x, took: f',"response.bytes":{x.response_bytes}',
    ),
    (
        "grpc.status",
        "status of a gRPC call; absent where it has none",
        lambda x, took: f" grpc.status={x.grpc.status}" if x.grpc and x.grpc.status is not None else "",
        lambda x, took: f',"grpc.status":{x.grpc.status}' if x.grpc and x.grpc.status is not None else "",
    ),
    (
        "retry.attempt",
        "tries after the first, when there were any",
        lambda x, took: f" retry.attempt={x.attempt}" if x.attempt else "",
        lambda x, took: f',"retry.attempt":{x.attempt}' if x.attempt else "",
    ),
    (
        "retry.given_up",
        "why a try that a policy called for was not made",
        lambda x, took: _text_if(" retry.given_up=", x.retries.given_up if x.retries else None),
        lambda x, took: _json_if("retry.given_up", x.retries.given_up if x.retries else None),
    ),
    (
        "a2a.method",
        "method of a call of an A2A agent",
        lambda x, took: _text_if(" a2a.method=", _agent(x, "method")),
        lambda x, took: _json_if("a2a.method", _agent(x, "method")),
    ),
    (
        "a2a.task.id",
        "the task that it is about, or made",
        lambda x, took: _text_if(" a2a.task.id=", _agent(x, "task")),
        lambda x, took: _json_if("a2a.task.id", _agent(x, "task")),
    ),
    (
        "a2a.task.state",
        "state of that task, as the agent reported it last",
        lambda x, took: _text_if(" a2a.task.state=", _agent(x, "state")),
        lambda x, took: _json_if("a2a.task.state", _agent(x, "state")),
    ),
    (
        "a2a.error.code",
        "code of the JSON-RPC error that the agent answered with",
        lambda x, took: "" if (code := _error_of(x)) is None else f" a2a.error.code={code}",
        lambda x, took: "" if (code := _error_of(x)) is None else f',"a2a.error.code":{code}',
    ),
    *(_mcp_row(*row) for row in _OF_MCP),
    (
        "error",
        "what went wrong, for operators",
        lambda x, took: f" error={quoted(cut(x.detail))}" if x.reason and x.detail else "",
        lambda x, took: _json_if("error", cut(x.detail) if x.reason else None),
    ),
    (
        "reason",
        "code of an answer that the gateway made itself",
        lambda x, took: f" reason={x.reason}" if x.reason else "",
        lambda x, took: _json_if("reason", x.reason),
    ),
    (
        "duration",
        "from the end of the request head to the last byte, ms",
        lambda x, took: f" duration={took * 1e3:.3f}ms",
        lambda x, took: f',"duration":"{took * 1e3:.3f}ms"',
    ),
)
"""Default fields in the order of a line (decisions, Access log). The exchange has a listener. The line with all of them
is written out in `access_log`; a test compares the two."""


NAMES: Final = frozenset(row[0] for row in FIELDS)
_AGENT_ROWS: Final = tuple(row for row in FIELDS if row[0].startswith("a2a."))


@lru_cache(64)
def writers(removed: frozenset[str]) -> tuple[Write, Write]:
    """Functions that write what is left of the default fields: as text, as JSON. Both begin with a separator."""
    left = [row for row in FIELDS if row[0] not in removed]
    return _writer([row[2] for row in left]), _writer([row[3] for row in left])


def _writer(parts: Sequence[Write]) -> Write:
    return lambda x, took: "".join([part(x, took) for part in parts])
