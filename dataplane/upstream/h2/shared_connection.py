"""One HTTP/2 connection to an endpoint, shared by the requests of many clients: by prior knowledge, or by ALPN.

An asyncio protocol without a Task around the codec (`http/h2/connection`). It lends streams (`h2/stream`), hands each
what concerns it, and writes what the codec has at the end of each turn of the loop. It is open once the endpoint's
SETTINGS have come: an endpoint that does not speak HTTP/2 is noticed before a request is sent to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dataplane.http.h2 import events
from dataplane.http.h2.connection import Connection
from dataplane.http.h2.errors import NO_ERROR, SETTINGS_TIMEOUT
from dataplane.http.h2.settings import Settings
from dataplane.net.endings import end_all
from dataplane.net.writes import AT_ONCE
from dataplane.upstream.h2 import heads
from dataplane.upstream.h2.stream import SharedStream

if TYPE_CHECKING:
    from dataplane.http.messages import ResponseHead
    from dataplane.net.writes import Writes
    from dataplane.upstream.endpoint import Pool

STREAMS: Final = 100
STREAM_WINDOW: Final = 65_536
SETTINGS: Final = Settings(
    max_local_streams=STREAMS,
    stream_window=STREAM_WINDOW,
    connection_window=2 * (STREAMS + 1) * STREAM_WINDOW,
    max_header_size=65_536,
    max_headers=500,
)
"""The connection's window is as large as those of all streams together, also while half of it waits to be given back:
what slow clients do not take must not stop the responses of others. So each exchange is bounded, by its stream. Heads
may be as large as an HTTP/1.1 endpoint's."""
FRAMES: Final = 1000
"""What one connection may cost in one turn of the loop: frames read, as `server.h2.h2_connection.FRAMES`."""
WRITE_BUFFER: Final = 65_536
ACKNOWLEDGEMENT: Final = 10.0
"""Seconds after which an endpoint has to have acknowledged our SETTINGS."""
_MOST_DEBUG: Final = 100
"""Bytes of a GOAWAY's debug data that the log shows."""

OPENING, OPEN, CLOSED = 0, 1, 2


