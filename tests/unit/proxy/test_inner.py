"""A connection inside a CONNECT, between an exchange and the protocol of a bind, both by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dataplane.proxy.request.inner import InnerConnection


class Protocol:
    """asyncio's, by shape: it writes down what it gets. `keeps`: what it answers to the end of the other side."""

    def __init__(self, keeps: bool) -> None:
        self.got: list[Any] = []
        self.keeps = keeps
        self.on_data: Callable[[], None] = lambda: None

    def data_received(self, data: bytes) -> None:
        self.got.append(data)
        self.on_data()

    def eof_received(self) -> bool:
        self.got.append("end")
        return self.keeps

    def pause_writing(self) -> None:
        self.got.append("pause")

    def resume_writing(self) -> None:
        self.got.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.got.append("lost" if error is None else type(error))


class Consumer:
    """The exchange, of which only this is asked."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def upstream_content(self, data: bytes, end: bool) -> None:
        self.got.append((data, end))

    def upstream_blocked(self) -> None:
        self.got.append("blocked")

    def upstream_drained(self) -> None:
        self.got.append("drained")

    def upstream_lost(self, cause: str, stale: bool) -> None:
        self.got.append((cause, stale))


class Inner:
    """One connection; calls of the loop wait for `turn`."""

    def __init__(self, keeps: bool = False, is_open: bool = True) -> None:
        self.soon: list[Callable[[], None]] = []
        self.consumer, self.protocol = Consumer(), Protocol(keeps)
        consumer: Any = self.consumer
        self.connection = InnerConnection(consumer, self.soon.append)
        if is_open:
            self.open()
            self.consumer.got.clear()

    def open(self) -> None:
        self.connection.set_protocol(self.protocol)
        self.connection.open()

    def turn(self) -> None:
        soon, self.soon[:] = self.soon[:], []
        for call in soon:
            call()


def test_what_comes_before_the_protocol_is_kept_for_it() -> None:
    inner = Inner(is_open=False)
    assert not inner.connection.is_reading()
    inner.connection.content(b"a", False)
    inner.connection.content(b"b", True)
    inner.open()
    assert inner.connection.is_reading() and inner.connection.get_protocol() is inner.protocol
    assert inner.protocol.got == []  # not within its own call
    inner.turn()
    assert inner.protocol.got == [b"ab", "end"]
    inner.turn()
    assert inner.protocol.got[2:] == ["lost"] and inner.consumer.got == ["drained", ("closed", False)]


def test_what_comes_while_it_does_not_read_waits_in_order() -> None:
    inner = Inner(keeps=True)
    inner.connection.pause_reading()
    inner.connection.pause_reading()
    inner.connection.content(b"a", False)
    inner.connection.resume_reading()
    inner.connection.resume_reading()
    assert inner.consumer.got == ["blocked", "drained"]
    inner.connection.content(b"b", True)  # behind what is still kept
    inner.turn()
    assert inner.protocol.got == [b"ab", "end"]
    inner.connection.pause_reading()
    inner.connection.resume_reading()
    inner.turn()
    assert inner.protocol.got == [b"ab", "end"]  # the end is not said again


@pytest.mark.parametrize(
    ("deed", "lost"),
    [
        (InnerConnection.close, [("closed", False)]),
        (InnerConnection.abort, [("reset", False)]),
        (InnerConnection.reset, []),
        (InnerConnection.discard, []),
    ],
)
def test_the_end_of_one_side_is_that_of_the_other(deed: Callable[[InnerConnection], Any], lost: list[Any]) -> None:
    inner = Inner()
    deed(inner.connection)
    assert inner.connection.is_closing() and inner.consumer.got == lost
    assert inner.protocol.got == []  # when its own call is over
    deed(inner.connection)
    connection = inner.connection
    connection.content(b"late", True)
    connection.write(b"late")
    connection.write_eof()
    connection.pause()
    connection.resume()
    connection.pause_reading()
    connection.resume_reading()
    inner.turn()
    assert inner.protocol.got == ["lost" if lost else ConnectionResetError]
    assert inner.consumer.got == lost and connection.get_protocol() is None
