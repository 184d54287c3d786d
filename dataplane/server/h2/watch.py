"""How long a downstream HTTP/2 connection waits, and for whom: for a head, for exchanges with deadlines, for streams
that have stalled, for the end. As `server/h1/watch`, for many exchanges at once.

One moment is remembered for all of them; when it comes each is looked at, and the next one is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dataplane.http.connection_rules import PING_TIMEOUT
from dataplane.http.h2.errors import CANCEL, NO_ERROR, SETTINGS_TIMEOUT
from dataplane.proxy.deadlines import NEVER, STEP
from dataplane.proxy.request.request_body import BUFFER, UPSTREAM
from dataplane.server.h2.stream import Carries, StreamCarrier

if TYPE_CHECKING:
    from dataplane.http.connection_rules import ConnectionRules
    from dataplane.http.h2.streams import Stream
    from dataplane.proxy.exchange import CarriedExchange

ALIVE = b"gw-alive"
"""The PING by which a client is asked whether it lives."""


class Watched(Carries, Protocol):
    """Who waits (`connection.Connection`)."""

    transport: Any
    rules: ConnectionRules
    has_settings: bool
    """The client's preface and SETTINGS have come, and its acknowledgement of our SETTINGS."""
    due: float
    """When it is woken next."""
    head_due: float
    """When a frame, or a header block, that has begun has to be here."""
    blocked_due: float
    """When a client that reads nothing has had its time."""
    end_due: float
    """When the next step towards the end is taken, unless the client takes it."""
    idle_since: float
    """When the last stream ended."""
    expires: float
    """When it takes no further streams (`maxConnectionDuration`, the end of a tunnel's certificate)."""
    cut_due: float
    """When it is closed, whatever is under way."""
    ping_due: float
    pong_due: float
    """When the client is asked whether it lives, and when it has to have answered."""

    @property
    def is_ending(self) -> bool:
        """All is said."""

    def end_broken(self) -> None:
        """End the exchanges of answers that could not be said."""

    def end_streams(self, reason: str, detail: str = "") -> None:
        """All exchanges are lost, also those that have not started."""

    def hang_up(self) -> None:
        """All is said: close so that it arrives."""

    def take_no_more(self) -> None:
        """The second half of a drain."""


def begin(connection: Watched, now: float) -> None:
    """What the bind says of the time of a connection holds from now on."""
    rules = connection.rules
    if rules.max_duration is not None:
        connection.expires = now + rules.max_duration
        connection.arm(connection.expires)
    if rules.ping_interval is not None:
        connection.ping_due = now + rules.ping_interval
        connection.arm(connection.ping_due)


def wake(connection: Watched, now: float) -> None:
    """A moment is here that was asked for."""
    if now + STEP < connection.due:  # asked for before an earlier moment was, or closed meanwhile
        return
    connection.due = NEVER
    if connection.transport.is_closing():
        return
    if now >= connection.cut_due:
        connection.transport.abort()
        return
    if now >= connection.expires:
        connection.expires = NEVER
        connection.drain()
    if now >= connection.blocked_due:  # it reads nothing: what has not begun for that would wait for ever
        connection.transport.abort()
    elif now >= connection.end_due:
        _end(connection)
    elif now >= connection.head_due:
        _late(connection)
    elif now >= connection.pong_due:
        _give_up(connection, "KeepaliveTimeout", NO_ERROR)
    else:
        if now >= connection.ping_due:
            _ask(connection, now)
        _look(connection, now)


def _ask(connection: Watched, now: float) -> None:
    """Send a PING; the next one follows an interval after its answer is here, or is due."""
    connection.codec.ping(ALIVE)
    connection.ping_due = NEVER
    connection.pong_due = now + (connection.rules.ping_timeout or PING_TIMEOUT)


def lives(connection: Watched) -> None:
    """The client has answered."""
    if connection.pong_due < NEVER:
        connection.pong_due = NEVER
        connection.ping_due = connection.context.clock() + (connection.rules.ping_interval or NEVER)
        connection.arm(connection.ping_due)


