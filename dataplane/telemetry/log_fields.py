"""Fields of a line of the access log, as rows: names, where they come from, values. What writes a line, as text or as
JSON, is generated from them; so will be what other formats need.

Used by `access_log` and `log_plan`. Those of kinds of backends are in `log_rows`: each group is asked where it
applies alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry.log_field import NO_ATTRIBUTE, Field, Write
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
    Field("src.addr", "IP address of the client", lambda x, took: x.peer, absent="-", attribute="client.address"),
    Field("http.method", "request method", lambda x, took: x.method.decode(), attribute="http.request.method"),
    Field(
        "http.host",
        "canonical host name that the client asked for",
        lambda x, took: x.asked_host.decode("latin-1"),
        absent="-",
        attribute="server.address",
    ),
    Field(
        "http.path",
        "canonical path with query that the client asked for",
        lambda x, took: target_of(x),
        attribute="url.path",
        otlp=lambda x, took: target_of(x).partition("?")[0],
    ),
    Field(
        "http.version",
        "protocol version of the request",
        lambda x, took: x.version.decode(),
        attribute="network.protocol.version",
        otlp=lambda x, took: _version(x),
    ),
    Field(
        "http.status",
        "status of the response; 499 when the client left before it",
        lambda x, took: x.status or CLIENT_CLOSED,
        attribute="http.response.status_code",
    ),
    Field("protocol", "http", lambda x, took: "http"),
    Field(
        "request.bytes",
        "request body bytes received",
        lambda x, took: x.body_bytes,
        attribute="http.request.body.size",
    ),
    Field(
        "response.bytes",
        "response body bytes sent",
        lambda x, took: x.response_bytes,
        attribute="http.response.body.size",
    ),
    Field(
        "grpc.status",
        "status of a gRPC call; absent where it has none",
        lambda x, took: _grpc_status(x),
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
    Field(
        "duration",
        "from the end of the request head to the last byte, ms",
        lambda x, took: f"{took * 1e3:.3f}ms",
        otlp=lambda x, took: f"{took:.6f}",
    ),
)
"""Default fields in the order of a line (decisions, Access log). The exchange has a listener. The line with all of them
is written out in `access_log`; a test compares the two."""


NAMES: Final = frozenset(field.name for field in FIELDS)


def attributes_of(x: Exchange, took: float, removed: frozenset[str] = frozenset()) -> list[tuple[str, Any]]:
    """Fields of an exchange that ended, as attributes of OTLP. `removed`: fields to leave out, by either name."""
    found: list[tuple[str, Any]] = []
    for field in FIELDS:
        if field.otlp_name == NO_ATTRIBUTE or field.name in removed or field.otlp_name in removed:
            continue
        value = (field.otlp or field.value)(x, took)
        if value is not None:
            found.append((field.otlp_name, value))
    return found


@lru_cache(64)
def writers(removed: frozenset[str]) -> tuple[Write, Write]:
    """Functions that write what is left of the default fields: as text, as JSON. Both begin with a separator."""
    left = [field for field in FIELDS if field.name not in removed]
    return _writer([field.text for field in left]), _writer([field.json for field in left])


def _writer(parts: Sequence[Write]) -> Write:
    return lambda x, took: "".join([part(x, took) for part in parts])
