"""Fields that a peer wants in no table of any hop (RFC 7541 7.1.3) leave so on the other side of the proxy: of requests
and of responses, of their heads, interim heads and trailers. Both ends are libraries that others wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest

from dataplane.http.h2.frames import END_HEADERS, HEADERS
from dataplane.http.h2.hpack import BlockDecoder
from dataplane.http.h2.settings import Settings
from dataplane.upstream.versions import HTTP1, HTTP2
from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_libraries import LIBRARIES
from tests.fakes.h2_upstream import Endpoint2
from tests.fakes.h2_wire import frame, headers, literal
from tests.fakes.memory_proxy import ROUTES, FakeTransport, MemoryProxy

GET = ((b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a.example"), (b":path", b"/"))
OK = ((b":status", b"200"),)
CHAT = ((b":method", b"CONNECT"), (b":protocol", b"websocket"), *GET[1:], (b"sec-websocket-version", b"13"))
PLAIN, SECRET = (b"x-plain", b"1"), (b"x-own-secret", b"s3cret")
MODIFIES = ROUTES.replace(
    "      backends:",
    "      policies: {headerModifiers: {response: {set: [{name: x-set, value: '1'}]}}}\n      backends:",
)
WAITS = ROUTES.replace(
    "      backends:",
    "      policies: {transformation: {response: {set: [{name: x-set, value: 'string(size(response.body))'}]}}}\n"
    "      backends:",
)


class Peer:
    """One end: a connection of library `name`, as a client or as an endpoint, and the heads that came, by number of
    their stream: names, and whether each may be indexed."""

    def __init__(self, name: str, transport: FakeTransport, is_client: bool) -> None:
        self.transport = transport
        self.mark: Any = import_module("hpack" if name == "h2" else "jh2.hpack").NeverIndexedHeaderTuple
        library = LIBRARIES[name]
        config = library.config.H2Configuration(client_side=is_client, header_encoding=None)
        self.connection = library.connection.H2Connection(config)
        self.connection.initiate_connection()
        self.heads: dict[int, list[dict[bytes, bool]]] = {}
        self.turn()

    def turn(self) -> None:
        sent = self.transport.take()
        for event in self.connection.receive_data(sent) if sent else ():
            if getattr(event, "headers", None) is not None:
                fields = {bytes(field[0]): bool(field.indexable) for field in event.headers}
                self.heads.setdefault(event.stream_id, []).append(fields)
        out = bytes(self.connection.data_to_send())
        if out:
            self.transport.send(out)

    def say(
        self, stream: int, fields: Sequence[tuple[bytes, bytes]], secrets: Sequence[tuple[bytes, bytes]], end: bool
    ) -> None:
        """A head, or trailers: some fields, and some that no table may have."""
        marked = [self.mark(*each) for each in secrets]
        self.connection.send_headers(stream, [*fields, *marked], end_stream=end)
        self.turn()


class Ends:
    """A proxy with a client and an endpoint."""

    def __init__(self, name: str, text: str = ROUTES) -> None:
        self.proxy = MemoryProxy(text, spoken=HTTP2)
        self.client = Peer(name, self.proxy.connect(), True)
        self.streams = 0
        self.name = name
        self.far: Peer | None = None

    def ask(self, secrets: Sequence[tuple[bytes, bytes]] = (), end: bool = True) -> int:
        """A request; its number."""
        number = 1 + 2 * self.streams
        self.streams += 1
        self.client.say(number, [*GET, PLAIN], secrets, end)
        if self.far is None:
            self.far = Peer(self.name, self.proxy.upstream, False)
        self.far.turn()
        return number

    @property
    def endpoint(self) -> Peer:
        assert self.far is not None  # somebody has asked
        return self.far

    def answered(self, number: int) -> list[dict[bytes, bool]]:
        """The heads that the client got."""
        self.client.turn()
        return self.client.heads[number]


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("text", [ROUTES, MODIFIES, WAITS], ids=["plain", "steps", "steps that read"])
def test_a_response_head(name: str, text: str) -> None:
    ends = Ends(name, text)
    for secrets in ((SECRET,), (), (SECRET,), (SECRET,)):  # the same head again is read from memory
        number = ends.ask()
        ends.endpoint.say(number, [*OK, PLAIN], secrets, True)
        (head,) = ends.answered(number)
        assert head[b"x-plain"]
        assert head.get(b"x-own-secret") is (False if secrets else None)


@pytest.mark.parametrize("name", LIBRARIES)
def test_one_name_with_and_without_the_mark(name: str) -> None:
    """What was marked once is not marked for ever."""
    ends = Ends(name)
    for is_marked in (True, False):
        number = ends.ask()
        ends.endpoint.say(number, OK if is_marked else (*OK, SECRET), (SECRET,) if is_marked else (), True)
        assert ends.answered(number)[-1][b"x-own-secret"] is not is_marked


@pytest.mark.parametrize("name", LIBRARIES)
def test_what_we_put_into_no_table_anyway(name: str) -> None:
    ends = Ends(name)
    for _ in range(2):
        number = ends.ask([(b"authorization", b"Bearer a")])
        ends.endpoint.say(number, OK, [(b"set-cookie", b"a=b")], True)
        assert ends.endpoint.heads[number][0][b"authorization"] is False
        assert ends.answered(number)[0][b"set-cookie"] is False


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_interim_head_marks_no_other(name: str) -> None:
    ends = Ends(name)
    number = ends.ask()
    ends.endpoint.say(number, [(b":status", b"103"), (b"link", b"</a>")], (SECRET,), False)
    ends.endpoint.say(number, [*OK, SECRET], (), True)
    interim, final = ends.answered(number)
    assert interim[b"link"] and not interim[b"x-own-secret"] and final[b"x-own-secret"]


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("waits", [False, True])
def test_trailers_of_a_response(name: str, waits: bool) -> None:
    """Also those that wait for a window, behind content."""
    ends = Ends(name)
    size = 65_535 + 1 if waits else 1
    for secrets in ((SECRET,), (), (SECRET,)):
        number = ends.ask()
        ends.endpoint.say(number, OK, (), False)
        for at in range(0, size, 16_384):
            ends.endpoint.connection.send_data(number, b"a" * min(16_384, size - at))
            ends.endpoint.turn()
        ends.endpoint.say(number, [PLAIN], secrets, True)
        if waits:
            assert len(ends.answered(number)) == 1
            ends.client.connection.increment_flow_control_window(65_536)
            ends.client.connection.increment_flow_control_window(65_536, number)
            ends.client.turn()
        trailers = ends.answered(number)[1]
        assert trailers[b"x-plain"]
        assert trailers.get(b"x-own-secret") is (False if secrets else None)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_request(name: str) -> None:
    ends = Ends(name)
    for secrets in ((SECRET,), (), (SECRET,)):
        number = ends.ask(secrets)
        ends.endpoint.say(number, OK, (), True)
        (head,) = ends.endpoint.heads[number]
        assert head[b"x-plain"] and head.get(b"x-own-secret") is (False if secrets else None)


@pytest.mark.parametrize("name", LIBRARIES)
def test_trailers_of_a_request(name: str) -> None:
    ends = Ends(name)
    for secrets in ((SECRET,), (), (SECRET,)):
        number = ends.ask(end=False)
        ends.client.connection.send_data(number, b"a")
        ends.client.say(number, [PLAIN], secrets, True)
        ends.endpoint.turn()
        ends.endpoint.say(number, OK, (), True)
        _, trailers = ends.endpoint.heads[number]
        assert trailers[b"x-plain"] and trailers.get(b"x-own-secret") is (False if secrets else None)


def test_the_head_that_a_tunnel_begins_with() -> None:
    """RFC 8441 5. By hand: the libraries refuse it, or mark nothing."""
    proxy = MemoryProxy(ROUTES, spoken=HTTP2)
    client = FrameClient(proxy)
    client.send(headers(1, CHAT, end=False))
    far = Endpoint2(proxy.upstream, Settings(connect_protocol=True))
    (request,) = far.requests
    block = literal((*OK, PLAIN)) + b"\x10" + literal((SECRET,))[1:]
    proxy.upstream.answer(frame(HEADERS, END_HEADERS, request.stream.id, block))
    (head,) = [each for each in client.frames() if each.kind == HEADERS]
    fields = {name: is_secret for name, _, is_secret in BlockDecoder(65_536).decode(head.payload)}
    assert fields[b"x-own-secret"] and not fields[b"x-plain"]


def test_a_client_of_http1_gets_the_line() -> None:
    proxy = MemoryProxy(ROUTES, spoken=HTTP2)
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    far = Peer("h2", proxy.upstream, False)
    far.turn()
    far.say(1, [*OK, PLAIN], (SECRET,), True)
    assert b"\r\nx-plain: 1\r\nx-own-secret: s3cret\r\n" in client.take()


def test_an_endpoint_of_http1_marks_nothing() -> None:
    proxy = MemoryProxy(ROUTES, spoken=HTTP1)
    client = Peer("h2", proxy.connect(), True)
    client.say(1, GET, (), True)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-own-secret: s3cret\r\n\r\n")
    client.turn()
    assert client.heads[1][0][b"x-own-secret"]
