"""A tunnel to an endpoint: bytes of an exchange on one side, of a connection on the other, and how either ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.http.messages import Peer
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.tunnels import LINGER, EndpointTunnel
from tests.fakes.leases import Opening


class Notes:
    """Consumer, opener, or the transport of the connection: it notes what it is asked."""

    def __init__(self, **answers: Any) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.answers = answers

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def called(*said: Any) -> Any:
            if name in self.answers:
                return self.answers[name]
            self.heard.append((name, *said))
            return None

        return called

    def take(self) -> list[tuple[Any, ...]]:
        found, self.heard = self.heard, []
        return found


class World:
    def __init__(self, is_open: bool = True, can_write_eof: bool = True) -> None:
        self.opens, self.endpoint, self.closed = Opening(), Endpoint("192.0.2.1", 5432), 0
        self.consumer, self.opener, self.wakes = Notes(), Notes(), list[Any]()
        self.wire = Notes(is_closing=False, can_write_eof=can_write_eof)
        leases: Any = SimpleNamespace(connector=self.opens, random=lambda: 0.0, failed=lambda *_: None)
        consumer: Any = self.consumer
        self.tunnel: Any = EndpointTunnel(
            consumer, self.opener, leases, self._closed, lambda *asked: self.wakes.append(asked), Peer("198.51.100.7")
        )
        plan: Any = SimpleNamespace(
            key="a",
            refused="",
            refused_as_bytes="",
            by_request=False,
            host=b"",
            port=0,
            rules=None,
            endpoints=(self.endpoint,),
            transport=None,
        )
        self.tunnel.open(plan)
        self.end: Any = self.opens.dialled[0]
        if is_open:
            self.end.connection_made(self.wire)
            self.end.opened()
            self.opens.comes(None)
            assert self.opener.take() == [("tunnel_opened",)] and self.wire.take() == [("pause_reading",)]

    def _closed(self) -> None:
        self.closed += 1


def test_who_wants_it_hears_once_that_it_is_open_or_that_it_is_not() -> None:
    world = World(is_open=False)
    assert world.opener.take() == [] and world.tunnel.endpoint is world.endpoint and not world.tunnel.is_shared
    world.tunnel.content(b"early", False)
    world.tunnel.pause()
    world.tunnel.resume()  # there is nothing to read from yet
    world.opens.comes(None, "refused")
    assert world.opener.take() == [("tunnel_failed", "connect", "refused")] and world.endpoint.pending == 0
    World()


def test_bytes_pass_both_ways_and_each_side_stops_the_other() -> None:
    world = World()
    world.tunnel.content(b"ask", False)
    world.tunnel.content(b"", False)
    world.tunnel.pause()
    world.tunnel.resume()
    assert world.wire.take() == [("write", b"ask"), ("pause_reading",), ("resume_reading",)]
    world.end.data_received(b"answer")
    world.end.pause_writing()
    world.end.resume_writing()
    assert world.consumer.take() == [
        ("upstream_content", b"answer", False),
        ("upstream_blocked",),
        ("upstream_drained",),
    ]


@pytest.mark.parametrize("by", ["content", "trailers"])
@pytest.mark.parametrize("can_write_eof", [True, False])
def test_the_client_may_end_first(by: str, can_write_eof: bool) -> None:
    world = World(can_write_eof=can_write_eof)
    if by == "content":
        world.tunnel.content(b"last", True)
    else:
        world.tunnel.content(b"last", False)
        world.tunnel.trailers(b"x: 1\r\n")
    assert world.wire.take() == [("write", b"last"), ("write_eof",)][: 1 + can_write_eof]
    world.end.data_received(b"answer")
    assert world.end.eof_received() is False
    assert world.consumer.take() == [("upstream_content", b"answer", False), ("upstream_content", b"", True)]
    assert world.wire.take() == [("close",)] and world.endpoint.pending == 0
    assert world.wakes == [(LINGER, world.tunnel)]


def test_the_endpoint_may_end_first() -> None:
    world = World()
    assert world.end.eof_received() is True
    assert world.consumer.take() == [("upstream_content", b"", True)] and world.wire.take() == []
    world.tunnel.content(b"last", True)
    assert world.wire.take() == [("write", b"last"), ("close",)] and world.endpoint.pending == 0


def test_an_endpoint_that_takes_nothing_is_cut_in_the_end() -> None:
    world = World()
    world.tunnel.wake(0.0)  # of something else
    assert world.wire.take() == []
    world.end.eof_received()
    world.tunnel.content(b"last", True)
    world.wire.take()
    world.tunnel.wake(1.0)
    assert world.wire.take() == [("abort",)]


@pytest.mark.parametrize("how", ["reset", "discard"])
def test_a_client_that_leaves_resets_the_endpoint(how: str) -> None:
    world = World()
    assert getattr(world.tunnel, how)() is None
    assert world.wire.take() == [("abort",)] and world.endpoint.pending == 0 and world.wakes == []
    world.end.data_received(b"late")
    world.tunnel.content(b"late", True)
    assert world.consumer.take() == [] and world.wire.take() == []
    world.end.connection_lost(None)
    assert world.consumer.take() == [] and world.closed == 1


def test_a_client_that_leaves_before_it_is_open_hears_no_more() -> None:
    world = World(is_open=False)
    world.tunnel.reset()
    world.end.connection_made(world.wire)
    world.opens.comes(None)
    assert world.opener.take() == [] and ("abort",) in world.wire.take() and world.endpoint.pending == 0


@pytest.mark.parametrize(("error", "cause"), [(None, "closed"), (ConnectionResetError(), "reset")])
def test_a_connection_that_is_lost_is_said_once(error: Exception | None, cause: str) -> None:
    world = World()
    world.end.connection_lost(error)
    assert world.consumer.take() == [("upstream_lost", cause, False)] and world.endpoint.pending == 0
    world.tunnel.content(b"late", False)
    world.tunnel.pause()
    world.tunnel.reset()
    assert world.consumer.take() == [] and world.closed == 1 and world.wire.take() == []


def test_it_carries_no_request() -> None:
    with pytest.raises(RuntimeError, match="no request"):
        World().tunnel.begin(None, b"", b"", True)
