"""What an authorization server comes to, whatever protocol it speaks: the contract between the filter and servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataplane.chain.calls import CallFailed
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

DEADLINE: Final = 2.0
"""Seconds for a call, unless `http.requestTimeout` of the backend says other."""
VARIABLE: Final = "extauthz"
DENIED, REDIRECTED, FAILED = "ExtAuthDenied", "ExtAuthRedirect", "ExtAuthFailed"
"""Reason codes: the server denies; it denies and redirects; no server answered."""


class NoQuestion(Exception):
    """The server cannot be asked about this request: the text, for the log, says why."""


class ServerFailed(CallFailed):
    """The server says that it could not decide. `reply`: what the client gets unless the policy fails open."""

    def __init__(self, text: str, reply: Reply) -> None:
        super().__init__("invalid", text)
        self.reply = reply


class Edits(Protocol):
    """What the server changes of a request that may go on."""

    def apply(self, x: Exchange) -> bool:
        """False: this request cannot be changed so, and must not go on as it is."""
        ...


@dataclass(slots=True)
class Verdict:
    """A value that can be carried out on any request with the same cache key. `denial`: None where it may go on;
    `metadata`: what later expressions read as `extauthz`, or None; `is_decision`: it may be kept (others may be an
    accident of the moment); `size`: bytes of what it was made of."""

    denial: Reply | None = field(default=None, repr=False)
    edits: Edits | None = field(default=None, repr=False)
    metadata: dict[str, Any] | None = field(default=None, repr=False)  # Any: as JSON has it
    is_decision: bool = True
    size: int = 0


class AuthServer(Protocol):
    """A server as its protocol makes it."""

    @property
    def programs(self) -> Sequence[Program]:
        """All that is evaluated."""

    @property
    def writes(self) -> frozenset[bytes]:
        """As `Filter.writes`."""

    async def ask(self, x: Exchange) -> Verdict:
        """Raises `CallFailed` where it does not answer, `NoQuestion` where it cannot be asked."""
        ...

    def denied(self, x: Exchange, denial: Reply) -> Reply:
        """The answer for a client whose request is denied."""
        ...

    def without(self, x: Exchange) -> None:
        """Take out what only the server may say: a client's value must not pass for it."""

    def respond(self, x: Exchange) -> None:
        """Change the response as the server said; only where `responds`."""

    @property
    def responds(self) -> bool:
        """Whether it may change responses."""


def carry_out(server: AuthServer, x: Exchange, verdict: Verdict, origin: str) -> Reply | None:
    """Let the request go on, with what the server gave it, or end it."""
    metadata = verdict.metadata
    if metadata is not None:
        known: Any = None if x.attributes is None else x.attributes.get(VARIABLE)
        x.leave(VARIABLE, {**known, **metadata} if known else metadata)
    if verdict.denial is not None:
        return server.denied(x, verdict.denial)
    if verdict.edits is not None and not verdict.edits.apply(x):
        return made(FAILED, f"{origin}: the authorization server's changes do not fit this request")
    return None
