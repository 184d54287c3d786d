"""Every setting of `backend.tcp`, `tls`, `http`, `health` and `limits`: what a proxy does by default, and what it does
where the setting says otherwise; read from a standalone file (`backends[].policies`), from a folder as the controller
reads it, and from an object that an API server has completed.

What one setting means in each case is tested beside it. Here is that each of them arrives, from each place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from dataplane.table.plans import BackendPlan
from dataplane.tls.client import CHAIN, NOTHING, ClientSecurity
from dataplane.tls.settings import GROUPS
from dataplane.upstream.settings import PLAIN_TCP, Transport
from gatewright.api.backend.backend import BackendFull
from tests.carriers import Names
from tests.fakes.both_planes import BothPlanes
from tests.fakes.certificates import Authority
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.web_objects import OBJECTS, route
from tests.harness import yamls
from tests.policies.test_frontend_knobs import Knob, completed, leaves

AUTHORITY: Final = Authority()
PAIR: Final = AUTHORITY.issue("proxy.test", client=True)
HOST: Final = "origin.default.svc.cluster.local"
"""What the backend is called, in the file as in objects."""


# --- what shows it


def plan(proxy: MemoryProxy) -> BackendPlan:
    (found,) = proxy.applier.current.table.backends.values()
    return found


def tcp(attribute: str) -> Callable[[MemoryProxy], Any]:
    """How connections to the backend are made; what a kernel makes of it: `test_backend_tcp`."""

    def observe(proxy: MemoryProxy) -> Any:
        found: Any = plan(proxy).own.tcp or PLAIN_TCP
        for name in attribute.split("."):
            found = getattr(found, name)
        return found

    return observe


def tls(observe: Callable[[Transport], Any]) -> Callable[[MemoryProxy], Any]:
    """What TLS is spoken with; what servers see of it: `loopback/test_tls_to_backends`."""

    def of(proxy: MemoryProxy) -> Any:
        transport = plan(proxy).transport
        assert transport is not None and transport.tls is not None
        return observe(transport)

    return of


def security(observe: Callable[[ClientSecurity], Any]) -> Callable[[MemoryProxy], Any]:
    def of(transport: Transport) -> Any:
        assert transport.tls is not None and transport.tls.security is not None
        return observe(transport.tls.security)

    return tls(of)


def request(proxy: MemoryProxy) -> bytes:
    """The first bytes that the endpoint gets of a request."""
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n")
    return proxy.connector.upstream.take()[:3]


def status_after(seconds: float) -> Callable[[MemoryProxy], bytes]:
    """Of a request whose endpoint says nothing for so long; empty: it is still waited for."""

    def observe(proxy: MemoryProxy) -> bytes:
        client = proxy.connect()
        client.send(b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n")
        proxy.advance(seconds)
        return client.received[9:12]

    return observe


def health(attribute: str) -> Callable[[MemoryProxy], Any]:
    """What an eviction is made by; who is evicted then: `test_health`."""

    def observe(proxy: MemoryProxy) -> Any:
        rules = plan(proxy).rules
        assert rules is not None and rules.health is not None and rules.health.eviction is not None
        return getattr(rules.health.eviction, attribute)

    return observe


def watches(attribute: str) -> Callable[[MemoryProxy], bool]:
    """Whether health is judged by this."""

    def observe(proxy: MemoryProxy) -> bool:
        rules = plan(proxy).rules
        return rules is not None and rules.health is not None and getattr(rules.health, attribute) is not None

    return observe


GET: Final = b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"


def budget(proxy: MemoryProxy) -> int | None:
    """Which share of requests may be tried again; who is not: `test_backend_limits`."""
    rules = plan(proxy).rules
    return None if rules is None or rules.backend_limits is None else rules.backend_limits.retry_budget


def status_beside(others: int) -> Callable[[MemoryProxy], bytes]:
    """Of a request while so many others have no response; empty: it waits, or is at the endpoint."""

    def observe(proxy: MemoryProxy) -> bytes:
        clients = [proxy.connect() for _ in range(others + 1)]
        for client in clients:
            client.send(GET)
        assert not any(client.received for client in clients[:-1])
        return clients[-1].received[9:12]

    return observe


def connections(proxy: MemoryProxy) -> int:
    """That are open for two requests at once."""
    for client in (proxy.connect(), proxy.connect()):
        client.send(GET)
    return len(proxy.connector.upstreams)


def rest(proxy: MemoryProxy, seconds: float) -> None:
    """A request is served, then there is none for so long."""
    client = proxy.connect()
    client.send(GET)
    proxy.connector.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    assert client.received.startswith(b"HTTP/1.1 200")
    proxy.advance(seconds)
    proxy.connector.advance(seconds)


def open_after(seconds: float) -> Callable[[MemoryProxy], bool]:
    """Whether an unused connection is there after so long."""

    def observe(proxy: MemoryProxy) -> bool:
        rest(proxy, seconds)
        return proxy.connector.upstream.open

    return observe


def used_again_after(seconds: float) -> Callable[[MemoryProxy], bool]:
    """Whether the next request takes a connection that is so old."""

    def observe(proxy: MemoryProxy) -> bool:
        rest(proxy, seconds)
        proxy.connect().send(GET)
        return len(proxy.connector.upstreams) == 1

    return observe


EVICTS: Final = "{health: {eviction: {}}}"
SPEAKS: Final = "{tls: {}}"
KNOBS: Final = (
    Knob("tcp.connectTimeout", "250ms", tcp("connect_timeout"), 10.0, 0.25),
    Knob("tcp.keepalive.retries", "3", tcp("keepalive.retries"), 9, 3),
    Knob("tcp.keepalive.time", "1m", tcp("keepalive.time"), 180, 60),
    Knob("tcp.keepalive.interval", "7s", tcp("keepalive.interval"), 180, 7),
    Knob("tcp.proxyProtocol", "V2", tcp("proxy_version"), 0, 2),
    Knob("tls.sni", "a.test", tls(lambda transport: transport.server_name), HOST, "a.test", SPEAKS),
    Knob("tls.verifySubjectAltNames", "[b.test]", tls(lambda transport: transport.names), (HOST,), ("b.test",), SPEAKS),
    Knob("tls.insecureSkipVerify", "Hostname", tls(lambda transport: transport.names), (HOST,), (), SPEAKS),
    Knob("tls.insecureSkipVerify", "Hostname", security(lambda found: found.verifies), CHAIN, CHAIN, SPEAKS),
    Knob("tls.insecureSkipVerify", "All", security(lambda found: found.verifies), CHAIN, NOTHING, SPEAKS),
    Knob(
        "tls.alpnProtocols",
        "[http/1.1]",
        tls(lambda transport: transport.tls.alpn if transport.tls else None),
        ("h2", "http/1.1"),
        ("http/1.1",),
        SPEAKS,
    ),
    *(
        Knob(
            "tls.keyExchangeGroups",
            f"[{name}]",
            security(lambda found: found._settings.groups),
            tuple(GROUPS),
            (name,),
            SPEAKS,
        )
        for name in GROUPS
    ),
    Knob("http.version", "HTTP2", request, b"GET", b"PRI"),
    Knob("http.requestTimeout", "1s", status_after(1.5), b"", b"504"),
    Knob("health.unhealthyCondition", "response.code == 404", watches("condition"), False, True),
    Knob("health.eviction", "{}", watches("eviction"), False, True),
    Knob("health.eviction.duration", "5s", health("duration"), 3.0, 5.0, EVICTS),
    Knob("health.eviction.restoreHealth", "40", health("restore"), None, 40, EVICTS),
    Knob("health.eviction.consecutiveFailures", "4", health("failures"), None, 4, EVICTS),
    Knob("health.eviction.healthThreshold", "30", health("threshold"), None, 30, EVICTS),
    Knob("limits.maxConnections", "1", connections, 2, 1),
    Knob("limits.maxPending", "1", status_beside(2), b"", b"503", "{limits: {maxConnections: 1}}"),
    Knob("limits.maxRequests", "1", status_beside(1), b"", b"503"),
    Knob("limits.retryBudget", "0", budget, None, 0),
    Knob("limits.idleTimeout", "4s", open_after(6), True, False),
    Knob("limits.maxConnectionDuration", "4s", used_again_after(6), True, False),
)


def believed(found: ClientSecurity) -> int:
    """Authorities that are not the system's."""
    return len(found._authorities)


