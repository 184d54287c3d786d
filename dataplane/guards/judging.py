"""Guards at work: on whole texts, and on one text that comes in pieces.

What acts is passed in: how a server is asked, how long work lets others go on, and who counts. So requests of LLMs
use it, and whatever else has texts may.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from dataplane.chain.turns import AT_A_TIME, NEXT_TURN
from dataplane.guards.masking import Masker, is_found
from dataplane.guards.plan import Guard, Guards, Rejected
from dataplane.guards.values import Action, Phase, Text
from dataplane.guards.windows import Windows

if TYPE_CHECKING:
    from dataplane.guards.verdicts import Verdict

T = TypeVar("T")
_ERRORS: Final = "surrogatepass"
"""JSON may hold halves of characters; they are no text, and pass."""

MAX_SECONDS: Final = 5.0
"""Processor time of the patterns of one guard, for all texts of one request or one answer."""

Ask = Callable[[Guard, Phase, Sequence[Text]], "Awaitable[Verdict]"]
"""Raises `Rejected` where the server cannot be asked and its failureMode says so."""
Count = Callable[[Guard, Phase, Action], None]


@dataclass(frozen=True, slots=True)
class Judge:
    """Those of one policy, for one exchange."""

    guards: Guards
    phase: Phase
    ask: Ask
    count: Count

    async def texts(self, texts: Sequence[Text]) -> list[str]:
        """What they may say: with masks, in the same order. Raises `Rejected`."""
        said = [text.text for text in texts]
        for guard in self.guards.of(self.phase):
            places = [place for place, text in enumerate(texts) if guard.judges(text.scope)]
            if not places:
                continue
            judged = [Text(said[place], texts[place].scope, texts[place].role) for place in places]
            for place, text in zip(places, await self._judged(guard, judged), strict=True):
                said[place] = text
        return said

    async def _judged(self, guard: Guard, texts: Sequence[Text]) -> list[str]:
        if guard.server is not None:
            verdict = await self.ask(guard, self.phase, texts)
            return list(verdict.texts) if verdict.texts is not None else [each.text for each in texts]
        if guard.rejects and self.phase is Phase.REQUEST:
            spent = _Spent(self, guard)
            for each in texts:
                if await spent.paced(is_found(guard.patterns, _bytes(each.text), self.guards.bound)):
                    self.count(guard, self.phase, Action.REJECT)
                    raise Rejected(guard, "a pattern matches")
            self.count(guard, self.phase, Action.ALLOW)
            return [each.text for each in texts]
        return await self._masked(guard, texts)

    async def _masked(self, guard: Guard, texts: Sequence[Text]) -> list[str]:
        said, is_masked, spent = [], False, _Spent(self, guard)
        for each in texts:
            masker = Masker(guard.patterns, self.guards.bound)
            masked = await spent.paced(masker.feed(_bytes(each.text), True))
            is_masked = is_masked or bool(masker.masked)
            said.append(_text(masked) if masker.masked else each.text)
        self.count(guard, self.phase, Action.MASK if is_masked else Action.ALLOW)
        return said

    def track(self, kind: Text) -> Track:
        """For a text that comes in pieces. `kind`: what it is; its text does not count."""
        return Track(self, kind)


class _Stage(Protocol):
    @property
    def held(self) -> int: ...

    async def feed(self, data: bytes, is_end: bool) -> bytes: ...


class Track:
    """One text of a stream: what is fed comes out as soon as every guard has judged it."""

    __slots__ = ("_stages", "is_over")

    def __init__(self, judge: Judge, kind: Text) -> None:
        self._stages: list[_Stage] = [
            _Masking(judge, guard) if guard.server is None else _Asking(judge, guard, kind)
            for guard in judge.guards.of(judge.phase)
            if guard.judges(kind.scope)
        ]
        self.is_over = False

    @property
    def held(self) -> int:
        """Bytes that wait until they are judged."""
        return sum(stage.held for stage in self._stages)

    async def feed(self, text: str, is_end: bool = False) -> str:
        """Raises `Rejected`."""
        if self.is_over:
            return ""
        self.is_over = is_end
        data = _bytes(text)
        for stage in self._stages:
            data = await stage.feed(data, is_end)
        return _text(data)


class _Masking:
    __slots__ = ("_guard", "_judge", "_masker", "_spent")

    def __init__(self, judge: Judge, guard: Guard) -> None:
        self._judge, self._guard, self._spent = judge, guard, _Spent(judge, guard)
        self._masker = Masker(guard.patterns, judge.guards.bound)

    @property
    def held(self) -> int:
        return self._masker.held

    async def feed(self, data: bytes, is_end: bool) -> bytes:
        given = await self._spent.paced(self._masker.feed(data, is_end))
        if is_end:
            action = Action.MASK if self._masker.masked else Action.ALLOW
            self._judge.count(self._guard, self._judge.phase, action)
        return given


class _Asking:
    __slots__ = ("_guard", "_judge", "_kind", "_windows")

    def __init__(self, judge: Judge, guard: Guard, kind: Text) -> None:
        self._judge, self._guard, self._kind = judge, guard, kind
        self._windows = Windows(judge.guards.bound)

    @property
    def held(self) -> int:
        return self._windows.held

    async def feed(self, data: bytes, is_end: bool) -> bytes:
        given = []
        for window in self._windows.feed(data, is_end):
            text = Text(_text(window), self._kind.scope, self._kind.role)
            verdict = await self._judge.ask(self._guard, self._judge.phase, (text,))
            said = window if verdict.texts is None else _bytes(verdict.texts[0])
            given.append(self._windows.judged(said))
        if is_end:
            given.append(self._windows.rest())
        return b"".join(given)


class _Spent:
    """The processor time that the patterns of one guard have taken."""

    __slots__ = ("_guard", "_judge", "_seconds")

    def __init__(self, judge: Judge, guard: Guard) -> None:
        self._judge, self._guard = judge, guard
        self._seconds = 0.0

    async def paced(self, work: Generator[None, None, T]) -> T:
        """Do it, and let others go on between. Raises `Rejected` when all takes longer than `MAX_SECONDS`: the rest
        is not judged."""
        began = time.thread_time()
        while True:
            try:
                next(work)
            except StopIteration as end:
                self._seconds += time.thread_time() - began
                found: T = end.value
                return found
            now = time.thread_time()
            if now - began > AT_A_TIME:
                self._seconds += now - began
                if self._seconds > MAX_SECONDS:
                    self._judge.count(self._guard, self._judge.phase, Action.UNAVAILABLE)
                    raise Rejected(self._guard, "its patterns take too long", is_unavailable=True)
                await NEXT_TURN
                began = time.thread_time()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", _ERRORS)


def _text(data: bytes) -> str:
    return data.decode("utf-8", _ERRORS)
