"""What a policy may ask of the network: one HTTP request to a backend of the configuration, with its answer whole or,
where content flows both ways, in parts.

The contract. The real one is `upstream/calls`, which goes through the same endpoints, pools and deadlines as requests
of clients; tests use `tests/fakes/calls`. Policies open no sockets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from dataplane.http.heads import Head

if TYPE_CHECKING:
    from dataplane.exchange import Exchange


class CallFailed(Exception):
    """There is no answer. `cause`: `unresolved` (no such backend, or no endpoint), `connect`, `timeout`, `lost` (the
    connection broke), `invalid` (not HTTP), `too_large`. The text is for the log and names no secret."""

    def __init__(self, cause: str, text: str) -> None:
        super().__init__(text)
        self.cause = cause


@dataclass(slots=True)
class CallRequest:
    """A value: nobody changes it (a frozen one takes three times as long to make). `method` and `target` (path with
    query) as sent; `authority` for the Host header, b"" = that of the backend; `headers`: finished lines without host
    and content-length; `body`: the whole of it. The repr has nothing that may hold credentials."""

    method: bytes
    target: bytes = field(repr=False)
    authority: bytes = b""
    headers: bytes = field(default=b"", repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class CallAnswer:
    """The final response, whole. Its body may be a token."""

    status: int
    head: Head
    body: bytes = field(repr=False)


class CallStream(Protocol):
    """A call whose content passes in parts, both ways at once: one sends while another receives.

    Memory is bounded: `send` waits while the endpoint takes no more, and what nobody receives stops the endpoint. Who
    opened it ends it by `cancel`, in a `finally`.
    """

    trailers: bytes
    """Trailer lines of the answer, once `receive` has answered b""."""

    async def send(self, data: bytes, end: bool = False) -> None:
        """More content of the request; `end`: the last. Raises `CallFailed`, also when the answer ended before."""

    async def end(self, trailers: bytes = b"") -> None:
        """The request ends, with these trailer lines. Raises `CallFailed`."""

    async def head(self) -> CallAnswer:
        """Status and header lines of the final response, as an answer without body. Raises `CallFailed`."""

    async def receive(self) -> bytes:
        """The next part of the answer's content; b"": it has ended. Raises `CallFailed` when it breaks off."""

    def cancel(self) -> None:
        """Give the call up. Who waits in it gets `CallFailed` ("lost"). No error when it is over."""


class Calls(Protocol):
    def seconds(self, backend: str, seconds: float, x: Exchange | None = None) -> float:
        """How long a call may take for which its policy has `seconds`: `http.requestTimeout` of the Backend with this
        key, or of what is above it, replaces them. `x`: as `http`."""
        ...

    def stream(self, backend: str, request: CallRequest, seconds: float, x: Exchange | None = None) -> CallStream:
        """Begin a call to an endpoint of the Backend with this key. `request.body` is the first of the content, of
        which more may follow. `seconds`: until the head of the answer; what is after it is its caller's to bound.
        `x`: as `http`."""
        ...

    async def http(
        self,
        backend: str,
        request: CallRequest,
        seconds: float,
        max_body: int = 1024 * 1024,
        x: Exchange | None = None,
    ) -> CallAnswer:
        """Send a request to an endpoint of the Backend with this key and await the answer.

        `seconds`: for all of it, connecting too; a GET that went out on a stale idle connection is sent once more.
        `max_body`: bytes of the answer's body. `x`: for whose sake it is; policies of its route, listener and Gateway
        say how the backend is spoken to, where that does not say it. None: those of the Gateway alone. Raises
        `CallFailed`; cancelling it gives the connection up.
        """
        ...
