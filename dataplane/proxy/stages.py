"""Stages in a row, between the source of content and its sink: the other side of `dataplane/streams`.

A `Place` is where one stage stands: its outlet, and the guard of its laws. What stands at the two ends of the row is
said by `proxy/request_stages` and `proxy/response_stages`. Nothing here is made for an exchange without stages.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from dataplane.streams import MOST_AHEAD

if TYPE_CHECKING:
    from dataplane.exchange import StreamHook
    from dataplane.http.heads import Head
    from dataplane.proxy.exchange import ActiveExchange
    from dataplane.streams import Stage

log = logging.getLogger("dataplane.proxy")


class Place:
    """Where one stage stands: `dataplane.streams.Outlet`."""

    __slots__ = ("_ahead", "_asks", "_before", "_is_blocked", "_row", "after", "ended", "fed", "stage")

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
        """Nobody takes what it gives."""

    # --- for its stage

    def content(self, data: bytes, end: bool) -> None:
        row = self._row
        if row.is_over or (self.stage is None and self.fed):
            return
        if self.stage is None or self.ended:
            raise RuntimeError("content after the end" if self.ended else "content before the stage stands in its row")
        if not data and not end:
            return
        if self._is_blocked:
            self._ahead += len(data)
            if self._ahead > MOST_AHEAD:
                row.fail(RuntimeError(f"{self.stage!r} gives on although it was asked to pause"))
                return
        if end:
            self.ended = True
            if not self.fed:
                row.cut(self)
        if self.after is None:
            row.give(data, end)
        else:
            self.after.take(data, end)

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

    def take(self, data: bytes, end: bool) -> None:
        """Content from its source."""
        stage = self.stage
        if self.fed or self.ended or stage is None or not (data or end):
            return
        self.fed = end
        try:
            stage.content(data, end)
        except Exception as error:
            self._row.fail(error)

    def block(self) -> None:
        """Nobody takes what it gives."""
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
        """Whoever stands before it may go on, unless its stage wants no more."""
        if self._asks:
            return
        if self._before is None:
            self._row.resume_source()
        else:
            self._before.unblock()

    def cancel(self) -> None:
        """What it would still give is for nobody."""
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

    __slots__ = ("_error", "_is_installing", "_source_is_paused", "first", "is_over", "last", "x")

    def __init__(self, x: ActiveExchange) -> None:
        self.x = x
        self.first: Place | None = None
        self.last: Place | None = None
        self.is_over = False
        self._source_is_paused = False
        self._is_installing = False
        self._error: Exception | None = None

    def install(self, place: Place, data: bytes, end: bool) -> None:
        """Give a new last stage what has come by now. Raises what it raises, for its step."""
        self._is_installing = True
        place.take(data, end)
        place.let_go()
        self._is_installing = False
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # see `gatewright/kept_errors`

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

    def take(self, data: bytes, end: bool) -> None:
        """Content from the source."""
        if self.first is not None:
            self.first.take(data, end)

    def block(self) -> None:
        """The sink takes no more."""
        if self.last is not None:
            self.last.block()

    def unblock(self) -> None:
        if self.last is not None:
            self.last.unblock()

    def cut(self, place: Place) -> None:
        """The stage there has given the end before it was given it: what still comes is for nobody."""
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
    def give(self, data: bytes, end: bool) -> None:
        """Content that left the last stage."""

    @abstractmethod
    def drop_source(self) -> None:
        """The rest of what comes is for nobody."""

    @abstractmethod
    def pause_outside(self) -> None:
        """Ask whoever sends the content to stop."""

    @abstractmethod
    def resume_outside(self) -> None: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'over' if self.is_over else self.last and self.last.stage!r})"


def strip(head: Head, names: tuple[bytes, ...]) -> None:
    """Take out what is not true of the content any more."""
    for name in names:
        head.remove(name)
