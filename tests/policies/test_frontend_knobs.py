"""Every setting of `frontend`: what a proxy does by default, and what it does where the setting says otherwise; read
from a standalone file, from a folder as the controller reads it, and from an object that an API server has completed.

What one setting means in each case is tested beside it. Here is that each of them arrives, from each place.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from struct import pack
from typing import Any, Final

import pytest
from OpenSSL import SSL
from pydantic import BaseModel

from dataplane.http.h2.frames import SETTING, SETTINGS, WINDOW_UPDATE
from dataplane.net.proxy_header import V2
from dataplane.server.acceptor import Acceptor
from gatewright.api.frontend.frontend import Frontend
from gatewright.api.schema.model import model_in
from tests.fakes.both_planes import BothPlanes
from tests.fakes.certificates import Authority
from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_wire import frame, parse
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy
from tests.fakes.secure_proxy import TlsClient, client_context
from tests.fakes.web_objects import OBJECTS, route
from tests.harness import yamls
from tests.unit.api import admission

AUTHORITY: Final = Authority()
OWN: Final = AUTHORITY.issue("shop.example")
OK: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Case: a\r\n\r\nok"
HEAD: Final = "{method} {target} HTTP/1.1\r\nhost: a.test\r\n{lines}\r\n"


# --- what shows it


def send(client: FakeTransport, *lines: str, method: str = "GET", target: str = "/", body: str = "") -> None:
    more = "".join(f"{line}\r\n" for line in lines)
    client.send((HEAD.format(method=method, target=target, lines=more) + body).encode())


def sent_on(proxy: MemoryProxy, *lines: str, target: str = "/") -> bytes:
    """What the endpoint gets of a request, or the client of its refusal, in lower case."""
    client = proxy.connect()
    send(client, *lines, target=target)
    if client.received:
        return client.received.lower()
    received = proxy.connector.upstream.take().lower()
    proxy.connector.upstream.answer(OK)
    return received


def status(proxy: MemoryProxy, *lines: str, method: str = "GET", target: str = "/", body: str = "") -> int:
    """Of the proxy's own answer; 0: an endpoint is asked."""
    client = proxy.connect()
    send(client, *lines, method=method, target=target, body=body)
    return int(client.received[9:12] or 0)


def connects(proxy: MemoryProxy) -> int:
    """Status of the answer to a CONNECT."""
    client = proxy.connect()
    client.send(b"CONNECT shop.example:81 HTTP/1.1\r\nHost: shop.example:81\r\n\r\n")
    return int(client.received[9:12])


def open_after(seconds: float) -> Callable[[MemoryProxy], bool]:
    """Whether a connection is open so long after its only request."""

    def observe(proxy: MemoryProxy) -> bool:
        client = proxy.connect()
        send(client)
        proxy.connector.upstream.answer(OK)
        proxy.advance(seconds)
        proxy.advance(0.1)
        return client.open

    return observe


def answer(proxy: MemoryProxy) -> bool:
    client = proxy.connect()
    send(client)
    proxy.connector.upstream.answer(OK)
    return b"X-Case" in client.received


def announced(number: int) -> Callable[[MemoryProxy], int]:
    """A value of our SETTINGS; 0: the window of a connection."""

    def observe(proxy: MemoryProxy) -> int:
        client = proxy.connect()
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS))
        found = {0: 65_535}
        for each in parse(client.received):
            if each.kind == SETTINGS:
                found |= dict(SETTING.iter_unpack(each.payload))
            elif each.kind == WINDOW_UPDATE and not each.stream:
                found[0] += int.from_bytes(each.payload, "big")
        return found[number]

    return observe


def pinged(proxy: MemoryProxy) -> bool:
    client = FrameClient(proxy)
    proxy.advance(30)
    return any(each.kind == "ping" for each in client.take())


