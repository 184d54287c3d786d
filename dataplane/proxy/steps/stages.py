"""Stages in a row, between the source of content and its sink: the other side of `dataplane/streams`.

A `Place` is where one stage stands: its outlet, which enforces its laws. What stands at the two ends of the row is
said by `proxy/steps/request_stages` and `proxy/steps/response_stages`. Nothing here is made for an exchange without
stages.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from dataplane.http import trailers
from dataplane.proxy.steps import response_steps
from dataplane.streams import MOST_AHEAD

if TYPE_CHECKING:
    from dataplane.chain.filter import Filter
    from dataplane.chain.reply import Reply
    from dataplane.exchange import StreamHook
    from dataplane.http.heads import Head
    from dataplane.proxy.active import ActiveExchange
    from dataplane.streams import Stage

log = logging.getLogger("dataplane.proxy")


class Place:
    """Where one stage stands: `dataplane.streams.Outlet`."""

    __slots__ = (
        "_ahead",
        "_asks",
        "_before",
        "_came",
        "_is_blocked",
        "_passing",
        "_row",
        "after",
        "ended",
        "fed",
        "of_step",
        "stage",
    )

    _ahead: int
    """While it is blocked: bytes that it gave since then."""

    def __init__(self, row: Row, before: Place | None) -> None:
        self._row = row
        self._before = before
        self.after: Place | None = None
        self.stage: Stage | None = None
        """None: its hook makes it now, or it is over."""
        self.fed = False
        """It was given the end, or must be given no more."""
        self.ended = False
        """It has given the end."""
        self._asks = False
        """It wants no more content."""
        self._is_blocked = False
        """What it gives is not taken now."""
        self._came = self._passing = b""
        """Trailers that it was given; those that go past it, behind its end."""
        self.of_step: Filter | None = getattr(row.x, "installing", None)
        """The step whose stage it is."""

    # --- for its stage

    def content(self, data: bytes, end: bool) -> None:
        if not self._may_give("content") or not (data or end):
            return
        row = self._row
        if self._is_blocked:
            self._ahead += len(data)
            if self._ahead > MOST_AHEAD:
                row.fail(RuntimeError(f"{self.stage!r} gives on although it was asked to pause"))
                return
        lines = b""
        if end:
            self._ends()
            lines, self._passing = self._passing, b""
        if self.after is None:
            row.give(data, end, lines)
        else:
            self.after.take(data, end, lines)

    def trailers(self, lines: bytes) -> None:
        if not self._may_give("trailers"):
            return
        self._passing = lines if lines is self._came else trailers.given(lines)
        self.content(b"", True)

    def answer(self, reply: Reply) -> None:
        if self._may_give("an answer"):
            self.ended = self.fed = True
            self._row.answer(reply, self)

    def _may_give(self, what: str) -> bool:
        """False: it is dropped. Raises RuntimeError."""
        if self.ended:
            raise RuntimeError(f"{what} after the end")
        if self._row.is_over or (self.stage is None and self.fed):
            return False
        if self.stage is None:
            raise RuntimeError(f"{what} before the stage stands in its row")
        return True

    def _ends(self) -> None:
        self.ended = True
        if not self.fed:
            self._row.cut(self)

    def pause(self) -> None:
        if self._asks or self.fed:
            return
        self._asks = True
        if self._before is None:
            self._row.pause_source()
        else:
            self._before.block()

    def resume(self) -> None:
        if not self._asks:
            return
        self._asks = False
        self.let_go()

    # --- for the row

    def take(self, data: bytes, end: bool, lines: bytes = b"") -> None:
        """Content from its source; with `end` the trailers behind it, if there are any."""
        if lines and data:
            self.take(data, False)
            data = b""
        stage = self.stage
        if self.fed or self.ended or stage is None or not (data or end):
            return
        self.fed = end
        try:
            if lines:
                self._came = lines
                getattr(stage, "trailers", self._let_pass)(lines)
            else:
                stage.content(data, end)
        except Exception as error:
            self._row.fail(error)

    def _let_pass(self, lines: bytes) -> None:
        """For stages that do not act on trailers."""
        self._passing = lines
        self.stage.content(b"", True)  # type: ignore[union-attr]  # `take` has looked

    def block(self) -> None:
        """What it gives is not taken now."""
        if self._is_blocked:
            return
        self._is_blocked, self._ahead = True, 0
        if self.stage is not None and not self.ended:
            try:
                self.stage.pause()
            except Exception as error:
                self._row.fail(error)

    def unblock(self) -> None:
        if not self._is_blocked:
            return
        self._is_blocked = False
        if self.stage is not None and not self.ended:
            try:
                self.stage.resume()
            except Exception as error:
                self._row.fail(error)

    def let_go(self) -> None:
        """What is before it may go on, unless its stage wants no more."""
        if self._asks:
            return
        if self._before is None:
            self._row.resume_source()
        else:
            self._before.unblock()

    def cancel(self) -> None:
        """What it would still give is dropped."""
        stage, self.stage = self.stage, None
        self.fed = True
        if stage is not None and not self.ended:
            try:
                stage.cancel()
            except Exception as error:  # a bug of the stage must not keep the exchange from its end
                log.error("cancelling %r failed", stage, exc_info=error)

    def before(self) -> Place | None:
        return self._before


class Row(ABC):
    """The stages of one direction of an exchange. They know it until they are over."""

    __slots__ = ("_answer", "_error", "_is_installing", "_source_is_paused", "first", "is_over", "last", "x")

    def __init__(self, x: ActiveExchange) -> None:
        self.x = x
        self.first: Place | None = None
        self.last: Place | None = None
        self.is_over = False
        self._source_is_paused = False
        self._is_installing = False
        self._error: Exception | None = None
        self._answer: Reply | None = None

    def install(self, place: Place, data: bytes, end: bool, lines: bytes) -> Reply | None:
        """Give a new last stage what has come by now. Answers what it answers, and raises what it raises, for its
        step."""
        self._is_installing = True
        place.take(data, end, lines)
        place.let_go()
        self._is_installing = False
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # see `gatewright/kept_errors`
        return self._answer

    def add(self, hook: StreamHook) -> Place | None:
        """A new last stage; None: the hook makes none for this exchange."""
        place = Place(self, self.last)
        stage = hook(self.x, place)
        if stage is None:
            return None
        place.stage = stage
        if self.last is None:
            self.first = place
        else:
            self.last.after = place
        self.last = place
        return place

    def take(self, data: bytes, end: bool, lines: bytes = b"") -> None:
        """Content from the source, as `Place.take`."""
        if self.first is not None:
            self.first.take(data, end, lines)

    def block(self) -> None:
        """The sink takes no more."""
        if self.last is not None:
            self.last.block()

    def unblock(self) -> None:
        if self.last is not None:
            self.last.unblock()

    def cut(self, place: Place) -> None:
        """The stage there has given the end before it was given it: what still comes is dropped."""
        place.fed = True
        each = place.before()
        while each is not None:
            each.cancel()
            each = each.before()
        self.drop_source()

    def cancel(self) -> None:
        """The exchange is over, or has no more use for this."""
        if self.is_over:
            return
        self.is_over = True
        each = self.last
        while each is not None:
            each.cancel()
            each = each.before()
        self.first = self.last = None

    def fail(self, error: Exception) -> None:
        """A stage has a bug."""
        if self.is_over:
            log.error("a stage failed after its end", exc_info=error)
        elif self._is_installing:
            self._error = self._error or error
        else:
            self.x.failed(error)

    def answer(self, reply: Reply, place: Place) -> None:
        """The stage there ends the exchange."""
        x = self.x
        if self._is_installing:
            self._answer = self._answer or reply
        elif x.replied:
            x.detail = reply.detail
            x.give_up(reply.reason, reply.detail)
        else:
            response_steps.stop_at(x, place.of_step)
            x.reply(reply)

    def pause_source(self) -> None:
        if not self._source_is_paused:
            self._source_is_paused = True
            self.pause_outside()

    def resume_source(self) -> None:
        if self._source_is_paused:
            self._source_is_paused = False
            self.resume_outside()

    # --- the two ends, which each direction has of its own

    @abstractmethod
    def give(self, data: bytes, end: bool, lines: bytes) -> None:
        """Content that left the last stage; with `end` the trailers behind it, if there are any."""

    @abstractmethod
    def drop_source(self) -> None:
        """The rest of what comes is dropped."""

    @abstractmethod
    def pause_outside(self) -> None:
        """Ask the sender of the content to stop."""

    @abstractmethod
    def resume_outside(self) -> None: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'over' if self.is_over else self.last and self.last.stage!r})"


def strip(head: Head, names: tuple[bytes, ...]) -> None:
    """Take out what is not true of the content any more."""
    for name in names:
        head.remove(name)
