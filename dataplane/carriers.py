"""Who carries an exchange: towards its client (`Downstream`), and onward to an endpoint (`Upstream`).

A carrier is a connection, or one stream of a connection. It frames and does nothing else: what is answered, when, and
what follows from a loss is decided by the exchange (`proxy/exchange`), which is the consumer of its upstream and the
owner of its answer. The toy carrier of the tests is the shortest example of both.

Laws of both directions
- Content is content: never chunks, frames or padding. Who needs framing makes it.
- One message is: head, any number of contents, perhaps trailers. The part with `end=True`, or the trailers, is the last
  one; nothing follows it. An empty content without `end` is never given.
- `pause` and `resume` are idempotent and only ask: what is on the way already still comes. Between `blocked` and
  `drained` a carrier still takes what it is given (it buffers it): the giver stops its own source.
- Everything is called from the event loop, returns at once, and may call back before it returns. Who calls last knows
  that the other may be over by then, and looks.
- `reset` ends both directions at once; the other side hears nothing more. It is no error to reset what is over.
- When an exchange is over neither carrier knows it, nor does it know them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.http.grpc import UNREAD

if TYPE_CHECKING:
    from dataplane.http.messages import ResponseHead


class Downstream(Protocol):
    """Carries one exchange at a time to its client. Made by a connection for itself, or for each stream.

    A carrier reads the request's head, makes the exchange, sets its request fields, and calls `start`. It then reports
    what the client does (`Carried`).

    Who calls what, when
    - Exactly one of these ends an exchange: the last part of a response, then `over`; or `reset`, called by the
      exchange; or `downstream_gone`, called by the carrier. In each case the exchange has run its end (log, metrics) by
      then, and the carrier forgets it.
    - A carrier that hears `head(…, end=True)` or `content(…, end=True)` writes and waits for `over`: only then it may
      begin the next request.
    - After a 101, or the 200 to a CONNECT, the exchange is a tunnel: content passes both ways, and `end` closes one
      direction. When both are closed, `over` follows.
    """

    is_blocked: bool
    """The client takes less than it is given: `downstream_drained` will be called."""
    may_buffer: int
    """Bytes of the request's content that the exchange may buffer, while no step waits for them, before it says
    `pause`: of a carrier with windows 1, for what is not taken shall keep them closed."""

    @property
    def never_indexed(self) -> frozenset[bytes]:
        """As `Consumer.never_indexed`, of the present request."""

    def never_index(self, names: frozenset[bytes]) -> None:
        """As `Consumer.upstream_never_indexed`: fields of these names, in what is still to come of the response. A
        carrier without tables does nothing."""

    def head(self, line: bytes, block: bytes, length: int, first: bytes, end: bool) -> None:
        """The final response begins. `x.status` is its status, `line` the same as an endpoint wrote it, or b"" when no
        endpoint did; `length` as in `ResponseHead.length`; `first`: content that is here already, to go out in the same
        write. The block has `content-length` where the length is known; how the content is framed otherwise is the
        carrier's to say.

        The request may not have been read whole: what becomes of the rest is the carrier's (HTTP/1 closes)."""

    def take_back(self) -> bool:
        """Forget what `head` and `content` gave of a response that is not whole: another one may begin. False: a part
        of it has left, or cannot be taken back (HTTP/2: it changed the table by which later heads are read)."""

    def content(self, data: bytes, end: bool) -> None:
        """More of the response. `data` may be empty when `end` is true."""

    def trailers(self, lines: bytes) -> None:
        """The response ends with these trailer lines, each with its CRLF (b"": none)."""

    def interim(self, line: bytes, block: bytes) -> None:
        """A 1xx head other than 100 and 101 (RFC 9110 15.2). A carrier whose client does not know them drops it."""

    def invite(self) -> None:
        """The content of the request is wanted now: answer `expect: 100-continue` (RFC 9110 10.1.1). Called once, where
        `x.expects` was set and nothing of the content has come."""

    def over(self, now: float) -> None:
        """The exchange has ended in good order, after the last part of its response. It must not be used any more.
        `now`: when, on the context's clock."""

    def reset(self, cause: str) -> None:
        """The exchange ended without (the whole of) its response, and the client must notice: the connection is broken
        off, or the stream. `cause`: a reason code of `chain/replies`."""

    def switch(self, line: bytes, block: bytes, first: bytes) -> None:
        """The head of a 101, or of the 200 to a CONNECT: from here on the two connections are a tunnel (to
        `x.upgrade`), of which `first` came already."""

    def close_after(self) -> None:
        """No other request may follow on the connection: what comes behind this one cannot be distinguished from it. A
        carrier of streams, whose framing separates them, does nothing."""

    def pause(self) -> None:
        """Read no more content of the request."""

    def resume(self) -> None: ...

    def arm(self, moment: float) -> None:
        """Call `Carried.wake` at this moment of the context's clock, or earlier. Asked for again each time: one moment
        is remembered. Nothing is registered for each exchange: the carrier is the sleeper of all that it carries."""

    def join(self, up: Upstream) -> None:
        """From here to its end the content of the response passes as it is: nothing looks at it or changes it. Two
        carriers of one protocol may agree to pass it in that protocol's own framing, past the exchange; they count
        content in `x.response_bytes`, and the end still passes through the exchange. Others do nothing."""


