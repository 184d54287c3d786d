"""Who goes on making a worker compute for nothing, beside others, is ended; who moves something is not, however fast,
however long, and in however small pieces."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from dataplane.http.h2.errors import ENHANCE_YOUR_CALM
from dataplane.http.h2.frames import GOAWAY, WINDOW_UPDATE
from tests.fakes.h2_wire import data, parse
from tests.hostile.peers import Peer
from tests.hostile.streams import CHUNKED, CLIENT, H1, H2, OPEN_POST, ROWS, Row, again
from tests.hostile.world import HOSTILE_PEER, POLITE_PEER, Polite, World

OWED = 0.05
"""CPU seconds that an address may owe here: the product allows 20 times as many, which would take as long to test."""
TURNS = 1500
ROW_OF = {row.label: row for row in ROWS}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.net.accounts.MOST", OWED)
    monkeypatch.setattr("dataplane.net.accounts.ALLOWANCE", 0.0)  # peers take their time here to make up their bytes


class Listening(Peer):
    """Keeps the end of what it was sent."""

    def __init__(self, source: Iterator[bytes]) -> None:
        super().__init__(source)
        self.heard = b""

    def got(self, data: bytes) -> None:
        super().got(data)
        self.heard = (self.heard + data)[-65_536:]


class Obedient(Listening):
    """Sends on stream 1 what its source gives, which is all of one size, as far as windows let it (RFC 9113 6.9)."""

    def __init__(self, source: Iterator[bytes]) -> None:
        super().__init__(source)
        self.windows = {0: 65_535, 1: 65_535}
        self.begun = False

    def got(self, data: bytes) -> None:
        super().got(data)
        for each in parse(data):
            if each.kind == WINDOW_UPDATE:
                self.windows[each.stream] += int.from_bytes(each.payload)

    def more(self) -> bytes:
        if not self.begun:
            self.begun = True
            return super().more()
        piece = SMALL * (min(self.windows.values()) // 40 // 50)
        for stream in self.windows:
            self.windows[stream] -= len(piece) // len(SMALL) * 50 * 40
        return piece


SMALL = data(1, b"x" * 40) * 50


class Found:
    """A row's connections after some turns beside a polite client."""

    def __init__(self, row: Row, turns: int = TURNS, seconds: float = 0.6) -> None:
        self.world, self.polite = World(row.config), Polite()
        mine = self.world.connect(self.polite, POLITE_PEER)
        for _ in range(8):
            self.world.turn(mine)
        obeys = row.protocol == H2 and row in POLITE
        self.peers = [(Obedient if obeys else Listening)(row.source()) for _ in range(row.connections)]
        self.wires = [self.world.connect(peer, HOSTILE_PEER) for peer in self.peers]
        self.turns = 0
        while self.turns < turns and self.world.meter.total < seconds and not self.all_ended:
            self.turns += 1
            self.world.proxy.now += 0.001
            self.world.turn(mine)
        self.is_polite_served = mine.open and self.polite.served > self.turns // 2
        self.rejected = _rejected(self.world)

    @property
    def all_ended(self) -> bool:
        return all(not wire.open or wire.eof for wire in self.wires)

    @property
    def ended(self) -> int:
        return sum(not wire.open or wire.eof for wire in self.wires)


class TestCut:
    def test_chunks_of_one_byte(self, caplog: pytest.LogCaptureFixture) -> None:
        row = ROW_OF[f"{CLIENT}, {H1}, chunks of one byte over 32 connections"]
        with caplog.at_level(logging.WARNING):
            found = Found(row)
        assert found.rejected and found.ended, "connections of one address owe together"
        assert f"http1 connection of {HOSTILE_PEER[0]} is cut: Overspent" in caplog.text
        assert any(b"HTTP/1.1 429 " in peer.heard and b"connection: close" in peer.heard for peer in found.peers)
        assert found.is_polite_served
        assert found.world.left() == []

    @pytest.mark.parametrize(
        "name",
        ["DATA of one byte", "DATA of one byte for a policy that reads the body", "DATA of one byte in 255 of padding"],
    )
    def test_frames_of_one_byte(self, name: str, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            found = Found(ROW_OF[f"{CLIENT}, {H2}, {name}"])
        assert found.ended == 1 and found.rejected == 1
        assert _codes(found.peers[0].heard) == [ENHANCE_YOUR_CALM]
        assert f"http2 connection of {HOSTILE_PEER[0]} is cut: Overspent" in caplog.text
        assert found.is_polite_served
        assert found.world.left() == []


LINES = "an upload in chunks of 40 bytes"
POLITE = (
    Row(LINES, CLIENT, H1, again(b"28\r\n" + b"x" * 40 + b"\r\n", CHUNKED)),
    Row("an upload in frames of 40 bytes", CLIENT, H2, lambda: iter((OPEN_POST,))),
    Row("a fast upload in chunks of 16 KB", CLIENT, H1, again(b"4000\r\n" + b"x" * 16_384 + b"\r\n", CHUNKED)),
    Row("requests, pipelined over 16 connections", CLIENT, H1,
        ROW_OF[f"{CLIENT}, {H1}, requests, pipelined over 16 connections"].source, connections=16),
    Row("requests for a redirect", CLIENT, H1, ROW_OF[f"{CLIENT}, {H1}, requests for a redirect, pipelined"].source,
        ROW_OF[f"{CLIENT}, {H1}, requests for a redirect, pipelined"].config),
)  # fmt: skip


@pytest.mark.parametrize("row", POLITE, ids=[row.name for row in POLITE])
def test_who_moves_something_goes_on(row: Row) -> None:
    """At the limit of this test a debt would have been too much a dozen times over."""
    found = Found(row)
    assert found.ended == 0 and found.rejected == 0
    assert found.world.sent > 100_000 and found.is_polite_served


def _rejected(world: World) -> int:
    """Connections that were cut, by the metric."""
    series = world.proxy.metrics.series()
    return sum(
        values[0]
        for each, values in series
        if each.metric.name == "http_rejected_total" and each.labels == ("Overspent",)
    )


def _codes(heard: bytes) -> list[int]:
    """Of the GOAWAYs among these frames."""
    return [int.from_bytes(each.payload[4:8]) for each in parse(heard) if each.kind == GOAWAY]