def given_up(proxy: MemoryProxy) -> bool:
    """Whether a client that does not answer a PING of the first 5 s is given up 5 s later."""
    client = FrameClient(proxy)
    proxy.advance(5.1)
    proxy.advance(5)
    proxy.advance(0.1)
    return client.is_ended


def keepalive(option: int) -> Callable[[MemoryProxy], int]:
    """An option of sockets that accept."""

    async def listening(proxy: MemoryProxy) -> int:
        acceptor = Acceptor(proxy.context, asyncio.get_running_loop())
        sock = socket.create_server(("127.0.0.1", 0))
        await acceptor.listen(next(iter(proxy.applier.current.table.binds)), sock)
        found = sock.getsockopt(socket.IPPROTO_TCP, option)
        acceptor.cut()
        return found

    return lambda proxy: asyncio.run(listening(proxy))


def source(proxy: MemoryProxy) -> str:
    """The client's address, as the log has it."""
    client = proxy.connect()
    send(client, "x-forwarded-for: 198.51.100.7")
    proxy.connector.upstream.answer(OK)
    return "198.51.100.7" if "src.addr=198.51.100.7" in proxy.log_lines()[-1] else ""


def line(proxy: MemoryProxy) -> str:
    client = proxy.connect()
    send(client)
    proxy.connector.upstream.answer(OK)
    return "".join(proxy.log_lines())


def open_clients(proxy: MemoryProxy) -> int:
    """Of three idle ones of one address."""
    clients = [proxy.connect() for _ in range(3)]
    return sum(each.open for each in clients)


def overloaded(proxy: MemoryProxy) -> int:
    """The second of two requests at the same time."""
    send(proxy.connect())
    return status(proxy)


def json_of(count: int) -> Callable[[MemoryProxy], int]:
    body = "[" + ",".join(["1"] * count) + "]"
    return lambda proxy: status(proxy, f"content-length: {len(body)}", method="POST", target="/json", body=body)


def held(size: int) -> Callable[[MemoryProxy], int]:
    return lambda proxy: status(proxy, f"content-length: {size}", method="POST", target="/held")


def opens(proxy: MemoryProxy) -> bool:
    """Whether a connection is taken, before a byte of it."""
    return proxy.connect().open


def serves(first: bytes) -> Callable[[MemoryProxy], bool]:
    """Whether a request reaches an endpoint, behind these bytes."""

    def observe(proxy: MemoryProxy) -> bool:
        client = proxy.connect()
        client.send(first + HEAD.format(method="GET", target="/", lines="").encode())
        return client.open and bool(proxy.connector.upstreams)

    return observe


# --- what shows it of a listener with TLS


def tls_client(proxy: MemoryProxy, most: int | None = None, alpn: tuple[bytes, ...] = ()) -> TlsClient:
    context = client_context(AUTHORITY, alpn)
    if most is not None:
        context.set_max_proto_version(most)
    return TlsClient(proxy.connect(), "shop.example", context=context)


def version(proxy: MemoryProxy, most: int | None = None) -> str:
    """That is spoken; "": the handshake fails."""
    client = tls_client(proxy, most)
    return "" if client.error else client.tls.get_protocol_version_name()


def chosen(proxy: MemoryProxy, *offered: bytes) -> bytes | None:
    """The protocol of ALPN; None: the handshake fails."""
    client = tls_client(proxy, alpn=offered)
    return None if client.error else client.tls.get_alpn_proto_negotiated()


def silent_for(seconds: float) -> Callable[[MemoryProxy], bool]:
    """Whether a connection is open so long after its first byte, which its handshake did not go on from."""

    def observe(proxy: MemoryProxy) -> bool:
        far = proxy.connect()
        far.send(b"\x16")
        proxy.advance(seconds)
        return far.open

    return observe


# --- the settings