def _end(connection: Watched) -> None:
    """The client has not taken the step that an end waits for."""
    if connection.is_ending:
        connection.transport.abort()
    else:
        connection.take_no_more()
        _look(connection, connection.context.clock())


def _late(connection: Watched) -> None:
    """A head, or the beginning of the connection, did not come in time."""
    if connection.has_settings:
        _give_up(connection, "RequestTimeout", NO_ERROR)
    elif connection.codec.greeted:  # RFC 9113 6.5.3: it does not acknowledge our SETTINGS
        _give_up(connection, "SettingsTimeout", SETTINGS_TIMEOUT)
    else:
        connection.transport.abort()


def _give_up(connection: Watched, reason: str, code: int) -> None:
    connection.context.recorder.refused(reason)
    connection.end_streams("RequestTimeout")
    connection.codec.goaway(code, reason.encode())
    connection.hang_up()


def _look(connection: Watched, now: float) -> None:
    """At each exchange; when there is none, at how long that has been so."""
    if connection.broken:
        connection.end_broken()
    streams = list(connection.codec.streams.values())
    due = min(connection.end_due, connection.head_due, connection.blocked_due, connection.expires)
    due = min(due, connection.ping_due, connection.pong_due, connection.cut_due)
    if not streams and connection.has_settings:
        idle_due = connection.idle_since + connection.context.limits.idle_timeout
        if now >= idle_due:
            connection.codec.goaway(NO_ERROR)
            connection.hang_up()
            return
        due = min(due, idle_due)
    for stream in streams:
        carrier: StreamCarrier | None = stream.owner
        if carrier is not None:
            due = min(due, _look_at(connection, stream, carrier, now))
    connection.write_soon()
    # What ended at this look has asked for none: who is idle is looked at once in an idle timeout at least.
    connection.arm(min(due, now + connection.context.limits.idle_timeout))


def _look_at(connection: Watched, stream: Stream, carrier: StreamCarrier, now: float) -> float:
    """Whether a stream may go on; when to look at it again."""
    x = carrier.exchange
    if x is None:  # it has to send what the client's window did not take
        if now < carrier.progress_due:
            return carrier.progress_due
        _cut(connection, carrier, "ClientGone")
        return NEVER
    due = x.wake(now)
    if carrier.exchange is not x:
        return carrier.progress_due if stream.owner is carrier else NEVER
    if _has_stalled(carrier, x, now):
        x.give_up("UpstreamTimeout" if x.paused & UPSTREAM else "RequestTimeout")
        return carrier.progress_due if stream.owner is carrier else NEVER
    progress = x.body_bytes + x.response_bytes
    if progress != carrier.progress or now >= carrier.progress_due or carrier.progress_due == NEVER:
        carrier.progress, carrier.progress_due = progress, now + connection.context.limits.idle_timeout
    return min(due, carrier.progress_due)


def _has_stalled(carrier: StreamCarrier, x: CarriedExchange, now: float) -> bool:
    """Whether an idle timeout went by while somebody who has to send or to read did not."""
    if now < carrier.progress_due:
        return False
    receives = carrier.has_content and not carrier.is_tunnel and carrier.stream.receives
    waits = carrier.is_blocked or (receives and not x.paused & BUFFER)
    return waits and carrier.progress == x.body_bytes + x.response_bytes


def _cut(connection: Watched, carrier: StreamCarrier, reason: str) -> None:
    """End a stream that will not end by itself."""
    connection.codec.reset(carrier.stream, CANCEL)
    carrier.gone(reason)
    connection.ended(connection.context.clock())


def look_for_halves(connection: Watched, is_same: bool) -> None:
    """After each read: a frame that has begun has the time of a head to become whole. `is_same`: no frame was read, so
    what has begun has begun before."""
    if not connection.has_settings:  # the time of the beginning runs
        return
    codec = connection.codec
    if codec.has_more or not codec.is_amid:
        connection.head_due = NEVER
    elif not is_same or connection.head_due == NEVER:
        connection.head_due = connection.context.clock() + connection.context.limits.header_timeout
        connection.arm(connection.head_due)
