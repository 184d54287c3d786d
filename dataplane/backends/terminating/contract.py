"""The contract of a terminator: what a kind of backends that ends requests itself has of a request, and of its answer.

A kind makes a `terminator.Terminator` for each try and gives it a function that serves. That is called once, when the
request is here whole, or as soon as its head is. It answers at once (a `Reply`; None: done, or handed on by
`forwarding`), or with an awaitable of one of these, which runs as steps without a Task do (`proxy/steps/waiting`): it
awaits futures of `Services`, calls, and `asyncio.sleep(0)`, behind which it goes on as soon as a turn has time.

Laws
- The answer is one head, then content, then one end: `end`, `lost`, or a `Reply` before the head. `whole` is all of it.
- Who gives waits for `ready` in between: a client that takes no more stops the one that answers. `pour`, `pump.pumped`
  and what was handed on do so by themselves.
- When the client leaves, what serves is cancelled where it waits, and calls that were handed on are given up; what is
  given afterwards is dropped, and no error.
- A request that is taken whole is bounded by what the listener lets be held, and takes memory as other held bodies do;
  of one that is taken as it comes at most `MOST_AHEAD` bytes wait for `received`, then the client is stopped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from dataplane.carriers import Upstream
    from dataplane.chain.filter import Future
    from dataplane.chain.reply import Reply
    from dataplane.chain.turns import Turns
    from dataplane.exchange import Traced, Work
    from dataplane.http.messages import ResponseHead
    from dataplane.link.pools import BodyMemory
    from dataplane.upstream.calls import HttpCalls

Served: TypeAlias = "Reply | Awaitable[Reply | None] | None"
"""What serving answers at once. None: it is answered, or handed on."""

MOST_AHEAD: Final = 65_536
"""Bytes that wait of a request that is taken as it comes."""


class Services(Protocol):
    """Of a worker (`proxy/context.Context`)."""

    make_future: Callable[[], Future]
    body_memory: BodyMemory

    @property
    def turns(self) -> Turns: ...

    @property
    def calls(self) -> HttpCalls: ...


class Routed(Protocol):
    """A request that was routed to a kind that ends it (`proxy/exchange.CarriedExchange`)."""

    @property
    def context(self) -> Services: ...

    method: bytes
    target: bytes
    length: int
    upgrade: bytes
    peer: str
    """Address of the client: whose memory its bodies take."""
    takes_trailers: bool
    up: Upstream | None
    endpoint: Any  # kinds of backends know none
    """That was asked last, for its line in the log."""
    trace: Traced | None

    @property
    def never_indexed(self) -> frozenset[bytes]: ...

    def lease_ready(self, up: Upstream) -> None: ...

    def makers(self) -> tuple[str, ...]: ...

    def may_hold(self, wanted: int) -> int: ...

    def reply(self, reply: Reply) -> None: ...

    def failed(self, error: Exception) -> None: ...

    def work(self, work: Coroutine[Any, Any, Any]) -> Work: ...


class Pours(Protocol):
    """A call whose answer has begun (`chain.calls.Call`), or what acts as one."""

    async def receive(self) -> bytes: ...


class Answer(Protocol):
    """The answer to a request, for who serves that; the request itself is `terminator.Terminator`'s."""

    has_begun: bool
    """The head of the answer is out."""

    @property
    def is_paused(self) -> bool:
        """The client takes no more for now."""
        ...

    def head(self, status: int, lines: bytes, length: int = ..., first: bytes = b"", end: bool = False) -> None:
        """It begins. `lines`: finished header lines, without content-length, which `length` becomes; `first`: content
        that leaves together with it."""

    def whole(self, status: int, lines: bytes, body: bytes) -> None:
        """All of it."""

    def give(self, data: bytes) -> None:
        """More of its content."""

    def hold(self, size: int) -> bool:
        """Take memory for `size` bytes until the request is served (`link/pools.BodyMemory`). False: there is none, or
        the request is served."""
        ...

    async def ready(self) -> None:
        """Wait until the client takes more."""

    async def pour(self, call: Pours) -> None:
        """Give what is left of the answer of a call, as it comes. Raises `CallFailed`."""

    def end(self, trailers: bytes = b"") -> None:
        """There is no more. `trailers`: finished lines."""

    def lost(self, cause: str = "reset") -> None:
        """The rest of it cannot be had: it is broken off. `cause`: as `carriers.Consumer.upstream_lost`."""

    def give_up(self) -> None:
        """What is served is not wanted any more, though the exchange may be over."""


class Passing(Protocol):
    """A call that a request was handed on to (`forwarding.Forwarding`), as its terminator has it."""

    def hold(self, held: bool) -> None: ...

    def cancel(self) -> None: ...

    def more(self, data: bytes, end: bool) -> None:
        """Content of the request that has come meanwhile."""

    def ends(self, lines: bytes) -> None:
        """The request ends with these trailers."""


class Taker(Protocol):
    """Who gives what a call brings that a request was handed on to: the terminator, or who stands before it."""

    x: Routed

    @property
    def trailer_lines(self) -> bytes:
        """Those that the request has ended with."""
        ...

    @property
    def is_judged(self) -> bool:
        """What is given is judged before anybody else sees it."""
        ...

    def carry(self, call: Passing) -> tuple[bytes, bool]:
        """From now on what comes of the request goes to `call`. What is here of it already, and whether that is all."""
        ...

    def take_back(self) -> None:
        """The call passes nothing: its answer is read, or it has failed."""

    def run(self, served: Awaitable[Reply | None]) -> None:
        """Serve the request by this, after all."""

    def finish(self) -> None:
        """All has passed, or nothing more will: the request is served."""

    def hold_client(self, held: bool) -> None:
        """The receiver of the request takes no more of it for now, or more again."""

    def pass_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        """As `carriers.Consumer.upstream_head`, and so are the others."""

    def pass_interim(self, head: ResponseHead) -> None: ...

    def never_index(self, names: frozenset[bytes]) -> None: ...

    def give(self, data: bytes) -> None: ...

    def end(self, trailers: bytes = b"") -> None: ...

    def lost(self, cause: str = "reset") -> None: ...
