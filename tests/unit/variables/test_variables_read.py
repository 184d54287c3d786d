"""What expressions see of an exchange: every variable, and what is there when nothing is known yet."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.http.heads import Head
from dataplane.http.messages import Peer
from dataplane.variables import Variables, place
from gatewright.cel.values import Timestamp


class Moment(Variables):
    """An exchange as policies meet it; keywords are what differs."""

    is_for_agent = False

    def __init__(self, **known: Any) -> None:
        self.attributes = self.response_body = self.backend_plan = self.buffer = self.body = None
        self.grpc = self.listener = self.plan = self.response = None
        self.authority, self.method, self.path, self.target = b"a.example", b"GET", b"/p", b"/p?q=1"
        self.scheme, self.version, self.bind, self.peer = b"https", b"HTTP/1.1", "bind/a", "192.0.2.1"
        self.client = Peer("192.0.2.1", b"https", b"198.51.100.1:8443", 50000)
        self.request = Head(b"\r\nHost: a.example\r\n")
        self.has_body, self.started, self.status = False, 0.0, 0
        self.agent_call, self.replied = None, False
        for name, value in known.items():
            setattr(self, name, value)


LISTENER = SimpleNamespace(key="listener/ns/gw/web", name="web", gateway="ns/gw", port=8443)
ROUTE = SimpleNamespace(key="route/httproute/shop/orders/3", kind="HTTPRoute", rule="third")
SERVICE = SimpleNamespace(key="backend/service/shop/api/80", is_agent=False)


def clocks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """It is 5 s by the clock of the loop, and 1000 s after the epoch."""
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    return SimpleNamespace(clock=lambda: 5.0)


def test_all_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "POD_NAME", "pod-1")
    monkeypatch.setattr(place, "POD_NAMESPACE", "")
    x = Moment(
        listener=LISTENER,
        plan=ROUTE,
        backend_plan=SERVICE,
        status=201,
        response=Head(b"\r\ngrpc-status: 7\r\n"),
        response_body=b"answer",
        context=clocks(monkeypatch),
        started=2.5,
        took=1.5,
    )
    found = x.variables()
    request = found["request"]
    assert request.pop("headers")["host"] == "a.example"
    assert request == {
        "method": "GET",
        "uri": "https://a.example/p?q=1",
        "host": "a.example",
        "scheme": "https",
        "path": "/p",
        "pathAndQuery": "/p?q=1",
        "version": "HTTP/1.1",
        "body": b"",
        "bodyPrefix": b"",
        "startTime": Timestamp(997_500_000_000),
        "endTime": Timestamp(999_000_000_000),
    }
    response = found["response"]
    assert response.pop("headers")["grpc-status"] == "7"
    assert response == {"code": 201, "grpcStatus": 7, "body": b"answer", "bodyPrefix": b"answer"}
    assert found["source"] == {
        "address": "192.0.2.1",
        "port": 50000,
        "rawAddress": "192.0.2.1",
        "rawPort": 50000,
    }
    assert found["destination"] == {"address": "198.51.100.1", "port": 8443}
    assert found["proxy"] == {
        "bind": "bind/a",
        "gateway": {"namespace": "ns", "name": "gw"},
        "listener": {"name": "web"},
        "route": {"namespace": "shop", "name": "orders", "kind": "HTTPRoute", "rule": "third"},
    }
    assert found["env"] == {"podName": "pod-1", "namespace": "ns", "gateway": "gw"}
    assert found["backend"] == {"name": "shop/api/80", "type": "service", "protocol": "http"}


def test_where_nothing_is_known_yet() -> None:
    x = Moment()
    assert (x.response_code, x.response_header("a"), x.response_headers, x.response_grpc_status) == (
        None,
        None,
        {},
        None,
    )
    assert (x.proxy_gateway_namespace, x.proxy_gateway_name, x.proxy_listener_name) == ("", "", "")
    assert (x.proxy_route, x.proxy_route_namespace, x.proxy_route_name, x.proxy_route_kind) == (None,) * 4
    assert (x.proxy_route_rule, x.backend, x.backend_name, x.backend_type, x.backend_protocol) == (None,) * 5
    assert (x.request_end_time, x.jwt_raw_token) == (None, None)


@pytest.mark.parametrize(
    ("local", "address", "port"),
    [(b"[2001:db8::1]:443", "2001:db8::1", 443), (b"10.0.0.1:80", "10.0.0.1", 80), (b"", "", 0), (b"x:unix", "x", 0)],
)
def test_where_a_client_connected_to(local: bytes, address: str, port: int) -> None:
    x = Moment(client=Peer("", local=local))
    assert (x.destination_address, x.destination_port) == (address, port)


@pytest.mark.parametrize(
    ("text", "status"),
    [(b"0", 0), (b"16", 16), (b"999999999", 999_999_999), (b"9999999999", None), (b"-1", None), (b"", None)],
)
def test_the_status_of_a_call(text: bytes, status: int | None) -> None:
    assert Moment(response=Head(b"\r\ngrpc-status: %b\r\n" % text)).response_grpc_status == status


def test_a_body_is_known_when_it_was_kept_or_when_there_is_none() -> None:
    body = SimpleNamespace(beginning=lambda: b"begin")
    for known, whole, prefix in (
        ({}, b"", b""),
        ({"has_body": True}, None, None),
        ({"has_body": True, "buffer": body}, None, b"begin"),
        ({"has_body": True, "buffer": body, "body": b"all of it"}, b"all of it", b"all of it"),
    ):
        x = Moment(**known)
        assert (x.request_body, x.request_body_prefix) == (whole, prefix)


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (b"", None),
        (b"b: 1\r\n", None),
        (b"ab: 1\r\n", None),
        (b"a:\r\n", ""),
        (b"A: \t 1 2 \r\n", "1 2"),
        (b"a: 1\r\nb: 2\r\na:3\r\n", "1, 3"),
        (b"a: \xc3\xa9\r\n", "\u00e9"),
        (b"a: \xe9\r\n", "\u00e9"),
    ],
)
def test_the_value_of_a_header(lines: bytes, value: str | None) -> None:
    assert Moment(request=Head(b"\r\n" + lines)).request_header("a") == value


@pytest.mark.parametrize(
    ("key", "kind", "name"),
    [("backend/service/ns/api/80", "service", "ns/api/80"), ("backend/static/ns/api", "static", "ns/api")],
)
def test_what_a_backend_is(key: str, kind: str, name: str) -> None:
    x = Moment(backend_plan=SimpleNamespace(key=key))
    assert (x.backend_type, x.backend_name) == (kind, name)


def test_the_namespace_is_that_of_the_pod_before_that_of_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "POD_NAMESPACE", "pods")
    assert Moment(listener=LISTENER).env_namespace == "pods"
    monkeypatch.setattr(place, "POD_NAMESPACE", "")
    assert Moment(listener=LISTENER).env_namespace == "ns"


def test_what_policies_leave_is_there_for_later_expressions() -> None:
    x = Moment()
    x.leave("jwt", {"rawToken": "t", "sub": "ann"})
    x.leave("apiKey", {"key": "k"})
    assert (x.jwt_raw_token, x.api_key_key, x.basic_auth_username) == ("t", "k", None)
    assert x.whole("jwt")["sub"] == "ann"
    x.leave("jwt", {"sub": "bob"})
    assert (x.jwt_raw_token, x.api_key_key) == (None, "k")


def test_a_rule_without_a_name_is_none() -> None:
    x = Moment(plan=SimpleNamespace(key="route/httproute/ns/r/0", kind="HTTPRoute", rule=""), context=SimpleNamespace())
    assert x.proxy_route == {"namespace": "ns", "name": "r", "kind": "HTTPRoute"}


def test_parts_of_what_policies_leave_whole() -> None:
    x = Moment(attributes={"source.unverifiedWorkload": {"name": "cart", "namespace": "shop"}})
    assert (x.source_unverified_workload_name, x.source_unverified_workload_namespace) == ("cart", "shop")
    assert x.source_unverified_workload_service_account is None
    assert Moment().source_unverified_workload_name is None
