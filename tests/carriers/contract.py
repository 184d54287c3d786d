"""What a carrier is: the two ends of one proxy, as tests of policies use them. A carrier implements `Ends`.

Laws for all of them:

- What is shown is what HTTP/1 and HTTP/2 have in common (`values`).
- Nothing happens but by a call: a carrier has no thread, no timer and no event loop. When a call returns, the proxy has
  done all that it can do without further input or time.
- Clients and endpoints take all that comes, unless a test pauses them. Content that the proxy does not take yet
  (HTTP/2: there is no window for it) waits in the carrier and follows when the proxy takes it.
- A message that the proxy carries against the rules of its protocol raises where a test looks at it.
- What a test does to an end that is over raises AssertionError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dataplane.upstream.endpoint import Endpoint
from tests.carriers.values import Answer, Pairs, Received, Request, Response
from tests.fakes.memory_proxy import MemoryProxy


class Conversation(Protocol):
    """One exchange as its client has it."""

    def content(self, data: bytes) -> None:
        """Send content."""

    def end(self, trailers: Pairs = ()) -> None:
        """End the request."""

    def cancel(self) -> None:
        """Give the exchange up (HTTP/1: the connection is lost; HTTP/2: the stream is reset)."""

    def leave(self) -> None:
        """The same in good order (HTTP/1: the client closes its connection, of which the proxy sees FIN; HTTP/2: as
        `cancel`)."""

    def pause(self) -> None:
        """Read no more of the answer."""

    def resume(self) -> None:
        """Read on."""

    @property
    def answer(self) -> Answer:
        """What came so far."""

    @property
    def is_read(self) -> bool:
        """The proxy takes more content from this client."""


class Client(Protocol):
    """A client with an address of its own. Exchanges at the same time are independent of each other (HTTP/1: each has
    a connection; HTTP/2: a stream)."""

    def begin(self, request: Request) -> Conversation:
        """Send the head of a request whose content comes later; `body` and `trailers` are not looked at. A length is
        announced when the test wrote a content-length."""

    def send(self, request: Request) -> Conversation:
        """Send a whole request."""

    @property
    def connections(self) -> int:
        """How many it has opened: a connection is used again while the proxy allows it."""


class Arrival(Protocol):
    """One exchange as the endpoint has it: a try of a request, a copy for a mirror, a call of a policy."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it arrived."""

    @property
    def received(self) -> Received:
        """What came so far."""

    def take_content(self) -> bytes:
        """The content that came since the last look; it is kept no longer."""

    @property
    def is_answered(self) -> bool:
        """The endpoint has answered to the end, or broken off."""

    @property
    def is_read(self) -> bool:
        """The proxy takes more content from this endpoint."""

    @property
    def is_cancelled(self) -> bool:
        """The proxy has given it up before both directions had ended."""

    def answer(self, response: Response) -> None:
        """Answer as a whole: a body of bytes at once with the head, one of pieces one by one."""

    def head(self, response: Response) -> None:
        """Begin to answer; `body` and `trailers` are not looked at. The length is what a content-length says."""

    def interim(self, status: int, headers: Pairs = ()) -> None:
        """Send an interim response."""

    def content(self, data: bytes) -> None:
        """Send content."""

    def end(self, trailers: Pairs = ()) -> None:
        """End the answer."""

    def reset(self) -> None:
        """Break off (HTTP/1: the connection is reset; HTTP/2: the stream is)."""

    def refuse(self) -> None:
        """Take nothing of it, so that it may be sent again (HTTP/1: the connection, which was used before, was closed
        meanwhile, RFC 9112 9.3.1; HTTP/2: REFUSED_STREAM, RFC 9113 8.7)."""


class Ends(Protocol):
    """A proxy in memory and both its ends. Made of the text of a configuration and `Calls` for its policies."""

    memory: MemoryProxy

    def client(self, peer: tuple[str, int]) -> Client:
        """A new client with this address and port."""

    def arrivals(self) -> Sequence[Arrival]:
        """All that arrived at endpoints so far, in their order."""
