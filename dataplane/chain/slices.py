"""Content of an answer that costs many times to read what its bytes cost: it is read slice by slice, in the share of a
turn that all work of unknown length has (`net/turns`). What waits for a turn holds its carrier.

`ReadsInTurns` is what readers have in common, whatever carries the content. Its laws:
- Slices come in the order of the content, none is larger than `slice_size`, and the one with `end` is the last one.
- What is dropped (`Unread.drop`) is not read. Content that broke off is read to where it did before that is said.
- The carrier goes on when nothing waits, unless the consumer of what was read holds it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from dataplane.http.body import gather

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.chain.turns import Turns

_OVER: Final = object()
"""Of steps that are done."""


class _Worker(Protocol):
    @property
    def turns(self) -> Turns: ...


class Exchange(Protocol):
    """Whose content it is."""

    @property
    def context(self) -> _Worker: ...

    def makers(self) -> tuple[str, ...]:
        """The peers who make the worker read; the first is the client."""
        ...

    def failed(self, error: Exception) -> None:
        """A bug in Gatewright must end in an answer."""


@dataclass(slots=True, eq=False)
class Unread:
    """What a reader has not read."""

    parts: list[bytes] = field(default_factory=list)
    at: int = 0
    """Where it begins in the first of them."""
    ends: bool = False
    """Nothing follows it."""
    loss: tuple[str, bool] | None = None
    """How the content broke off behind it, as `carriers.Consumer.upstream_lost` has it."""
    steps: Iterator[None] | None = None
    """Of content that is here whole: the work that is left of it."""
    waits: bool = False
    """For a turn that has time."""
    is_held: bool = False
    """Who takes what was read takes no more for now."""

    def __bool__(self) -> bool:
        return bool(self.parts) or self.ends or self.steps is not None

    def slice(self, size: int) -> tuple[bytes, bool]:
        """The next of it, and whether nothing follows."""
        data = b""
        if self.parts:
            first, at = self.parts[0], self.at
            data = first[at : at + size]
            self.at += size
            if self.at >= len(first):
                del self.parts[0]
                self.at = 0
        end = self.ends and not self.parts
        self.ends = self.ends and not end
        return data, end

    def drop(self) -> None:
        """Nothing of it is wanted any more."""
        self.parts.clear()
        self.at, self.ends, self.loss, self.steps = 0, False, None, None


class ReadsInTurns(ABC):
    """A subclass has `_x` and `_unread`; it gives content to `take`, or steps to `do`, and gets slices back. It is not
    asked by an object of its own: two that know each other would be a reference cycle."""

    __slots__ = ()
    slice_size: ClassVar[int]
    """Bytes that are read between two looks at the time."""
    _unread: Unread

    @property
    @abstractmethod
    def _x(self) -> Exchange:
        """Whose content it is: an attribute of the subclass."""

    @abstractmethod
    def read_slice(self, data: bytes, end: bool) -> None:
        """Read it, and pass it on. `end`: nothing follows."""

    @abstractmethod
    def hold_carrier(self, held: bool) -> None:
        """It is to bring no more for now, or again; one that has brought all, or was let go, is left alone."""

    @abstractmethod
    def broke_off(self, cause: str, stale: bool) -> None:
        """All that came is read, and nothing follows: as `carriers.Consumer.upstream_lost`."""

    # --- for the subclass

    def take(self, data: bytes, end: bool) -> None:
        """More of the content. `end`: nothing follows."""
        unread, turns = self._unread, self._x.context.turns
        if not unread.waits and not unread.parts and len(data) <= self.slice_size and turns.has_time():
            self.read_slice(data, end)
            turns.has_gone_on(*self._x.makers())
            return
        if data:
            gather(unread.parts, data)
        unread.ends = end
        if not unread.waits:
            self._go_on(False)

    def do(self, steps: Iterator[None], has_time: bool) -> None:
        """All of the content is here: work through `steps`. `has_time`: as this turn has, for the first of them."""
        self._unread.steps = steps
        self._go_on(has_time)

    def break_off(self, cause: str, stale: bool) -> None:
        """The content breaks off here."""
        if self._unread.waits:
            self._unread.loss = cause, stale
        else:
            self.broke_off(cause, stale)

    def hold_source(self, held: bool) -> None:
        """Who takes what is read takes no more for now, or does again."""
        self._unread.is_held = held
        if not self._unread.waits:
            self.hold_carrier(held)

    # --- the turns

    def next_turn(self) -> None:
        """As `net.turns.Waiting`: this turn has time."""
        unread = self._unread
        unread.waits = False
        if not unread:
            return  # it was dropped
        try:
            self._go_on(True)
            if not unread.waits:
                self._caught_up()
        except Exception as error:  # a bug in Gatewright must end in an answer
            self._x.failed(error)

    def _go_on(self, has_time: bool) -> None:
        """Read while there is time. `has_time`: for the first slice, however little is left."""
        unread, turns = self._unread, self._x.context.turns
        while unread and not unread.waits:  # what is read may bring more, which then waits
            if not has_time and not turns.has_time():
                unread.waits = True
                self.hold_carrier(True)
                turns.add(self, self._x.makers()[0])
                return
            has_time = False
            self._read_on()
        turns.has_gone_on(*self._x.makers())

    def _read_on(self) -> None:
        unread = self._unread
        if unread.steps is not None:
            if next(unread.steps, _OVER) is _OVER:
                unread.steps = None
        else:
            self.read_slice(*unread.slice(self.slice_size))

    def _caught_up(self) -> None:
        unread = self._unread
        loss, unread.loss = unread.loss, None
        if loss is not None:
            self.broke_off(*loss)
        elif not unread.is_held:
            self.hold_carrier(False)
