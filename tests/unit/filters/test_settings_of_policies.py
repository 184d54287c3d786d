"""What the settings of policies come to: in seconds, and None where nothing is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dataplane.chain.filter import Env, Filter, Refused
from dataplane.filters.frontend import access_log, frontend_tls, limits
from dataplane.filters.settings import (
    backend_http,
    backend_limits,
    backend_tcp,
    health,
    request_mirror,
    retry,
    timeouts,
)
from dataplane.filters.steps import direct_response
from dataplane.net.keepalive import Keepalive
from dataplane.table.limits import LimitsPlan
from dataplane.table.plans import Mirror, Timeouts
from dataplane.tls.settings import TlsSettings
from dataplane.upstream.health import Eviction
from dataplane.upstream.limits import Limits
from dataplane.upstream.settings import Http, Tcp
from dataplane.upstream.versions import BY_REQUEST, HTTP1, HTTP2
from gatewright.wire.v1 import backend_policy_pb2, connection_pb2, frontend_pb2, tls_pb2, traffic_pb2
from tests.fakes.table_state import exchange

ENV = Env(clock=lambda: 0.0, random=lambda: 0.0)
NEWER: Any = 99

V = backend_policy_pb2
ALL_LIMITS = frontend_pb2.Limits(
    max_connections=1,
    max_connections_per_address=2,
    max_requests=3,
    max_held_bytes=4,
    max_request_bytes=5,
    stream_idle_timeout_ms=6500,
    max_password_checks=7,
    max_password_checks_per_address=8,
)
KEPT = connection_pb2.Keepalive(retries=4, time_ms=5000, interval_ms=6000)

VALUES: list[tuple[Callable[[Any, Env], Any], Any, Any]] = [
    (timeouts.build, traffic_pb2.Timeouts(), Timeouts(None, None)),
    (timeouts.build, traffic_pb2.Timeouts(request_ms=1500, backend_request_ms=250), Timeouts(1.5, 0.25)),
    (limits.build, frontend_pb2.Limits(), LimitsPlan()),
    (limits.build, ALL_LIMITS, LimitsPlan(1, 2, 3, 4, 5, 6.5, 7, 8)),
    (backend_http.build, V.BackendHttp(), Http(BY_REQUEST, None)),
    (backend_http.build, V.BackendHttp(version=V.HTTP_VERSION_HTTP1, request_timeout_ms=500), Http(HTTP1, 0.5)),
    (backend_http.build, V.BackendHttp(version=V.HTTP_VERSION_HTTP2), Http(HTTP2, None)),
    (backend_tcp.build, V.BackendTcp(), Tcp(10.0, Keepalive(9, 180, 180), 0)),
    (backend_tcp.build, V.BackendTcp(connect_timeout_ms=250, keepalive=KEPT), Tcp(0.25, Keepalive(4, 5, 6), 0)),
    (backend_tcp.build, V.BackendTcp(proxy_protocol=connection_pb2.PROXY_PROTOCOL_VERSION_V1), Tcp(proxy_version=1)),
    (backend_tcp.build, V.BackendTcp(proxy_protocol=connection_pb2.PROXY_PROTOCOL_VERSION_V2), Tcp(proxy_version=2)),
    (backend_limits.build, V.BackendLimits(), Limits()),
    (
        backend_limits.build,
        V.BackendLimits(
            max_connections=1,
            max_pending=2,
            max_requests=3,
            retry_budget=100,
            idle_timeout_ms=4500,
            max_connection_duration_ms=5500,
        ),
        Limits(3, 100, 1, 2, 4.5, 5.5),
    ),
    (backend_limits.build, V.BackendLimits(retry_budget=0), Limits(retry_budget=0)),
    (request_mirror.build, traffic_pb2.RequestMirror(backend="b"), Mirror("b")),
    (request_mirror.build, traffic_pb2.RequestMirror(backend="b", numerator=2, denominator=2), Mirror("b", 2, 2)),
    (request_mirror.build, traffic_pb2.RequestMirror(backend="b", denominator=3), Mirror("b", 0, 3)),
    (frontend_tls.build, connection_pb2.FrontendTls(), TlsSettings()),
]


@pytest.mark.parametrize(("build", "config", "value"), VALUES)
def test_what_a_setting_comes_to(build: Callable[[Any, Env], Any], config: Any, value: Any) -> None:
    assert build(config, ENV) == value


REFUSED: list[tuple[Callable[[Any, Env], Any], Any, str]] = [
    (backend_http.build, V.BackendHttp(version=NEWER), "version must be HTTP1 or HTTP2"),
    (backend_tcp.build, V.BackendTcp(proxy_protocol=NEWER), "proxyProtocol: 99 is no version"),
    (backend_limits.build, V.BackendLimits(max_connections=0), "maxConnections must be at least 1"),
    (backend_limits.build, V.BackendLimits(max_pending=0), "maxPending must be at least 1"),
    (backend_limits.build, V.BackendLimits(max_requests=0), "maxRequests must be at least 1"),
    (backend_limits.build, V.BackendLimits(idle_timeout_ms=0), "idleTimeout must be at least 1"),
    (backend_limits.build, V.BackendLimits(max_connection_duration_ms=0), "maxConnectionDuration must be"),
    (backend_limits.build, V.BackendLimits(retry_budget=101), "more than 100 percent"),
    (health.build, V.Health(eviction=V.Eviction(restore_health=101)), "eviction.restore_health"),
    (health.build, V.Health(eviction=V.Eviction(health_threshold=101)), "eviction.health_threshold"),
    (health.build, V.Health(unhealthy_condition="response.body == b''"), "cannot read its body"),
    (request_mirror.build, traffic_pb2.RequestMirror(), "needs a backend"),
    (request_mirror.build, traffic_pb2.RequestMirror(backend="b", numerator=3, denominator=2), "3 of 2 is more"),
    (frontend_tls.build, connection_pb2.FrontendTls(min_protocol_version=NEWER), "minProtocolVersion: 99"),
    (frontend_tls.build, connection_pb2.FrontendTls(max_protocol_version=NEWER), "maxProtocolVersion: 99"),
    (frontend_tls.build, connection_pb2.FrontendTls(cipher_suites=[NEWER]), "cipherSuites: 99"),
    (frontend_tls.build, connection_pb2.FrontendTls(key_exchange_groups=[NEWER]), "keyExchangeGroups: 99"),
    (frontend_tls.build, connection_pb2.FrontendTls(alpn_protocols=["a" * 256]), "alpnProtocols"),
    (frontend_tls.build, connection_pb2.FrontendTls(alpn_protocols=[""]), "alpnProtocols"),
    (
        frontend_tls.build,
        connection_pb2.FrontendTls(
            min_protocol_version=tls_pb2.TLS_VERSION_1_3, max_protocol_version=tls_pb2.TLS_VERSION_1_2
        ),
        "leave no version of TLS",
    ),
    (direct_response.build, traffic_pb2.DirectResponse(status=199), "status: 199"),
    (direct_response.build, traffic_pb2.DirectResponse(status=600), "status: 600"),
    (direct_response.build, traffic_pb2.DirectResponse(status=200, body="a", body_expression="'b'"), "bodyExpression"),
    (access_log.build, frontend_pb2.AccessLog(attributes={"add": [{"name": "a b", "expression": "1"}]}), "'a b'"),
    (
        access_log.build,
        frontend_pb2.AccessLog(
            attributes={"add": [{"name": "a", "expression": "1"}, {"name": "a", "expression": "2"}]}
        ),
        r"attributes.add\[1\].name: \"a\" is there twice",
    ),
]


@pytest.mark.parametrize(("build", "config", "why"), REFUSED)
def test_what_cannot_be_is_refused(build: Callable[[Any, Env], Any], config: Any, why: str) -> None:
    with pytest.raises(Refused, match=why):
        build(config, ENV)


def test_the_longest_name_of_a_protocol() -> None:
    settings = frontend_tls.build(
        connection_pb2.FrontendTls(alpn_protocols=["a" * 255], handshake_timeout_ms=2500), ENV
    )
    assert settings.alpn == (b"a" * 255,) and settings.handshake_timeout == 2.5
    assert frontend_tls.closed("why").refused == "why"


@pytest.mark.parametrize(
    ("config", "eviction"),
    [
        (V.Health(), None),
        (V.Health(eviction=V.Eviction()), Eviction(3.0, None, None, None)),
        (
            V.Health(
                eviction=V.Eviction(duration_ms=500, restore_health=100, consecutive_failures=0, health_threshold=100)
            ),
            Eviction(0.5, 100, 0, 100),
        ),
    ],
)
def test_who_is_evicted(config: Any, eviction: Eviction | None) -> None:
    made = health.build(config, ENV)
    assert (made.condition, made.eviction) == (None, eviction)
    judged = health.build(V.Health(unhealthy_condition="response.code == 429"), ENV)
    assert judged.condition is not None
    x = exchange()
    x.status = 429
    assert judged.condition(x) is True
    x.status = 503
    assert judged.condition(x) is False


@pytest.mark.parametrize(
    ("fields", "reads_body", "judges_body"),
    [
        ({}, False, False),
        ({"precondition": "request.body == b''"}, True, False),
        ({"precondition": "request.path == '/'"}, False, False),
        ({"condition": "response.body == b''"}, False, True),
        ({"condition": "response.code == 500"}, False, False),
        ({"condition": "request.body == b''"}, False, False),
    ],
)
def test_which_bodies_a_retry_reads(fields: dict[str, str], reads_body: bool, judges_body: bool) -> None:
    made = retry.build(traffic_pb2.Retry(**fields), ENV)  # type: ignore[arg-type]  # of the fields, texts
    assert (made.reads_body, made.judges_body) == (reads_body, judges_body)
    assert ((made.precondition is None), (made.condition is None)) == (
        "precondition" not in fields, "condition" not in fields
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "headers", "bodies"),
    [
        ({}, False, False),
        ({"filter": "response.headers['a'] == ''"}, True, False),
        ({"filter": "response.grpcStatus == 1"}, True, False),
        ({"filter": "request.body == b''"}, False, True),
        ({"filter": "response.bodyPrefix == b''"}, False, True),
        ({"attributes": {"add": [{"name": "a", "expression": "response.headers"}]}}, True, False),
        ({"attributes": {"add": [{"name": "a", "expression": "response.code"}]}}, False, False),
    ],
)
def test_what_is_kept_for_a_line(fields: dict[str, Any], headers: bool, bodies: bool) -> None:
    plan = access_log.build(frontend_pb2.AccessLog(**fields), ENV)
    assert (plan.reads_headers, plan.reads_bodies) == (headers, bodies)
    assert (plan.wants is None) == ("filter" not in fields) and len(plan.added) == ("attributes" in fields)


@pytest.mark.parametrize(
    ("fields", "body", "content_type"),
    [
        ({"status": 200}, b"", b"text/plain"),
        ({"status": 599, "body": "a"}, b"a", b"text/plain"),
        ({"status": 204, "body": "a"}, b"", b"text/plain"),
        ({"status": 205, "body": "a"}, b"", b"text/plain"),
        ({"status": 304, "body_expression": "'a'"}, b"", b"text/plain"),
        ({"status": 200, "body_expression": "request.path"}, b"/p", b"text/plain"),
        ({"status": 200, "body_expression": "b'a'"}, b"a", b"application/octet-stream"),
        ({"status": 200, "body_expression": "{'a': 1}"}, b'{"a":1}', b"application/json"),
        ({"status": 200, "body": "a", "headers": [{"name": "Content-Type", "value": "'x/y'"}]}, b"a", b""),
        ({"status": 200, "body": "a", "headers": [{"name": "Content-Type", "value": "request.path"}]}, b"a", b""),
    ],
)
def test_a_direct_response(fields: dict[str, Any], body: bytes, content_type: bytes) -> None:
    step: Filter | None = direct_response.build(traffic_pb2.DirectResponse(**fields), ENV)
    assert step is not None and step.request is not None
    answer: Any = step.request(exchange(path="/p"))
    assert (answer.status, answer.body, answer.content_type) == (fields["status"], body, content_type)
    assert answer.reason == "DirectResponse"
