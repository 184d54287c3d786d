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
            if guard.server is not None:
                await self._ask_about(guard, texts, said, places)
            elif guard.rejects and self.phase is Phase.REQUEST:
                await self._look_for(guard, said, places)
            else:
                await self._mask(guard, said, places)
        return said

    # What a guard judges stands in `places` of `said`, which it changes.

    async def _ask_about(self, guard: Guard, texts: Sequence[Text], said: list[str], places: Sequence[int]) -> None:
        judged = [texts[place]._replace(text=said[place]) for place in places]
        verdict = await self.ask(guard, self.phase, judged)
        if verdict.texts is not None:
            for place, text in zip(places, verdict.texts, strict=True):
                said[place] = text

    async def _look_for(self, guard: Guard, said: list[str], places: Sequence[int]) -> None:
        spent = _Spent(self, guard)
        for place in places:
            if await spent.paced(is_found(guard.patterns, _bytes(said[place]), self.guards.bound)):
                self.count(guard, self.phase, Action.REJECT)
                raise Rejected(guard, "a pattern matches")
        self.count(guard, self.phase, Action.ALLOW)

    async def _mask(self, guard: Guard, said: list[str], places: Sequence[int]) -> None:
        is_masked, spent = False, _Spent(self, guard)
        for place in places:
            masker = Masker(guard.patterns, self.guards.bound)
            masked = await spent.paced(masker.feed(_bytes(said[place]), True))
            if masker.masked:
                is_masked = True
                said[place] = _text(masked)
        self.count(guard, self.phase, Action.MASK if is_masked else Action.ALLOW)

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
        self._spent.resume()
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
    """The processor time that the patterns of one guard have taken: in all, and in this turn, which many short texts
    use up as one long text does."""

    __slots__ = ("_began", "_guard", "_judge", "_of_turn", "_seconds")

    def __init__(self, judge: Judge, guard: Guard) -> None:
        self._judge, self._guard = judge, guard
        self._seconds = self._of_turn = 0.0
        self._began = time.thread_time()

    def resume(self) -> None:
        """What others did since the last text does not count."""
        self._began = time.thread_time()

    async def paced(self, work: Generator[None, None, T]) -> T:
        """Do it, and let others go on between. Raises `Rejected` when all takes longer than `MAX_SECONDS`: the rest
        is not judged."""
        while True:
            try:
                next(work)
            except StopIteration as end:
                await self._look()
                found: T = end.value
                return found
            await self._look()

    async def _look(self) -> None:
        now = time.thread_time()
        self._seconds += now - self._began
        self._of_turn += now - self._began
        self._began = now
        if self._of_turn <= AT_A_TIME:
            return
        if self._seconds > MAX_SECONDS:
            self._judge.count(self._guard, self._judge.phase, Action.UNAVAILABLE)
            raise Rejected(self._guard, "its patterns take too long", is_unavailable=True)
        await NEXT_TURN
        self._of_turn = 0.0
        self.resume()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", _ERRORS)


def _text(data: bytes) -> str:
    return data.decode("utf-8", _ERRORS)
