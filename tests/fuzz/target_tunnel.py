"""Target `tunnel`: a connection that switches to another protocol, and what two peers may do with it from then on.

The bytes are a script: who sends how much, who reads no more for a while, who ends its direction, who breaks off, when
a turn of the loop is over. Promises: each side receives exactly what the other sent, in order, as soon as the turn is
over; a side that does not read stops the other; a direction that ended ends at the other side too, behind all of its
bytes; when both have ended, or one broke off, both connections are closed and nothing is left of the exchange; no time
ends a tunnel whose peers read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from dataplane.chain.filter import STEP, Filter, Row
from dataplane.filters.registry import ROWS
from dataplane.net.writes import Writes
from tests.fakes.memory_proxy import ROUTES, FakeTransport, Pending
from tests.fuzz.dice import Dice
from tests.fuzz.rig import Rig, require

REQUEST = b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SIZES = (1, 2, 5, 100, 4000, 16_384, 16_385, 40_000)
SECONDS = (0.01, 1.0, 30.0, 100.0, 5000.0)
LONGEST = 300
MOST_BYTES = 150_000
"""Of one direction, before what is sent last."""
PATTERN = bytes(range(251)) * ((MOST_BYTES + max(SIZES)) // 251 + 1)

# script: early bytes of the client, steps, first bytes of the endpoint, then actions
SEEDS = (
    b"",
    bytes((0, 0, 0, 0, 3, 1, 4, 2)),
    bytes((0, 1, 1, 0, 6, 0, 3, 7, 1, 2)),
    bytes((0, 0, 1, 1, 7, 2, 0, 4, 6)),
    bytes((2, 2, 3, 1, 9, 0, 1, 8)),
    bytes((0, 1, 0, 3, 1, 5, 0, 6, 3, 10, 4)),
    bytes((0, 2, 0, 1, 7, 8, 0, 9, 2, 6)),
)


class Turns:
    """The event loop's turns: what is to be done at the end of one waits in `calls`."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.writes = Writes(self.calls.append)

    def end(self) -> None:
        while self.calls:
            self.calls.pop(0)()


class _Steps:
    """A response step that waits for `asked`, where the route has one."""

    def __init__(self) -> None:
        self.asked: list[Pending] = []

    async def _wait(self) -> None:
        self.asked.append(Pending())
        await self.asked[-1]

    def rows(self) -> list[Row]:
        step = Filter("test", response=lambda x: self._wait())
        return [*(row for row in ROWS if row.name != "csrf"), Row("csrf", lambda config, env: step, STEP, "test")]


def _with(policies: str) -> str:
    return ROUTES.replace("      backends:", f"      policies: {policies}\n      backends:")


TEXTS = (ROUTES, _with('{headerModifiers: {response: {set: [{name: x-gw, value: "1"}]}}}'), _with("{csrf: {}}"))


@cache
def rig(kind: int) -> tuple[Rig, Turns, _Steps]:
    turns, steps = Turns(), _Steps()
    return Rig(TEXTS[kind], rows=steps.rows(), writes=turns.writes), turns, steps


class Side:
    """One peer: what it has sent, as bytes that tell their place, and what it may expect."""

    def __init__(self, transport: FakeTransport) -> None:
        self.transport = transport
        self.sent = b""
        self.ended = False
        self.takes = True
        """It reads what it gets."""

    def send(self, size: int) -> None:
        data = PATTERN[len(self.sent) : len(self.sent) + size]
        self.sent += data
        self.transport.send(data)

    def may_send(self) -> bool:
        """A transport that is not read hands nothing on, nor does one whose end came."""
        return self.transport.open and self.transport.reading and not self.ended and len(self.sent) < MOST_BYTES

    def end(self) -> None:
        self.ended = True
        self.transport.half_close()

    def read(self, takes: bool) -> None:
        """asyncio tells when its buffer towards this peer is full, and when it is empty again."""
        if self.transport.open and takes != self.takes:
            self.takes = takes
            protocol: Any = self.transport.protocol
            protocol.resume_writing() if takes else protocol.pause_writing()