class SharedConnection:
    """`on_open(cause)`: called once, when streams can be lent ("") or never will be. `on_capacity()`: a stream has
    ended, or this has: requests that wait for a stream are tried again. `on_close()`: an open one is gone.
    `on_fault(reason, detail)`: an open one is broken, by a rule or limit that the endpoint broke, or an error that it
    reported: once."""

    __slots__ = (
        "_known",
        "_made",
        "begins",
        "codec",
        "endpoint",
        "frames_left",
        "gathered",
        "idle_since",
        "is_scheduled",
        "number",
        "on_capacity",
        "on_close",
        "on_fault",
        "on_open",
        "opened",
        "received",
        "reserved",
        "retired",
        "scheme",
        "served",
        "state",
        "transport",
        "unhandled",
        "unread",
        "waits",
        "writes",
    )

    def __init__(
        self,
        endpoint: Pool,
        writes: Writes,
        on_open: Callable[[str], None],
        on_close: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        on_fault: Callable[[str, str], None] = lambda reason, detail: None,
        settings: Settings = SETTINGS,
    ) -> None:
        self.endpoint = endpoint
        self.scheme = endpoint.scheme
        """Of all its requests."""
        self.number = writes.served.enter("endpoint", "HTTP/2", endpoint.label)
        self.writes = writes
        self.on_open = on_open
        self.on_close = on_close
        self.on_fault = on_fault
        self.on_capacity: Callable[[], None] = _nothing
        self.opened = clock()
        self.codec = Connection(settings, False, clock)
        self.transport: Any = None
        self.state = OPENING
        self.reserved = 0
        """Streams that were lent and have not begun."""
        self.retired = False
        """No table knows the endpoint any more: it closes with its last stream."""
        self.received = self.served = 0
        """Pieces read, and final response heads: a request that is lost right behind an idle time was most likely not
        seen."""
        self.gathered = 0
        """Bytes of content that the codec was given in this turn."""
        self.begins = b""
        """The first bytes of the endpoint: they show another protocol."""
        self.idle_since = 0.0
        """When it was first seen unused (monotonic seconds); 0: it is in use, or not looked at yet."""
        self.is_scheduled = False
        """It writes at the end of this turn."""
        self.frames_left = FRAMES
        self.waits = False
        """For the next turn: the socket is not read."""
        self.unhandled: list[events.Event] = []
        """What was read, and waits for the next turn."""
        self.unread = b""
        """What came while it waited."""
        self._known: tuple[events.ResponseHead, bool, bool] | None = None
        self._made: ResponseHead | None = None

    # --- lending

    @property
    def is_open(self) -> bool:
        """Streams may be begun."""
        return self.state == OPEN and not self.codec.going_away

    def free_streams(self) -> int:
        """Streams that can be lent now."""
        if self.state != OPEN or self.retired:
            return 0
        left = self.codec.can_open() - self.reserved
        return left if left > 0 else 0

    @property
    def streams(self) -> int:
        """Streams that are lent."""
        return 0 if self.state == CLOSED else len(self.codec.streams) + self.reserved

    @property
    def is_spent(self) -> bool:
        """It lends no more, whatever ends."""
        return self.state == CLOSED or self.retired or self.codec.going_away

    @property
    def is_gone(self) -> bool:
        """It is closed, by either end."""
        return self.state == CLOSED

    def lend(self) -> SharedStream:
        """A carrier for one request; only while there are `free_streams`."""
        self.reserved += 1
        self.idle_since = 0.0
        return SharedStream(self)

    def retire(self) -> None:
        """Lend no more, and close when nothing is under way."""
        self.retired = True
        self.touch()

    def close(self) -> None:
        """Close now; streams are lost."""
        if self.state != CLOSED and self.transport is not None:
            if not self.codec.going_away:
                self.codec.goaway(NO_ERROR)
            self._write()
            self._end("closed")

    def is_late(self, now: float) -> bool:
        """Whether the endpoint has not acknowledged our SETTINGS in its time (RFC 9113 6.5.3); it is closed then."""
        if self.codec.acknowledged or now - self.opened < ACKNOWLEDGEMENT or self.state != OPEN:
            return False
        self.on_fault("SettingsTimeout", "it does not acknowledge our SETTINGS")
        self.codec.goaway(SETTINGS_TIMEOUT)
        self._write()
        self._end("HTTP/2 connection error: SettingsTimeout")
        return True

    def abandon(self) -> None:
        """It is not wanted while it opens: nothing is reported."""
        if self.state == OPENING:
            self.state = CLOSED
            if self.transport is not None:
                self.transport.abort()

    # --- what the event loop does with it

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self._write()

    def data_received(self, data: bytes) -> None:
        self.writes.now[0] = self.number
        self.received += 1
        if self.state == OPENING and len(self.begins) < 5:
            self.begins += data[:5]
        if self.waits:
            self.unread += data
            return
        if self.writes.turns.is_late_for(len(data)):
            self.unread = data
            self._wait()
            return
        self._receive(data)
        self.touch()

    def _receive(self, data: bytes) -> None:
        """Read frames as far as this turn's budget goes (law 8), and act on them."""
        codec = self.codec
        limit = min(self.frames_left, self.writes.turns.share(FRAMES))
        found = codec.receive(data, limit)
        self.frames_left -= limit - codec.unused
        self._handle(found)
        if codec.has_more and self.state != CLOSED:
            self._wait()

    def _wait(self) -> None:
        """Give way to others; go on in the next turn."""
        if not self.waits:
            self.waits = True
            self.writes.turns.add(self)
            self.transport.pause_reading()

    def next_turn(self) -> None:
        """As `net.turns.Waiting`."""
        self.writes.now[0] = self.number
        self.waits = False
        self.frames_left = FRAMES
        if self.state == CLOSED:
            return
        unhandled, self.unhandled = self.unhandled, []
        self._handle(unhandled)
        if not self.waits and self.state != CLOSED and (self.unread or self.codec.has_more):
            data, self.unread = self.unread, b""
            self._receive(data)
        if not self.waits and self.state != CLOSED and not self.transport.is_closing():
            self.transport.resume_reading()
        self.touch()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._end("closed" if error is None else "reset")

    def pause_writing(self) -> None:
        self.codec.pause_writing()

    def resume_writing(self) -> None:
        self._handle(self.codec.resume_writing())
        self.touch()

    # --- writing

    def touch(self, size: int = 0) -> None:
        """There may be something to write, of which `size` bytes are content: at the end of the turn."""
        self.gathered += size
        if self.gathered > AT_ONCE:  # only by what is written the loop knows that the endpoint is slow
            self._write()
        if not self.is_scheduled:
            self.is_scheduled = True
            self.writes.add(self)

    def flush(self) -> None:
        """The turn is over: write, and report free streams."""
        self.is_scheduled = False
        if self.state == CLOSED:
            return
        self._write()
        if self.is_spent and not self.streams:
            self.close()
        self.on_capacity()

    def _write(self) -> None:
        self.gathered = 0
        data = self.codec.take()
        if data and self.state != CLOSED and not self.transport.is_closing():
            self.transport.write(data)

    # --- reading

    def _handle(self, found: list[events.Event]) -> None:
        """Hand out events, as far as the share of this turn goes; content that is here with its head goes along."""
        skip, turns = False, self.writes.turns
        if len(found) > 1:
            turns.begin()
        for at, event in enumerate(found):
            if skip:
                skip = False
                continue
            kind = type(event)
            if kind is events.Response:
                following = found[at + 1] if at + 1 < len(found) else None
                skip = self._head(event, following)  # type: ignore[arg-type]  # by its kind
            else:
                handler = _HANDLERS.get(kind)
                if handler is not None:
                    handler(self, event)
            # The end of a body may set off what waited for it: that is as much work as there are streams.
            if (kind in events.LAST or getattr(event, "end", skip)) and turns.is_spent():
                rest = found[at + 2 if skip else at + 1 :]
                if rest and self.state != CLOSED:
                    self.unhandled = rest
                    self._wait()
                return

    def _head(self, event: events.Response, following: events.Event | None) -> bool:
        """Whether `following` went with the head."""
        self.served += 1
        carrier: SharedStream | None = event.stream.owner
        if carrier is None:
            return False
        if type(following) is events.Content and following.stream is event.stream:
            carrier.got_head(event.head, following.data, following.end)
            return True
        carrier.got_head(event.head, b"", event.end)
        return False

    def _interim(self, event: events.Interim) -> None:
        if event.stream.owner is not None:
            event.stream.owner.got_interim(event.head)

    def _content(self, event: events.Content) -> None:
        if event.stream.owner is not None:  # else it was reset meanwhile, which has given back all that came
            event.stream.owner.got_content(event.data, event.end)

    def _trailers(self, event: events.Trailers) -> None:
        if event.stream.owner is not None:
            event.stream.owner.got_trailers(event.block, event.never_indexed)

    def _reset(self, event: events.Reset) -> None:
        if event.stream.owner is not None:
            event.stream.owner.got_reset(event)

    def _drained(self, event: events.Drained) -> None:
        if event.stream.owner is not None:
            event.stream.owner.drained()

    def _settings(self, event: events.SettingsChanged) -> None:
        if self.state == OPENING:
            self.state = OPEN
            self.on_open("")

    def _goaway(self, event: events.GoAway) -> None:
        """One that reports an error. Streams that it leaves out have events of their own."""
        if event.code != NO_ERROR and self.state == OPEN:
            self.on_fault("GoAway", f"it sent GOAWAY with code {event.code}: {event.debug[:_MOST_DEBUG]!r}")
            self.on_fault = _no_fault

    def _failed(self, event: events.Failed) -> None:
        self._write()
        if self.state == OPEN:
            self.on_fault(event.reason, f"code {event.code}: {event.reason}")
        if self.state == OPENING and self.begins and b"HTTP/".startswith(self.begins[:5]):
            self._end("it speaks HTTP/1, where HTTP/2 was expected")
        else:
            self._end(f"HTTP/2 connection error: {event.reason}")

    def translated(self, head: events.ResponseHead, end: bool, to_head: bool) -> ResponseHead:
        """As `heads.response_head`; equal responses share one."""
        known = self._known
        if known is None or known[0] is not head or known[1] is not end or known[2] is not to_head:
            self._known = head, end, to_head
            self._made = heads.response_head(head, end, to_head)
        assert self._made is not None
        return self._made

    # --- the end

    def _end(self, cause: str) -> None:
        """It is gone, or to be: every stream is lost."""
        state, self.state = self.state, CLOSED
        if state == CLOSED:
            return
        self.unhandled, self.unread = [], b""
        self.transport.close()
        if state == OPENING:
            self.on_open(cause if cause not in ("closed", "reset") else f"{cause} before its HTTP/2 SETTINGS came")
            return
        self.on_close()
        if self.endpoint.gate is not None:
            self.endpoint.gate.lost(self)
        carriers: list[SharedStream | None] = [stream.owner for stream in self.codec.streams.values()]
        end_all(self.writes.turns, [self._lost(carrier, cause) for carrier in carriers if carrier is not None])
        on_capacity, self.on_capacity = self.on_capacity, _nothing
        on_capacity()

    def _lost(self, carrier: SharedStream, cause: str) -> Callable[[], None]:
        """What is to be called soon: the consumer hears of it."""
        stale = self.served > 0 and carrier.mark == self.received
        return partial(carrier.lose, "reset" if carrier.tunnel and cause == "closed" else cause, stale)

    def __repr__(self) -> str:
        return f"SharedConnection({self.endpoint.label}, {self.codec!r})"


def _nothing() -> None:
    """Nothing waits for a stream."""


def _no_fault(reason: str, detail: str) -> None:
    """It was reported."""


_HANDLERS: Final[dict[type[Any], Callable[[SharedConnection, Any], None]]] = {  # Any: an event of that type
    events.Interim: SharedConnection._interim,
    events.Content: SharedConnection._content,
    events.Trailers: SharedConnection._trailers,
    events.Reset: SharedConnection._reset,
    events.Drained: SharedConnection._drained,
    events.SettingsChanged: SharedConnection._settings,
    events.GoAway: SharedConnection._goaway,
    events.Failed: SharedConnection._failed,
}
"""Events that concern somebody here. That there is a GOAWAY is read from `codec.going_away`."""