def has_own(found: ClientSecurity) -> bool:
    return found._identity is not None


AUTHORITIES: Final = yamls.dump([{"value": AUTHORITY.pem.decode()}], default_flow_style=True, width=9999)
CERTIFICATE: Final = yamls.dump(
    [{name: {"value": text.decode()} for name, text in PAIR.entries.items()}], default_flow_style=True, width=9999
)
OF_THE_FILE: Final = (
    Knob("tls.caCertificateRefs", AUTHORITIES, security(believed), 0, 1, SPEAKS),
    Knob("tls.mtlsCertificateRef", CERTIFICATE, security(has_own), False, True, SPEAKS),
)
"""What the standalone file writes in another way."""
OF_OBJECTS: Final = (
    Knob("tls.caCertificateRefs", "[{name: authority}]", security(believed), 0, 1, SPEAKS),
    Knob("tls.mtlsCertificateRef", "[{name: pair}]", security(has_own), False, True, SPEAKS),
)


# --- where they come from


def of_a_file(backend: dict[str, Any]) -> MemoryProxy:
    """A standalone file, whose backends have policies of their own."""
    backends = [{"name": "origin", "host": f"{HOST}:80", "policies": backend}]
    listener = {"name": "http", "routes": [{"backends": [{"backend": "origin"}]}]}
    proxy = MemoryProxy(yamls.dump({"binds": [{"port": 80, "listeners": [listener]}], "backends": backends}))
    proxy.context.resolver = Names({HOST: ("127.0.0.1",)})  # type: ignore[assignment]  # a fake
    return proxy


