"""The filter ExternalAuth of an HTTPRoute, on rules and on backend references, through both planes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.chain.calls import CallAnswer, CallRequest
from dataplane.http.heads import Head
from gatewright.wire.external import ext_authz_pb2 as pb
from gatewright.wire.external.status_pb2 import Status
from tests.fakes.both_planes import BothPlanes
from tests.fakes.calls import FakeCalls, answered, failed

BASE = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright, generation: 1}
spec: {controllerName: gatewright.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default, generation: 1}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, protocol: HTTP, port: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: auth, namespace: default}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: default}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-1, namespace: default, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{name: http, port: 9000}]
endpoints: [{addresses: [127.0.0.1]}]
---
"""
AUTH = {"name": "auth", "port": 80}
KEY = "backend/service/default/auth/80"


def route(on_rule: Any = None, on_backend: Any = None) -> str:
    def filters(auth: Any) -> list[dict[str, Any]]:
        return [] if auth is None else [{"type": "ExternalAuth", "externalAuth": {"backendRef": AUTH, **auth}}]

    backend = {"name": "shop", "port": 80, "filters": filters(on_backend)}
    return BASE + json.dumps(
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": "r", "namespace": "default", "generation": 1},
            "spec": {
                "parentRefs": [{"name": "web"}],
                "rules": [{"filters": filters(on_rule), "backendRefs": [backend]}],
            },
        }
    )


class Asking:
    """Both planes, a server that answers as the test says, and what clients and the backend got."""

    def __init__(self, text: str, outcome: Any) -> None:
        self.calls = FakeCalls({KEY: outcome})
        self.proxy = BothPlanes(text, calls=self.calls)

    def send(self, *lines: str, method: str = "GET", path: str = "/shop?a=1", body: str = "") -> tuple[int, str]:
        """The status, and the head that the backend got ("": none)."""
        before = len(self.proxy.asked)
        status, _ = self.proxy.ask(path, "host: shop.example", *lines, method=method, body=body)
        got = self.proxy.asked[before:]
        return status, got[0][1].lower() if got else ""

    @property
    def asked(self) -> CallRequest:
        return self.calls.last

    @property
    def checked(self) -> pb.AttributeContext.HttpRequest:
        return pb.CheckRequest.FromString(self.asked.body[5:]).attributes.request.http


HTTP: dict[str, Any] = {"protocol": "HTTP", "http": {}}
GRPC: dict[str, Any] = {"protocol": "GRPC", "grpc": {}}
PLACES = ("on_rule", "on_backend")


def grpc(**fields: Any) -> CallAnswer:
    message = pb.CheckResponse(**fields).SerializeToString()
    head = Head(b"\r\ncontent-type: application/grpc\r\ngrpc-status: 0\r\n")
    return CallAnswer(200, head, b"\0" + len(message).to_bytes(4, "big") + message)


@pytest.mark.parametrize("place", PLACES)
def test_over_http_200_allows_and_all_else_denies(place: str) -> None:
    it = Asking(route(**{place: HTTP}), answered(200, b"yes", x_user="ann", content_type="a/b", date="x"))
    status, head = it.send("x-user: eve", "authorization: Bearer t")
    assert status == 200 and "x-user: ann\r\n" in head and "eve" not in head and "a/b" not in head
    assert (it.asked.method, it.asked.target, it.asked.authority) == (b"GET", b"/shop?a=1", b"shop.example")
    assert b"bearer t" in it.asked.headers.lower() and b"x-user" not in it.asked.headers.lower()
    it.calls.on(KEY, answered(401))
    assert it.send() == (403, "")
    it.calls.on(KEY, failed("connect"))
    assert it.send() == (403, "")


@pytest.mark.parametrize("prefix", ["/check", "/check/", "check"])
def test_a_path_is_put_before_that_of_the_request(prefix: str) -> None:
    it = Asking(route({"protocol": "HTTP", "http": {"path": prefix}}), answered())
    it.send()
    assert it.asked.target == b"/check/shop?a=1"


def test_the_headers_that_are_named_are_sent_and_copied() -> None:
    http = {"allowedHeaders": ["x-a"], "allowedResponseHeaders": ["x-user"]}
    it = Asking(route({"protocol": "HTTP", "http": http}), answered(200, x_user="ann", x_other="1"))
    status, head = it.send("x-a: 1", "x-b: 2", "x-user: eve", method="DELETE")
    assert status == 200 and "x-user: ann" in head and "x-other" not in head and "eve" not in head
    assert it.asked.method == b"DELETE" and b"x-a: 1" in it.asked.headers and b"x-b" not in it.asked.headers


@pytest.mark.parametrize("place", PLACES)
def test_over_grpc(place: str) -> None:
    option = pb.HeaderValueOption(header={"key": "x-user", "value": "ann"})
    it = Asking(route(**{place: GRPC}), grpc(ok_response=pb.OkHttpResponse(headers=[option])))
    status, head = it.send("x-b: 2")
    assert status == 200 and "x-user: ann" in head
    assert (it.checked.path, it.checked.host, it.checked.headers["x-b"]) == ("/shop?a=1", "shop.example", "2")
    denied = pb.DeniedHttpResponse(status={"code": 401}, body="who are you")
    it.calls.on(KEY, grpc(status=Status(code=16), denied_response=denied))
    assert it.send() == (401, "")
    it.calls.on(KEY, CallAnswer(200, Head(b"\r\ngrpc-status: 14\r\n"), b""))
    assert it.send() == (403, "")


def test_of_grpc_only_the_headers_that_are_named_are_sent() -> None:
    it = Asking(route({"protocol": "GRPC", "grpc": {"allowedHeaders": ["X-A"]}}), grpc())
    it.send("x-a: 1", "x-b: 2", "cookie: c")
    sent = {name for name in it.checked.headers if not name.startswith(":")}
    assert sent == {"x-a"}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("size", "body", "status", "sent"),
    [(5, "12345", 200, b"12345"), (5, "123456", 413, None), (0, "12345", 200, b""), (None, "12345", 200, b"")],
)
def test_the_body_is_sent_as_far_as_that_is_wanted(
    place: str, size: int | None, body: str, status: int, sent: bytes | None
) -> None:
    forward = {} if size is None else {"forwardBody": {"maxSize": size}}
    it = Asking(route(**{place: {**HTTP, **forward}}), answered())
    assert it.send(method="POST", body=body)[0] == status
    assert [each.request.body for each in it.calls.received] == ([] if sent is None else [sent])


@pytest.mark.parametrize("place", PLACES)
def test_a_server_that_does_not_exist_refuses(place: str) -> None:
    gone = {**HTTP, "backendRef": {"name": "gone", "port": 80}}
    it = Asking(route(**{place: gone}), answered())
    assert it.send() == (500, "") and it.calls.received == []
    conditions = [str(each) for each in it.proxy.world.conditions("HTTPRoute", "r", entry=0)]
    assert any("ResolvedRefs=False BackendNotFound" in each for each in conditions), conditions


OPEN = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p, namespace: default, generation: 1}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  %s
  traffic:
    extAuth: {http: {path: '"/policy"'}, backendRef: {name: auth, port: 80}}
"""


OVERRIDES = "strategy: {inheritance: Override}"


@pytest.mark.parametrize(("strategy", "target"), [("", b"/shop?a=1"), (OVERRIDES, b"/policy")])
def test_the_filter_takes_the_place_of_a_policy_unless_that_overrides(strategy: str, target: bytes) -> None:
    it = Asking(route(HTTP) + OPEN % strategy, answered())
    assert it.send()[0] == 200
    assert [each.request.target for each in it.calls.received] == [target]
