"""`dynamicForwardProxy` from the standalone file to the connection that is opened: where requests, tunnels and
connections of TLS may lead, and where not, whatever they write and whatever DNS answers."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from typing import Any, Final

import pytest

from dataplane.backends.dynamic import addresses, destinations, names
from dataplane.proxy.context import Forwarding
from dataplane.upstream.look_ups import Found
from dataplane.upstream.own_pages import OwnPages
from gatewright.api.standalone import standalone
from tests.fakes.certificates import Authority
from tests.fakes.memory_proxy import FakeTransport, Http1Endpoints, MemoryProxy, Pending
from tests.fakes.secure_proxy import TlsClient
from tests.fakes.tunnel_client import Http1Tunnel, Http2Tunnel, TunnelClient

FILE = """
frontendPolicies: {connect: {mode: Route}}
binds:
- port: 8080
  listeners:
  - name: edge
    routes:
    - name: held
      hostnames: [held.example]
      backends: [{host: "198.51.100.7:9000"}, {host: "[2001:DB8:0::7]:9000"}]
    - name: all
      policies: POLICIES
      backends: [{dynamicForwardProxy: {}, policies: OWN}]
- port: 8443
  listeners:
  - name: tls
    protocol: TLS
    tls: {mode: Passthrough}
    tcpRoutes: [{name: by-sni, backends: [{dynamicForwardProxy: {}}]}]
- port: 9000
  listeners:
  - name: raw
    protocol: TCP
    tcpRoutes: [{name: by-nothing, backends: [{dynamicForwardProxy: {}}]}]
