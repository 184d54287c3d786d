"""A connection of TLS as transport and protocol: laws of its two sides, with a client side of the same class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from OpenSSL import SSL

from dataplane.net.turns import Turns
from dataplane.tls.binding import TAKEN
from dataplane.tls.contexts import accepting, client_context, connecting, load, server_context
from dataplane.tls.handshakes import Handshakes
from dataplane.tls.settings import DEFAULT, NOT_ASKED, TLS_1_2, TLS_1_3, Asks, Identity, TlsSettings, Verification
from dataplane.tls.transport import LEFT, RECORDS, TRUNCATED, TlsTransport
from tests.fakes.certificates import Authority
from tests.fakes.tls_pair import Inner, Socket

AUTHORITY = Authority()
ISSUED = AUTHORITY.issue("shop.example")
IDENTITY = load(Identity(ISSUED.chain, ISSUED.key))
SERVER = server_context(DEFAULT, [IDENTITY])
CLIENT = client_context(DEFAULT, Verification(Asks.VALID, (AUTHORITY.pem.decode(),)))


class Pair:
    """Server and client, whose bytes pass when `run` is called."""

    def __init__(
        self, server: SSL.Context = SERVER, client: SSL.Context = CLIENT, session: SSL.Session | None = None
    ) -> None:
        self.calls: list[Callable[[], None]] = []
        turns = Turns(self.calls.append, lambda: 0.0)
        self.sockets = Socket(), Socket()
        self.inners = inner, inner_of_client = Inner(), Inner()
        accepted, connected = accepting(server), connecting(client, "shop.example")
        if session is not None:
            connected.set_session(session)
        self.sides = (
            TlsTransport(accepted, inner, Handshakes(turns), turns, is_server=True),
            TlsTransport(connected, inner_of_client, Handshakes(turns), turns),
        )
        for side, below in zip(self.sides, self.sockets, strict=True):
            side.start(below)

    def run(self, piece: int = 0) -> None:
        """Let bytes pass and turns go by until nothing happens."""
        while self.step(piece):
            pass

    def step(self, piece: int = 0) -> bool:
        moved = False
        for here, there in (self.sockets, self.sockets[::-1]):
            if here.sent and there.reading and not there.closing:
                data, here.sent = b"".join(here.sent), []
                step = piece or len(data)
                for at in range(0, len(data), step):
                    there.protocol.data_received(data[at : at + step])
                moved = True
        calls = list(self.calls)
        self.calls.clear()
        for call in calls:
            call()
        return moved or bool(calls)


def secured(**contexts: Any) -> Pair:
    pair = Pair(**contexts)
    pair.run()
    assert [inner.heard for inner in pair.inners] == [["secured"], ["secured"]]
    return pair


@pytest.mark.parametrize("piece", [0, 1, 100])
def test_both_sides_are_secured_and_know_how(piece: int) -> None:
    pair = Pair()
    pair.run(piece)
    server, client = (side.info for side in pair.sides)
    assert server is not None and client is not None
    assert server.alpn == client.alpn == b"h2" and server.sni == client.sni == b"", "no owner has said a name"
    assert (server.certificate, server.is_proven, client.is_proven) == (b"", False, True) and client.certificate
    assert pair.sides[0].get_extra_info("tls") is server and pair.sides[0].get_extra_info("peername") == "peer"


def test_what_is_written_arrives_on_both_sides() -> None:
    pair = secured()
    data = bytes(range(256)) * 1000
    for side in pair.sides:
        side.write(data)
        side.writelines([b"a", b"b"])
    pair.run()
    assert all(inner.data == data + b"ab" for inner in pair.inners)


def handed_over(version: int) -> Pair:
    """The server has the last bytes of the client's handshake, and the client has none of what it answers."""
    settings = replace(DEFAULT, maximum=version)
    pair = Pair(server=server_context(settings, [IDENTITY]))
    below, of_client = pair.sockets
    while True:
        hello, of_client.sent = b"".join(of_client.sent), []
        below.protocol.data_received(hello)
        if pair.inners[0].heard:
            return pair
        answer, below.sent = b"".join(below.sent), []
        of_client.protocol.data_received(answer)


