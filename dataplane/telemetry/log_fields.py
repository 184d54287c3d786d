"""Fields of a line of the access log: their names, where they come from, and how values are written.

Used by `access_log` and `log_plan`. Values are what clients sent: none of them can forge another field or another line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from gatewright.cel.budget import START
from gatewright.cel.values import NONE, Uint

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

CLIENT_CLOSED: Final = 499
"""Status in the log of a request whose client left before there was one."""

OWN: Final = frozenset({"level", "time", "scope"})
"""Keys of a JSON line that are no fields of a request."""

is_name = re.compile(r'[^\s"=\\\x00-\x20\x7f]+').fullmatch
"""A name that needs no quoting in any format."""

_is_bare = re.compile(r"[!#-\[\]-~]+").fullmatch

FIELDS: Final[tuple[tuple[str, str, str, str], ...]] = (
    # name, where it comes from, and its part of a line as the source of an f-string: of text, of JSON
    (
        "gateway",
        "namespace/name of the Gateway",
        " gateway={bare(x.listener.gateway)}",
        ',"gateway":{quoted(x.listener.gateway)}',
    ),
    (
        "listener",
        "section name of the listener",
        " listener={bare(x.listener.name)}",
        ',"listener":{quoted(x.listener.name)}',
    ),
    (
        "route",
        "namespace/name of the route",
        '{text_if(" route=", x.plan and route(x.plan))}',
        '{json_if("route", x.plan and route(x.plan))}',
    ),
    (
        "route_rule",
        "name of the rule, or its index",
        '{text_if(" route_rule=", x.plan and (x.plan.rule or str(x.plan.rule_index)))}',
        '{json_if("route_rule", x.plan and (x.plan.rule or str(x.plan.rule_index)))}',
    ),
    (
        "endpoint",
        "address and port of the endpoint last tried",
        '{f" endpoint={x.endpoint.label}" if x.endpoint else ""}',
        '{json_if("endpoint", x.endpoint and x.endpoint.label)}',
    ),
    ("src.addr", "IP address of the client", ' src.addr={x.peer or "-"}', ',"src.addr":"{x.peer}"'),
    ("http.method", "request method", " http.method={x.method.decode()}", ',"http.method":"{x.method.decode()}"'),
    (
        "http.host",
        "canonical host name that the client asked for",
        ' http.host={x.asked_host.decode("latin-1") or "-"}',
        ',"http.host":{quoted(x.asked_host.decode("latin-1"))}',
    ),
    (
        "http.path",
        "canonical path with query that the client asked for",
        ' http.path={bare(x.asked_target.decode("latin-1"))}',
        ',"http.path":{quoted(x.asked_target.decode("latin-1"))}',
    ),
    (
        "http.version",
        "protocol version of the request",
        " http.version={x.version.decode()}",
        ',"http.version":"{x.version.decode()}"',
    ),
    (
        "http.status",
        "status of the response; 499 when the client left before it",
        " http.status={x.status or CLIENT_CLOSED}",
        ',"http.status":{x.status or CLIENT_CLOSED}',
    ),
    ("protocol", "http", " protocol=http", ',"protocol":"http"'),
    (
        "request.bytes",
        "request body bytes received",
        " request.bytes={x.body_bytes}",
        ',"request.bytes":{x.body_bytes}',
    ),
    (
        "response.bytes",
        "response body bytes sent",
        " response.bytes={x.response_bytes}",
        ',"response.bytes":{x.response_bytes}',
    ),
    (
        "retry.attempt",
        "tries after the first, when there were any",
        '{f" retry.attempt={x.attempt}" if x.attempt else ""}',
        "{f',\"retry.attempt\":{x.attempt}' if x.attempt else ''}",
    ),
    (
        "retry.given_up",
        "why a try that a policy called for was not made",
        '{text_if(" retry.given_up=", x.retries and x.retries.given_up)}',
        '{json_if("retry.given_up", x.retries and x.retries.given_up)}',
    ),
    (
        "error",
        "what went wrong, for operators",
        '{f" error={quoted(x.detail)}" if x.reason and x.detail else ""}',
        '{json_if("error", x.reason and x.detail)}',
    ),
    (
        "reason",
        "code of an answer that the gateway made itself",
        '{f" reason={x.reason}" if x.reason else ""}',
        '{json_if("reason", x.reason)}',
    ),
    (
        "duration",
        "from the end of the request head to the last byte, ms",
        " duration={took * 1e3:.3f}ms",
        ',"duration":"{took * 1e3:.3f}ms"',
    ),
)
"""Default fields in the order of a line (decisions, Access log). The exchange has a listener. The line with all of them
is written out in `access_log`; a test compares the two."""

NAMES: Final = frozenset(row[0] for row in FIELDS)

Write = Callable[["Exchange", float], str]
"""Fields of an exchange that ended, that many seconds after its head was read."""


@lru_cache(64)
def writers(removed: frozenset[str]) -> tuple[Write, Write]:
    """Functions that write what is left of the default fields: as text, as JSON. Both begin with a separator."""
    left = [row for row in FIELDS if row[0] not in removed]
    return _writer("".join(row[2] for row in left)), _writer("".join(row[3] for row in left))


def _writer(source: str) -> Write:
    """Compiled, because a line is one piece then: looking at each field in a loop costs four times as much."""
    code = compile(f"lambda x, took: f'''{source}'''", "<access log>", "eval")
    made: Write = eval(code, _SCOPE)  # the source holds only texts of FIELDS
    return made


def _route(plan: Any) -> str:  # Any: a RoutePlan, which is above this room
    _, namespace, name, _ = plan.key.split("/")
    return f"{namespace}/{name}"


def _text_if(begin: str, value: str | None) -> str:
    return f"{begin}{bare(value)}" if value else ""


def _json_if(name: str, value: str | None) -> str:
    return f',"{name}":{quoted(value)}' if value else ""


def bare(text: str) -> str:
    """Text in a text line, quoted where its end could be misread."""
    return text if _is_bare(text) else quoted(text)


def text_of(value: Any) -> str | None:
    """A value in a text line: text as it is, quoted where its end could be misread; what is no text, number or bool as
    JSON. None: it has none. Raises CelError for what has no JSON."""
    if isinstance(value, str):
        return bare(value)
    text = json_of(value)
    if text is None or _is_bare(text):
        return text
    return text_of(json.loads(text)) if text[0] == '"' else quoted(text)


def json_of(value: Any) -> str | None:
    """A value in a JSON line. None: it has none. Raises CelError for what has no JSON."""
    kind = type(value)
    if isinstance(value, str):
        return quoted(str(value))  # a secret's text is "<redacted>"
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if value is None or value is NONE:
        return None
    if kind is float and not math.isfinite(value):
        return f'"{value}"'
    from gatewright.cel.functions import json_text  # with the language: not before an attribute asks for it

    return json_text.write(list(START), value)


def quoted(text: str) -> str:
    """JSON's quoting: no line break or control character gets into a line."""
    return json.dumps(text)


_SCOPE: Final[dict[str, Any]] = {
    "CLIENT_CLOSED": CLIENT_CLOSED,
    "bare": bare,
    "json_if": _json_if,
    "quoted": quoted,
    "route": _route,
    "text_if": _text_if,
}
"""What the sources in FIELDS name."""
