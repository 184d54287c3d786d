"""Fields of a line of the access log, as rows: names, where they come from, values. What writes a line, as text or as
JSON, is made of them, as are records of OTLP, attributes of spans, and the list in docs/operations.md.

The line with all of them is compiled (`log_writer`): each request has one. What a Gateway removes fields from is
put together piece by piece.

Used by `access_log` and `log_plan`. Those of kinds of backends are in `log_rows`: each group is asked where it
applies alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry.log_field import (
    END,
    HEAD,
    NO_ATTRIBUTE,
    NUMBER,
    RESPONSE,
    ROUTE,
    TEXT,
    TRY,
    Field,
    Source,
    Value,
    Write,
)
from dataplane.telemetry.log_rows.registry import GROUPS
from dataplane.telemetry.log_values import cut

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.variables import ListenerFacts

CLIENT_CLOSED: Final = 499
"""Status in the log of a request whose client left before there was one."""


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


def _version(x: Exchange) -> str:
    return x.version.decode().removeprefix("HTTP/")


def _grpc_status(x: Exchange) -> int | None:
    return None if x.grpc is None else x.grpc.status


def compiled_value(source: Source) -> Value:
    """A function of the source of a value."""
    value = f"({source.value}) if {source.when} else None" if source.when else source.value
    made: Value = eval(f"lambda x, took: {value}", globals())  # of the table below alone
    return made


_BARE_TARGET: Final = (
    '(x.asked_target.decode("latin-1") if len(x.asked_target) <= MAX_FIELD'
    " and QUOTE not in x.asked_target and BACKSLASH not in x.asked_target else bare(target_of(x)))"
)
"""As `bare(target_of(x))`: a target has no spaces and no control characters, so few have to be looked through."""


def _common(
    name: str,
    what: str,
    source: Source,
    *,
    moment: str,
    absent: str = "",
    attribute: str = "",
    otlp: Value | None = None,
) -> Field:
    """A field that most requests have: its value is written once, as the source of the default line."""
    return Field(name, what, compiled_value(source), False, absent, attribute, otlp, moment, source)


FIELDS: Final[tuple[Field, ...]] = (
    Field("gateway", "namespace/name of the Gateway", lambda x, took: _listener(x).gateway, moment=HEAD),
    Field("listener", "section name of the listener", lambda x, took: _listener(x).name, moment=HEAD),
    Field(
        "route", "namespace/name of the route; absent when none matched", lambda x, took: _route(x.plan), moment=ROUTE
    ),
    Field("route_rule", "name of the rule, or its index", lambda x, took: _rule(x.plan), moment=ROUTE),
    _common(
        "endpoint",
        "address and port of the endpoint in use, or last tried; absent when none was",
        Source("x.endpoint.label", TEXT, when="x.endpoint", in_text="x.endpoint.label"),
        moment=TRY,
    ),
    _common(
        "src.addr",
        "IP address of the client, IPv4 written plainly",
        Source("x.peer"),
        moment=HEAD,
        absent="-",
        attribute="client.address",
    ),
    _common("http.method", "request method", Source("x.method.decode()"), moment=HEAD, attribute="http.request.method"),
    _common(
        "http.host",
        "canonical host name that the client asked for",
        Source('x.asked_host.decode("latin-1")', TEXT, in_text='x.asked_host.decode("latin-1")'),
        moment=HEAD,
        absent="-",
        attribute="server.address",
    ),
    _common(
        "http.path",
        "canonical path with query that the client asked for; in OTLP without query",
        Source("target_of(x)", TEXT, in_text=_BARE_TARGET),
        moment=HEAD,
        attribute="url.path",
        otlp=lambda x, took: target_of(x).partition("?")[0],
    ),
    _common(
        "http.version",
        "protocol version of the request",
        Source("x.version.decode()"),
        moment=HEAD,
        attribute="network.protocol.version",
        otlp=lambda x, took: _version(x),
    ),
    _common(
        "http.status",
        "status of the response; 499 when the client left before there was one",
        Source("x.status or CLIENT_CLOSED", NUMBER),
        moment=RESPONSE,
        attribute="http.response.status_code",
    ),
    _common("protocol", "http", Source('"http"'), moment=HEAD),
    _common(
        "request.bytes",
        "request body bytes received",
        Source("x.body_bytes", NUMBER),
        moment=END,
        attribute="http.request.body.size",
    ),
    _common(
        "response.bytes",
        "response body bytes sent",
        Source("x.response_bytes", NUMBER),
        moment=END,
        attribute="http.response.body.size",
    ),
    Field(
        "grpc.status",
        "status of a gRPC call; absent where it has none",
        lambda x, took: _grpc_status(x),
        moment=RESPONSE,
        attribute="rpc.grpc.status_code",
    ),
    Field(
        "retry.attempt",
        "tries after the first, when there were any",
        lambda x, took: x.attempt or None,
        attribute="gatewright.retry.attempt",
    ),
    Field(
        "retry.given_up",
        "why a try that a policy called for was not made",
        lambda x, took: (x.retries.given_up or None) if x.retries else None,
        attribute="gatewright.retry.given_up",
    ),
    *(field for group in GROUPS for field in group.fields),
    Field(
        "error",
        "what went wrong, for operators",
        lambda x, took: cut(x.detail) if x.reason and x.detail else None,
        is_prose=True,
    ),
    Field("reason", "code of an answer that the gateway made itself", lambda x, took: x.reason or None),
    _common(
        "duration",
        "from the end of the request head to the last byte of the response, ms; in OTLP seconds",
        Source('f"{took * 1e3:.3f}ms"'),
        moment=END,
        otlp=lambda x, took: round(took, 6),
    ),
)
"""Default fields in the order of a line. The exchange has a listener."""


_OF_GROUPS: Final = frozenset(field.name for group in GROUPS for field in group.fields)


def is_of_a_group(field: Field) -> bool:
    """It is asked for where its group applies alone."""
    return field.name in _OF_GROUPS


NAMES: Final = frozenset(field.name for field in FIELDS)


def attributes_of(x: Exchange, took: float, removed: frozenset[str] = frozenset()) -> list[tuple[str, Any]]:
    """Fields of an exchange that ended, as attributes of OTLP. `removed`: fields to leave out, by either name."""
    found = [(name, value(x, took)) for name, value in _attributes(removed)]
    return [each for each in found if each[1] is not None]


@lru_cache(64)
def _attributes(removed: frozenset[str]) -> tuple[tuple[str, Value], ...]:
    """Names in OTLP of the fields that are left, and what has their values."""
    return tuple(
        (field.otlp_name, field.otlp or field.value)
        for field in FIELDS
        if field.otlp_name != NO_ATTRIBUTE and field.name not in removed and field.otlp_name not in removed
    )


@lru_cache(64)
def writers(removed: frozenset[str]) -> tuple[Write, Write]:
    """Functions that write what is left of the default fields: as text, as JSON. Both begin with a separator."""
    left = [field for field in FIELDS if field.name not in removed]
    return _writer([field.text for field in left]), _writer([field.json for field in left])


def _writer(parts: Sequence[Write]) -> Write:
    return lambda x, took: "".join([part(x, took) for part in parts])
