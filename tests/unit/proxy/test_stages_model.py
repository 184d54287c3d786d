"""Two stages in each direction, and whatever their ends, the client and the endpoint do, in any order: the laws of
`dataplane/streams` hold, what is given arrives, and nothing is left. Of the two the inner one of requests and the outer
one of responses act on trailers."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataplane.chain.filter import STEP, Filter, Row
from dataplane.chain.replies import REPLIES
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from dataplane.streams import Outlet, Stage
from tests.carriers import CARRIERS, Carrier, Headers, Request, Response
from tests.fakes.policy_run import served

POLICIES = "policies: {csrf: {}, headerModifiers: {request: {set: [{name: x-a, value: '1'}]}}}"
STAGES = ("out1", "out2", "back1", "back2")
MINDING = ("out2", "back2")
NEXT = {"out1": "out2", "back1": "back2"}
TRAILER = b"x-sum: %b.\r\n"
ANSWER = Reply(418, "Teapot", b"of a stage")
OUTSIDE_OF = ("out2", "back1")
"""Stages whose answers pass `back2`."""


def of(trailers: Headers) -> bytes:
    """Their lines."""
    return b"".join(f"{name}: {value}\r\n".encode() for name, value in trailers.pairs())


class Free:
    """A stage whose every deed is the test's."""

    def __init__(self) -> None:
        self.outlet: Any = None
        self.taken, self.gave = b"", b""
        self.told = ""
        """Each call as a letter: content, end, trailers, pause, resume, cancel (x)."""
        self.ended = self.answered = False
        self.passing, self.end = b"", b""
        """Trailers that came and that it does not act on; those that its end has."""

    def __call__(self, x: Exchange, outlet: Outlet) -> Stage:
        self.outlet = outlet
        return self

    def content(self, data: bytes, end: bool) -> None:
        self.taken += data
        self.told += "e" if end else "c"

    def pause(self) -> None:
        self.told += "p"

    def resume(self) -> None:
        self.told += "r"

    def cancel(self) -> None:
        assert not self.ended, "it had given its end"
        self.told += "x"

    def give(self, data: bytes, deed: str) -> None:
        if self.outlet is None:
            return
        if self.ended:
            with pytest.raises(RuntimeError, match="after the end"):
                self.outlet.content(data, deed == "end")
            return
        self.ended = deed != "give" and "x" not in self.told
        if deed == "answer":
            self.answered = self.ended
            self.outlet.answer(ANSWER)
            return
        if "x" not in self.told:
            self.gave += b"" if deed == "trailers" else data
        if deed == "trailers":
            self.end = TRAILER % data if self.ended else b""
            self.outlet.trailers(TRAILER % data)
        else:
            self.end = self.passing if self.ended else b""
            self.outlet.content(data, deed == "end")

    def judge(self) -> None:
        assert re.fullmatch(r"[cpr]*([et][pr]*)?x?", self.told), self.told
        assert re.fullmatch(r"(pr)*p?", re.sub("[^pr]", "", self.told)), self.told


class Minding(Free):
    """The same, for trailers too."""

    def trailers(self, lines: bytes) -> None:
        self.taken_lines = lines
        self.told += "t"

    taken_lines = b""