@dataclass(frozen=True)
class Knob:
    """A setting by its path in its section, and its value as YAML; what `observe` gives without it, and with it.
    `beside`: what stands there in both cases."""

    path: str
    value: str
    observe: Callable[[MemoryProxy], Any]
    default: Any
    otherwise: Any
    beside: str = "{}"

    def settings(self, is_set: bool) -> dict[str, Any]:
        made: dict[str, Any] = yamls.load(self.beside)
        if is_set:
            *parents, name = self.path.split(".")
            inner = made
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[name] = yamls.load(self.value)
        return made


V1_HEADER: Final = b"PROXY TCP4 198.51.100.7 10.0.0.1 4711 80\r\n"
V2_HEADER: Final = V2 + pack("!BBH4s4sHH", 0x21, 0x11, 12, bytes([198, 51, 100, 7]), bytes([10, 0, 0, 1]), 4711, 80)
MANY: Final = "&".join(f"a{n}=1" for n in range(1001))

KNOBS: Final = (
    Knob("tcp.keepalive.retries", "3", keepalive(socket.TCP_KEEPCNT), 9, 3),
    Knob("tcp.keepalive.time", "60s", keepalive(socket.TCP_KEEPIDLE), 180, 60),
    Knob("tcp.keepalive.interval", "10s", keepalive(socket.TCP_KEEPINTVL), 180, 10),
    Knob("http.maxBufferSize", "1Ki", held(2_097_152), 0, 413),
    Knob("http.maxBufferSize", "3Mi", held(2_097_153), 413, 0),
    Knob("http.http1MaxHeaders", "3", lambda p: status(p, "a: 1", "b: 1", "c: 1"), 0, 431),
    Knob("http.http1MaxHeaders", "101", lambda p: status(p, *["a: 1"] * 100), 431, 0),
    Knob("http.http1IdleTimeout", "5s", open_after(599.8), True, False),
    Knob("http.http1IdleTimeout", "11m", open_after(600.1), False, True),
    Knob("http.http1HeaderCase", "Lowercase", answer, True, False),
    Knob("http.http2WindowSize", "1Mi", announced(4), 65_536, 1_048_576),
    Knob("http.http2ConnectionWindowSize", "1Mi", announced(0), 524_288, 1_048_576),
    Knob("http.http2FrameSize", "32kb", announced(5), 16_384, 32_768),
    Knob("http.http2MaxHeaderSize", "32Ki", announced(6), 16_384, 32_768),
    Knob("http.http2KeepaliveInterval", "20s", pinged, False, True),
    Knob("http.http2KeepaliveTimeout", "4s", given_up, False, True, "{http: {http2KeepaliveInterval: 5s}}"),
    Knob("http.maxConnectionDuration", "1m", open_after(61), True, False),
    Knob("http.trustedHops.count", "1", source, "", "198.51.100.7"),
    Knob("http.trustedHops.cidrs", "[192.0.2.0/24]", source, "", "198.51.100.7"),
    Knob("http.ownedHeaders", "[x-mine]", lambda p: b"x-mine" in sent_on(p, "x-mine: 1"), True, False),
    Knob("http.requestId", "Replace", lambda p: b"x-request-id: mine" in sent_on(p, "x-request-id: mine"), True, False),
    Knob("http.maxQueryParameters", "1001", lambda p: status(p, target=f"/query?{MANY}"), 400, 0),
    Knob("http.maxJsonKeys", "5", json_of(6), 0, 400),
    Knob("http.headerUnderscores", "Keep", lambda p: b"x_a: 1" in sent_on(p, "x_a: 1"), False, True),
    Knob("http.headerUnderscores", "Reject", lambda p: status(p, "x_a: 1"), 0, 400),
    Knob("http.path.repeatedSlashes", "Merge", lambda p: b"get /a/b " in sent_on(p, target="/a//b"), False, True),
    Knob("http.path.escapedSlashes", "Decode", lambda p: b"get /a/b " in sent_on(p, target="/a%2Fb"), False, True),
    Knob("http.path.escapedBackslashes", "Reject", lambda p: status(p, target="/a%5Cb"), 0, 400),
    Knob("http.path.parameters", "Remove", lambda p: b"get /a " in sent_on(p, target="/a;b=1"), False, True),
    Knob("http.path.case", "Lower", lambda p: status(p, target="/REFUSED"), 0, 403),
    Knob("accessLog.filter", '"false"', lambda p: line(p) != "", True, False),
    Knob("connect.mode", "Deny", connects, 405, 403),
    Knob("connect.mode", "Route", connects, 405, 200),
    Knob("connect.mode", "Tunnel", connects, 405, 404),
    Knob("networkAuthorization.policy.matchExpressions", "['false']", opens, True, False),
    Knob(
        *("networkAuthorization.action", "Deny", opens, True, False),
        "{networkAuthorization: {policy: {matchExpressions: ['true']}}}",
    ),
    Knob("proxyProtocol.version", "V1", serves(V1_HEADER), False, True, "{proxyProtocol: {mode: Strict}}"),
    Knob("proxyProtocol.version", "All", serves(V1_HEADER), False, True, "{proxyProtocol: {mode: Strict}}"),
    Knob("proxyProtocol.version", "V1", serves(V2_HEADER), True, False, "{proxyProtocol: {mode: Strict}}"),
    Knob("proxyProtocol.mode", "Optional", serves(b""), False, True, "{proxyProtocol: {version: V2}}"),
    Knob("limits.maxConnections", "2", open_clients, 3, 2),
    Knob("limits.maxConnectionsPerAddress", "1", open_clients, 3, 1),
    Knob("limits.maxRequests", "1", overloaded, 0, 503),
    Knob("limits.maxRequestBytes", "1Ki", lambda p: status(p, "content-length: 2000", method="POST"), 0, 413),
)

