"""Long work in short turns, with others' work between them: for functions that cannot be generators.

Who has much to do calls `pause()` between the pieces (the expression language at each node, a regular expression before
it is compiled). Where no turns were asked for that does nothing. `Within` is for what is done in one turn most of the
times: it gives the work up when it is not, and the work begins anew in `in_turns`, a generator that yields after each
turn. That needs a thread, which runs while the generator is asked and never else: nothing is done at the same time, so
nothing needs a lock. So a caller of `pause` has changed nothing by then that may not be changed twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
Clock = Callable[[], float]


class _Turn(threading.local):
    """Of a thread, and not of a context: a task or timer that is made in a turn inherits the context and runs later."""

    over: Callable[[], None] | None = None
    """What is to be done at a pause."""


_turn: Final = _Turn()


class OverTurn(BaseException):
    """The turn is over and the work is not: no error, so code that catches errors must not catch it."""


class _Dropped(BaseException):
    """The work is not wanted any more."""


def pause() -> None:
    """Between two pieces of work. Raises `OverTurn` (`Within`), or lets others go on (`in_turns`), when it is time."""
    over = _turn.over
    if over is not None:
        over()


def paced(items: Iterable[T]) -> Iterator[T]:
    """The items, with a pause before each: for lists that are as long as their author likes."""
    for item in items:
        pause()
        yield item


def at_once(work: Generator[Any, None, T]) -> T:
    """What work comes to that yields where others may go on, without letting them. A coroutine that waits for nothing
    else is such work as well (`Coroutine.__await__`). Raises what it does."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found


class Within:
    """`with` it, a block may take so long: the next pause after that raises `OverTurn` through it. Not nested."""

    __slots__ = ("_clock", "_seconds", "_until")

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._seconds, self._clock = seconds, clock
        self._until = 0.0

    def __enter__(self) -> None:
        self._until = self._clock() + self._seconds
        _turn.over = self._look

    def __exit__(self, *_error: object) -> None:
        _turn.over = None

    def _look(self) -> None:
        if self._clock() >= self._until:
            raise OverTurn


def in_turns(work: Callable[[], T], seconds: float, clock: Clock) -> Generator[None, None, T]:
    """Do the work; yields at the first pause after so long, again and again. Answers and raises what it does. When the
    generator is closed before its end, the work ends at that pause."""
    beside = _Beside(work, seconds, clock)
    try:
        while beside.goes_on():
            yield
    finally:
        beside.drop()
    return beside.outcome()


class _Beside(Generic[T]):
    """A thread that runs while `goes_on` is called."""

    def __init__(self, work: Callable[[], T], seconds: float, clock: Clock) -> None:
        self._work: Callable[[], T] | None = work
        self._seconds, self._clock = seconds, clock
        self._until = 0.0
        self._outcome: list[T] = []
        self._error: BaseException | None = None
        self._is_dropped = False
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._thread = threading.Thread(target=self._run, name="turns", daemon=True)

    def goes_on(self) -> bool:
        """Let it run for a turn; whether there is more to do."""
        self._until = self._clock() + self._seconds
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._go.release()
        self._back.acquire()
        return self._work is not None

    def drop(self) -> None:
        """It has ended, or ends now."""
        if self._thread.ident is not None:
            if self._work is not None:
                self._is_dropped = True
                self._go.release()
            self._thread.join()

    def outcome(self) -> T:
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame: they would keep each other
        return self._outcome.pop()

    def _run(self) -> None:
        assert self._work is not None
        _turn.over = self._look
        try:
            self._outcome.append(self._work())
        except _Dropped:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._work = None
            self._back.release()

    def _look(self) -> None:
        if self._clock() < self._until:
            return
        self._back.release()
        self._go.acquire()
        if self._is_dropped:
            raise _Dropped