class World:
    def __init__(self, carrier: Carrier) -> None:
        self.stages = {name: Minding() if name in MINDING else Free() for name in STAGES}
        steps = {
            "csrf": self.filter("out1", "back2"),
            "header_modifiers": self.filter("out2", "back1"),
        }

        def row(of: Row) -> Row:
            return Row(of.name, lambda *_: steps[of.name], STEP, "test") if of.name in steps else of

        self.run = carrier.proxy(served(POLICIES), rows=tuple(map(row, ROWS)))
        self.asked = self.run.begin(Request("POST"))
        self.client_ended = self.gone = self.headed = self.answered = False
        self.sent = self.answer = b""
        self.sent_end = self.answer_end = b""
        """Trailers of the client and of the endpoint."""
        self.teapot = ""
        """The stage that answered last in place of any response."""
        self.is_for_back2 = False
        """Such an answer went there."""

    def filter(self, out: str, back: str) -> Filter:
        return Filter("test", request_stream=self.stages[out], response_stream=self.stages[back])

    # --- what may happen

    def act(self, name: str, number: int) -> None:
        data = b"%d " % number
        stage, _, deed = name.partition(".")
        if deed:
            self.stage(stage, deed, data)
        elif not self.gone and not self.is_over:
            getattr(self, name)(data)

    def stage(self, name: str, deed: str, data: bytes) -> None:
        stage = self.stages[name]
        if stage.outlet is None:
            return
        if deed == "answer" and not self.headed and not stage.ended and "x" not in stage.told:
            self.teapot = name
            self.is_for_back2 = self.is_for_back2 or name in OUTSIDE_OF
        if deed == "pause":
            stage.outlet.pause()
        elif deed == "resume":
            stage.outlet.resume()
        else:
            stage.give(data, deed)

    @property
    def is_over(self) -> bool:
        return self.asked.answer.ended or self.asked.answer.reset

    def content(self, data: bytes) -> None:
        if not self.client_ended:
            self.sent += data
            self.asked.content(data)

    def end(self, data: bytes) -> None:
        if not self.client_ended:
            self.client_ended = True
            self.asked.end()

    def end_trailers(self, data: bytes) -> None:
        if not self.client_ended:
            self.client_ended, self.sent_end = True, TRAILER % data
            self.let_pass("out1", self.sent_end)
            self.asked.end([("x-sum", data.decode() + ".")])

    def let_pass(self, name: str, lines: bytes) -> None:
        """Trailers that come to this stage, which does not act on them, are behind the end that it gives."""
        stage = self.stages[name]
        if "x" not in stage.told and not stage.ended:
            stage.passing = lines

    def block(self, data: bytes) -> None:
        self.asked.pause()

    def unblock(self, data: bytes) -> None:
        self.asked.resume()

    def leave(self, data: bytes) -> None:
        self.gone = True
        self.asked.cancel()

    def head(self, data: bytes) -> None:
        if not self.headed and not self.answered and not self.run.arrival.is_cancelled:
            self.headed = True
            self.run.arrival.head(Response(200))

    @property
    def answers(self) -> bool:
        return self.headed and not self.answered and not self.run.arrival.is_cancelled

    def more(self, data: bytes) -> None:
        if self.answers:
            self.answer += data
            self.run.arrival.content(data)

    def last(self, data: bytes) -> None:
        if self.answers:
            self.answered = True
            self.run.arrival.end()

    def last_trailers(self, data: bytes) -> None:
        if self.answers:
            self.answered, self.answer_end = True, TRAILER % data
            self.let_pass("back1", self.answer_end)
            self.run.arrival.end([("x-sum", data.decode() + ".")])

    def broken(self, data: bytes) -> None:
        if not self.answered and not self.run.arrival.is_cancelled:
            self.answered = True
            if not self.headed:
                self.answer = REPLIES["UpstreamFailed"].body  # which passes the stages, too
            self.run.arrival.reset()

    # --- what must hold

    def judge(self) -> None:
        stages = self.stages
        for each in stages.values():
            each.judge()
        assert self.sent.startswith(stages["out1"].taken) and self.answer.startswith(stages["back1"].taken)
        for before, after in NEXT.items():
            gave = ANSWER.body if after == "back2" and self.is_for_back2 else stages[before].gave
            assert gave.startswith(stages[after].taken)
            assert stages[after].taken_lines in (b"", stages[before].end)
        received, answer = self.run.arrival.received, self.asked.answer
        assert stages["out2"].gave.startswith(received.body)
        assert not received.ended or of(received.trailers) == stages["out2"].end
        if self.teapot:
            body = stages["back2"].gave if self.teapot in OUTSIDE_OF else ANSWER.body
            assert not answer.ended or (answer.status, answer.body, of(answer.trailers)) == (418, body, b"")
        else:
            assert stages["back2"].gave.startswith(answer.body)
        if not self.is_over and not self.gone:
            self.judge_alive()
        if answer.ended and not self.teapot:
            assert answer.body == stages["back2"].gave and stages["back2"].ended
            assert of(answer.trailers) == (stages["back2"].end if answer.status == 200 else b"")

    def judge_alive(self) -> None:
        stages = self.stages
        if not stages["out1"].ended and "x" not in stages["out1"].told:
            assert stages["out1"].taken == self.sent
        if (
            not self.answered and not self.teapot and not stages["back1"].ended
        ):  # who has answered whole gets no more of the request
            assert self.run.arrival.received.body == stages["out2"].gave
            assert self.run.arrival.received.ended == stages["out2"].ended
        if self.headed and not self.teapot:
            assert self.asked.answer.body == stages["back2"].gave

    def close(self) -> None:
        if not self.gone and not self.is_over:
            self.leave(b"")
        self.judge()
        for each in self.stages.values():
            assert each.outlet is None or each.ended or each.told.endswith("x"), "it was left alone"
            with contextlib.suppress(RuntimeError):  # after its end
                each.outlet and each.outlet.content(b"late", True)
        self.judge()
        assert len(self.run.new_lines()) == 1


OWN = [f"{stage}.{deed}" for stage in STAGES for deed in ("give", "end", "trailers", "answer", "pause", "resume")]
OTHERS = [
    "content",
    "end",
    "block",
    "unblock",
    "leave",
    "head",
    "more",
    "last",
    "broken",
    "end_trailers",
    "last_trailers",
]


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=list(CARRIERS))
@settings(max_examples=100)
@given(deeds=st.lists(st.sampled_from([*OWN, *OTHERS, *["content", "head", "more"] * 2]), max_size=40))
@example(deeds=["content", "out2.end", "content", "end", "head", "back1.end", "more", "back2.end"])
@example(deeds=["head", "last", "out2.give", "out2.end"])
@example(deeds=["head", "back1.end", "out2.give"])
@example(deeds=["head", "block", "more", "back1.give", "unblock", "back2.pause", "last", "back2.give", "back2.end"])
@example(deeds=["end_trailers", "out1.end", "out2.trailers", "head", "last_trailers", "back1.end", "back2.trailers"])
@example(deeds=["content", "out2.answer", "content", "back2.give", "back2.trailers", "out1.give"])
@example(deeds=["broken", "back1.answer", "back2.end"])
@example(deeds=["broken", "back1.end", "back2.answer"])
@example(deeds=["broken", "back1.answer", "back2.answer"])
@example(deeds=["head", "more", "back1.give", "out1.answer", "back2.answer"])
def test_whatever_happens(carrier: Carrier, deeds: list[str]) -> None:
    world = World(carrier)
    for number, deed in enumerate(deeds):
        world.act(deed, number)
        world.judge()
    world.close()