"""
ANYWHERE: Final = "backends: [{name: anywhere, dynamicForwardProxy: {}}]\n"
PUBLIC: Final = "192.0.2.1"
METADATA: Final = "169.254.169.254"


def file(policies: str = "{}", own: str = "{}") -> str:
    """`policies`: of the route, `own`: of the backend."""
    return FILE.replace("POLICIES", policies).replace("OWN", own)


OK: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Names:
    """What DNS answers. A name that is asked for relative to a search list is not known."""

    def __init__(self, **answers: tuple[str, ...]) -> None:
        self.answers: dict[str, tuple[str, ...]] = {"public.example.": (PUBLIC,), **answers}
        self.asked: list[str] = []
        self.held: Pending | None = None
        """Answers wait for it."""
        self.ttl: int | None = 60

    async def look_up(self, host: str, port: int) -> Found:
        self.asked.append(host)
        answer = self.answers.get(host)
        if self.held is not None:
            await self.held
        if answer is None:
            raise OSError(f"{host}: no such name")
        return Found(answer, self.ttl)


def proxy_with(
    dns: Names | None = None,
    allow: tuple[str, ...] = (),
    policies: str = "{}",
    own: str = "{}",
    forwarding: Forwarding | None = None,
    more: str = "",
) -> Http1Endpoints:
    proxy = Http1Endpoints(file(policies, own) + more)
    proxy.context.look_up = (dns or Names()).look_up
    proxy.context.holds = proxy.applier.holds
    proxy.context.forwarding = forwarding or Forwarding(allow)
    return proxy


def asked(proxy: MemoryProxy, host: str, target: str = "/") -> str:
    """The status, and the label of the endpoint that got the request."""
    client, before = proxy.connect(port=8080), len(proxy.connector.upstreams)
    written = [len(upstream.writes) for upstream in proxy.connector.upstreams]
    client.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    for upstream, count in zip(proxy.connector.upstreams, [*written, 0], strict=False):
        if len(upstream.writes) > count:
            upstream.answer(OK)
    status = client.received[9:12].decode()
    label = proxy.log_lines()[-1].partition(" endpoint=")[2].partition(" ")[0]
    assert (len(proxy.connector.upstreams) > before) <= (status == "200"), "nothing is opened for what is refused"
    return f"{status} {label}".rstrip()


def reason(proxy: MemoryProxy) -> str:
    return proxy.log_lines()[-1].partition(" reason=")[2].partition(" ")[0]


# --- where requests lead


@pytest.mark.parametrize(
    ("host", "endpoint"),
    [
        ("public.example", f"{PUBLIC}:80"),
        ("public.example:8081", f"{PUBLIC}:8081"),
        ("PUBLIC.Example.:8081", f"{PUBLIC}:8081"),
        ("203.0.113.9", "203.0.113.9:80"),
        ("[2001:db8::1]:81", "[2001:db8::1]:81"),
        ("[2001:DB8:0:0::1]", "[2001:db8::1]:80"),
        ("10.1.2.3", "10.1.2.3:80"),
    ],
)
def test_a_request_goes_to_the_host_and_port_that_it_names(host: str, endpoint: str) -> None:
    proxy = proxy_with()
    assert asked(proxy, host) == f"200 {endpoint}"
    assert f"\r\nHost: {host}\r\n".encode() in proxy.upstream.received
    assert f" forward.destination={names.host_of(_canonical(host))}:{endpoint.rpartition(':')[2]}" in (
        proxy.log_lines()[-1].replace('"', "")
    )


def _canonical(host: str) -> bytes:
    from dataplane.http.uri import canonical_host

    found = canonical_host(host.encode())
    assert found is not None
    return found


def test_the_port_is_that_of_tls_where_a_policy_asks_for_tls() -> None:
    proxy = proxy_with(own="{tls: {insecureSkipVerify: All}}")
    client = proxy.connect(port=8080)
    client.send(b"GET / HTTP/1.1\r\nHost: public.example\r\n\r\n")
    (pool,) = [each for each in proxy.connector.endpoints if each.transport is not None]
    assert pool.label == f"{PUBLIC}:443" and pool.transport is not None
    assert pool.transport.server_name == "public.example"


def test_one_name_is_looked_up_once_while_its_answer_is_good() -> None:
    dns = Names()
    proxy = proxy_with(dns)
    for _ in range(3):
        assert asked(proxy, "public.example").startswith("200")
    assert dns.asked == ["public.example."] and len(proxy.connector.upstreams) == 1
    proxy.advance(61)
    assert asked(proxy, "public.example").startswith("200") and len(dns.asked) == 2


def test_requests_wait_for_the_first_answer_together() -> None:
    dns = Names()
    dns.held = Pending()
    proxy = proxy_with(dns)
    clients = [proxy.connect(port=8080) for _ in range(3)]
    for client in clients:
        client.send(b"GET / HTTP/1.1\r\nHost: public.example\r\n\r\n")
    gone, *stay = clients
    gone.lose()
    dns.held.set_result(None)
    assert len(dns.asked) == 1 and len(proxy.connector.upstreams) == len(stay)


def test_a_name_that_is_not_found_is_503_and_asked_for_again_a_second_later() -> None:
    dns = Names()
    proxy = proxy_with(dns)
    assert [asked(proxy, "late.example") for _ in range(2)] == ["503", "503"] and reason(proxy) == "DnsFailed"
    assert len(dns.asked) == 1
    dns.answers["late.example."] = (PUBLIC,)
    proxy.advance(1)
    assert asked(proxy, "late.example") == f"200 {PUBLIC}:80"


def test_policies_of_the_backend_hold_for_each_destination() -> None:
    proxy = proxy_with(own="{auth: {key: sesame}, transformation: {request: {set: [{name: x-a, value: '1'}]}}}")
    assert asked(proxy, "public.example").startswith("200")
    assert b"authorization: Bearer sesame\r\n" in proxy.upstream.received
    assert b"x-a: 1\r\n" in proxy.upstream.received


# --- where nothing leads


FORBIDDEN: Final = (
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",  # the kernel leads it to this machine
    "0.1.2.3",
    METADATA,
    "169.254.170.2",
    "169.254.0.1",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fec0::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "ff02::1",
    # IPv4 in IPv6
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::127.0.0.1",
    "64:ff9b:1::127.0.0.1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2001:0:7f00:1::",
    "2001:0:c000:201:0:0:80ff:fffe",  # Teredo has the client's address inverted
    "2001:db8::5efe:7f00:1",
    "2001:db8::200:5efe:a9fe:a9fe",
)


@pytest.mark.parametrize("address", FORBIDDEN)
def test_forbidden_addresses_are_refused_as_literals_and_as_answers(address: str) -> None:
    proxy = proxy_with(Names(**{"evil.example.": (address,)}))
    literal = f"[{address}]" if ":" in address else address
    for host in (literal, f"{literal}:8080", "evil.example", "EVIL.example."):
        assert (asked(proxy, host), reason(proxy)) == ("403", "DestinationRefused"), host
    assert proxy.connector.upstreams == []


@pytest.mark.parametrize(
    "host",
    [
        *("127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "0x7f.1"),
        *("127.0.0.01", "00.0.0.0", "0", "0x0", "256.1.1.1", "1.2.3.4.5", "127.0.0.0x1", "8.8.2056", "0x08.8.8.8"),
    ],
)
def test_numbers_that_only_some_read_as_an_address_name_nothing(host: str) -> None:
    """Of public addresses too: an authorization compares text."""
    dns = Names()
    proxy = proxy_with(dns)
    assert (asked(proxy, host), reason(proxy), dns.asked) == ("403", "DestinationRefused", [])


@pytest.mark.parametrize(
    "host",
    [
        *("user@public.example", "user:pass@127.0.0.1", "public.example@127.0.0.1:80", "public.example:80@127.0.0.1"),
        *("public.example#@127.0.0.1", "public.example/127.0.0.1", "[::1", "[fe80::1%25lo]", "[::ffff:7f00:1]x"),
        *("public.example:80:80", "public..example", "public.example:99999", "p%75blic.example", "public.example\\a"),
    ],
)
def test_what_is_no_host_is_malformed(host: str) -> None:
    proxy = proxy_with()
    client = proxy.connect(port=8080)
    client.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert client.received.startswith(b"HTTP/1.1 400 ") and proxy.connector.upstreams == []


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://public.example/", "public.example", "200"),
        ("http://127.0.0.1/", "127.0.0.1", "403"),
        ("http://public.example/", "127.0.0.1", "400"),
        ("http://127.0.0.1/", "public.example", "400"),
        ("http://public.example:80/", "public.example:81", "400"),
        ("http://user@127.0.0.1/", "127.0.0.1", "400"),
    ],
)
def test_the_absolute_form_and_host_name_one_destination(target: str, host: str, status: str) -> None:
    proxy = proxy_with()
    assert asked(proxy, host, target)[:3] == status


@pytest.mark.parametrize("port", ["0", "00"])
def test_port_0_is_none(port: str) -> None:
    assert asked(proxy_with(), f"public.example:{port}") == "403"


@pytest.mark.parametrize(
    "host",
    [
        *("kubernetes.default.svc.cluster.local", "kubernetes.default.svc.cluster.local.", "a.b.SVC.Cluster.LOCAL"),
        *("cluster.local", "pod.cluster.local:443"),
    ],
)
def test_names_of_the_cluster_are_refused_before_anybody_looks_them_up(host: str) -> None:
    """Whether a Service exists is told to nobody."""
    dns = Names(**{"kubernetes.default.svc.cluster.local.": ("10.96.0.1",)})
    proxy = proxy_with(dns)
    assert (asked(proxy, host), reason(proxy), dns.asked) == ("403", "DestinationRefused", [])


@pytest.mark.parametrize("host", ["kubernetes", "kubernetes.default", "kubernetes.default.svc"])
def test_short_names_are_no_names_of_the_cluster(host: str) -> None:
    """They are asked for from the root on: the search list of a pod would complete them."""
    dns = Names(**{host: ("10.96.0.1",)})
    assert (asked(proxy_with(dns), host), dns.asked) == ("503", [f"{host}."])


def test_the_suffix_of_a_cluster_is_that_of_its_search_list() -> None:
    pod = (
        "search default.svc.k8s.corp.example svc.k8s.corp.example k8s.corp.example corp.example\nnameserver 10.0.0.2\n"
    )
    assert names.cluster_suffixes(pod) == {"cluster.local", "k8s.corp.example"}
    assert names.cluster_suffixes("") == names.cluster_suffixes("search svc.\n") == {"cluster.local"}


def test_addresses_of_the_api_server_and_own_pages_are_refused() -> None:
    own = OwnPages([("0.0.0.0", 15020), ("192.0.2.66", 15000)])
    proxy = proxy_with(forwarding=Forwarding(("192.0.2.66/32",), ("10.96.0.1",), own))
    assert asked(proxy, "10.96.0.1:6443") == asked(proxy, "[::ffff:10.96.0.1]") == "403"
    assert asked(proxy, "192.0.2.66:15000") == asked(proxy, "[::ffff:192.0.2.66]:15000") == "403"
    assert "own pages" in proxy.log_lines()[-1], "which `allow` does not open"
    assert asked(proxy, "192.0.2.66:15001").startswith("200")


def test_endpoints_of_configured_backends_are_refused() -> None:
    """Their policies would be gone round."""
    proxy = proxy_with(Names(**{"inner.example.": ("198.51.100.7",)}))
    assert asked(proxy, "198.51.100.7:9000") == asked(proxy, "[::ffff:198.51.100.7]:9000") == "403"
    assert asked(proxy, "inner.example:9000") == asked(proxy, "[2001:db8::7]:9000") == "403"
    assert "configured" in proxy.log_lines()[-1]
    assert asked(proxy, "198.51.100.7:9001") == "200 198.51.100.7:9001"


def test_an_endpoint_that_is_configured_later_is_refused_from_then_on() -> None:
    proxy = proxy_with()
    assert asked(proxy, "203.0.113.9:9000").startswith("200")
    text = file()
    proxy.load(text.replace("198.51.100.7", "203.0.113.9"))
    assert asked(proxy, "203.0.113.9:9000") == "403"
    proxy.load(text)
    assert asked(proxy, "203.0.113.9:9000").startswith("200")


# --- allowed by the operator


@pytest.mark.parametrize(
    ("allow", "host", "answer"),
    [
        ("127.0.0.0/8", "127.0.0.1:81", "200 127.0.0.1:81"),
        ("127.0.0.0/8", "[::ffff:127.0.0.1]:81", "200 [::ffff:127.0.0.1]:81"),
        ("127.0.0.0/8", "[::1]", "403"),
        ("127.0.0.0/8", METADATA, "403"),
        ("::1/128", "[::1]", "200 [::1]:80"),
        ("64:ff9b::/96", "[64:ff9b::7f00:1]", "200 [64:ff9b::7f00:1]:80"),
        ("198.51.100.0/24", "198.51.100.7:9000", "200 198.51.100.7:9000"),
        ("10.0.0.0/8", "db.cluster.local", "200 10.0.0.5:80"),
        ("10.0.0.0/8", "web.cluster.local", "403"),
        ("10.0.0.0/8", "gone.cluster.local", "403"),
    ],
)
def test_networks_that_are_allowed_may_be_reached(allow: str, host: str, answer: str) -> None:
    dns = Names(**{"db.cluster.local.": ("10.0.0.5",), "web.cluster.local.": ("203.0.113.5",)})
    written = asked(proxy_with(dns, (allow,)), host).replace('"', "")
    assert written == answer or written == answer.replace("[::ffff:127.0.0.1]", "[::ffff:7f00:1]")


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("public.example:81", "200 public.example:81"),
        ("203.0.113.9", "200 203.0.113.9:80"),
        ("127.0.0.1", "403"),
        ("[::ffff:169.254.169.254]", "403"),
        ("a.cluster.local", "403"),
        ("localhost", "403"),
        ("a.LocalHost.", "403"),
        ("198.51.100.7:9000", "403"),
    ],
)
def test_behind_a_tunnel_names_are_the_proxys_to_look_up(host: str, answer: str) -> None:
    dns = Names()
    proxy = proxy_with(dns, own="{tunnel: {host: '192.0.2.250:3128'}}")
    assert (asked(proxy, host), dns.asked) == (answer, [])


# --- answers that change


def test_of_several_answers_only_those_are_connected_to_that_are_not_forbidden() -> None:
    proxy = proxy_with(Names(**{"mixed.example.": ("127.0.0.1", PUBLIC, METADATA)}))
    proxy.connector.refused = {f"{PUBLIC}:80"}
    assert asked(proxy, "mixed.example").startswith("503")
    proxy.connector.refused = set()
    assert asked(proxy, "mixed.example") == f"200 {PUBLIC}:80"
    assert {pool.address for pool in proxy.connector.endpoints} == {PUBLIC}


def test_an_answer_that_changes_before_the_connection_changes_nothing() -> None:
    """Rebinding: the address that was judged is the one that is connected to."""
    dns = Names(**{"rebind.example.": (PUBLIC,)})
    proxy = proxy_with(dns)
    proxy.connector.hold = True
    client = proxy.connect(port=8080)
    client.send(b"GET / HTTP/1.1\r\nHost: rebind.example\r\n\r\n")
    dns.answers["rebind.example."] = ("127.0.0.1",)
    ((pool, _),) = proxy.connector.waiting
    assert pool.address == PUBLIC
    proxy.connector.hold = False
    proxy.connector.release()
    assert dns.asked == ["rebind.example."]


def test_each_answer_is_judged_anew() -> None:
    """With no time to live the least time counts; after it the name is asked for again, and its connections are
    nobody's."""
    dns = Names(**{"rebind.example.": (PUBLIC,)})
    dns.ttl = 0
    proxy = proxy_with(dns)
    assert asked(proxy, "rebind.example") == f"200 {PUBLIC}:80"
    dns.answers["rebind.example."] = (METADATA,)
    proxy.advance(6)
    assert (asked(proxy, "rebind.example"), reason(proxy)) == ("403", "DestinationRefused")
    assert not proxy.upstream.open, "the connection of the address before is closed"
    dns.answers["rebind.example."] = (PUBLIC,)
    proxy.advance(6)
    assert asked(proxy, "rebind.example") == f"200 {PUBLIC}:80"


