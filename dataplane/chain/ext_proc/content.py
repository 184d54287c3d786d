"""The content of one direction, as its mode has it: stages (`dataplane/streams`) that show it to the server.

Each is given its session's answers about the body and the trailers, and gives what comes of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from dataplane.chain.calls import CallFailed
from dataplane.chain.ext_proc import messages
from dataplane.chain.ext_proc.modes import BUFFERED, DUPLEX, PARTIAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.chain.ext_proc.messages import Direction
    from dataplane.chain.ext_proc.session import Session
    from dataplane.chain.reply import Reply
    from dataplane.streams import Outlet
    from gatewright.wire.external import ext_proc_pb2 as pb

MOST_BUFFERED: Final = 8192
"""Bytes of a body that `Buffered` and `BufferedPartial` send."""
CHUNK: Final = 65_536
"""Bytes of one message of a stream."""
MOST_KEPT: Final = 1024 * 1024
"""Bytes that are kept for the case that the server gives no answer."""
MOST_AHEAD: Final = 1024 * 1024
"""Bytes that are given on while they are not taken, before the server is read no further."""


def _ignored() -> None:
    """Nothing waits for it."""


class Content(ABC):
    """A stage: what all modes share. `sees_trailers`: the server is shown them."""

    def __init__(self, session: Session, direction: Direction, outlet: Outlet, sees_trailers: bool) -> None:
        self.session = session
        self.direction = direction
        self.outlet = outlet
        self.sees_trailers = sees_trailers
        self.came = False
        """All of the content is here."""
        self.lines = b""
        """Trailers that came, and wait."""
        self.ended = False
        """It has given its end, or is of no use any more."""
        self.asks_trailers = False
        """The server has to answer about trailers."""

    # --- as `streams.TrailerStage`

    @abstractmethod
    def content(self, data: bytes, end: bool) -> None: ...

    @abstractmethod
    def trailers(self, lines: bytes) -> None: ...

    def pause(self) -> None:
        self.outlet.pause()

    def resume(self) -> None:
        self.outlet.resume()

    def cancel(self) -> None:
        self.ended = True

    # --- as `session.Half`, of the content

    def answered(self, common: pb.CommonResponse) -> bool:
        """About the body."""
        return False

    def trailers_answered(self, mutation: pb.HeaderMutation) -> bool:
        if not self.asks_trailers:
            return False
        self.asks_trailers = False
        self.end_with(messages.changes(mutation).lines(self.lines))
        return True

    @property
    def waits(self) -> bool:
        """The server has all that it needs for its next answer."""
        return self.asks_trailers

    @property
    def is_under_way(self) -> bool:
        return self.asks_trailers

    def sent(self) -> None:  # noqa: B027  # only modes that queue act on it
        """The queue of messages is no longer full."""

    def over(self, reply: Reply | None) -> None:
        """There will be no more answers: this one is given in place of all else."""
        if not self.ended and reply is not None:
            self.ended = True
            self.outlet.answer(reply)

    # --- for the modes

    def ask_trailers(self, lines: bytes) -> None:
        """Show them to the server, or let them pass: as the last of this content."""
        self.lines = lines
        if not (lines and self.sees_trailers and self.session.is_open):
            self.end_with(lines)
            return
        self.asks_trailers = True
        self.session.send(messages.trailers(self.direction, lines))
        self.session.moved()

    def end_with(self, lines: bytes) -> None:
        if not self.ended:
            self.ended = True
            self.outlet.trailers(lines)


class Passing(Content):
    """Mode `None`: the content passes as it is; trailers may be shown."""

    def content(self, data: bytes, end: bool) -> None:
        self.ended = self.ended or end
        self.outlet.content(data, end)

    def trailers(self, lines: bytes) -> None:
        self.ask_trailers(lines)


class Whole(Content):
    """Mode `Buffered`; with `partial` mode `BufferedPartial`, in which what is beyond its bound passes as it is."""

    def __init__(
        self, session: Session, direction: Direction, outlet: Outlet, sees_trailers: bool, too_large: Reply | None
    ) -> None:
        """`too_large`: the answer to a body beyond the bound; None: the mode is partial."""
        super().__init__(session, direction, outlet, sees_trailers)
        self._too_large = too_large
        self._parts: list[bytes] = []
        self._size = 0
        self._shown = b""
        self._asks = False
        """The server has to answer about the body."""
        self._passes = False
        """It has."""
        self.passed: Callable[[], None] = _ignored
        """Called when the body passes without an answer: the server has nothing more to say."""

    def content(self, data: bytes, end: bool) -> None:
        if self._passes:
            self.ended = self.ended or end
            self.outlet.content(data, end)
            return
        self._take(data)
        self.came = end
        if not self.ended and not self._asks and (end or self._size > MOST_BUFFERED):
            self._ask(end)

    def trailers(self, lines: bytes) -> None:
        if self._passes:
            self.ask_trailers(lines)
            return
        self.lines, self.came = lines, True
        if not self.ended and not self._asks:
            self._ask(not self.sees_trailers)

    def _take(self, data: bytes) -> None:
        if data:
            self._parts.append(data)
            self._size += len(data)

    def _ask(self, end: bool) -> None:
        data = b"".join(self._parts)
        if len(data) > MOST_BUFFERED:
            if self._too_large is not None:
                self.session.end_with(self._too_large)
                return
            self.outlet.pause()
            end = False
        self._shown, rest = data[:MOST_BUFFERED], data[MOST_BUFFERED:]
        self._parts = [rest] if rest else []
        self._size = len(rest)
        if not self.session.is_open:
            self._go_on(self._shown)
            self.passed()
            return
        self._asks = True
        self.session.send(messages.content(self.direction, self._shown, end))
        self.session.moved()

    def answered(self, common: pb.CommonResponse) -> bool:
        if not self._asks:
            return False
        self._asks = False
        data = messages.body_of(common, self._shown)
        if messages.replaces(common):
            self.ended = True
            self.outlet.content(data, True)
        else:
            self._go_on(data)
        return True

    def _go_on(self, data: bytes) -> None:
        """Give what comes of what was shown, and what has come behind it."""
        self._passes, self._shown = True, b""
        data = b"".join((data, *self._parts))
        self._parts.clear()
        if not self.came:
            self.outlet.content(data, False)
            self.outlet.resume()
        elif self.lines:
            self.outlet.content(data, False)
            self.ask_trailers(self.lines)
        else:
            self.ended = True
            self.outlet.content(data, True)

    @property
    def waits(self) -> bool:
        return self._asks or self.asks_trailers

    is_under_way = waits


class Duplex(Content):
    """Mode `FullDuplexStreamed`: all that comes goes to the server, and all that goes on comes from it."""

    def __init__(self, session: Session, direction: Direction, outlet: Outlet, sees_trailers: bool) -> None:
        super().__init__(session, direction, outlet, sees_trailers)
        self._is_blocked = self._is_full = self._holds = False
        self._ahead = 0

    def content(self, data: bytes, end: bool) -> None:
        if self.ended:
            return
        for at in range(0, len(data), CHUNK):
            part = data[at : at + CHUNK]
            self.session.send(messages.content(self.direction, part, end and at + CHUNK >= len(data)))
        if end:
            self.came = True
            if not data:
                self.session.send(messages.content(self.direction, b"", True))
            self.session.moved()
        self._may_stop()

    def trailers(self, lines: bytes) -> None:
        if self.ended:
            return
        self.lines, self.came = lines, True
        if self.sees_trailers:
            self.asks_trailers = True
            self.session.send(messages.trailers(self.direction, lines))
        else:
            self.session.send(messages.content(self.direction, b"", True))
        self.session.moved()

    def answered(self, common: pb.CommonResponse) -> bool:
        if self.ended:
            return self._is_replaced  # what still comes about content that was replaced is ignored
        if common.body_mutation.WhichOneof("mutation") != "streamed_response":
            raise CallFailed("invalid", "an answer about a body in full duplex that is no streamed response")
        said = common.body_mutation.streamed_response
        self._ahead += len(said.body)
        if not said.end_of_stream:
            self.outlet.content(said.body, False)
            self._may_hold()
        elif self.lines and not self.sees_trailers:
            self.outlet.content(said.body, False)
            self.end_with(self.lines)
        else:
            self.asks_trailers = False
            self.ended = True
            self.outlet.content(said.body, True)
        return True

    _is_replaced = False

    def replace(self, data: bytes) -> None:
        """The server has given the whole of it with the headers."""
        self.ended = self._is_replaced = True
        self.outlet.content(data, True)

    # --- content is not taken further; more is sent than the server takes

    def pause(self) -> None:
        self._is_blocked, self._ahead = True, 0
        self.outlet.pause()

    def resume(self) -> None:
        self._is_blocked = False
        self._let_go()
        if not self._is_full:
            self.outlet.resume()

    def sent(self) -> None:
        self._is_full = False
        if not self._is_blocked and not self.ended:
            self.outlet.resume()

    def cancel(self) -> None:
        super().cancel()
        self._let_go()

    def _may_stop(self) -> None:
        if self.session.is_full and not self._is_full:
            self._is_full = True
            self.outlet.pause()

    def _may_hold(self) -> None:
        if self._is_blocked and self._ahead > MOST_AHEAD and not self._holds:
            self._holds = True
            self.session.hold(True)

    def _let_go(self) -> None:
        if self._holds:
            self._holds = False
            self.session.hold(False)

    @property
    def waits(self) -> bool:
        return self.came and not self.ended and not self._is_blocked

    @property
    def is_under_way(self) -> bool:
        return not self.ended


class Kept(Duplex):
    """The same, and what came is kept until the server answers about it: where no answer comes it passes as it is."""

    def __init__(self, session: Session, direction: Direction, outlet: Outlet, sees_trailers: bool) -> None:
        super().__init__(session, direction, outlet, sees_trailers)
        self._kept: list[bytes] | None = []
        """None: too much came, or the server has answered."""
        self._kept_size = 0
        self._passes = False

    def content(self, data: bytes, end: bool) -> None:
        if self._passes:
            self.ended = self.ended or end
            self.outlet.content(data, end)
            return
        self._keep(data)
        super().content(data, end)

    def trailers(self, lines: bytes) -> None:
        if self._passes:
            self.end_with(lines)
        else:
            super().trailers(lines)

    def answered(self, common: pb.CommonResponse) -> bool:
        self._forget()
        return super().answered(common)

    def cancel(self) -> None:
        self._forget()
        super().cancel()

    def over(self, reply: Reply | None) -> None:
        self._forget()
        super().over(reply)

    def let_pass(self) -> bool:
        """The server gives no answer: all passes as it came, if it is still here."""
        kept = self._kept
        if kept is None:
            return False
        data = b"".join(kept)
        self._forget()
        self._passes = True
        if not self.came:
            self.outlet.content(data, False)
            self.outlet.resume()
        elif self.lines:
            self.outlet.content(data, False)
            self.end_with(self.lines)
        else:
            self.ended = True
            self.outlet.content(data, True)
        return True

    def _keep(self, data: bytes) -> None:
        if self._kept is None or not data:
            return
        if self._kept_size + len(data) > MOST_KEPT or not self.session.x.context.body_memory.take(
            len(data), self.session.x.peer
        ):
            self._forget()
            return
        self._kept.append(data)
        self._kept_size += len(data)

    def _forget(self) -> None:
        self._kept = None
        if self._kept_size:
            self.session.x.context.body_memory.free(self._kept_size, self.session.x.peer)
            self._kept_size = 0

    @property
    def waits(self) -> bool:
        return not self._passes and super().waits

    @property
    def is_under_way(self) -> bool:
        return not self._passes and super().is_under_way


class Replaced(Content):
    """The server has given the whole body with the headers: what comes is ignored."""

    def __init__(self, session: Session, direction: Direction, outlet: Outlet, data: bytes) -> None:
        super().__init__(session, direction, outlet, False)
        self._data = data

    def content(self, data: bytes, end: bool) -> None:
        if not self.ended:
            self.ended = True
            self.outlet.content(self._data, True)

    def trailers(self, lines: bytes) -> None:
        self.content(b"", True)


def made(
    session: Session, direction: Direction, outlet: Outlet, mode: int, sees_trailers: bool, too_large: Reply
) -> Content | None:
    """The stage of a mode; None: nothing of the content is shown."""
    if mode == DUPLEX:
        return Duplex(session, direction, outlet, sees_trailers)
    if mode == BUFFERED:
        return Whole(session, direction, outlet, sees_trailers, too_large)
    if mode == PARTIAL:
        return Whole(session, direction, outlet, sees_trailers, None)
    return Passing(session, direction, outlet, True) if sees_trailers else None
