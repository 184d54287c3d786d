"""Random conversations of many exchanges at once, through the whole proxy, in every pair of versions.

Clients are libraries that know nothing of ours: they raise where the proxy breaks a rule of HTTP/2, in whatever order
frames come. What arrived at either end is compared with what was said at the other: a beginning of it at any time, all
of it where both ends went on to the end.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from dataplane.http.h2 import frames
from dataplane.http.h2.frames import MAX_WINDOW
from dataplane.http.h2.settings import INITIAL_WINDOW_SIZE
from tests.carriers.contract import Arrival, Conversation, Ends
from tests.carriers.http2 import Http2, Http2Client
from tests.carriers.http2_endpoints import Http1To2, Http2To2
from tests.carriers.run import Run
from tests.carriers.values import Request, Response
from tests.fakes.h2_libraries import LIBRARIES
from tests.fakes.policy_run import served
from tests.harness.seeds import rolls, times

PLAIN = served("policies: {}")
STEPS = served(
    "policies: {headerModifiers: {request: {set: [{name: x-a, value: b}]}, response: {set: [{name: x-b, value: c}]}}}"
)
SIZES = (0, 1, 100, 5_000, 70_000, 200_000)


class Jh2(Http2):
    library = LIBRARIES["jh2"]


class Jh2To2(Http2To2):
    library = LIBRARIES["jh2"]


PAIRS: dict[str, type[Any]] = {
    "h2 to http1": Http2,
    "jh2 to http1": Jh2,
    "http1 to http2": Http1To2,
    "h2 to http2": Http2To2,
    "jh2 to http2": Jh2To2,
}


class Talk:
    """One exchange: what both ends have said of it, and looked at."""

    def __init__(self, number: int, asked: Conversation) -> None:
        self.number, self.asked = number, asked
        self.arrival: Arrival | None = None
        self.said, self.answered = b"", b""
        self.trailers = ((), ())
        self.has_ended, self.has_begun, self.has_answered = False, False, False
        self.is_broken = False
        """By one of its ends."""

    @property
    def is_over(self) -> bool:
        """For its client."""
        return self.is_broken or self.asked.answer.ended or self.asked.answer.reset

    @property
    def is_left(self) -> bool:
        """By the proxy, or not arrived: nothing to be said by its endpoint."""
        return self.arrival is None or self.is_broken or self.has_answered or self.arrival.is_cancelled

    def look(self) -> None:
        answer = self.asked.answer
        assert self.answered.startswith(answer.body) or answer.status != 200, f"{self.number}: another answer's content"
        if self.arrival is not None:
            assert self.said.startswith(self.arrival.received.body), f"{self.number}: another request's content"


class World:
    def __init__(self, dice: random.Random, ends: Ends) -> None:
        self.dice = dice
        self.ends = ends
        self.run = Run(ends)
        self.talks: list[Talk] = []
        self.found = 0
        """How many arrivals were looked at."""
        self.clients = [self.run.client(("192.0.2.7", 40000 + number)) for number in range(2)]

    def go(self) -> None:
        moves = (
            [self.ask] * 3 + [self.say] * 4 + [self.answer] * 6 + [self.pause, self.resume, self.shake, self.break_off]
        )
        for _ in range(self.dice.randrange(20, 120)):
            self.dice.choice(moves)()
            self.find()
        for talk in self.talks:
            talk.look()
        self.finish()

    def find(self) -> None:
        """Whose request has arrived."""
        arrivals = self.run.arrivals
        for each in arrivals[self.found :]:
            self.talks[int(each.received.headers["x-number"])].arrival = each
        self.found = len(arrivals)

    def talk(self) -> Talk | None:
        return self.dice.choice(self.talks[-8:]) if self.talks else None

    # --- moves

    def ask(self) -> None:
        number = len(self.talks)
        request = Request(self.dice.choice(("GET", "POST", "PUT")), f"/{number}", [("x-number", str(number))])
        talk = Talk(number, self.dice.choice(self.clients).begin(request))
        talk.has_ended = request.method == "GET"
        self.talks.append(talk)

    def say(self) -> None:
        talk = self.talk()
        if talk is None or talk.is_over or talk.has_ended:
            return
        if self.dice.random() < 0.3:
            talk.has_ended = True
            talk.asked.end([("x-sum", "1")] if self.dice.random() < 0.3 else [])
            return
        data = bytes((talk.number % 251,)) * self.dice.choice(SIZES[1:])
        talk.said += data
        talk.asked.content(data)

    def answer(self) -> None:
        talk = self.talk()
        if talk is None or talk.is_left:
            return
        assert talk.arrival is not None
        draw = self.dice.random()
        if not talk.has_begun:
            if draw < 0.1:
                talk.arrival.interim(103, [("link", "</a>")])
                return
            talk.has_begun = True
            talk.arrival.head(Response(200, [("x-c", "d" * self.dice.choice((1, 3_000)))]))
        elif draw < 0.3:
            talk.has_answered = True
            talk.arrival.end([("x-sum", "2")] if self.dice.random() < 0.3 else [])
        else:
            data = bytes((1 + talk.number % 251,)) * self.dice.choice(SIZES[1:])
            talk.answered += data
            talk.arrival.content(data)

    def pause(self) -> None:
        talk = self.talk()
        if talk is not None and not talk.is_over:
            talk.asked.pause()

    def resume(self) -> None:
        talk = self.talk()
        if talk is not None and not talk.is_over:
            talk.asked.resume()

    def break_off(self) -> None:
        talk = self.talk()
        if talk is None or talk.is_over:
            return
        if self.dice.random() < 0.5:
            talk.is_broken = True
            talk.asked.cancel()
        elif not talk.is_left:
            assert talk.arrival is not None
            talk.is_broken = True
            talk.arrival.reset()

    def shake(self) -> None:
        """Frames that concern no exchange of its own."""
        client = self.dice.choice(self.clients)
        if isinstance(client, Http2Client) and client.wires:
            self.shake_wire(self.dice.choice(client.wires), client)
        far = self.dice.choice(self.ends.far) if isinstance(self.ends, Http1To2) and self.ends.far else None
        if far is not None and far.upstream.open:
            window = self.dice.choice((0, 5_000, 65_535, MAX_WINDOW))
            setting = frames.SETTING.pack(INITIAL_WINDOW_SIZE, window)
            far.upstream.answer(self.dice.choice((frames.settings(setting), frames.ping(b"01234567"))))
            far.turn()

    def shake_wire(self, wire: Any, client: Http2Client) -> None:
        draw = self.dice.random()
        if draw < 0.4:
            least = wire.local_settings.initial_window_size  # a window below zero is an error to the libraries
            wire.update_settings({INITIAL_WINDOW_SIZE: least + self.dice.choice((0, 1, 5_000, 100_000))})
        elif draw < 0.6:
            wire.ping(b"12345678")
        elif draw < 0.8:
            wire.update_settings({1: self.dice.choice((0, 50, 4096, 65_536))})
        client.pump()

    # --- the end

    def finish(self) -> None:
        """Everybody goes on to the end of what is not broken off; then nothing is missing."""
        for client in self.clients:
            if isinstance(client, Http2Client):
                for wire in client.wires:
                    wire.update_settings({INITIAL_WINDOW_SIZE: wire.local_settings.initial_window_size + 1_000_000})
                client.pump()
        for far in self.ends.far if isinstance(self.ends, Http1To2) else ():
            if far.upstream.open:
                far.upstream.answer(frames.settings(frames.SETTING.pack(INITIAL_WINDOW_SIZE, MAX_WINDOW)))
                far.turn()
        for talk in self.talks:
            if not talk.is_over:
                talk.asked.resume()
                if not talk.has_ended:
                    talk.has_ended = True
                    talk.asked.end()
            self.find()
        for talk in self.talks:
            if not talk.is_left:
                assert talk.arrival is not None
                if not talk.has_begun:
                    talk.arrival.head(Response())
                talk.has_answered = True
                talk.arrival.end()
            self.find()
        for talk in self.talks:
            self.check(talk)

    def check(self, talk: Talk) -> None:
        talk.look()
        answer = talk.asked.answer
        if talk.is_broken:
            return
        assert talk.arrival is not None and answer.status == 200 and not answer.reset, f"{talk.number}: {answer}"
        assert answer.ended and answer.body == talk.answered, talk.number


@pytest.mark.parametrize("text", [PLAIN, STEPS], ids=["plain", "steps"])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("number", range(times(4)))
def test_what_is_said_at_one_end_arrives_at_the_other(number: int, pair: str, text: str) -> None:
    ends = PAIRS[pair](text)
    world = World(rolls("whole", pair, number, text is PLAIN), ends)
    world.go()
    assert not any(line for line in world.run.log_lines() if "reason=InternalError" in line)