def test_a_connection_of_a_configured_backend_is_nobody_elses() -> None:
    """A backend may lead to an address that requests may not choose: its idle connections do not serve them."""
    proxy = MemoryProxy(file().replace("198.51.100.7", "127.0.0.1"))
    proxy.context.look_up = Names(**{"held.example.": ("127.0.0.1",)}).look_up
    proxy.context.forwarding = Forwarding(("127.0.0.0/8",))
    assert asked(proxy, "held.example").startswith("200 127.0.0.1:9000")
    proxy.connector.hold = True
    client = proxy.connect(port=8080)
    client.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n\r\n")
    assert len(proxy.connector.waiting) == 1


def test_a_redirect_is_the_clients_to_follow() -> None:
    proxy = proxy_with()
    client = proxy.connect(port=8080)
    client.send(b"GET / HTTP/1.1\r\nHost: public.example\r\n\r\n")
    proxy.upstream.answer(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n")
    assert client.received.startswith(b"HTTP/1.1 302 ") and len(proxy.connector.upstreams) == 1
    assert asked(proxy, "127.0.0.1") == "403"


# --- CONNECT


@pytest.mark.parametrize("opens", [Http1Tunnel, Http2Tunnel])
@pytest.mark.parametrize(
    ("target", "status", "endpoint"),
    [
        (b"public.example:443", 200, f"{PUBLIC}:443"),
        (b"[2001:db8::1]:22", 200, "[2001:db8::1]:22"),
        (b"127.0.0.1:22", 403, ""),
        (b"evil.example:22", 403, ""),
        (b"0x7f.1:22", 403, ""),
        (b"[::ffff:7f00:1]:22", 403, ""),
        (b"a.cluster.local:22", 403, ""),
        (b"198.51.100.7:9000", 403, ""),
        (b"gone.example:22", 503, ""),
    ],
)
def test_a_tunnel_leads_to_the_host_that_is_asked_for(
    opens: Callable[..., TunnelClient], target: bytes, status: int, endpoint: str
) -> None:
    proxy = proxy_with(Names(**{"evil.example.": (METADATA,)}))
    client = opens(proxy, target)
    assert client.status == status
    assert [pool.label for pool in proxy.connector.dialled] == ([endpoint] if endpoint else [])
    if endpoint:
        client.send(b"hello")
        assert proxy.upstream.take() == b"hello"


def test_a_tunnel_waits_for_its_name_and_meets_authorization_first() -> None:
    dns = Names()
    dns.held = Pending()
    rule = "{authorization: {policy: {matchExpressions: ['request.host.startsWith(\"public.\")']}}}"
    proxy = proxy_with(dns, policies=rule)
    client = Http1Tunnel(proxy, b"public.example:443")
    assert client.status is None
    dns.held.set_result(None)
    assert client.look().status == 200
    assert Http1Tunnel(proxy, b"other.example:443").status == 403 and dns.asked == ["public.example."]


# --- TLS and TCP


def hello(name: str | None) -> bytes:
    """What a client of TLS says first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    sent = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
    return sent.read()


@pytest.mark.parametrize(
    ("name", "endpoint", "why"),
    [
        ("public.example", f"{PUBLIC}:8443", ""),
        ("evil.example", "", "DestinationRefused"),
        ("a.cluster.local", "", "DestinationRefused"),
        ("gone.example", "", "DnsFailed"),
        (None, "", "DestinationRefused"),
    ],
)
def test_a_connection_of_tls_goes_to_its_server_name_and_the_listeners_port(
    name: str | None, endpoint: str, why: str
) -> None:
    proxy = proxy_with(Names(**{"evil.example.": ("127.0.0.1",)}))
    client, said = proxy.connect(port=8443), hello(name)
    client.send(said)
    assert [pool.label for pool in proxy.connector.dialled] == ([endpoint] if endpoint else [])
    if endpoint:
        assert proxy.upstream.take() == said
        proxy.upstream.send(b"server")
        assert client.take() == b"server"
    else:
        assert client.aborted and reason(proxy) == why


def test_a_connection_that_names_nothing_goes_nowhere() -> None:
    proxy = proxy_with()
    client = proxy.connect(port=9000)
    assert client.aborted and reason(proxy) == "DestinationRefused"
    assert "it names no host" in proxy.log_lines()[-1]


def test_who_leaves_while_a_name_is_looked_up_opens_nothing() -> None:
    dns = Names()
    dns.held = Pending()
    proxy = proxy_with(dns)
    client = proxy.connect(port=8443)
    client.send(hello("public.example"))
    client.lose()
    dns.held.set_result(None)
    assert proxy.connector.dialled == []


# --- bounds


def test_destinations_are_bounded_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(destinations, "MOST", 3)
    proxy = proxy_with()
    for last in range(1, 7):
        assert asked(proxy, f"203.0.113.{last}").startswith("200")
    assert [upstream.open for upstream in proxy.connector.upstreams] == [False] * 3 + [True] * 3
    assert gauge(proxy) == 3
    assert asked(proxy, "203.0.113.4").startswith("200") and len(proxy.connector.upstreams) == 6


def test_what_nobody_asks_for_any_more_goes_when_another_one_comes() -> None:
    proxy = proxy_with()
    asked(proxy, "203.0.113.1")
    proxy.advance(601)
    asked(proxy, "203.0.113.2")
    assert gauge(proxy) == 1


def test_look_ups_at_the_same_time_are_bounded_and_one_client_leaves_some_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(destinations, "MOST_LOOK_UPS", 4)
    dns = Names(**{f"{each}.example.": (PUBLIC,) for each in "abcdef"})
    dns.held = Pending()
    proxy = proxy_with(dns)

    def begun(name: str, address: str = "192.0.2.7") -> FakeTransport:
        client = proxy.connect((address, 1), port=8080)
        client.send(f"GET / HTTP/1.1\r\nHost: {name}.example\r\n\r\n".encode())
        return client

    *first, one_more = [begun(each) for each in "abcd"]
    assert [each.received for each in first] == [b""] * 3
    assert one_more.received.startswith(b"HTTP/1.1 503 ") and reason(proxy) == "BackendBusy"
    assert not begun("e", "198.51.100.7").received
    assert begun("f", "198.51.100.8").received.startswith(b"HTTP/1.1 503 "), "there are no more"
    dns.held.set_result(None)
    dns.held = None
    assert asked(proxy, "d.example").startswith("200")


def gauge(proxy: MemoryProxy) -> int:
    (value,) = [values[0] for each, values in proxy.metrics.series() if each.metric.name == "forward_destinations"]
    return int(value)


# --- what it is no use for


def test_copies_name_no_destination_and_harm_no_request() -> None:
    proxy = proxy_with(policies="{requestMirror: {backend: anywhere}}", more=ANYWHERE)
    assert asked(proxy, "public.example").startswith("200") and len(proxy.connector.upstreams) == 1


def test_a_call_names_no_destination() -> None:
    """An authorization server that nobody can name lets nothing pass."""
    proxy = proxy_with(policies="{extAuthz: {backend: anywhere, protocol: {http: {}}}}", more=ANYWHERE)
    assert (asked(proxy, "public.example"), reason(proxy)) == ("403", "ExtAuthFailed")
    assert proxy.connector.upstreams == []


def test_no_rule_is_a_network_that_hides_another_one() -> None:
    """The first that has an address says what it is."""
    rows: list[Any] = [network for network, _ in addresses.FORBIDDEN]
    hidden = [
        (str(one), str(other))
        for at, one in enumerate(rows)
        for other in rows[at + 1 :]
        if one.version == other.version and other.subnet_of(one)
    ]
    assert hidden == []


def test_the_file_is_valid() -> None:
    assert not standalone.load(file(), "config.yaml").problems


SERVERS: Final = Authority("Servers")
OWN: Final = SERVERS.issue("*.example", "shop.test")
ENDED: Final = {
    "tls.crt": {"value": OWN.chain.decode()},
    "tls.key": {"value": OWN.key.decode()},
}


@pytest.mark.parametrize(
    ("protocol", "host", "endpoint", "why"),
    [
        ("HTTPS", "a.example", "192.0.2.11:80", ""),
        ("HTTPS", "b.example", "192.0.2.12:80", ""),
        ("HTTPS", "c.example", "", "AuthorizationDenied"),
        ("HTTPS", "evil.example", "", "DestinationRefused"),
        ("HTTPS", "shop.test", "", "Misdirected"),
        ("TLS", "b.example", "192.0.2.11:8443", ""),
    ],
)
def test_of_a_server_name_and_a_host_that_differ_what_is_judged_is_what_is_connected_to(
    protocol: str, host: str, endpoint: str, why: str
) -> None:
    """The client has shown a.example to TLS, and asks for this host in it."""
    leads: dict[str, Any] = {"backends": [{"dynamicForwardProxy": {}}]}
    if protocol == "HTTPS":
        known = {"policy": {"matchExpressions": ['request.host != "c.example"']}}
        leads = {"routes": [{**leads, "policies": {"authorization": known}}]}
    else:
        leads = {"tcpRoutes": [leads]}
    tls = {"certificateRefs": [ENDED]}
    listeners = [
        {"name": name, "hostname": hostname, "protocol": protocol, "tls": tls, **leads}
        for name, hostname in (("any", "*.example"), ("shop", "shop.test"))
    ]
    proxy = Http1Endpoints(json.dumps({"binds": [{"port": 8443, "listeners": listeners}]}))
    addresses = {"a": "192.0.2.11", "b": "192.0.2.12", "c": "192.0.2.13", "evil": METADATA}
    proxy.context.look_up = Names(**{f"{name}.example.": (address,) for name, address in addresses.items()}).look_up
    client = TlsClient(proxy.connect(), "a.example", SERVERS)
    client.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    if proxy.connector.upstreams and not proxy.connector.dialled:
        proxy.upstream.answer(OK)
        assert f" endpoint={endpoint} " in proxy.log_lines()[-1]
    else:
        assert [pool.label for pool in proxy.connector.dialled] == ([endpoint] if endpoint else [])
    assert bool(proxy.connector.upstreams) == bool(endpoint)
    assert not why or reason(proxy) == why
