"""Target `retries`: requests under retry policies, and endpoints that fail in every way, at any moment.

The bytes are a script: how the body comes, what each try meets (refused, slow to connect, reset, silent, broken, an
answer), what time passes. The oracle is a naive model of the policy. Promises: there is another try exactly when the
policy grants one, not before its backoff, as many as it allows, within the deadlines; each try is sent the whole body
from its beginning, as far as it came; the number of the try is said once; the client gets one answer, the right one; a
mirror gets the whole body once or nothing; no memory and no endpoint stays taken.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

from dataplane.http.h1.chunked import ChunkedReader
from dataplane.proxy.context import Limits
from dataplane.upstream.endpoint import Endpoint
from tests.fakes.memory_proxy import FakeTransport, FakeUpstream
from tests.fakes.policy_run import text_of
from tests.fuzz.dice import Dice
from tests.fuzz.rig import Rig, require

LONGEST = 200
NEVER = float("inf")
NEAR = 0.06
"""Seconds: deadlines are noticed a little late, so what is due this close together may come in any order."""
LONGEST_BACKOFF = 10.0
STALE_TRIES = 2
KEPT = 65_536
"""Bytes of a request that may be sent again when its idle connection turns out to be closed."""
STATUS = {"connect": 503, "reset": 502, "timeout": 504, "invalid": 502}
METHODS = (b"GET", b"PUT", b"POST", b"DELETE")
SIZES = (0, 1, 10, 900, 3000, 70_000)
BODIES = {size: bytes(at % 251 for at in range(size)) for size in SIZES}
_NUMBER = re.compile(rb"\r\nx-retry-attempt: ([^\r]*)")


@dataclass(frozen=True, slots=True)
class Policy:
    attempts: int
    codes: tuple[int, ...] = ()
    backoff: float = 0.1
    request: float | None = None
    """Seconds of all tries together, and of one."""
    backend: float | None = None
    room: int = 1024 * 1024
    """Bytes of bodies that may be kept: three quarters of them for one client."""
    addresses: int = 1
    mirror: bool = False

    def text(self) -> str:
        timeouts = {"request": self.request, "backendRequest": self.backend}
        set_ones = ", ".join(f"{name}: {round(value * 1000)}ms" for name, value in timeouts.items() if value)
        retry = f"{{attempts: {self.attempts}, backoff: {round(self.backoff * 1000)}ms, codes: {list(self.codes)}}}"
        mirror = ', requestMirror: {host: "127.0.0.1:9001"}' if self.mirror else ""
        policies = f"{{retry: {retry}, timeouts: {{{set_ones}}}{mirror}}}"
        return text_of(f'policies: {policies}\nbackends: [{{host: "origin.test:9000"}}]')


POLICIES = (
    Policy(2, (503,)),
    Policy(0, (503,)),
    Policy(5, (500, 503), backoff=1.0, request=8.0, addresses=3),
    Policy(3, (502, 503, 504), backend=3.0, addresses=2),
    Policy(3, (), backend=2.0, request=7.0, mirror=True),
    Policy(2, (503,), room=1000, mirror=True),
    Policy(6, (503,), backoff=3.0, addresses=1),
    Policy(1, (404,), request=2.0, addresses=2),
)

# what an endpoint answers: status, bytes, whether they are all
ANSWERS: tuple[tuple[int, bytes], ...] = (
    (200, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    (503, b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"),
    (503, b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
    (503, b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbu"),
    (503, b"HTTP/1.1 503 Busy\r\nContent-Length: 400000\r\n\r\nbusy"),
    (500, b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
    (404, b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno"),
    (200, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
)

# script: policy, method, size, whether in chunks, then actions
SEEDS = (
    b"",
    bytes((0, 0, 0, 0, 1, 1, 6, 1, 1, 6, 1, 1)),
    bytes((0, 1, 3, 1, 0, 9, 0, 9, 1, 2, 6, 1, 0)),
    bytes((2, 1, 5, 0, 0, 3, 2, 6, 0, 5, 0, 3, 6, 2, 6, 1, 1)),
    bytes((3, 2, 4, 1, 0, 1, 3, 6, 4, 6, 0, 0, 5, 6, 1, 0)),
    bytes((5, 1, 4, 0, 0, 9, 0, 9, 2, 6, 1, 0)),
    bytes((4, 1, 2, 1, 7, 0, 0, 6, 7, 6, 8, 6, 1, 0)),
    bytes((0, 0, 0, 0, 1, 1, 6, 2, 2, 1, 0)),
)


class Names:
    """A resolver that knows one name."""

    def __init__(self, count: int) -> None:
        self.found = tuple(Endpoint(f"10.0.0.{number}", 9000) for number in range(count))

    def endpoints(self, host: bytes, port: int, ready: object) -> tuple[Endpoint, ...]:
        return self.found


@cache
def rig(policy: Policy) -> tuple[Rig, Names]:
    limits = Limits(idle_timeout=1e6, header_timeout=1e6, buffered_bodies=policy.room)
    made, names = Rig(policy.text(), limits), Names(policy.addresses)
    made.proxy.context.resolver = names  # type: ignore[assignment]
    return made, names


TRYING, CONNECTING, WAITING, DONE = "trying", "connecting", "waiting", "done"


class Run:
    """One request, what the model expects of it, and what was seen."""

    def __init__(self, policy: Policy, dice: Dice) -> None:
        self.policy, self.dice = policy, dice
        self.rig, self.names = rig(policy)
        self.proxy = self.rig.proxy
        self.client: FakeTransport = self.rig.connect()
        self.method = dice.one_of(METHODS)
        self.line = self.method + b" /x HTTP/1.1\r\n"
        self.body = BODIES[dice.one_of(SIZES)]
        self.chunked = dice.chance(2) and self.body != b""
        self.at = 0
        # the model
        self.state = ""
        self.final = 0
        self.tries = self.stale = 0
        self.due = self.attempt_deadline = self.deadline = NEVER
        self.kept = True
        self.flowed = 0
        self.once = False
        # what was seen
        self.up: FakeUpstream | None = None
        self.reused = False
        self.seen = Counter[FakeUpstream]()
        self.used: list[Endpoint] = []
        self.are_known = True
        """Which endpoints were tried: not when a connection did not come, or was made anew."""

    @property
    def now(self) -> float:
        return self.proxy.now

    @property
    def idempotent(self) -> bool:
        return self.method != b"POST"

    # --- the world

    def begin(self) -> None:
        framing = b"Transfer-Encoding: chunked\r\n" if self.chunked else b"Content-Length: %d\r\n" % len(self.body)
        if not self.body:
            framing = b""
        self.deadline = self.now + (self.policy.request or NEVER)
        self.client.send(b"%bHost: a\r\nX-Retry-Attempt: 7\r\n%b\r\n" % (self.line, framing))
        self.began()

    def send(self) -> None:
        """The next piece of the body, if the client may send."""
        if not self.client.open or not self.client.reading or self.at == len(self.body):
            return
        piece = self.body[self.at : self.at + self.dice.one_of((1, 7, 500, 20_000, 100_000))]
        self.at += len(piece)
        end = b"0\r\n\r\n" if self.at == len(self.body) else b""
        self.once = False  # the try under way was not sent in one piece
        self.client.send(b"%x\r\n%b\r\n%b" % (len(piece), piece, end) if self.chunked else piece)
        self.flows()

    def flows(self) -> None:
        """What is sent while a try is under way is sent on, and kept within the limit."""
        if self.state == TRYING:
            self.flowed = max(self.flowed, self.at)
            self.kept = self.kept and 4 * self.flowed <= 3 * self.policy.room

    def answer(self) -> None:
        status, data = self.dice.one_of(ANSWERS)
        up = self.up
        assert up is not None
        self.attempt_deadline = NEVER
        again = status in self.policy.codes and self.again()
        if not again:
            self.done(status)
        up.answer(data)

    def break_off(self) -> None:
        """Reset or close, perhaps within the head."""
        assert self.up is not None
        begun = self.dice.chance(3)
        if begun:
            self.up.answer(b"HTTP/1.1 200 ")
        stale = self.reused and not begun and self.once and self.idempotent and self.stale < STALE_TRIES
        up, self.up = self.up, None
        if stale:
            self.stale += 1
            self.are_known = False
            up.lose(ConnectionResetError())
            self.began(stale=True)
        else:
            self.failed("reset", sent=True)
            up.lose(self.dice.one_of((ConnectionResetError(), None)))

    def nonsense(self) -> None:
        up = self.up
        assert up is not None
        self.failed("invalid", sent=True)
        up.answer(b"HTTP/1.1 nonsense\r\n\r\n")

    def pass_to_next(self, early: bool) -> bool:
        """Let time pass until the next event, or to just before it. False: there is none, or it is not one alone."""
        events = sorted((self.due, self.attempt_deadline, self.deadline))
        if events[0] == NEVER or events[1] - events[0] < NEAR:
            return False
        left = events[0] - self.now
        if early:
            if left > NEAR:
                self.advance(left - NEAR / 2)
            return True
        self.advance(max(left, 0) + NEAR / 2)
        if events[0] == self.deadline:
            self.done(504)
        elif events[0] == self.due:
            self.began()
        else:
            self.failed("timeout", sent=self.state == TRYING)
        return True

    def advance(self, seconds: float) -> None:
        self.proxy.advance(seconds)
        for _ in range(2):
            self.proxy.advance(0)  # what was asked for meanwhile, and is due

    # --- the model

    def began(self, stale: bool = False) -> None:
        """A try begins now: on a connection that is there or comes, unless it is refused or has to be waited for."""
        self.due = NEVER
        self.attempt_deadline = self.now + (self.policy.backend or NEVER)
        known = set(self.seen)
        self.up = self.new_request()
        if self.up is not None:
            require(not stale or self.up not in known, "again on an idle connection, which may be just as stale")
            self.sent(self.up in known)
        elif self.proxy.connector.hold:
            self.state, self.are_known = CONNECTING, False
        else:
            require(self.proxy.connector.refuse, "no try, although one is due")
            self.are_known = False
            self.failed("connect", sent=False)

    def sent(self, reused: bool) -> None:
        assert self.up is not None
        self.state, self.reused = TRYING, reused
        self.once = self.at == len(self.body) and self.at < KEPT - 1000
        self.flows()
        head = self.up.received[self.last_head(self.up) :].partition(b"\r\n\r\n")[0]
        numbers = _NUMBER.findall(head)
        wanted = [b"%d" % self.tries] if self.tries else []
        require(numbers == wanted, f"x-retry-attempt {numbers}, wanted {wanted}")
        connection: Any = self.up.protocol
        self.used.append(connection.endpoint)

    def failed(self, cause: str, sent: bool) -> None:
        self.attempt_deadline = NEVER
        status = STATUS[cause]
        safe = cause != "invalid" and (not sent or self.idempotent)
        if (safe or status in self.policy.codes) and self.again():
            return
        wanted = safe or status in self.policy.codes
        is_exhausted = self.policy.attempts and self.tries >= self.policy.attempts
        self.done(503 if cause == "reset" and wanted and is_exhausted else status)

    def again(self) -> bool:
        if self.tries >= self.policy.attempts or not self.kept:
            return False
        first = self.policy.backoff
        moment = self.now + min(first * 2**self.tries, max(first, LONGEST_BACKOFF))
        if moment >= self.deadline:
            return False
        self.tries += 1
        self.due, self.state, self.up = moment, WAITING, None
        return True

    def done(self, status: int) -> None:
        self.state, self.final = DONE, status
        self.due = self.attempt_deadline = self.deadline = NEVER

    # --- what is seen

    def attempts(self) -> list[FakeUpstream]:
        return [up for up in self.rig.upstreams if self.port(up) == 9000]

    def port(self, upstream: FakeUpstream) -> int:
        connection: Any = upstream.protocol
        return int(connection.endpoint.port)

    def new_request(self) -> FakeUpstream | None:
        """Where a request came that was not there at the last look; at most one."""
        counts = {up: up.received.count(self.line) for up in self.attempts()}
        new = [up for up, count in counts.items() if count > self.seen[up]]
        require(len(new) <= 1 and sum(counts.values()) - sum(self.seen.values()) <= 1, "two tries at once")
        self.seen = Counter(counts)
        return new[0] if new else None

    def last_head(self, upstream: FakeUpstream) -> int:
        return upstream.received.rindex(self.line)

    def content(self, upstream: FakeUpstream, start: int) -> bytes:
        head, _, body = upstream.received[start:].partition(b"\r\n\r\n")
        return ChunkedReader(decode=True).feed(body)[0] if b"chunked" in head else body

    def judge(self) -> None:
        """After each step: nothing happens that the model does not know of."""
        if self.state != CONNECTING:
            require(self.new_request() is None, "a try that nobody granted")
        received = self.client.received
        if self.state == DONE:
            require(received.startswith(b"HTTP/1.1 %d " % self.final), f"{received[:60]!r}, wanted {self.final}")
            require(received.count(b"HTTP/1.1 ") == 1, "two answers")
        else:
            require(received == b"", f"an early answer: {received[:60]!r}")
        if self.state == TRYING and self.up is not None:
            got = self.content(self.up, self.last_head(self.up))
            require(got == self.body[: self.at], f"{len(got)} bytes of the {self.at} that came")
        if self.names.found[1:]:
            count = len(self.names.found)
            beside = all(one is not other for one, other in zip(self.used, self.used[1:], strict=False))
            differ = beside and len(set(self.used[:count])) == len(self.used[:count])
            require(differ or not self.are_known, "the same endpoint again")

    def step(self) -> bool:
        """One action; False when no other is to follow."""
        action = self.dice.below(10)
        connector = self.proxy.connector
        if action == 0 or action == 9:
            self.send()
        elif action == 7:
            connector.refuse = "" if connector.refuse else "refused"
        elif action == 8 and self.state != CONNECTING:
            connector.hold = not connector.hold
        elif action in (5, 6):
            return self.pass_to_next(early=action == 5)
        elif self.state == TRYING:
            (self.answer if action < 2 else self.break_off if action < 4 else self.nonsense)()
        elif self.state == CONNECTING:
            self.come()
        return True

    def come(self) -> None:
        """The connections that were waited for, for which there may be nobody any more."""
        connector = self.proxy.connector
        connector.hold = False
        waits = self.state == CONNECTING
        connector.release()
        if not waits:
            return
        self.up = self.new_request()
        if self.up is not None:
            self.sent(reused=False)
        else:
            require(connector.refuse, "a connection that is not used")
            self.failed("connect", sent=False)

    def play(self) -> None:
        self.begin()
        self.judge()
        for _ in range(60):
            if self.dice.empty or self.state == DONE or not self.step():
                break
            self.judge()
        self.finish()

    def finish(self) -> None:
        """Troubles end: the rest is sent and answered."""
        self.proxy.connector.refuse = ""
        self.come()
        for _ in range(40):
            if self.state == DONE:
                break
            self.judge()
            if self.state == WAITING and not self.pass_to_next(early=False):
                self.client.lose()
                break
            self.send()
            if self.state == TRYING and (self.at == len(self.body) or not self.client.reading):
                assert self.up is not None
                self.done(200)
                self.up.answer(ANSWERS[0][1])
        if self.client.open:
            self.judge()
        mirrored = [self.content(up, 0) for up in self.rig.upstreams if self.port(up) == 9001 and up.received]
        require(mirrored in ([], [self.body]), f"{list(map(len, mirrored))} bytes mirrored of {len(self.body)}")


def check(data: bytes) -> None:
    if len(data) > LONGEST:
        return
    dice = Dice(data)
    policy = dice.one_of(POLICIES)
    running, names = rig(policy)
    running.proxy.connector.refuse = ""
    with running:
        run = Run(policy, dice)
        run.play()
        if run.client.open:
            run.client.lose()
        running.proxy.connector.release()
        running.proxy.advance(30)  # copies and what is drained are given up
        running.check()
        context = running.proxy.context
        require(context.body_memory.used == 0, f"{context.body_memory.used} bytes of bodies are still kept")
        require(context.mirrors.count == context.mirrors.bytes == 0, "copies without end")
        require(context.recorder.active == 0, "an exchange without end")
        require(all(endpoint.pending == 0 for endpoint in names.found), "an endpoint is counted busy for ever")