def objects(backend: dict[str, Any]) -> str:
    target = {"group": "", "kind": "Service", "name": "origin"}
    documents: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "authority"}}
        | {"data": {"ca.crt": AUTHORITY.pem.decode()}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pair"}, "type": "kubernetes.io/tls"}
        | {"stringData": {name: text.decode() for name, text in PAIR.entries.items()}},
    ]
    if backend:
        spec = {"targetRefs": [target], "backend": backend}
        policy = {"apiVersion": "gatewright.dev/v1alpha1", "kind": "GatewayPolicy", "metadata": {"name": "origin"}}
        documents.append({**policy, "spec": spec})
    return OBJECTS.format(port=80, upstream=9000) + route("all", "/") + "---\n" + yamls.dump_all(documents)


def of_a_folder(backend: dict[str, Any]) -> MemoryProxy:
    """What the controller makes of a folder."""
    proxy = BothPlanes("")
    proxy.save(objects(backend))
    return proxy


def of_an_api_server(backend: dict[str, Any]) -> MemoryProxy:
    return completed(objects(backend))


def check(knob: Knob, make: Callable[[dict[str, Any]], MemoryProxy]) -> None:
    assert knob.observe(make(knob.settings(is_set=False))) == knob.default
    assert knob.observe(make(knob.settings(is_set=True))) == knob.otherwise


def named(knob: Knob) -> str:
    return f"{knob.path}: {knob.value[:20]}"


@pytest.mark.parametrize("knob", [*KNOBS, *OF_THE_FILE], ids=named)
def test_from_a_standalone_file(knob: Knob) -> None:
    check(knob, of_a_file)


@pytest.mark.parametrize("knob", [*KNOBS, *OF_OBJECTS], ids=named)
def test_from_a_folder(knob: Knob) -> None:
    check(knob, of_a_folder)


@pytest.mark.parametrize("knob", [*KNOBS, *OF_OBJECTS], ids=named)
def test_from_an_api_server(knob: Knob) -> None:
    check(knob, of_an_api_server)


SECTIONS: Final = ("tcp", "tls", "http", "health", "limits")


def test_every_setting_is_here() -> None:
    settings = {name for name in leaves(BackendFull) if name.partition(".")[0] in SECTIONS}
    inside = {"health.eviction"}  # also where it says nothing of what is in it
    assert settings | inside == {each.path for each in (*KNOBS, *OF_OBJECTS)}
    assert {each.path for each in OF_THE_FILE} == {each.path for each in OF_OBJECTS}
