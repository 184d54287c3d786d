"""TLS toward backends: real servers of TLS, over real sockets, from the policies of a file to what a server sees.

Names, authorities, certificates of ours, ALPN and sessions; and what is logged where a handshake fails.
"""

from __future__ import annotations

import asyncio
import ssl
import textwrap
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest

from dataplane.upstream import connector
from dataplane.upstream.endpoint import Endpoint
from tests.fakes.certificates import Authority, Issued
from tests.fakes.policy_run import text_of
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.waiting import until

AUTHORITY = Authority()
OTHERS = Authority("somebody else")
SERVER = AUTHORITY.issue("localhost", "shop.example", "*.wild.example", "127.0.0.1", uris=("spiffe://here/shop",))
CLIENT = AUTHORITY.issue("gateway.example", client=True)
WEB_SOCKETS = {h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL: 1}


class Server:
    """Speaks HTTP/1.1 and HTTP/2 over TLS, and notes what each connection was."""

    def __init__(self) -> None:
        self.port = 0
        self.seen: list[str] = []
        """Versions of HTTP of the requests."""
        self.asked: list[dict[bytes, bytes]] = []
        """Heads of the requests of HTTP/2."""
        self.tls: ssl.SSLContext | None = None
        """What it speaks by; made by `context`."""
        self.names: list[str | None] = []
        """Server names of the handshakes."""
        self.clients: list[str] = []
        self.resumed: list[bool] = []
        self.heads: list[bytes] = []
        self.silent = False
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
        self.writers.append(writer)
        self.resumed.append(bool(tls.session_reused))
        certificate: Any = tls.getpeercert() or {}
        self.clients += [name for kind, name in certificate.get("subjectAltName", ()) if kind == "DNS"]
        try:
            if tls.selected_alpn_protocol() == "h2":
                await self._http2(reader, writer)
            else:
                await self._http1(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _http1(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            self.seen.append("HTTP/1.1")
            if not self.silent:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    async def _http2(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.local_settings = h2.settings.Settings(client=False, initial_values=WEB_SOCKETS)
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(65_536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.seen.append("HTTP/2")
                    self.asked.append(dict(event.headers))
                    connection.send_headers(event.stream_id, [(":status", "200")])
                    connection.send_data(event.stream_id, b"ok", end_stream=True)
            writer.write(connection.data_to_send())

    def _named(self, tls: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        self.names.append(name)

    def context(
        self, pair: Issued, folder: Path, alpn: Sequence[str], most: ssl.TLSVersion, asks: bool
    ) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        file = folder / "server.pem"
        file.write_bytes(pair.chain + pair.key)
        context.load_cert_chain(file)
        context.maximum_version = most
        context.sni_callback = self._named  # type: ignore[assignment]  # of an SSLObject
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if asks:
            context.load_verify_locations(cadata=AUTHORITY.pem.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        self.tls = context
        return context


@asynccontextmanager
async def origin(
    folder: Path,
    pair: Issued = SERVER,
    alpn: Sequence[str] = (),
    most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    asks: bool = False,
) -> AsyncIterator[Server]:
    made = Server()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=made.context(pair, folder, alpn, most, asks))
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for writer in made.writers:
            writer.close()
        await server.wait_closed()


def file(port: int, tls: str, host: str = "localhost", route: str = "", **policies: str) -> str:
    """`tls`: the policy of the backend, a YAML flow; its authority is ours unless it names one."""
    others = "".join(f", {name}: {value}" for name, value in policies.items())
    text = f"""
        backends:
        - name: shop
          host: "{host}:{port}"
          policies: {{tls: {tls}{others}}}
        binds:
        - port: 8080
          listeners:
          - name: http
            routes:
            - name: all
              policies: {{{route}}}
              backends: [{{backend: shop}}]
        """
    return textwrap.dedent(text)


def pem(text: bytes) -> str:
    """As a value of a YAML flow."""
    return '{value: "' + text.decode().replace("\n", "\\n") + '"}'


OURS = f"caCertificateRefs: [{pem(AUTHORITY.pem)}]"
OWN = f'mtlsCertificateRef: [{{"tls.crt": {pem(CLIENT.chain)}, "tls.key": {pem(CLIENT.key)}}}]'


async def answered(proxy: SocketProxy) -> int:
    return int((await proxy.get()).split(b" ", 2)[1])


# --- what is verified

GOOD = {
    "by the name of the host": (f"{{{OURS}}}", "localhost", "localhost"),
    "by the address": (f"{{{OURS}}}", "127.0.0.1", None),
    "by sni": (f"{{{OURS}, sni: shop.example}}", "127.0.0.1", "shop.example"),
    "by a wildcard": (f"{{{OURS}, sni: a.wild.example}}", "localhost", "a.wild.example"),
    "by another name": (
        f"{{{OURS}, sni: other.example, verifySubjectAltNames: [nobody.example, shop.example]}}",
        "localhost",
        "other.example",
    ),
    "by a URI": (f'{{{OURS}, verifySubjectAltNames: ["spiffe://here/shop"]}}', "localhost", "localhost"),
    "but for names": (f"{{{OURS}, sni: other.example, insecureSkipVerify: Hostname}}", "localhost", "other.example"),
    "not at all": ("{sni: other.example, insecureSkipVerify: All}", "localhost", "other.example"),
}


@pytest.mark.parametrize(("tls", "host", "sent"), GOOD.values(), ids=GOOD)
async def test_a_server_that_is_believed(tls: str, host: str, sent: str | None, tmp_path: Path) -> None:
    async with origin(tmp_path) as server, serving(file(server.port, tls, host)) as proxy:
        assert await answered(proxy) == 200
        assert server.names == [sent]


async def test_an_authority_that_is_trusted_need_not_be_a_root(tmp_path: Path) -> None:
    between = Authority("between", AUTHORITY)
    trusted = f"{{caCertificateRefs: [{pem(between.pem)}]}}"
    for pair, status in ((between.issue("localhost"), 200), (SERVER, 503)):
        async with origin(tmp_path, pair) as server, serving(file(server.port, trusted)) as proxy:
            assert await answered(proxy) == status


def failures(proxy: SocketProxy) -> dict[tuple[str, ...], int]:
    """Of connections to upstreams: endpoint, name and reason."""
    return proxy.counted("upstream_connection_failures_total")


BAD = {
    "another name": (f"{{{OURS}, sni: other.example}}", SERVER, "its certificate is not for other.example"),
    "no name that is wanted": (
        f'{{{OURS}, verifySubjectAltNames: ["spiffe://here/other", a.example]}}',
        SERVER,
        "its certificate is not for spiffe://here/other or a.example",
    ),
    "two labels below a wildcard": (f"{{{OURS}, sni: a.b.wild.example}}", SERVER, "is not for a.b.wild.example"),
    "another authority": (f"{{{OURS}}}", OTHERS.issue("localhost"), "unable to get local issuer certificate"),
    "the system's authorities": ("{}", SERVER, "unable to get local issuer certificate"),
    "one that names are not verified of": (
        f"{{{OURS}, insecureSkipVerify: Hostname}}",
        OTHERS.issue("localhost"),
        "unable to get local issuer certificate",
    ),
    "an expired certificate": (f"{{{OURS}}}", AUTHORITY.issue("localhost", days=-1), "certificate has expired"),
    "a name in the subject alone": (
        f"{{{OURS}}}", AUTHORITY.issue(common_name="localhost"), "its certificate is not for localhost",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("tls", "pair", "why"), BAD.values(), ids=BAD)
async def test_a_server_that_is_not_believed(tls: str, pair: Issued, why: str, tmp_path: Path) -> None:
    async with origin(tmp_path, pair) as server, serving(file(server.port, tls)) as proxy:
        assert await answered(proxy) == 503
        line = proxy.log_line()
        assert "reason=ConnectFailed" in line and why in line and f"127.0.0.1:{server.port}" in line, line
        assert not server.heads, "nothing of a request may leave"
        ((endpoint, name, reason),) = failures(proxy)
        assert endpoint == f"127.0.0.1:{server.port}" and name in tls + " localhost" and why in reason


async def test_a_server_that_speaks_no_tls() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server, serving(file(server.sockets[0].getsockname()[1], f"{{{OURS}}}")) as proxy:
        assert await answered(proxy) == 503
        assert "TLS handshake with localhost failed: " in proxy.log_line()


async def test_a_server_that_says_nothing() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    text = file(server.sockets[0].getsockname()[1], f"{{{OURS}}}", tcp="{connectTimeout: 50ms}")
    async with server, serving(text) as proxy:
        assert await answered(proxy) == 503
        assert "timed out after 0.05 s" in proxy.log_line()
        port = server.sockets[0].getsockname()[1]
        assert failures(proxy) == {(f"127.0.0.1:{port}", "localhost", "timed out"): 1}


# --- who speaks it: requests, copies of requests, calls of policies

KINDS = {
    # policies of the route; what the one server that speaks TLS is for
    "requests, by their backend": ("", "backends: [{{host: '{tls}', policies: {policies}}}]"),
    "requests, by their route": ("{tls_policy}", "backends: [{{host: '{tls}'}}]"),
    "mirrors, by the mirror": (
        "requestMirror: {{host: '{tls}', policies: {policies}}}", "backends: [{{host: '{plain}'}}]",
    ),
    "calls, by the server": (
        "extAuthz: {{host: '{tls}', protocol: {{http: {{}}}}, policies: {policies}}}",
        "backends: [{{host: '{plain}'}}]",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("policies", "backends"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("is_believed", [True, False])
async def test_each_kind_of_call(policies: str, backends: str, is_believed: bool, tmp_path: Path) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await reader.read()
        writer.close()

    name = "shop.example" if is_believed else "other.example"
    tls = f"tls: {{{OURS}, sni: {name}}}"
    other = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with other, origin(tmp_path) as server:
        found = {
            "tls": f"127.0.0.1:{server.port}",
            "plain": f"127.0.0.1:{other.sockets[0].getsockname()[1]}",
            "policies": f"{{{tls}}}",
            "tls_policy": tls,
        }
        route = f"policies: {{{policies.format(**found)}}}\n{backends.format(**found)}"
        async with serving(text_of(route)) as proxy:
            status = await answered(proxy)
            await until(lambda: server.names, "a handshake")
            if is_believed:
                await until(lambda: server.heads, "a request")
            assert bool(server.heads) is is_believed and server.names == [name]
            expected = 200 if is_believed or "requestMirror" in policies else 403 if "extAuthz" in policies else 503
            assert status == expected


# --- a certificate of ours


async def test_a_server_that_asks_for_a_certificate(tmp_path: Path) -> None:
    async with origin(tmp_path, asks=True) as server, serving(file(server.port, f"{{{OURS}, {OWN}}}")) as proxy:
        assert await answered(proxy) == 200
        assert server.clients == ["gateway.example"]


async def test_a_server_that_asks_for_one_in_vain(tmp_path: Path) -> None:
    async with origin(tmp_path, asks=True) as server, serving(file(server.port, f"{{{OURS}}}")) as proxy:
        assert await answered(proxy) in (502, 503)  # TLS 1.3: the server refuses after our handshake is done
        assert not server.heads


async def test_authorities_that_come_with_the_certificate(tmp_path: Path) -> None:
    own = OWN.removesuffix("}]") + f', "ca.cert": {pem(AUTHORITY.pem)}}}]'
    async with origin(tmp_path, asks=True) as server, serving(file(server.port, f"{{{own}}}")) as proxy:
        assert await answered(proxy) == 200


# --- versions of HTTP

BOTH, H2, H1 = ("h2", "http/1.1"), ("h2",), ("http/1.1",)
VERSIONS = {
    # what the server speaks, alpnProtocols, http of the backend -> what is spoken; "": nothing
    "plaintext keeps HTTP/1": (BOTH, "", "", "HTTP/1.1"),
    "HTTP2 where it is configured": (BOTH, "", "{version: HTTP2}", "HTTP/2"),
    "a server that cannot speak it": (H1, "", "{version: HTTP2}", ""),
    "a server without ALPN": ((), "", "", "HTTP/1.1"),
    "a server without ALPN that should speak HTTP/2": ((), "", "{version: HTTP2}", ""),
    "what alone is offered": (BOTH, "[h2]", "", "HTTP/2"),
    "what alone is offered, to a server that does not speak it": (H1, "[h2]", "", ""),
    "names that are none of HTTP": (BOTH, "[acme-tls/1, http/1.1]", "", "HTTP/1.1"),
}


@pytest.mark.parametrize(("spoken", "alpn", "http", "version"), VERSIONS.values(), ids=VERSIONS)
async def test_versions(spoken: Sequence[str], alpn: str, http: str, version: str, tmp_path: Path) -> None:
    tls = f"{{{OURS}{f', alpnProtocols: {alpn}' if alpn else ''}}}"
    others = {"http": http} if http else {}
    async with origin(tmp_path, alpn=spoken) as server, serving(file(server.port, tls, **others)) as proxy:
        assert await answered(proxy) == (200 if version else 503)
        assert server.seen == ([version] if version else [])


async def over_http2(proxy: SocketProxy) -> int:
    """The status of a GET that a client of HTTP/2 asks for."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    client = h2.connection.H2Connection()
    client.initiate_connection()
    head = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "shop.example")]
    client.send_headers(1, head, end_stream=True)
    try:
        while True:
            writer.write(client.data_to_send())
            for event in client.receive_data(await reader.read(65_536)):
                if isinstance(event, h2.events.ResponseReceived):
                    return int(dict(event.headers)[b":status"])
    finally:
        writer.close()


async def test_what_a_server_spoke_is_forgotten_when_a_handshake_fails(tmp_path: Path) -> None:
    """Where either version may be spoken and the server has chosen, only that one is offered again; a server that was
    exchanged for another one meanwhile is asked anew by the request after the one that found out."""
    async with origin(tmp_path, alpn=H2) as server, serving(file(server.port, f"{{{OURS}}}")) as proxy:
        assert await over_http2(proxy) == 200
        assert server.tls is not None
        server.tls.set_alpn_protocols(list(H1))
        for writer in server.writers:
            writer.close()
        await until(lambda: not proxy.connections(), "the end of connections to the server before")
        assert await over_http2(proxy) == 503
        assert "does not speak HTTP/2" in proxy.log_lines()[-1]
        assert await over_http2(proxy) == 200
        assert server.seen == ["HTTP/2", "HTTP/1.1"]


ALL_KINDS = "extAuthz: {backend: shop, protocol: {http: {path: '\"/call\"'}}}, requestMirror: {backend: shop}"
UPGRADE = (
    b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: " + b"A" * 22 + b"=="
)
CONTENT = b"content-type: application/grpc\r\nte: trailers\r\ncontent-length: 5\r\n\r\n" + bytes(5)


@pytest.mark.parametrize(
    ("route", "rest", "paths"),
    [
        ("", b"\r\n", [b"/"]),
        ("", CONTENT, [b"/"]),
        ("", UPGRADE + b"\r\n\r\n", [b"/"]),
        (ALL_KINDS, b"\r\n", [b"/", b"/", b"/call"]),
    ],
    ids=["a request", "a call of gRPC", "a WebSocket", "a call of a policy and a mirror"],
)
async def test_an_endpoint_over_tls_is_asked_for_https(
    route: str, rest: bytes, paths: list[bytes], tmp_path: Path
) -> None:
    """RFC 9113 8.3.1: `:scheme` is that of the URI that this connection is asked for, whatever the client's was."""
    async with origin(tmp_path, alpn=H2) as server:
        text = file(server.port, f"{{{OURS}}}", route=route, http="{version: HTTP2}")
        async with serving(text) as proxy:
            _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            try:
                writer.write(b"POST / HTTP/1.1\r\nhost: a\r\n" + rest)
                await until(lambda: len(server.asked) == len(paths), "all requests")
            finally:
                writer.close()
                await writer.wait_closed()
    assert sorted(head[b":path"] for head in server.asked) == paths
    assert {head[b":scheme"] for head in server.asked} == {b"https"}


# --- connections


@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_sessions_are_resumed(most: ssl.TLSVersion, tmp_path: Path) -> None:
    async with origin(tmp_path, most=most) as server, serving(file(server.port, f"{{{OURS}}}")) as proxy:
        for _ in range(4):
            assert await answered(proxy) == 200
            for writer in server.writers:
                writer.close()
            await until(lambda: not proxy.connections(), "the end of the connection")
        assert server.resumed == [False, True, True, True]


async def test_connections_are_kept_by_transport(tmp_path: Path) -> None:
    async with origin(tmp_path) as server, serving(file(server.port, f"{{{OURS}}}")) as proxy:
        for _ in range(3):
            assert await answered(proxy) == 200
        assert len(server.names) == 1, "one connection for all"
        await proxy.load(file(server.port, f"{{{OURS}, sni: shop.example}}"))
        assert await answered(proxy) == 200
        assert server.names == ["localhost", "shop.example"]


async def test_what_is_not_used_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each certificate that is renewed makes another transport."""
    async with origin(tmp_path) as server, serving(file(server.port, f"{{{OURS}}}")) as proxy:
        assert await answered(proxy) == 200
        (endpoint,) = (each for each in proxy.connector.endpoints if isinstance(each, Endpoint))
        (pool,) = endpoint.pools.values()
        now = asyncio.get_running_loop().time()
        sweep = proxy.connector._close_unused
        for seconds in (0, 30, connector.IDLE_TIMEOUT + 31):
            monkeypatch.setattr(proxy.connector, "loop", Clock(now + seconds))
            sweep()
        assert pool.is_empty and endpoint.pools and pool.last is not None, "its session is kept"
        for seconds in (200, 200 + connector.SESSION_TIME - 1, 201 + connector.SESSION_TIME + 1):
            monkeypatch.setattr(proxy.connector, "loop", Clock(now + seconds))
            sweep()
        assert not endpoint.pools and pool.closed
        monkeypatch.undo()
        assert await answered(proxy) == 200


class Clock:
    """A loop whose time stands still and which calls nobody."""

    def __init__(self, now: float) -> None:
        self._now = now

    def time(self) -> float:
        return self._now

    def call_later(self, seconds: float, call: object) -> None:
        """Nobody waits for it."""


async def test_a_request_that_takes_too_long(tmp_path: Path) -> None:
    async with origin(tmp_path) as server:
        server.silent = True
        async with serving(file(server.port, f"{{{OURS}}}", http="{requestTimeout: 20ms}")) as proxy:
            assert b"504" in (found := await proxy.get()) and found.endswith(b"upstream call timeout"), found


async def test_a_large_body_both_ways(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(SIZE)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % SIZE + body)
        await writer.drain()
        writer.close()

    context = Server().context(SERVER, tmp_path, (), ssl.TLSVersion.TLSv1_3, False)
    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context, limit=2 * SIZE)
    async with server, serving(file(server.sockets[0].getsockname()[1], f"{{{OURS}}}")) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        body = bytes(range(256)) * (SIZE // 256)
        writer.write(b"POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % SIZE + body)
        found = await reader.read()
        assert found.endswith(body) and found.startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()


SIZE = 3 * 1024 * 1024
