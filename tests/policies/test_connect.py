"""`frontend.connect` from the standalone file to the tunnel, over HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from dataplane.link.loads import REQUESTS
from dataplane.table.store import RESOURCE_TYPE, Change
from dataplane.upstream.gate import WAIT
from gatewright.api.standalone import standalone
from gatewright.wire.v1 import resource_pb2
from tests.fakes.certificates import Authority
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import headers
from tests.fakes.memory_proxy import FakeTransport, Http1Endpoints, MemoryProxy
from tests.fakes.secure_proxy import SecureProxy, TlsClient, secure
from tests.fakes.tunnel_client import CONNECT_ERROR, Http1Tunnel, Http2Tunnel, TunnelClient

FILE = """
frontendPolicies: {frontend}
binds:
- port: 8080
  listeners:
  - name: edge
    {listener}
    routes:
    - name: all
      {route}
      backends: [{{host: "127.0.0.1:9000"}}]
{binds}
"""

ROUTED = "{connect: {mode: Route}}"
TUNNEL = "{connect: {mode: Tunnel}}"
OTHER = """- port: 8081
  listeners:
  - name: inside
    routes: [{backends: [{host: "127.0.0.1:9001"}]}]
"""
GET = b"GET /inside HTTP/1.1\r\nHost: a.test\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def file(frontend: str, route: str = "", listener: str = "", binds: str = "") -> str:
    return FILE.format(frontend=frontend, route=route, listener=listener, binds=binds)


Opens = Callable[..., Any]
CLIENTS = pytest.mark.parametrize("opens", [Http1Tunnel, Http2Tunnel])


def reason(proxy: MemoryProxy) -> str:
    """Of the newest line."""
    return proxy.log_lines()[-1].partition(" reason=")[2].partition(" ")[0]


# --- refused


@pytest.mark.claims("errors: Downstream CONNECT request while")
def test_connect_is_refused(refused: Callable[..., None]) -> None:
    refused(answer_of("{}"), case="unset")
    refused(answer_of("{connect: {mode: Deny}}"), case="deny")


def answer_of(frontend: str) -> bytes:
    proxy = Http1Endpoints(file(frontend))
    client = proxy.connect()
    client.send(b"CONNECT 127.0.0.1:9000 HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n\r\n")
    assert b"connection: close\r\n" in client.received.lower()
    assert proxy.connector.upstreams == []
    return client.received


@CLIENTS
@pytest.mark.parametrize(
    ("frontend", "status", "why"),
    [("{}", 405, "ConnectNotAllowed"), ("{connect: {mode: Deny}}", 403, "ConnectDenied")],
)
def test_what_is_refused_opens_nothing(opens: Opens, frontend: str, status: int, why: str) -> None:
    proxy = Http1Endpoints(file(frontend))
    client: TunnelClient = opens(proxy, b"db.test:443")
    assert (client.status, client.is_ended, reason(proxy)) == (status, True, why)
    assert not proxy.connector.dialled and not proxy.connector.upstreams
    assert (b"allow" in client.headers) == (status == 405)
    (line,) = proxy.log_lines()
    assert " gateway=default/standalone listener=edge " in f" {line.partition('request')[2].strip()} "
    assert " http.method=CONNECT http.host=db.test http.path=db.test:443 " in line


@pytest.mark.parametrize("frontend", ["{}", "{connect: {mode: Deny}}", TUNNEL])
def test_bytes_for_a_tunnel_that_was_refused_are_no_request(frontend: str) -> None:
    """RFC 9112 9.3 with 9110 9.3.6: a client that did not wait must not be taken at the word of what it carries."""
    proxy = Http1Endpoints(file(frontend))
    client = Http1Tunnel(proxy, b"db.test:443", early=GET)
    assert client.status in (403, 404, 405) and client.is_ended and not proxy.connector.upstreams
    assert client.headers[b"connection"] == b"close"
    assert len(proxy.log_lines()) == 1


@CLIENTS
@pytest.mark.parametrize("frontend", [ROUTED, TUNNEL])
@pytest.mark.parametrize(
    "target",
    [
        *(b"db.test", b"db.test:", b"db.test:0", b"db.test:65536", b"db.test:080", b":443", b"[::1:443", b"a_/b:1"),
        *(b"db..test:443", b"db.test:443:443", b"db.test:-1", b"user@db.test:443", b"[fe80::1%25lo]:443"),
    ],
)
def test_what_names_no_host_and_port_is_malformed(opens: Opens, frontend: str, target: bytes) -> None:
    proxy = Http1Endpoints(file(frontend, binds=OTHER))
    if opens is Http1Tunnel:
        client = proxy.connect(port=8080)
        client.send(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (target, target))
        assert client.take().startswith(b"HTTP/1.1 400 ") and client.eof
    else:
        frames = FrameClient(proxy, transport=proxy.connect(port=8080))
        frames.send(headers(1, ((b":method", b"CONNECT"), (b":authority", target)), end=False))
        (said, *_) = frames.take()
        assert said in (Said("head", 1, 400, end=False), Said("reset", 1, 1)) or (said.kind, said.value) == (
            "head",
            400,
        )
    assert not proxy.connector.dialled


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT db.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n",
        b"CONNECT db.test:443 HTTP/1.1\r\nHost: db.test:80\r\n\r\n",
        b"CONNECT db.test:443 HTTP/1.1\r\nHost: db.test:443\r\nHost: db.test:443\r\n\r\n",
        b"CONNECT db.test:443 HTTP/1.1\r\n\r\n",
        b"CONNECT db.test:443 HTTP/1.1\r\nHost: db.test:443\r\ncontent-length: 3\r\n\r\nabc",
        b"CONNECT db.test:443 HTTP/1.1\r\nHost: db.test:443\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"CONNECT http://db.test:443/ HTTP/1.1\r\nHost: db.test:443\r\n\r\n",
        b"CONNECT /db.test:443 HTTP/1.1\r\nHost: db.test:443\r\n\r\n",
        b"CONNECT * HTTP/1.1\r\nHost: db.test:443\r\n\r\n",
        b"connect db.test:443 HTTP/1.1\r\nHost: db.test:443\r\n\r\n",
    ],
)
def test_heads_that_two_readers_could_take_differently_are_malformed(head: bytes) -> None:
    proxy = Http1Endpoints(file(ROUTED))
    client = proxy.connect()
    client.send(head)
    assert client.take()[9:12] in (b"400", b"501") and client.eof
    assert not proxy.connector.dialled


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT db.test:443 HTTP/1.1\r\nHost: db.test:443\r\n\r\n",
        b"CONNECT DB.test:443 HTTP/1.1\r\nHost: db.TEST:443\r\n\r\n",
        b"CONNECT db.test:443 HTTP/1.1\r\nHost: db.test\r\n\r\n",  # Java's client
        b"CONNECT db.test:443 HTTP/1.0\r\n\r\n",
        b"CONNECT db.test:443 HTTP/1.1\r\nHost: db.test:443\r\ncontent-length: 0\r\n\r\n",
        b"CONNECT [2001:DB8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\nProxy-Connection: keep-alive\r\n\r\n",
    ],
)
def test_heads_of_usual_clients(head: bytes) -> None:
    proxy = Http1Endpoints(file(ROUTED))
    client = proxy.connect()
    client.send(head)
    assert client.take() == b"HTTP/1.1 200 OK\r\n\r\n"
    proxy.upstream.answer(b"hello")
    assert client.take() == b"hello"


@pytest.mark.parametrize(
    "fields",
    [
        ((b":method", b"CONNECT"), (b":authority", b"db.test:443"), (b":scheme", b"http")),
        ((b":method", b"CONNECT"), (b":authority", b"db.test:443"), (b":path", b"/")),
        ((b":method", b"CONNECT"), (b":authority", b"")),
        ((b":method", b"CONNECT"), (b"host", b"db.test:443")),
        ((b":method", b"CONNECT"), (b":authority", b"db.test:443"), (b"host", b"other.test:443")),
    ],
)
def test_pseudo_headers_that_a_connect_has_not_reset_the_stream(fields: tuple[tuple[bytes, bytes], ...]) -> None:
    """RFC 9113 8.5."""
    proxy = Http1Endpoints(file(ROUTED))
    client = FrameClient(proxy)
    client.send(headers(1, fields, end=False))
    assert client.take() == [Said("reset", 1, 1)]
    assert not proxy.connector.dialled


# --- Route


@CLIENTS
def test_bytes_pass_both_ways_to_the_backend_of_the_route(opens: Opens) -> None:
    proxy = Http1Endpoints(file(ROUTED))
    client: TunnelClient = opens(proxy, b"db.test:443", early=b"first ")
    assert client.status == 200 and b"content-length" not in client.headers and not client.is_ended
    assert b"transfer-encoding" not in client.headers
    client.send(b"second")
    assert proxy.upstream.take() == b"first second"
    proxy.upstream.answer(b"\x00answer")
    assert client.look().got == b"\x00answer"
    client.end()
    assert proxy.upstream.eof and proxy.upstream.open
    proxy.upstream.answer(b" and more")
    assert client.look().got == b"\x00answer and more" and not client.is_ended
    proxy.upstream.half_close()
    assert client.look().is_ended and not client.is_reset and not proxy.upstream.open
    (line,) = proxy.log_lines()
    assert " route=default/all route_rule=0 endpoint=127.0.0.1:9000 " in line
    assert " http.status=200 protocol=http request.bytes=12 response.bytes=16 duration=" in line


@CLIENTS
def test_the_endpoint_may_end_first(opens: Opens) -> None:
    proxy = Http1Endpoints(file(ROUTED))
    client: TunnelClient = opens(proxy, b"db.test:443")
    proxy.upstream.answer(b"bye")
    proxy.upstream.half_close()
    client.look()
    assert (client.got, client.is_ended, client.is_reset) == (b"bye", True, False)
    client.send(b"late")
    assert proxy.upstream.take() == b"late" and proxy.upstream.open
    client.end()
    assert not proxy.upstream.open and not proxy.upstream.aborted
    assert reason(proxy) == ""


@CLIENTS
def test_a_reset_of_either_side_is_one_of_the_other(opens: Opens) -> None:
    proxy = Http1Endpoints(file(ROUTED))
    client: TunnelClient = opens(proxy, b"db.test:443")
    proxy.upstream.lose(ConnectionResetError())
    assert client.look().is_reset
    assert not proxy.upstream.aborted, "it is gone already"
    if isinstance(client, Http2Tunnel):  # RFC 9113 8.5
        assert client.code == CONNECT_ERROR
    assert reason(proxy) == "UpstreamFailed"
    client = opens(proxy, b"db.test:443")
    client.leave()
    assert proxy.upstream.aborted and reason(proxy) == "ClientGone" if opens is Http2Tunnel else proxy.upstream.aborted


def test_trailers_end_the_client_s_side() -> None:
    proxy = Http1Endpoints(file(ROUTED))
    client = Http2Tunnel(proxy, b"db.test:443")
    client.client.send(headers(1, ((b"x-late", b"1"),), end=True))
    assert proxy.upstream.eof and proxy.upstream.received == b""


@CLIENTS
@pytest.mark.parametrize(
    ("route", "status"),
    [
        ("matches: [{path: {value: /}}]", 200),
        ("matches: [{method: CONNECT}]", 200),
        ("matches: [{method: GET}]", 404),
        ("matches: [{path: {value: /a}}]", 404),
        ("hostnames: [db.test]", 200),
        ("hostnames: ['*.db.test']", 404),
        ("matches: [{headers: [{name: x-key, value: '1'}]}]", 200),
        ("matches: [{headers: [{name: x-key, value: '2'}]}]", 404),
    ],
)
def test_it_is_matched_as_any_request(opens: Opens, route: str, status: int) -> None:
    proxy = Http1Endpoints(file(ROUTED, route=route))
    assert opens(proxy, b"db.test:443", extra=((b"x-key", b"1"),)).status == status
    assert len(proxy.connector.dialled) == (status == 200)


POLICIES = {
    "authorization": ("{authorization: {rules: [{deny: 'request.host == \"db.test:443\"'}]}}", 403),
    "method": ("{authorization: {rules: [{deny: 'request.method == \"CONNECT\"'}]}}", 403),
    "path": ("{authorization: {rules: [{allow: 'request.path == \"/\"'}]}}", 200),
    "direct": ("{directResponse: {status: 204}}", 502),
    "denied": ("{directResponse: {status: 418}}", 418),
    "response": ("{transformation: {response: {set: [{name: ':status', value: '403'}]}}}", 403),
}


@CLIENTS
@pytest.mark.parametrize("name", POLICIES)
def test_the_policies_of_the_route_act(opens: Opens, name: str) -> None:
    policies, status = POLICIES[name]
    if "rules" in policies:
        kind = "Deny" if "deny" in policies else "Allow"
        expression = policies.partition("'")[2].rpartition("'")[0]
        policies = f"{{authorization: {{action: {kind}, policy: {{matchExpressions: ['{expression}']}}}}}}"
    proxy = Http1Endpoints(file(ROUTED, route=f"policies: {policies}"))
    client = opens(proxy, b"db.test:443")
    assert client.status == status
    if status != 200:
        assert client.is_ended and not any(each.open for each in proxy.connector.upstreams)
        assert name == "response" or not proxy.connector.dialled


@CLIENTS
def test_response_steps_see_the_answer(opens: Opens) -> None:
    step = "{headerModifiers: {response: {set: [{name: x-by, value: gw}]}}}"
    proxy = Http1Endpoints(file(ROUTED, route=f"policies: {step}"))
    assert opens(proxy, b"db.test:443").headers[b"x-by"] == b"gw"


@CLIENTS
def test_basic_authentication_from_proxy_authorization(opens: Opens) -> None:
    policy = """{basicAuthentication: {users: ["a:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="],
      location: {header: {name: proxy-authorization, prefix: "Basic "}}}}"""
    proxy = Http1Endpoints(file(ROUTED, route=f"policies: {textwrap.dedent(policy)}"))
    assert opens(proxy, b"db.test:443").status == 401
    good = ((b"proxy-authorization", b"Basic YTp0ZXN0"),)
    assert opens(proxy, b"db.test:443", extra=good).status == 200


@CLIENTS
def test_no_backend(opens: Opens) -> None:
    proxy = Http1Endpoints(file(ROUTED).replace('[{host: "127.0.0.1:9000"}]', "[]"))
    assert (opens(proxy, b"db.test:443").status, reason(proxy)) == (500, "NoValidBackend")


@CLIENTS
def test_a_backend_that_cannot_be_reached_is_an_answer(opens: Opens) -> None:
    proxy = Http1Endpoints(file(ROUTED))
    proxy.connector.refuse = "connection refused"
    client = opens(proxy, b"db.test:443", early=b"secret")
    assert (client.status, client.is_ended, reason(proxy)) == (503, True, "ConnectFailed")
    assert " endpoint=127.0.0.1:9000 " in proxy.log_lines()[-1]


@CLIENTS
def test_a_limit_of_the_backend_is_an_answer(opens: Opens) -> None:
    proxy = Http1Endpoints(file(ROUTED, route="policies: {limits: {maxConnections: 1}}"))
    first: TunnelClient = opens(proxy, b"db.test:443")
    assert first.status == 200
    second: TunnelClient = opens(proxy, b"db.test:443", early=b"secret")
    proxy.advance(WAIT + 1)
    proxy.connector.advance(WAIT + 1)
    second.look()
    assert (second.status, second.is_ended, reason(proxy)) == (503, True, "BackendBusy")
    assert second.headers[b"retry-after"] == b"1"
    assert len(proxy.connector.dialled) == 1


def test_tunnels_count_among_the_requests_that_a_backend_takes() -> None:
    proxy = Http1Endpoints(file(ROUTED, route="policies: {limits: {maxRequests: 1}}"))
    first: TunnelClient = Http1Tunnel(proxy, b"db.test:443")
    assert first.status == 200
    second: TunnelClient = Http1Tunnel(proxy, b"db.test:443")
    assert (second.status, second.is_ended, reason(proxy)) == (503, True, "BackendBusy")
    assert len(proxy.connector.dialled) == 1
    first.leave()
    assert Http1Tunnel(proxy, b"db.test:443").status == 200


@CLIENTS
@pytest.mark.parametrize("version", ["V1", "V2"])
def test_the_backend_is_told_by_a_proxy_header_who_the_client_is(opens: Opens, version: str) -> None:
    proxy = Http1Endpoints(file(ROUTED, route=f"policies: {{tcp: {{proxyProtocol: {version}}}}}"))
    client: TunnelClient = opens(proxy, b"db.test:443")
    assert client.status == 200
    end: Any = proxy.upstream.protocol
    assert (end.client.address, end.client.local) == ("192.0.2.7", b"198.51.100.1:8080")


@CLIENTS
def test_the_client_leaves_before_the_backend_is_there(opens: Opens) -> None:
    proxy = Http1Endpoints(file(ROUTED))
    proxy.connector.hold = True
    client: TunnelClient = opens(proxy, b"db.test:443")
    assert client.status is None
    client.leave()
    proxy.connector.hold = False
    proxy.connector.release()
    assert not proxy.upstream.open
    assert proxy.left() == []


@CLIENTS
@pytest.mark.parametrize(
    ("timeouts", "status"), [("request: 2s", 504), ("request: 0s", None), ("backendRequest: 2s", 504)]
)
def test_timeouts_hold_until_the_tunnel_stands(opens: Opens, timeouts: str, status: int | None) -> None:
    proxy = Http1Endpoints(file(ROUTED, route=f"policies: {{timeouts: {{{timeouts}}}}}"))
    proxy.connector.hold = True
    client: TunnelClient = opens(proxy, b"db.test:443")
    proxy.advance(3)
    assert client.look().status == status
    proxy.connector.hold = False
    proxy.connector.release()
    if status is None:
        proxy.advance(30)
        assert client.look().status == 200 and not client.is_ended
    else:
        assert not proxy.upstream.open
    assert opens(proxy, b"db.test:443").status == 200
    proxy.advance(60)
    assert proxy.upstream.open


@CLIENTS
def test_a_slow_reader_stops_the_other_side(opens: Opens) -> None:
    proxy = Http1Endpoints(file(ROUTED))
    client: TunnelClient = opens(proxy, b"db.test:443")
    assert proxy.upstream.reading
    client.block()
    assert not proxy.upstream.reading
    client.unblock()
    assert proxy.upstream.reading
    proxy.upstream.protocol.pause_writing()
    assert not client.is_read
    proxy.upstream.protocol.resume_writing()
    if isinstance(client, Http1Tunnel):
        assert client.is_read
    else:
        assert isinstance(client, Http2Tunnel)
        client.look()
        assert client.client.windows[1] >= 40_000


def test_a_window_that_is_used_up_stops_the_endpoint() -> None:
    proxy = Http1Endpoints(file(ROUTED))
    client = Http2Tunnel(proxy, b"db.test:443")
    proxy.upstream.answer(b"x" * 70_000)
    assert len(client.look().got) == 65_535 and not proxy.upstream.reading
    client.grant(10_000)
    assert len(client.got) == 70_000 and proxy.upstream.reading


@CLIENTS
@pytest.mark.parametrize(("limits", "seconds"), [("{}", 3600), ("{limits: {streamIdleTimeout: 30s}}", 30)])
def test_a_tunnel_in_which_nothing_moves_ends(opens: Opens, limits: str, seconds: int) -> None:
    frontend = f"{{connect: {{mode: Route}}, limits: {limits.partition(': ')[2][:-1] or '{}'}}}"
    proxy = Http1Endpoints(file(frontend))
    client: TunnelClient = opens(proxy, b"db.test:443")
    proxy.advance(seconds * 0.7)
    proxy.upstream.answer(b"still here")
    proxy.advance(seconds * 0.7)
    assert not client.look().is_reset and proxy.upstream.open
    for _ in range(4):
        proxy.advance(seconds * 0.3)
    assert client.look().is_reset and proxy.upstream.aborted and reason(proxy) == "IdleTimeout"


@CLIENTS
def test_tunnels_count_as_requests(opens: Opens) -> None:
    proxy = Http1Endpoints(file("{connect: {mode: Route}, limits: {maxRequests: 1}}"))
    first: TunnelClient = opens(proxy, b"db.test:443")
    assert opens(proxy, b"db.test:443").status == 503
    first.leave()
    assert proxy.context.loads.total(REQUESTS) == 0
    assert opens(proxy, b"db.test:443").status == 200


def test_a_gateway_phase_authorization_guards_tunnels_too() -> None:
    rule = "policies: {phase: PreRouting, authorization: {action: Deny, policy: {matchExpressions: ['true']}}}"
    proxy = Http1Endpoints(file(ROUTED, listener=rule))
    assert Http1Tunnel(proxy, b"db.test:443").status == 403


# --- Tunnel


@CLIENTS
@pytest.mark.parametrize("early", [False, True])
def test_what_it_carries_is_a_connection_to_the_addressed_bind(opens: Opens, early: bool) -> None:
    proxy = Http1Endpoints(file(TUNNEL, binds=OTHER))
    client: TunnelClient = opens(proxy, b"any.test:8081", early=GET if early else b"")
    assert client.status == 200
    if not early:
        client.send(GET)
    assert proxy.upstream.received.startswith(b"GET /inside HTTP/1.1\r\n")
    assert b"\r\nx-forwarded-for: 192.0.2.7\r\n" in proxy.upstream.received
    assert proxy.connector.endpoints and {each.port for each in proxy.connector.endpoints} == {9001}
    proxy.upstream.answer(OK)
    assert client.look().got.startswith(b"HTTP/1.1 200 ") and client.got.endswith(b"ok")
    client.send(GET)  # it is kept, as any connection
    proxy.upstream.answer(OK)
    client.end()
    assert client.look().is_ended and not client.is_reset
    inner, second, outer = proxy.log_lines()
    assert " listener=inside " in inner and " http.path=/inside " in second
    assert " listener=edge " in outer and f" request.bytes={2 * len(GET)} " in outer
    assert proxy.left() == []


@CLIENTS
@pytest.mark.parametrize("target", [b"any.test:8082", b"any.test:9001", b"any.test:5353"])
def test_a_port_that_no_bind_has_is_refused(opens: Opens, target: bytes) -> None:
    udp = (
        '- port: 5353\n  listeners:\n  - {name: u, protocol: UDP, udpRoutes: [{backends: [{host: "127.0.0.1:53"}]}]}\n'
    )
    proxy = Http1Endpoints(file(TUNNEL, binds=OTHER + udp))
    client = opens(proxy, target)
    assert (client.status, reason(proxy)) == (404, "ConnectTargetNotFound")
    assert not proxy.connector.dialled and not proxy.connector.upstreams


@CLIENTS
@pytest.mark.parametrize(
    ("addresses", "status"),
    [("[127.0.0.1]", 404), ("['::1']", 404), ("[198.51.100.1]", 200), ("[127.0.0.1, 0.0.0.0]", 200), ("['::']", 200)],
)
def test_a_bind_at_other_addresses_is_not_opened(opens: Opens, addresses: str, status: int) -> None:
    """Whatever host the client names: it could not have connected there."""
    other = OTHER.replace("- port: 8081\n", f"- port: 8081\n  addresses: {addresses}\n")
    proxy = Http1Endpoints(file(TUNNEL, binds=other))
    assert opens(proxy, b"127.0.0.1:8081").status == status


def test_other_requests_are_served_as_usual() -> None:
    proxy = Http1Endpoints(file(TUNNEL, binds=OTHER))
    client = proxy.connect(port=8080)
    client.send(GET)
    proxy.upstream.answer(OK)
    assert client.take().startswith(b"HTTP/1.1 200 ")


@CLIENTS
def test_the_inner_client_is_the_one_outside_and_may_not_say_otherwise(opens: Opens) -> None:
    """A PROXY header counts on the outer connection alone, and rules of connections hold for the inner one too."""
    log = "accessLog: {add: {source: source.address, port: source.port}}"
    frontend = f"{{connect: {{mode: Tunnel}}, proxyProtocol: {{version: V1, mode: Optional}}, {log}}}"
    proxy = Http1Endpoints(file(frontend, binds=OTHER))
    outer = proxy.connect(port=8080, local=("198.51.100.1", 8080))
    outer.send(b"PROXY TCP4 203.0.113.5 198.51.100.1 4711 8080\r\n")
    client: TunnelClient = opens(proxy, b"any.test:8081", transport=outer)
    client.send(GET)
    assert b"\r\nx-forwarded-for: 203.0.113.5\r\n" in proxy.upstream.received
    proxy.upstream.answer(OK)
    assert proxy.log_lines()[0].endswith(" source=203.0.113.5 port=4711")
    client = opens(proxy, b"any.test:8081")
    client.send(b"PROXY TCP4 203.0.113.6 198.51.100.1 4711 8080\r\n" + GET)
    assert b"HTTP/1.1 400 " in client.look().got


@CLIENTS
def test_expressions_inside_read_the_headers_of_the_connect(opens: Opens) -> None:
    rule = """policies: {authorization: {action: Allow, policy: {matchExpressions: [
      'source.connectHeaders["x-team"] == "red" && "x-team" in source.connectHeaders && destination.port == 8081']}}}"""
    guarded = OTHER.replace("routes: [{", f"routes: [{{{rule}, ")
    proxy = Http1Endpoints(file(TUNNEL, binds=guarded))
    for team, status in ((b"red", b"200"), (b"blue", b"403")):
        client: TunnelClient = opens(proxy, b"any.test:8081", extra=((b"x-team", team),))
        client.send(GET)
        if status == b"200":
            proxy.upstream.answer(OK)
        assert client.look().got.startswith(b"HTTP/1.1 " + status)
    client = proxy.connect(port=8081, local=("198.51.100.1", 8081))
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nx-team: red\r\n\r\n")
    assert client.take().startswith(b"HTTP/1.1 403 ")


def test_network_authorization_meets_the_inner_connection() -> None:
    rule = "{action: Deny, policy: {matchExpressions: ['source.address == \"192.0.2.66\"']}}"
    frontend = f"{{connect: {{mode: Tunnel}}, networkAuthorization: {rule}}}"
    proxy = Http1Endpoints(file(frontend, binds=OTHER))
    refused = proxy.connect(("192.0.2.66", 1), port=8080)
    assert not refused.open
    client = Http1Tunnel(proxy, b"any.test:8081")
    client.send(GET)
    proxy.upstream.answer(OK)
    assert client.look().got.startswith(b"HTTP/1.1 200 ")


@CLIENTS
def test_tls_inside_a_tunnel_meets_the_listener_s_own(opens: Opens) -> None:
    authority = Authority()
    proxy = SecureProxy(file(TUNNEL, binds=OTHER), {"inside": secure(authority.issue("shop.example"))}, spoken=1)
    tunnel: TunnelClient = opens(proxy, b"shop.example:8081")
    client = TlsClient(Carried(tunnel), server_name="shop.example", authority=authority)
    assert client.error == ""
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    assert b"\r\nx-forwarded-proto: https\r\n" in proxy.upstream.received
    proxy.upstream.answer(OK)
    client.read()
    assert client.received.startswith(b"HTTP/1.1 200 ")
    assert proxy.counted("tls_handshakes_total") == {"full": 1}


def test_tcp_listeners_take_what_a_tunnel_carries() -> None:
    tcp = """- port: 8082
  listeners: [{name: raw, protocol: TCP, tcpRoutes: [{name: t, backends: [{host: "127.0.0.1:9002"}]}]}]