class Run:
    def __init__(self, kind: int, dice: Dice) -> None:
        self.rig, self.turns, self.steps = rig(kind)
        self.dice = dice
        self.broken = False

    def begin(self) -> None:
        """Ask for the switch, and answer it."""
        dice = self.dice
        transport = self.rig.connect()
        transport.send(REQUEST)
        self.turns.end()
        upstream = self.rig.upstreams[-1]
        self.client, self.endpoint = Side(transport), Side(upstream)
        early = dice.below(4)
        if early:
            self.client.send(SIZES[dice.below(len(SIZES))])
        if early == 2:
            self.client.end()
        self.start = len(upstream.received)
        first = SIZES[dice.below(len(SIZES))] if dice.chance(2) else 0
        self.endpoint.sent = PATTERN[:first]
        upstream.answer(SWITCH + self.endpoint.sent)

    def goes_on(self) -> None:
        """The step that the 101 waits for has its answer."""
        for asked in self.steps.asked:
            if not asked.done():
                asked.set_result(None)

    def play(self) -> None:
        for _ in range(60):
            if self.dice.empty or self.broken:
                break
            self.act(self.dice.below(13))
            if self.dice.chance(2):
                self.turn()
        self.finish()

    def act(self, action: int) -> None:
        sides = (self.client, self.endpoint)
        one = sides[action % 2]
        match action:
            case 0 | 1 | 2 | 3 if one.may_send():
                one.send(SIZES[self.dice.below(len(SIZES))])
            case 4 | 5:
                one.read(False)
            case 6 | 7:
                one.read(True)
            case 8 | 9 if one.may_send():
                one.end()
            case 10:
                self.goes_on()
            case 11 if all(side.takes for side in sides) and (self.is_open or not self.client.ended):
                self.turns.end()
                self.rig.proxy.advance(self.dice.one_of(SECONDS))
            case 12 if self.dice.chance(3):
                self.break_off(sides[self.dice.below(2)])

    def break_off(self, one: Side) -> None:
        """A reset: what was under way may be lost, and both connections end."""
        if not one.transport.open:
            return
        one.transport.lose(ConnectionResetError())
        self.broken = True
        self.goes_on()
        self.turns.end()

    @property
    def is_open(self) -> bool:
        """The head of the 101 has passed the steps: it came to a tunnel."""
        return self.client.transport.received.startswith(b"HTTP/1.1 101 ")

    def got(self, side: Side) -> bytes:
        """What this side received of the other."""
        received = side.transport.received
        return received.partition(b"\r\n\r\n")[2] if side is self.client else received[self.start :]

    def turn(self) -> None:
        self.turns.end()
        if not self.is_open:
            return
        for one, other in ((self.client, self.endpoint), (self.endpoint, self.client)):
            got = self.got(other)
            require(one.sent.startswith(got), f"{len(got)} bytes that were not sent so")
            if self.broken:
                continue
            require(got == one.sent, f"{len(got)} of {len(one.sent)} bytes at the end of a turn")
            require(not one.ended or other.transport.eof or not other.transport.open, "an end that does not come")
            require(one.ended or not other.transport.eof, "an end that nobody sent")
            require(not one.transport.open or one.ended or one.transport.reading == other.takes, "the pace is not kept")
            require(not other.transport.aborted, "cut off although nobody broke off")
        both = self.client.ended and self.endpoint.ended
        for side in (self.client, self.endpoint):
            require(side.transport.open != (both or self.broken), "open at the end, or closed before")

    def finish(self) -> None:
        """Both read, and end, unless one broke off: nothing is left."""
        self.goes_on()
        self.turns.end()
        for side in (self.client, self.endpoint):
            side.read(True)
        for side in (self.client, self.endpoint):
            if not self.broken and not side.ended and side.transport.open:
                side.end()
        self.turn()
        if not self.is_open:  # it broke off before, which was answered
            require(self.broken and self.client.transport.received[:12] in (b"", b"HTTP/1.1 502"), "no tunnel")
            if self.client.transport.open:
                self.client.transport.lose()
            return
        require(not self.client.transport.open and not self.endpoint.transport.open, "left open")
        require(self.client.transport.aborted <= self.broken, "aborted")


def check(data: bytes) -> None:
    if len(data) > LONGEST:
        return
    dice = Dice(data)
    kind = dice.below(len(TEXTS))
    running, turns, steps = rig(kind)
    steps.asked.clear()
    with running:
        run = Run(kind, dice)
        run.begin()
        run.play()
        turns.end()
        running.check()
        connection: Any = running.upstreams[0].protocol
        endpoint = connection.endpoint
        require(endpoint.pending == 0 and not endpoint.idle, "an endpoint that is still counted busy, or kept")
        require(running.proxy.context.recorder.active == 0, "an exchange without end")
        # what came too early is a request of its own where it did not come to a tunnel
        require(running.log.count == 1 or not run.is_open, f"{running.log.count} lines of one exchange")
        require(not running.proxy.context.connections, "a connection that is still known")