OF_TLS: Final = (
    Knob("tls.handshakeTimeout", "500ms", silent_for(1), True, False),
    Knob("tls.handshakeTimeout", "20s", silent_for(15.2), False, True),
    Knob("tls.handshakeTimeout", "14s", silent_for(14.8), True, False),
    Knob("tls.alpnProtocols", "[http/1.1]", lambda p: chosen(p, b"h2", b"http/1.1"), b"h2", b"http/1.1"),
    Knob("tls.alpnProtocols", "[h2]", lambda p: chosen(p, b"http/1.1"), b"http/1.1", None),
    Knob("tls.minProtocolVersion", '"1.3"', lambda p: version(p, SSL.TLS1_2_VERSION), "TLSv1.2", ""),
    Knob("tls.minProtocolVersion", '"1.2"', lambda p: version(p, SSL.TLS1_2_VERSION), "TLSv1.2", "TLSv1.2"),
    Knob("tls.maxProtocolVersion", '"1.2"', version, "TLSv1.3", "TLSv1.2"),
    Knob("tls.maxProtocolVersion", '"1.3"', version, "TLSv1.3", "TLSv1.3"),
    Knob(
        *("tls.cipherSuites", "[TLS13_CHACHA20_POLY1305_SHA256]", lambda p: tls_client(p).tls.get_cipher_name()),
        *("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
    ),
    Knob(
        *("tls.keyExchangeGroups", "[P-384]", lambda p: str(tls_client(p).tls.get_group_name()).lower()),
        *("x25519mlkem768", "secp384r1"),
    ),
)
"""Of a listener of protocol HTTPS."""

OF_THE_FILE: Final = (
    Knob("accessLog.add", "{a: '\"b\"'}", lambda p: " a=b" in line(p), False, True),
    Knob("accessLog.remove", "[http.path]", lambda p: "http.path" in line(p), True, False),
)
"""What the standalone file writes in another way."""

OF_OBJECTS: Final = (
    Knob("accessLog.attributes.add", "[{name: a, expression: '\"b\"'}]", lambda p: " a=b" in line(p), False, True),
    Knob("accessLog.attributes.remove", "[http.path]", lambda p: "http.path" in line(p), True, False),
)

ELSEWHERE: Final = {
    "accessLog.otlp": "tests/loopback/test_collectors_of_logs.py",
    "limits.maxHeldBytes": "tests/policies/test_limits.py",
    "limits.maxPasswordChecks": "tests/policies/test_limits.py",
    "limits.maxPasswordChecksPerAddress": "tests/policies/test_limits.py",
    "limits.streamIdleTimeout": "tests/policies/test_limits.py",
    "metrics": "tests/policies/test_metrics.py",
    "tracing": "tests/policies/test_tracing.py",
}
"""Settings that need more than a few requests to show: where their tests are. What is of no listener's connections."""


# --- where they come from

TRAFFIC: Final = {
    "held": {"buffer": {"request": {}}},
    "json": {"transformation": {"request": {"set": [{"name": "x-n", "value": "string(size(json(request.body)))"}]}}},
    "query": {"transformation": {"request": {"set": [{"name": "x-q", "value": "request.uri.query('a1')"}]}}},
    "refused": {"authorization": {"action": "Deny", "policy": {"matchExpressions": ["true"]}}},
}
"""Policies of routes, by the path that they match."""


def file(frontend: dict[str, Any], http: dict[str, Any] | None = None, is_secure: bool = False) -> str:
    """`http`: of its listener. `is_secure`: that has TLS."""
    backend = [{"host": "127.0.0.1:9000"}]
    routes = [
        {"matches": [{"path": {"value": f"/{name}"}}], "policies": policies, "backends": backend}
        for name, policies in TRAFFIC.items()
    ]
    listener: dict[str, Any] = {"name": "http", "routes": [*routes, {"backends": backend}]}
    if http is not None:
        listener["http"] = http
    if is_secure:
        pair = {name: {"value": text.decode()} for name, text in OWN.entries.items()}
        listener |= {"protocol": "HTTPS", "tls": {"certificateRefs": [pair]}}
    return yamls.dump({"frontendPolicies": frontend, "binds": [{"port": 80, "listeners": [listener]}]})


def of_a_file(frontend: dict[str, Any], is_secure: bool = False) -> MemoryProxy:
    """A standalone file."""
    return MemoryProxy(file(frontend, is_secure=is_secure))


def objects(frontend: dict[str, Any], is_secure: bool = False) -> str:
    def policy(name: str, kind: str, target: str, **settings: Any) -> dict[str, Any]:
        targets = [{"group": "gateway.networking.k8s.io", "kind": kind, "name": target}]
        spec = {"targetRefs": targets, **settings}
        return {
            "apiVersion": "gatewright.dev/v1alpha1",
            "kind": "GatewayPolicy",
            "metadata": {"name": name},
            "spec": spec,
        }

    policies = [policy(name, "HTTPRoute", name, traffic=settings) for name, settings in TRAFFIC.items()]
    if frontend:
        policies.append(policy("edge", "Gateway", "web", frontend=frontend))
    routes = "".join(route(name, f"/{name}") for name in TRAFFIC) + route("all", "/")
    text = OBJECTS.format(port=80, upstream=9000)
    if is_secure:
        text = text.replace("protocol: HTTP,", "protocol: HTTPS, tls: {certificateRefs: [{name: own}]},")
        pair = {name: content.decode() for name, content in OWN.entries.items()}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own"}, "type": "kubernetes.io/tls"}
        policies.append({**secret, "stringData": pair})
    return text + routes + "---\n" + yamls.dump_all(policies)


def of_a_folder(frontend: dict[str, Any], is_secure: bool = False) -> MemoryProxy:
    """What the controller makes of a folder."""
    proxy = BothPlanes("")
    proxy.save(objects(frontend, is_secure))
    return proxy


@cache
def definition() -> Any:
    text = (Path(__file__).parents[2] / "manifests/crds/gatewright.dev_gatewaypolicies.yaml").read_text()
    return yamls.load(text)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def of_an_api_server(frontend: dict[str, Any], is_secure: bool = False) -> MemoryProxy:
    return completed(objects(frontend, is_secure))


def completed(text: str) -> MemoryProxy:
    """The same objects, with the defaults that the definition of GatewayPolicy writes into them."""
    documents = yamls.load_all(text)
    for document in documents:
        if document["kind"] == "GatewayPolicy":
            assert admission.refusals(definition(), document) == []
    return BothPlanes(yamls.dump_all(documents))


def check(knob: Knob, make: Callable[[dict[str, Any], bool], MemoryProxy]) -> None:
    is_secure = knob in OF_TLS
    assert knob.observe(make(knob.settings(is_set=False), is_secure)) == knob.default
    assert knob.observe(make(knob.settings(is_set=True), is_secure)) == knob.otherwise


def named(knob: Knob) -> str:
    return f"{knob.path}: {knob.value}"


SPECIFIED: Final = (
    ("http.maxBufferSize", "body of 2mb is held, of a byte more refused"),
    ("http.http1MaxHeaders", "100 fields, not 101"),
    ("http.http1IdleTimeout", "10 minutes"),
    ("http.http2FrameSize", "16kb"),
    ("http.http2MaxHeaderSize", "16Ki"),
)


@pytest.mark.claims("limits: Frontend HTTP defaults")
@pytest.mark.parametrize("make", [of_a_file, of_a_folder, of_an_api_server])
def test_the_defaults_of_the_specification(make: Callable[[dict[str, Any]], MemoryProxy]) -> None:
    """Also where `http` is there, and says nothing of them."""
    for path, what in SPECIFIED:
        for knob in [each for each in KNOBS if each.path == path]:
            for frontend in ({}, {"http": {"requestId": "Keep"}}):
                assert knob.observe(make(frontend)) == knob.default, what


@pytest.mark.parametrize("knob", [*KNOBS, *OF_TLS, *OF_THE_FILE], ids=named)
def test_from_a_standalone_file(knob: Knob) -> None:
    check(knob, of_a_file)


@pytest.mark.parametrize("knob", [*KNOBS, *OF_TLS, *OF_OBJECTS], ids=named)
def test_from_a_folder(knob: Knob) -> None:
    check(knob, of_a_folder)


@pytest.mark.parametrize("knob", [*KNOBS, *OF_TLS, *OF_OBJECTS], ids=named)
def test_from_an_api_server(knob: Knob) -> None:
    check(knob, of_an_api_server)


@pytest.mark.parametrize("knob", [each for each in KNOBS if each.path.startswith("http.")], ids=named)
def test_of_a_listener_of_a_standalone_file(knob: Knob) -> None:
    """`http` of a listener sets it anew."""
    proxy = MemoryProxy(file(knob.settings(is_set=False), knob.settings(is_set=True)["http"]))
    assert knob.observe(proxy) == knob.otherwise


def leaves(model: type[BaseModel], path: str = "") -> list[str]:
    found: list[str] = []
    for attribute, field in model.model_fields.items():
        name = f"{path}{field.alias or attribute}"
        inside = model_in(field.annotation)
        is_list = "tuple" in str(field.annotation)
        found += [name] if inside is None or is_list else leaves(inside, f"{name}.")
    return found


def test_every_setting_is_here_or_elsewhere() -> None:
    missing = set(leaves(Frontend)) - {each.path for each in (*KNOBS, *OF_TLS, *OF_OBJECTS)}
    assert {name for name in missing if not any(f"{name}.".startswith(f"{each}.") for each in ELSEWHERE)} == set()
    root = Path(__file__).parents[2]
    assert [file for file in ELSEWHERE.values() if file.startswith("tests/") and not (root / file).is_file()] == []
