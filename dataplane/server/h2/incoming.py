"""What a downstream HTTP/2 connection does about each event of its codec: requests become exchanges, content goes to
its stream, losses end what they concern. Functions of (connection, event), by the event's type in `HANDLERS`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.chain.replies import made
from dataplane.http.h2 import events
from dataplane.http.h2.errors import ENHANCE_YOUR_CALM
from dataplane.http.heads import Head
from dataplane.http.refused import of_parts
from dataplane.http.upgrades import WEBSOCKET
from dataplane.net.reads import Reading
from dataplane.proxy.exchange import CarriedExchange
from dataplane.server.h2 import requests, watch, websocket
from dataplane.server.h2.stream import StreamCarrier

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from dataplane.http.h2.events import Event
    from dataplane.http.messages import Peer
    from dataplane.http.refused import Shown
    from dataplane.http.rules import HttpRules
    from dataplane.server.h2.requests import Meaning

log = logging.getLogger("dataplane.server")

DRAIN = b"gw-drain"
"""The PING whose answer says that the client has seen that we drain."""

VERSION = b"HTTP/2"


class Receives(watch.Watched, Reading, Protocol):
    """Whose events they are (`connection.Connection`)."""

    bind: str
    peer: Peer
    known: Meaning
    """What was learned from the last head."""
    arrived: deque[StreamCarrier]
    """Whose exchanges have not started: behind the events that came with their heads, or in the next turn."""
    drains: bool

    def rules_of(self, host: bytes) -> HttpRules:
        """How a head for this host is read."""


def _request(connection: Receives, event: events.Request) -> None:
    stream, head = event.stream, event.head
    carrier = stream.owner = StreamCarrier(connection, stream)
    known = connection.known
    if head is not known.head:
        context = connection.context
        learned = requests.read(head, connection.peer, context.limits.max_line, known, connection.rules_of)
        if isinstance(learned, str):
            _refuse(connection, carrier, learned, of_parts(head.method, head.path, head.authority), head.low)
            return
        known = connection.known = learned
    x = _exchange(connection, carrier, known.method, known.target, Head(known.block, known.low))
    x.path = known.path
    x.readings = known.readings
    x.query = known.query
    x.host = x.asked_host = known.host
    x.peer = known.client
    x.authority = known.authority
    x.scheme = known.scheme
    x.takes_trailers = head.takes_trailers
    carrier.never_indexed = head.never_indexed
    if known.dropped:
        connection.context.headers_dropped(known.dropped)
    if not known.has_id:
        x.request.append(b"x-request-id: %b\r\n" % connection.context.request_id())
    if known.opens_tunnel:
        carrier.upgrade = True
        carrier.early_end = event.end
        x.upgrade = known.upgrade
        if known.upgrade.lower() == WEBSOCKET:
            x.request.append(websocket.key_line())
    elif not event.end and known.length:
        carrier.has_content = True
        x.expect(known.length, known.grpc)
        x.expects = known.expects
        connection.context.writes.reads.enter(connection, connection.peer.address)
    connection.arrived.append(carrier)


def _exchange(
    connection: Receives, carrier: StreamCarrier, method: bytes, target: bytes, head: Head
) -> CarriedExchange:
    context = connection.context
    x = carrier.exchange = CarriedExchange(carrier, method, target, head, context.clock())
    context.recorder.active += 1
    x.context = context
    x.bind = connection.bind
    peer = x.client = connection.peer
    x.peer = peer.address
    x.scheme = peer.scheme
    x.version = VERSION
    return x


def _refuse(connection: Receives, carrier: StreamCarrier, reason: str, shown: Shown, low: bytes) -> None:
    """Answer a request that is none for us; its content is not looked at. Of its head (`low`) only what says that the
    client speaks gRPC, and wants a status of gRPC, is kept, and what the log shows."""
    connection.context.recorder.refused(reason)
    head = Head(b"\r\n", b"\r\n")
    content_type = Head(low, low).get(b"content-type") if b"application/grpc" in low else None
    if content_type is not None:
        head.add(b"content-type", content_type)
    x = _exchange(connection, carrier, shown.method, shown.target, head)
    x.asked_host = shown.host
    x.reply(made(reason))


def _oversized(connection: Receives, event: events.OversizedRequest) -> None:
    carrier = event.stream.owner = StreamCarrier(connection, event.stream)
    _refuse(connection, carrier, "HeadersTooLarge", of_parts(*event.asked), event.low)


def _content(connection: Receives, event: events.Content) -> None:
    carrier: StreamCarrier | None = event.stream.owner
    if carrier is None:  # the stream was reset meanwhile, which gave back what had come
        return
    if carrier.is_new:
        carrier.is_new = False
        x = carrier.exchange
        if event.end and event.data and carrier.has_content and x is not None:
            carrier.owed = len(event.data)  # acknowledged when it is taken: so its memory is bounded by windows
            x.downstream_whole(event.data)
            return
    carrier.receive(event.data, event.end)


def _trailers(connection: Receives, event: events.Trailers) -> None:
    carrier: StreamCarrier | None = event.stream.owner
    if carrier is None or carrier.exchange is None:
        return
    if carrier.has_content and not carrier.is_tunnel:
        if event.never_indexed:
            carrier.never_indexed |= event.never_indexed
        carrier.exchange.downstream_trailers(event.block[2:])
    else:
        carrier.receive(b"", True)


def _reset(connection: Receives, event: events.Reset) -> None:
    carrier: StreamCarrier | None = event.stream.owner
    if event.local:
        connection.context.recorder.refused(event.reason)
    if carrier is not None:
        carrier.gone("BadRequest" if event.local else "ClientGone", event.reason)
    connection.ended(connection.context.clock())


def _drained(connection: Receives, event: events.Drained) -> None:
    carrier: StreamCarrier | None = event.stream.owner
    if carrier is not None:
        carrier.drained()


def _refused(connection: Receives, event: events.Refused) -> None:
    connection.context.recorder.refused(event.reason)


def _settings_acknowledged(connection: Receives, event: events.SettingsAcknowledged) -> None:
    connection.has_settings = True


def _pong(connection: Receives, event: events.Pong) -> None:
    if event.opaque == watch.ALIVE:
        watch.lives(connection)
    elif connection.drains and event.opaque == DRAIN:
        connection.take_no_more()


def _failed(connection: Receives, event: events.Failed) -> None:
    """The client broke a rule of the connection, or a limit: cut it, count it by kind, say it once."""
    connection.context.recorder.refused(event.reason)
    if event.code == ENHANCE_YOUR_CALM:
        log.warning("http2 connection of %s is cut: %s", connection.peer.address, event.reason)
    connection.end_streams("BadRequest", event.reason)


def _nothing(connection: Receives, event: Event) -> None:
    """Of no meaning to a server's carrier."""


HANDLERS: dict[type, Callable[[Receives, Any], None]] = {
    events.Request: _request,
    events.Content: _content,
    events.Drained: _drained,
    events.Trailers: _trailers,
    events.Reset: _reset,
    events.OversizedRequest: _oversized,
    events.Refused: _refused,
    events.SettingsChanged: _nothing,
    events.SettingsAcknowledged: _settings_acknowledged,
    events.Pong: _pong,
    events.GoAway: _nothing,
    events.Failed: _failed,
}