class Carried(Protocol):
    """What a downstream carrier calls on its exchange (`proxy/exchange.CarriedExchange`).

    Before `start`: `expect` when content follows the head, and `downstream_content` for what is here of it, so that it
    leaves together with the head."""

    body_bytes: int
    response_bytes: int
    """What came and went so far: a carrier that looks after its client's pace compares them."""

    def expect(self, length: int, kind: int = UNREAD) -> None:
        """The request has content: `length` bytes, or `messages.UNKNOWN`. Of a client that waits for a 100 say so then
        (`x.expects`). `kind`: what its content type is to gRPC (`http/grpc`), where the carrier knows."""

    def start(self) -> None:
        """The head is whole, its fields are set: take the request. The answer may come before this returns."""

    def downstream_content(self, data: bytes, end: bool) -> None:
        """Content of the request. In a tunnel `end` says that the client sends no more."""

    def downstream_whole(self, data: bytes) -> None:
        """All content of the request (not empty), before `start`. The carrier has paused itself: it hears `resume` when
        the content is taken."""

    def downstream_trailers(self, lines: bytes) -> None:
        """The request ends with these trailer lines."""

    def downstream_blocked(self) -> None:
        """The client reads slower than the endpoint sends."""

    def downstream_drained(self) -> None:
        """It takes more again."""

    def downstream_gone(self, reason: str) -> None:
        """The client's connection or stream is lost: cancel everything, and end. The carrier is not called again."""

    def give_up(self, reason: str, detail: str = "") -> None:
        """The request cannot go on (malformed content, a client that hangs): answer with this reason code, or break
        off when a part of a response is out."""

    def wake(self, now: float) -> float:
        """Look at the deadlines. Answers the next moment that matters (infinity: none)."""


class Sleeper(Protocol):
    def wake(self, now: float) -> None:
        """A moment that was asked for is here."""


class Upstream(Protocol):
    """Carries one exchange onward: to an endpoint, or to a backend in this process that ends the request itself.

    Got by a lease (`upstream/lease`), which is over when the response has ended, is lost, or was reset. A carrier gives
    its connection back before it reports the end: who hears of the end may begin anew at once.
    """

    is_shared: bool
    """It is a stream of a connection that other requests use too: what is sent again goes there (`upstream/shared`)."""

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        """Send a request: method and target are the consumer's, `block` its header lines with Host and without framing
        beyond `content-length`; `first`: content that is here already, to leave in the same write."""

    def content(self, data: bytes, end: bool) -> None:
        """More of the request. In a tunnel `end` closes this direction only."""

    def trailers(self, lines: bytes) -> None:
        """The request ends with these trailer lines (b"": none)."""

    def pause(self) -> None:
        """Read no more of the response: the consumer cannot pass it on."""

    def resume(self) -> None: ...

    def reset(self) -> None:
        """The consumer wants no more of this. It hears nothing more."""

    def discard(self) -> Sleeper | None:
        """As `reset`; but where the rest of the response is short it may be read, so that the connection can be used
        again. Answers who is to be woken when that has taken too long."""


class Consumer(Protocol):
    """Who sends a request on an upstream carrier and takes the response. After `end=True`, trailers or `upstream_lost`
    it hears no more of this request."""

    method: bytes
    target: bytes
    length: int
    """Bytes of content of the request: 0 none, or `messages.UNKNOWN`."""
    upgrade: bytes
    """The protocol that the request asks to switch to, or b""."""
    takes_trailers: bool
    """The client said `te: trailers` (RFC 9110 10.1.4)."""

    @property
    def never_indexed(self) -> frozenset[bytes]:
        """Names of fields that its client wants in no table of any hop (RFC 7541 7.1.3); in HTTP/1 there are none."""

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None:
        """The head or the trailers that follow at once have fields that the endpoint wants in no table of any hop (RFC
        7541 7.1.3). Not called where there are none."""

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        """The final response, or a 101, behind which content is the tunnel's."""

    def upstream_interim(self, head: ResponseHead) -> None:
        """A 1xx other than 100 and 101; the final response is still to come."""

    def upstream_content(self, data: bytes, end: bool) -> None: ...

    def upstream_trailers(self, lines: bytes) -> None: ...

    def upstream_lost(self, cause: str, stale: bool) -> None:
        """The response cannot be had (whole). `cause`: "closed", "reset", `UNSENT`, `REFUSED`, or what was wrong
        with the response. `stale`: most likely the endpoint never saw the request: it may be sent again without
        counting as a try (an idle connection was closed; REFUSED_STREAM; a stream above GOAWAY's last: RFC 9113 6.8,
        8.7)."""

    def upstream_blocked(self) -> None:
        """The endpoint takes no more of the request."""

    def upstream_drained(self) -> None:
        """It takes more again."""


UNSENT = "closed before it was used"
"""Cause of a loss: no byte of the request was written."""
REFUSED = "refused"
"""Cause of a loss: the endpoint promises that it did nothing with the request (RFC 9113 6.8, 8.7)."""


class Endpoint(Protocol):
    """One address that requests are sent to (`upstream/endpoint`), as an exchange and its log see it."""

    @property
    def label(self) -> str:
        """As it appears in logs."""