def test_tickets_leave_with_the_first_content_of_the_server() -> None:
    pair = handed_over(TLS_1_3)
    server = pair.sides[0]
    assert pair.sockets[0].sent == []
    server.write(b"hello")
    (piece,) = pair.sockets[0].sent
    assert len(piece) > 100  # two tickets beside it
    pair.run()
    assert pair.inners[1].data == b"hello"
    again = Pair(server=server._tls.get_context(), session=pair.sides[1]._tls.get_session())
    again.run()
    info = again.sides[0].info
    assert info is not None and info.resumed


def test_what_ends_a_handshake_of_1_2_leaves_at_once() -> None:
    pair = handed_over(TLS_1_2)
    assert pair.sockets[0].sent
    pair.run()
    assert pair.inners[1].heard == ["secured"]


def test_tickets_leave_with_close_notify_where_nothing_was_said() -> None:
    pair = handed_over(TLS_1_3)
    pair.sides[0].close()
    (piece,) = pair.sockets[0].sent
    assert len(piece) > 100 and pair.sockets[0].closing


@pytest.mark.parametrize("size", [5, 100_000])
def test_the_last_content_leaves_with_close_notify(size: int) -> None:
    pair = secured()
    server, below = pair.sides[0], pair.sockets[0]
    server.write_last(bytes(size))
    assert len(below.sent) == (1 if size < TAKEN else 2) and below.closing
    for piece in below.sent:
        pair.sides[1].data_received(piece)
    pair.run()
    assert len(pair.inners[1].data) == size and "eof" in pair.inners[1].heard


def test_the_last_content_is_nothing_where_the_side_has_said_its_end() -> None:
    pair = secured()
    pair.sides[0].write_eof()
    pair.sockets[0].sent.clear()
    pair.sides[0].write_last(b"late")
    assert pair.sockets[0].sent == [] and pair.sockets[0].closing


def test_a_paused_side_gets_nothing_until_it_resumes() -> None:
    pair = secured()
    server, client = pair.sides
    server.pause_reading()
    client.write(b"hello")
    pair.run()
    assert pair.inners[0].data == b"" and not server.is_reading()
    server.resume_reading()
    pair.run()
    assert pair.inners[0].data == b"hello" and server.is_reading()


def test_a_side_that_pauses_while_it_is_given_data_gets_the_rest_later() -> None:
    pair = secured()
    server, client = pair.sides
    pair.inners[0].on_data = server.pause_reading
    client.write(bytes(300_000))
    pair.run()
    assert 0 < len(pair.inners[0].data) < 300_000
    pair.inners[0].on_data = lambda: None
    server.resume_reading()
    pair.run()
    assert len(pair.inners[0].data) == 300_000


def test_many_small_records_take_several_turns_in_which_the_socket_is_not_read() -> None:
    pair = secured()
    server, client = pair.sides
    for _ in range(3 * RECORDS):
        client.write(b"x")
    data, pair.sockets[1].sent = b"".join(pair.sockets[1].sent), []
    pair.sockets[0].protocol.data_received(data)
    assert len(pair.inners[0].data) == RECORDS and not pair.sockets[0].reading
    pair.run()
    assert len(pair.inners[0].data) == 3 * RECORDS and pair.sockets[0].reading and server.is_reading()


def test_a_side_that_is_closed_in_the_middle_gets_no_more() -> None:
    pair = secured()
    server, client = pair.sides
    pair.inners[0].on_data = server.close
    client.write(bytes(300_000))
    pair.run()
    assert len(pair.inners[0].data) < 300_000 and pair.sockets[0].closing
    pair.sockets[0].protocol.connection_lost(None)
    assert pair.inners[0].heard == ["secured", None]


def test_close_says_close_notify_and_the_peer_hears_an_end() -> None:
    pair = secured()
    server, client = pair.sides
    server.write(b"bye")
    server.close()
    assert server.is_closing()
    pair.run()
    assert pair.inners[1].data == b"bye" and pair.inners[1].heard == ["secured", "eof"]
    assert client.is_closing()


