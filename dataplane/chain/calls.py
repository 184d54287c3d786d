"""What a policy, or a backend that ends requests itself, may ask of the network: one HTTP request to a backend of the
configuration. Every call begins here, with one rule of deadlines and one of levels.

The contract. The real one is `upstream/calls`, which goes through the same endpoints, pools and deadlines as requests
of clients; tests use `tests/fakes/calls`. Policies open no sockets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataplane.http.heads import Head

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.carriers import Endpoint
    from dataplane.exchange import Exchange, SpanContext
    from dataplane.reply import Reply

FOR_EVER: Final = float("inf")
MAX_ANSWER: Final = 1024 * 1024
"""Bytes of the answer's body, where a policy does not say other."""


class CallFailed(Exception):
    """There is no answer. `cause`: `unresolved` (no such backend, or no endpoint), `connect`, `timeout`, `lost` (the
    connection broke), `invalid` (not HTTP), `too_large`, `unfinished` (it was not sent: its credentials cannot be had,
    or a step of its backend has refused it). The text is for the log and names no secret. `reason`: a code of
    `chain/replies`, where there is one that says more than the cause; `reply`: what a step of the backend answers a
    client, where it was one. `status`: of the head, where one came and its content did not; else 0."""

    status = 0

    def __init__(self, cause: str, text: str, reason: str = "", reply: Reply | None = None) -> None:
        super().__init__(text)
        self.cause = cause
        self.reason = reason
        self.reply = reply


@dataclass(slots=True)
class CallRequest:
    """A value that is not changed (a frozen one takes three times as long to make). `method` and `target` (path with
    query) as sent; `authority` for the Host header, b"" = that of the backend; `headers`: finished lines without host
    and content-length; `body`: the whole of it. The repr has nothing that may hold credentials."""

    method: bytes
    target: bytes = field(repr=False)
    authority: bytes = b""
    headers: bytes = field(default=b"", repr=False)
    body: bytes = field(default=b"", repr=False)
    traced_body: Callable[[bytes, SpanContext], bytes] | None = None
    """Writes the trace context into the body too, where the protocol has a place for it. None: it has none."""
    about: tuple[str, tuple[tuple[str, Any], ...]] | None = None
    """Name and attributes of its span, where a protocol above HTTP has some."""


@dataclass(slots=True)
class CallAnswer:
    """The final response, whole. Its body may be a token."""

    status: int
    head: Head
    body: bytes = field(repr=False)


class Call(Protocol):
    """One call under way. Its request may pass in parts, and its answer is taken whole (`whole`), in parts (`receive`),
    or as it comes (`pour`). Of both ways at once, one sends while another receives.

    Memory is bounded: `send` waits while the endpoint takes no more, and content that is not received stops the
    endpoint. Who opened it ends it by `cancel`, in a `finally`; `whole` does that itself.
    """

    trailers: bytes
    """Trailer lines of the answer, once it has ended."""

    @property
    def endpoint(self) -> Endpoint | None:
        """Who is asked; None: not known yet."""

    async def send(self, data: bytes, end: bool = False) -> None:
        """More content of the request; `end`: the last. Raises `CallFailed`, also when the answer ended before."""

    async def end(self, trailers: bytes = b"") -> None:
        """The request ends, with these trailer lines. Raises `CallFailed`."""

    async def head(self) -> CallAnswer:
        """Status and header lines of the final response, as an answer without body. Raises `CallFailed`."""
        ...

    async def receive(self) -> bytes:
        """The next part of the answer's content; b"": it has ended. Raises `CallFailed` when it breaks off."""
        ...

    async def whole(self, most: int) -> CallAnswer:
        """The answer with all of its content, of at most `most` bytes. Raises `CallFailed`. Cancelled, it
        gives the call up."""
        ...

    async def pour(self, taker: Callable[[bytes], None]) -> None:
        """Give the rest of the answer to `taker`, in the callback that brings it: no turn of the loop, nothing is held.
        Who takes no more says so with `hold`. Raises `CallFailed`."""

    def hold(self, held: bool) -> None:
        """Pause the endpoint's answer, or let it go on."""

    def cancel(self) -> None:
        """Give the call up. Who waits in it gets `CallFailed` ("lost"). No error when it is over."""


class Plan(Protocol):
    """Of a backend, as calls need it (`table/plans.BackendPlan`)."""

    @property
    def key(self) -> str: ...

    @property
    def request_timeout(self) -> float | None: ...


class Calls(Protocol):
    def plan(self, backend: str, x: Exchange | None = None) -> Any:  # Any: a BackendPlan; types above this package
        """The Backend with this key, as it is to be called. `x`: for whose sake; policies of its route, listener and
        Gateway say how the backend is connected to, where that does not say it. None: those of the Gateway alone
        (`upstream/calls/levels`). Raises `CallFailed`."""

    def open(
        self,
        plan: Any,  # as `plan` answers
        request: CallRequest,
        *,
        x: Exchange | None,
        head_within: float,
        whole_within: float = FOR_EVER,
        idempotent: bool = False,
        sends_more: bool = False,
    ) -> Call:
        """Begin a call. `head_within`: seconds until the head of the answer, connecting too, in place of which
        `http.requestTimeout` of the backend counts (`within`); `whole_within`: until its end. `idempotent`: it may come
        twice, whatever its method, and does where an idle connection turns out to be closed. `sends_more`:
        `request.body` is the first of the content, which `send` and `end` go on with. `x`: whose request it is for."""
        ...

    async def http(
        self,
        backend: str,
        request: CallRequest,
        seconds: float,
        max_body: int = MAX_ANSWER,
        x: Exchange | None = None,
    ) -> CallAnswer:
        """All of it: `plan`, `open`, `Call.whole`. `seconds`: for the whole; `max_body`: bytes of the answer's body.
        Raises `CallFailed`; cancelling it gives the connection up."""
        ...


def within(plan: Plan, seconds: float) -> float:
    """How long a server has to begin its answer, where the caller says `seconds`."""
    return seconds if plan.request_timeout is None else plan.request_timeout
