"""One HTTP/2 connection as a pure codec (RFC 9113): bytes in, events out; calls in, bytes out.

Used by two carriers: the downstream one as a server, the upstream one as a client. It opens no socket, has no timer,
and knows no exchange. The laws:

1. **In.** `receive` takes what the socket gave and answers events, in order. It never raises for what a peer sent: a
   stream error resets the stream and is reported (`Reset`, or `Refused` when nothing of the stream was reported
   before); a connection error is the event `Failed`, the last one ever.
2. **Out.** Calls add bytes; `take` gives all of them at once. Call it at the end of each turn, also after a `receive`
   without events: acknowledgements and window updates wait there too.
3. **Streams** are handles, shared by events and methods. `stream.owner` belongs to the carrier, who also empties it. A
   stream that ran to its end or was reset leaves `streams`; events of it may still be in the list that is being
   handled.
4. **Sending on a closed stream does nothing**: a peer may have reset it in the very bytes whose earlier events are
   being handled. Calls out of order (content before a head, a second head, anything after the end) raise
   `errors.Misuse`.
5. **Content that was received** is owed to the peer until `acknowledge`: its windows open only as
   the consumer takes it, so a slow consumer stops its own stream at `Settings.stream_window`, and all of them at
   `connection_window`. Every byte of every `Content` is acknowledged once, also behind the end, or the stream is
   `reset`, which gives back all that it owes; a reset by the peer does the same.
6. **Content that is sent** leaves as far as both windows allow; the rest is kept, in order, with its end and trailers,
   and leaves by itself as the peer opens windows: one frame for each stream in turn. `send_content` answers how much of
   the stream waits; above 0 the carrier pauses the source until `Drained`. Between `pause_writing` and
   `resume_writing` (the transport's buffer is full) content waits too, and all other frames leave.
7. **Limits**: of a head (`Settings`), and of frames that cost us more than they cost the peer (tables of
   `budget`). Over the first a stream is refused, over the second the connection is cut with ENHANCE_YOUR_CALM.
8. `receive` reads at most `limit` frames. While `has_more` is true there may be more of them, to be read by
   `receive(b"")` in the next turn; the carrier does not read its socket meanwhile.

Server: a request with a head over the limits is `OversizedRequest`; everything malformed is reset and counted. Client:
`send_request` opens a stream while `can_open()` is above 0; `Reset.unprocessed` says that it may be sent elsewhere.
We never push, and refuse to be pushed to (8.4).
"""

from __future__ import annotations

from dataplane.http.h2 import frames
from dataplane.http.h2.errors import ENHANCE_YOUR_CALM, NO_ERROR, ConnectionFailure
from dataplane.http.h2.events import Event
from dataplane.http.h2.frames import MAX_STREAM
from dataplane.http.h2.receiving import Receiving


class Connection(Receiving):
    """`Connection(settings, server, clock)`: `server` is our role, `clock` answers monotonic seconds.

    Our SETTINGS (a client's behind the magic) are among the bytes of the first `take`. For reading:

    `settings`: our own; `peer`: the peer's (`PeerSettings`), defaults before they came.
    `greeted`: the peer's SETTINGS have come (3.4). `acknowledged`: it has acknowledged our own; a carrier does not wait
    for that without end (6.5.3).
    `streams`: open streams by number.
    `failed`: `Failed` was reported; nothing is read any more, and nothing written behind the GOAWAY.
    `has_more`: see law 8. `unused`: how much of its limit the last `receive` left over.
    `is_amid`: a frame or a header block has begun and is not whole; who drips it makes us wait.
    `going_away`: GOAWAY was sent by `goaway`, or received. A carrier closes when `streams` is empty then; a server
    serves what the client still opens after its own GOAWAY.
    `last_stream`: server: the highest number that the client opened.
    """

    __slots__ = ()

    def ping(self, opaque: bytes) -> None:
        """PING with eight bytes; the answer is `Pong`."""
        if not self.failed:
            self._out.append(frames.ping(opaque))

    def announce_drain(self) -> None:
        """Server: GOAWAY with the highest stream number (RFC 9113 6.8): streams under way are still taken. `goaway`
        follows at least one round trip later (a `ping` measures it)."""
        if not self.failed and not self.going_away:
            self._out.append(frames.goaway(MAX_STREAM, NO_ERROR))

    def goaway(self, code: int, debug: bytes = b"") -> None:
        """GOAWAY with the last stream that was taken; later ones are ignored, open ones go on."""
        if self.failed:
            return
        self.going_away = True
        self._last_taken = min(self._last_taken, self.last_stream)  # 6.8: it never grows
        self._out.append(frames.goaway(self._last_taken, code, debug))

    def cut(self, reason: str) -> list[Event]:
        """End the connection: ENHANCE_YOUR_CALM, and nothing after it. `Failed`; nothing when it has failed before."""
        if self.failed:
            return []
        self._fail(ConnectionFailure(ENHANCE_YOUR_CALM, reason))
        events, self._events = self._events, []
        return events

    def __repr__(self) -> str:
        role = "server" if self._server else "client"
        state = "failed" if self.failed else "going away" if self.going_away else "open"
        return f"Connection({role}, {state}, {len(self.streams)} streams)"