def test_a_side_that_has_ended_still_hears() -> None:
    pair = secured()
    server, client = pair.sides
    pair.inners[0].keeps = True
    client.write_eof()
    client.write(b"too late")
    pair.run()
    assert pair.inners[0].heard == ["secured", "eof"] and pair.sockets[1].ended
    server.write(b"answer")
    pair.run()
    assert pair.inners[1].data == b"answer" and pair.inners[0].data == b""


def test_an_end_waits_for_a_side_that_pauses_while_it_is_given_the_last_data() -> None:
    pair = secured()
    server, client = pair.sides
    pair.inners[0].keeps = True
    server.pause_reading()
    client.write(b"last")
    client.write_eof()
    data, pair.sockets[1].sent = b"".join(pair.sockets[1].sent), []
    pair.sockets[0].protocol.data_received(data)  # that the loop had read before
    pair.inners[0].on_data = server.pause_reading
    server.resume_reading()
    pair.run()
    assert (pair.inners[0].data, pair.inners[0].heard) == (b"last", ["secured"])
    server.resume_reading()
    pair.run()
    assert pair.inners[0].heard == ["secured", "eof"]


def test_an_end_without_close_notify_is_an_error() -> None:
    pair = secured()
    assert pair.sockets[0].protocol.eof_received() is False
    pair.sockets[0].protocol.connection_lost(None)
    assert pair.inners[0].heard == ["secured", TRUNCATED]


def test_after_close_notify_the_end_of_the_socket_is_none() -> None:
    pair = secured()
    pair.inners[0].keeps = True
    pair.sides[1].write_eof()
    pair.run()
    assert pair.sockets[0].protocol.eof_received() is True
    pair.sockets[0].protocol.connection_lost(None)
    assert pair.inners[0].heard == ["secured", "eof", None]


def test_bytes_that_somebody_has_changed_end_the_connection() -> None:
    pair = secured()
    pair.sides[1].write(b"hello")
    (data,) = pair.sockets[1].sent
    pair.sockets[0].protocol.data_received(data[:-1] + bytes([data[-1] ^ 1]))
    assert pair.inners[0].data == b"" and pair.sockets[0].closing
    pair.sockets[0].protocol.connection_lost(None)
    assert pair.inners[0].heard == ["secured", TRUNCATED]


@pytest.mark.parametrize("how", ["eof", "reset"])
def test_a_peer_that_leaves_in_the_handshake_is_told_once(how: str) -> None:
    pair = Pair()
    if how == "eof":
        assert pair.sockets[0].protocol.eof_received() is False
    pair.sockets[0].protocol.connection_lost(None)
    assert pair.inners[0].heard == [LEFT]


def test_a_certificate_that_is_not_believed_fails_on_both_sides_with_a_reason() -> None:
    foreign = client_context(DEFAULT, Verification(Asks.VALID, (Authority("x").pem.decode(),)))
    pair = Pair(client=foreign)
    pair.run()
    assert pair.inners[1].heard == ["certificate verify failed"]
    assert pair.inners[0].heard == ["tlsv1 alert unknown ca"] or pair.inners[0].heard[0] == "secured"


def test_sides_without_a_version_in_common_fail_with_a_reason() -> None:
    new, old = TlsSettings(minimum=0x0304), TlsSettings(maximum=0x0303)
    pair = Pair(server_context(new, [IDENTITY]), client_context(old, NOT_ASKED))
    pair.run()
    assert pair.inners[0].heard == ["unsupported protocol"] and pair.sockets[0].closing
    assert pair.inners[1].heard == ["tlsv1 alert protocol version"]


def test_limits_of_the_buffer_are_those_of_the_transport_below() -> None:
    pair = secured()
    server = pair.sides[0]
    server.set_write_buffer_limits(high=7)
    server.write(b"x")
    assert pair.sockets[0].high == 7 and server.get_write_buffer_size() > 1
    pair.sockets[0].protocol.pause_writing()
    pair.sockets[0].protocol.resume_writing()
    assert pair.inners[0].heard == ["secured", "pause", "resume"]