"""
    proxy = Http1Endpoints(file(TUNNEL, binds=tcp))
    client = Http1Tunnel(proxy, b"any.test:8082", early=b"hello ")
    client.send(b"there")
    assert proxy.upstream.take() == b"hello there"
    proxy.upstream.answer(b"back")
    assert client.look().got == b"back"
    client.block()
    assert not proxy.upstream.reading
    client.unblock()
    proxy.upstream.protocol.pause_writing()
    assert not client.is_read
    proxy.upstream.protocol.resume_writing()
    assert client.is_read
    client.end()
    assert proxy.upstream.eof
    proxy.upstream.answer(b" again")
    proxy.upstream.half_close()
    assert client.look().got == b"back again" and client.is_ended and not client.is_reset
    raw, outer = proxy.log_lines()
    assert " protocol=tcp " in raw and " listener=edge " in outer


def test_tunnels_within_tunnels_come_to_an_end() -> None:
    proxy = Http1Endpoints(file(TUNNEL, binds=OTHER))
    client = proxy.connect(port=8080, local=("198.51.100.1", 8080))
    head = b"CONNECT any.test:8081 HTTP/1.1\r\nHost: any.test:8081\r\n\r\n"
    for _ in range(4):
        client.send(head)
        assert client.take() == b"HTTP/1.1 200 OK\r\n\r\n"
    client.send(head)
    assert client.take().startswith(b"HTTP/1.1 403 ") and not client.open
    assert " reason=TunnelTooDeep " in proxy.log_lines()[0]
    assert proxy.left() == []


def test_inner_connections_count_as_connections() -> None:
    proxy = Http1Endpoints(file("{connect: {mode: Tunnel}, limits: {maxConnections: 2}}", binds=OTHER))
    client = FrameClient(proxy, transport=proxy.connect(port=8080, local=("198.51.100.1", 8080)))
    first = Http2Tunnel(proxy, b"any.test:8081", client=client)
    first.send(GET)  # it is busy
    second = Http2Tunnel(proxy, b"any.test:8081", client=client, stream=3)
    assert second.is_ended and second.code == CONNECT_ERROR
    assert not first.look().is_ended
    assert len(proxy.context.connections) == 2


@CLIENTS
def test_a_drain_ends_idle_inner_connections(opens: Opens) -> None:
    proxy = Http1Endpoints(file(TUNNEL, binds=OTHER))
    client: TunnelClient = opens(proxy, b"any.test:8081")
    for connection in list(proxy.context.connections):
        connection.drain()
    assert client.look().is_ended


def test_a_bind_that_is_gone_refuses_new_tunnels_and_keeps_those_that_stand() -> None:
    proxy = Http1Endpoints(file(TUNNEL, binds=OTHER))
    client = Http1Tunnel(proxy, b"any.test:8081")
    proxy.load(file(TUNNEL))
    assert Http1Tunnel(proxy, b"any.test:8081").status == 404
    client.send(GET)
    assert client.look().got.startswith(b"HTTP/1.1 404 ")


def test_a_policy_that_is_taken_back_counts_from_the_next_request_on() -> None:
    proxy = Http1Endpoints(file(ROUTED))
    client = Http1Tunnel(proxy, b"db.test:443")
    proxy.load(file("{}"))
    client.send(b"still")
    assert proxy.upstream.received == b"still"
    assert Http1Tunnel(proxy, b"db.test:443").status == 405


class Carried(FakeTransport):
    """A tunnel as the far end of a connection in memory, for `TlsClient`."""

    def __init__(self, tunnel: TunnelClient) -> None:
        self.tunnel = tunnel
        self.seen = 0

    @property
    def open(self) -> bool:  # type: ignore[override]
        return not self.tunnel.look().is_ended

    def send(self, content: bytes) -> None:
        self.tunnel.send(content)

    def take(self) -> bytes:
        got = self.tunnel.look().got[self.seen :]
        self.seen += len(got)
        return got


@CLIENTS
def test_a_tunnel_stays_within_its_gateway(opens: Opens) -> None:
    """Also where a table has binds of another Gateway."""
    proxy = Http1Endpoints(file(TUNNEL, binds=OTHER))
    theirs = standalone.load(file("{}").replace("8080", "8082"), "config.yaml").resources
    named = (each.SerializeToString().replace(b"default", b"another") for each in theirs)  # names of the same length
    changes = [Change(RESOURCE_TYPE, resource_pb2.Resource.FromString(raw).key, raw) for raw in named]
    for _ in proxy.applier.apply(changes):
        pass
    assert not proxy.applier.outcome.refused
    assert {key.rpartition("/")[0] for key in proxy.applier.current.table.binds} == {
        "bind/default/standalone",
        "bind/another/standalone",
    }
    assert opens(proxy, b"any.test:8081").status == 200
    client: TunnelClient = opens(proxy, b"any.test:8082")
    assert (client.status, reason(proxy)) == (404, "ConnectTargetNotFound")
    assert proxy.connect(port=8082).open, "it is there"


@CLIENTS
@pytest.mark.parametrize(
    ("frontend", "target", "status"),
    [
        (TUNNEL, b"any.test:8082", 404),
        ("{connect: {mode: Deny}}", b"any.test:8081", 403),
        ("{}", b"any.test:8081", 405),
    ],
)
def test_no_step_sees_a_refusal_before_the_steps(opens: Opens, frontend: str, target: bytes, status: int) -> None:
    early = "policies: {phase: PreRouting, transformation: {response: {set: [{name: x-b, value: '\"c\"'}]}}}"
    proxy = Http1Endpoints(file(frontend, listener=early, binds=OTHER))
    client = opens(proxy, target)
    assert client.status == status and b"x-b" not in client.headers
