"""Fields of a line of the access log: their names, where they come from, and how values are written.

Used by `access_log` and `log_plan`. Values are what clients sent: none of them can forge another field or another line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gatewright.cel.budget import START
from gatewright.cel.functions import json_text
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

Read = Callable[["Exchange", float], Any]
"""A value of an exchange that ended, that many seconds after its head was read; None: absent."""

FIELDS: Final[tuple[tuple[str, str, Read], ...]] = (
    # name, where it comes from, how. The usual line is made in one piece by `access_log`; this is for all others.
    ("gateway", "namespace/name of the Gateway", lambda x, took: x.listener.gateway),
    ("listener", "section name of the listener", lambda x, took: x.listener.name),
    ("route", "namespace/name of the route", lambda x, took: x.plan and "/".join(x.plan.key.split("/")[1:3])),
    (
        "route_rule",
        "name of the rule, or its index",
        lambda x, took: x.plan and (x.plan.rule or str(x.plan.rule_index)),
    ),
    ("endpoint", "address and port of the endpoint last tried", lambda x, took: x.endpoint and x.endpoint.label),
    ("src.addr", "IP address of the client", lambda x, took: x.peer or "-"),
    ("http.method", "request method", lambda x, took: x.method.decode("latin-1")),
    (
        "http.host",
        "canonical host name that the client asked for",
        lambda x, took: x.asked_host.decode("latin-1") or "-",
    ),
    (
        "http.path",
        "canonical path with query that the client asked for",
        lambda x, took: x.asked_target.decode("latin-1"),
    ),
    ("http.version", "protocol version of the request", lambda x, took: x.version.decode("latin-1")),
    (
        "http.status",
        "status of the response; 499 when the client left before it",
        lambda x, took: x.status or CLIENT_CLOSED,
    ),
    ("protocol", "http", lambda x, took: "http"),
    ("request.bytes", "request body bytes received", lambda x, took: x.body_bytes),
    ("response.bytes", "response body bytes sent", lambda x, took: x.response_bytes),
    ("retry.attempt", "tries after the first, when there were any", lambda x, took: x.attempt or None),
    (
        "retry.given_up",
        "why a try that a policy called for was not made",
        lambda x, took: (x.retries and x.retries.given_up) or None,
    ),
    ("error", "what went wrong, for operators", lambda x, took: (x.reason and x.detail) or None),
    ("reason", "code of an answer that the gateway made itself", lambda x, took: x.reason or None),
    ("duration", "from the end of the request head to the last byte, ms", lambda x, took: f"{took * 1e3:.3f}ms"),
)
"""Default fields in the order of a line (decisions, Access log). The exchange has a listener."""

NAMES: Final = frozenset(name for name, _, _ in FIELDS)

ALWAYS_QUOTED: Final = frozenset({"error"})
"""Fields that are quoted in text whatever they hold."""


def text_of(value: Any) -> str | None:
    """A value in a text line: text as it is, quoted where its end could be misread; what is no text, number or bool as
    JSON. None: it has none. Raises CelError for what has no JSON."""
    if isinstance(value, str):
        return value if _is_bare(value) else quoted(value)
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
    return json_text.write(list(START), value)


def quoted(text: str) -> str:
    """JSON's quoting: no line break or control character gets into a line."""
    return json.dumps(text)