def test_what_a_connection_is_shows_nothing_of_it() -> None:
    assert repr(IDENTITY) == repr(load(Identity(ISSUED.chain, ISSUED.key))) and "PRIVATE" not in repr(IDENTITY)
    assert repr(Identity(b"a", b"b")) == "Identity(...)"
    assert repr(secured().sides[0]).startswith("TlsTransport(open, ")


def test_what_comes_with_the_end_of_a_handshake_is_heard() -> None:
    """A client writes behind its last message of a handshake, and both may come at once."""
    pair = Pair()
    below, of_client = pair.sockets
    below.protocol.data_received(b"".join(of_client.sent))
    of_client.sent.clear()
    of_client.protocol.data_received(b"".join(below.sent))
    below.sent.clear()
    pair.sides[1].write(b"hello")
    below.protocol.data_received(b"".join(of_client.sent))
    assert pair.inners[0].heard == ["secured"] and pair.inners[0].data == b"hello"


def test_while_a_turn_is_waited_for_nothing_is_decrypted() -> None:
    pair = secured()
    server, client = pair.sides
    for _ in range(2 * RECORDS):
        client.write(b"x")
    data, pair.sockets[1].sent = b"".join(pair.sockets[1].sent), []
    pair.sockets[0].protocol.data_received(data)
    client.write(b"y")
    more, pair.sockets[1].sent = b"".join(pair.sockets[1].sent), []
    pair.sockets[0].protocol.data_received(more)  # the loop had read it before
    assert pair.inners[0].data == b"x" * RECORDS and len(pair.calls) == 1
    server.resume_reading()
    assert len(pair.inners[0].data) == RECORDS and not pair.sockets[0].reading
    pair.run()
    assert pair.inners[0].data == b"x" * 2 * RECORDS + b"y" and pair.sockets[0].reading


def test_a_handshake_that_is_given_up_is_said_once_with_the_reason() -> None:
    pair = Pair()
    server, below = pair.sides[0], pair.sockets[0]
    assert not server.is_closing() and not server.is_reading() and server.get_protocol() is None
    server.fail("too late")
    server.fail("once more")
    server.close()
    assert pair.inners[0].heard == ["too late"] and below.closing and server.is_closing()
    below.protocol.data_received(b"anything")
    assert below.protocol.eof_received() is False
    below.protocol.connection_lost(None)
    assert pair.inners[0].heard == ["too late"] and below.sent == []


def test_one_that_is_closed_in_its_handshake_says_so() -> None:
    pair = Pair()
    pair.sides[0].close()
    assert pair.inners[0].heard == ["closed"] and pair.sockets[0].closing


def test_a_bug_in_a_handshake_ends_it_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    pair = Pair()
    pair.sides[0]._records = Broken()  # type: ignore[assignment]
    pair.sockets[0].protocol.data_received(b"x")
    assert pair.inners[0].heard == ["internal error: LookupError"] and "a handshake could not go on" in caplog.text


class Broken:
    """Records whose every step is a bug."""

    def feed(self, data: bytes) -> None:
        raise LookupError("a bug")

    def take(self) -> bytes:
        return b""


def test_an_end_is_said_once_and_nothing_is_written_behind_it() -> None:
    pair = secured()
    server, below = pair.sides[0], pair.sockets[0]
    assert server.can_write_eof()
    server.write(b"")
    assert below.sent == []
    server.write_eof()
    said = len(below.sent)
    server.write_eof()
    server.write(b"late")
    server.writelines([b"late"])
    assert said == len(below.sent) == 1 and below.ended and not server.is_closing() and server.is_reading()
    server.close()
    assert len(below.sent) == 1 and below.closing


def test_where_the_connection_is_closing_nothing_is_written() -> None:
    pair = secured()
    server, below = pair.sides[0], pair.sockets[0]
    below.sent.clear()
    below.closing = True
    server.write(b"late")
    server.write_eof()
    assert below.sent == [] and not below.ended and server.is_closing()


