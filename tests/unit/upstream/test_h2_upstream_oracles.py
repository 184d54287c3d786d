"""Endpoints that others wrote, `h2` and `jh2`: random requests of HTTP/1.1 clients through a proxy in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.h2_libraries import LIBRARIES
from tests.fakes.memory_proxy import FakeTransport, FakeUpstream, MemoryProxy
from tests.unit.upstream.test_h2_upstream import FILE


@dataclass(frozen=True)
class Case:
    """One request, and what the endpoint answers."""

    content: int
    is_chunked: bool
    answer: int
    has_length: bool
    has_trailers: bool


CASES = st.lists(
    st.builds(Case, st.integers(0, 150_000), st.booleans(), st.integers(0, 150_000), st.booleans(), st.booleans()),
    min_size=1,
    max_size=6,
)


class Theirs:
    """An endpoint of one of the libraries, which answers request N as case N says."""

    def __init__(self, name: str, upstream: FakeUpstream, cases: list[Case]) -> None:
        self.lib = LIBRARIES[name]
        config = self.lib.config.H2Configuration(client_side=False, header_encoding=None)
        self.connection = self.lib.connection.H2Connection(config)
        self.connection.initiate_connection()
        self.upstream = upstream
        self.cases = cases
        self.content: dict[int, int] = {}
        self.heads: dict[int, dict[bytes, bytes]] = {}
        self.waiting: dict[int, tuple[int, bool]] = {}
        """What is still to be sent, and whether trailers follow."""

    def turn(self) -> bool:
        """Read, answer, write; whether anything happened."""
        events = self.lib.events
        sent = self.upstream.take()
        for event in self.connection.receive_data(sent) if sent else ():
            if isinstance(event, events.RequestReceived):
                self.heads[event.stream_id] = {bytes(name): bytes(value) for name, value in event.headers}
                self.content[event.stream_id] = 0
            elif isinstance(event, events.DataReceived):
                self.content[event.stream_id] += len(event.data)
                self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, events.StreamEnded):
                self.begin(event.stream_id)
        for number in list(self.waiting):
            self.send(number)
        out = bytes(self.connection.data_to_send())
        if out:
            self.upstream.answer(out)
        return bool(sent or out)

    def begin(self, number: int) -> None:
        case = self.cases[int(self.heads[number][b":path"][1:])]
        fields: list[Any] = [(b":status", b"200"), (b"x-got", b"%d" % self.content[number])]
        if case.has_length:
            fields.append((b"content-length", b"%d" % case.answer))
        if not case.answer and not case.has_trailers:  # no frame but the head
            self.connection.send_headers(number, fields, end_stream=True)
            return
        self.connection.send_headers(number, fields)
        self.waiting[number] = case.answer, case.has_trailers

    def send(self, number: int) -> None:
        left, has_trailers = self.waiting[number]
        room = min(self.connection.local_flow_control_window(number), self.connection.max_outbound_frame_size)
        while left and room > 0:
            size = min(left, room)
            self.connection.send_data(number, b"a" * size)
            left -= size
            room = min(self.connection.local_flow_control_window(number), self.connection.max_outbound_frame_size)
        self.waiting[number] = left, has_trailers
        if not left:
            del self.waiting[number]
            if has_trailers:
                self.connection.send_headers(number, [(b"x-end", b"1")], end_stream=True)
            else:
                self.connection.end_stream(number)


def request(number: int, case: Case) -> bytes:
    head, content = b"POST /%d HTTP/1.1\r\nHost: a.example\r\n" % number, b"c" * case.content
    if not case.is_chunked:
        return head + b"content-length: %d\r\n\r\n" % case.content + content
    pieces = [content[at : at + 10_000] for at in range(0, len(content), 10_000)]
    chunks = b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces])
    return head + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\nx-sum: 1\r\n\r\n"


def read(client: FakeTransport) -> tuple[bytes, int]:
    """The head of the answer, and how much content it has, by its framing."""
    head, _, rest = client.received.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head:
        assert b"content-length: %d" % len(rest) in head
        return head, len(rest)
    size = 0
    while not rest.startswith(b"0\r\n"):
        line, _, rest = rest.partition(b"\r\n")
        length = int(line, 16)
        assert rest[length : length + 2] == b"\r\n"
        size, rest = size + length, rest[length + 2 :]
    return head + rest, size


@pytest.mark.parametrize("name", LIBRARIES)
@settings(max_examples=60)
@given(cases=CASES)
def test_requests_and_answers_arrive_as_they_were(name: str, cases: list[Case]) -> None:
    proxy = MemoryProxy(FILE)
    clients = [proxy.connect() for _ in cases]
    clients[0].send(request(0, cases[0])[:10])
    clients[0].send(request(0, cases[0])[10:])
    far = Theirs(name, proxy.upstream, cases)
    far.turn()
    for number, client in enumerate(clients[1:], 1):
        client.send(request(number, cases[number]))
    while far.turn():
        continue
    assert len(far.heads) == len(cases) and len(proxy.connector.upstreams) == 1
    for case, client in zip(cases, clients, strict=True):
        head, size = read(client)
        assert head.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nx-got: %d" % case.content in head
        assert size == case.answer
        assert (b"x-end: 1" in head) == (case.has_trailers and not case.has_length)