@pytest.mark.parametrize("last", [True, False])
def test_what_cannot_be_encrypted_any_more_cuts_the_connection(last: bool) -> None:
    pair = secured()
    server, below = pair.sides[0], pair.sockets[0]
    server._records.end()
    below.sent.clear()
    (server.write_last if last else server.write)(b"late")
    assert below.aborted and below.sent == []


def test_an_error_of_the_connection_is_the_inner_protocols() -> None:
    pair = secured()
    assert pair.sides[0].get_protocol() is pair.inners[0]
    below = pair.sockets[0].protocol
    below.connection_lost(ConnectionResetError("by the peer"))
    below.connection_lost(None)
    below.pause_writing()
    below.resume_writing()
    assert pair.inners[0].heard == ["secured", "by the peer"] and pair.sides[0].is_closing()


def test_what_is_asked_of_the_connection_is_that_of_the_one_below() -> None:
    server = secured().sides[0]
    assert server.get_extra_info("peername") == "peer" and server.get_extra_info("other", "none") == "none"
    assert server.get_extra_info("tls") is server.info is not None


class Later:
    """A queue whose steps are taken when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[TlsTransport] = []

    def add(self, transport: TlsTransport) -> None:
        self.waiting.append(transport)

    def turn(self) -> None:
        self.waiting.pop().step()


def test_while_a_step_of_a_handshake_waits_the_socket_is_not_read() -> None:
    turns, queue = Turns(lambda call: None, lambda: 0.0), Later()
    client, of_client = Inner(), Socket()
    TlsTransport(connecting(CLIENT, "shop.example"), client, Handshakes(turns), turns).connection_made(of_client)
    owner, below = Inner(), Socket()
    server = TlsTransport(accepting(SERVER), owner, queue, turns, is_server=True)
    hello = b"".join(of_client.sent)
    server.start(below, hello[:100])
    assert not below.reading and below.sent == [] and len(queue.waiting) == 1
    queue.turn()
    assert below.reading and below.sent == [], "it waits for more"
    below.protocol.data_received(hello[100:200])
    below.protocol.data_received(hello[200:])  # that the loop had read before
    assert not below.reading and len(queue.waiting) == 1
    queue.turn()
    assert below.reading and below.sent
    of_client.sent.clear()
    of_client.protocol.data_received(b"".join(below.sent))
    below.protocol.data_received(b"".join(of_client.sent))
    queue.turn()
    assert owner.heard == client.heard == ["secured"] and below.reading


def test_one_that_left_while_its_step_waited_takes_none() -> None:
    turns, queue = Turns(lambda call: None, lambda: 0.0), Later()
    owner, below = Inner(), Socket()
    server = TlsTransport(accepting(SERVER), owner, queue, turns, is_server=True)
    server.start(below, b"\x16\x03\x01")
    below.protocol.eof_received()
    assert owner.heard == [LEFT], "at once"
    queue.turn()
    assert owner.heard == [LEFT] and below.sent == []


def test_a_peer_whose_bytes_were_changed_hears_why() -> None:
    pair = secured()
    pair.sides[1].write(b"hello")
    (data,) = pair.sockets[1].sent
    pair.sockets[0].sent.clear()
    pair.sockets[0].protocol.data_received(data[:-1] + bytes([data[-1] ^ 1]))
    for piece in pair.sockets[0].sent:
        pair.sides[1].data_received(piece)
    assert pair.sockets[0].sent and pair.sockets[1].closing


def test_an_inner_protocol_that_pauses_when_it_is_secured_is_not_read_for() -> None:
    pair = Pair()
    server = pair.sides[0]

    def paused(transport: TlsTransport) -> None:
        transport.set_protocol(pair.inners[0])
        transport.pause_reading()

    pair.inners[0].secured = paused  # type: ignore[method-assign]
    pair.run()
    assert not pair.sockets[0].reading and not server.is_reading()
    server.resume_reading()
    assert pair.sockets[0].reading
