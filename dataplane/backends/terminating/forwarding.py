"""A request that is handed on: to one backend, over a lease of its own, with lines that its terminator has made. Bytes
pass as they are in both directions, also behind a 101; nothing waits in a coroutine.

The answer's head is looked at once (`Forwarding.passed`). Code that does not want it passed reads it, as the answer of
any other call.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.terminating.contract import MOST_AHEAD
from dataplane.chain.calls import FOR_EVER, CallFailed
from dataplane.chain.replies import made
from dataplane.http.messages import UNKNOWN
from dataplane.upstream import connecting
from dataplane.upstream.calls import Call
from dataplane.upstream.outgoing import in_trace

if TYPE_CHECKING:
    from dataplane.backends.terminating.contract import Taker
    from dataplane.carriers import Upstream
    from dataplane.chain.calls import CallRequest
    from dataplane.chain.reply import Reply
    from dataplane.http.messages import ResponseHead

REASONS: Final = {
    "unresolved": "NoEndpoints",
    "connect": "ConnectFailed",
    "timeout": "UpstreamTimeout",
    "lost": "UpstreamFailed",
    "invalid": "UpstreamInvalid",
    "unfinished": "BackendAuthenticationFailed",
    "too_large": "UpstreamInvalid",
}
"""By `CallFailed.cause`: why there is no answer (`chain/replies`), where the failure itself has no reason."""


def reply_of(error: CallFailed) -> Reply:
    """What a client reads when there is no answer."""
    if error.reply is not None:
        return replace(error.reply, detail=str(error))
    return made(error.reason or REASONS[error.cause], str(error))


class Forwarding(Call):
    """A subclass says what it does otherwise: `passed`, `broke` and `over_whole`."""

    __slots__ = (
        "_is_answered",
        "_is_passing",
        "_is_request_here",
        "_is_tunnel",
        "_lines",
        "out",
        "takes_trailers",
        "upgrade",
    )

    def __init__(
        self, out: Taker, plan: Any, request: CallRequest, idempotent: bool = False, has_body: bool = False
    ) -> None:
        """`plan`: a BackendPlan. `request`: without the content, which `out` has; or with all of it (`has_body`)."""
        x = out.x
        self.out = out
        data, self._is_request_here = out.carry(self)
        self._lines = b""
        """Trailers of the request."""
        traced = None if x.trace is None else x.trace.call_begins(plan.key, request.method, x.context.calls.clock())
        if traced is not None:
            request.headers = in_trace(b"\r\n" + request.headers, traced.context.header_lines())[2:]
        if has_body:
            super().__init__(x.context.calls, plan, request, idempotent)
        else:
            request.body, self._lines = data, out.trailer_lines
            sends_more, length = bool(self._lines) or not self._is_request_here, UNKNOWN if self._lines else x.length
            super().__init__(x.context.calls, plan, request, idempotent, sends_more, length or UNKNOWN)
        self.traced = traced
        self.upgrade = x.upgrade
        self.takes_trailers = x.takes_trailers
        self.never_indexed = x.never_indexed
        self._is_passing = self._is_answered = self._is_tunnel = False

    def go(self, head_within: float = FOR_EVER) -> None:
        """Send it. `head_within`: seconds, as `Calls.open` has it."""
        self.begin(head_within, FOR_EVER, self.out.x)  # type: ignore[arg-type]  # the exchange, of which a part is known

    # --- for subclasses

    def passed(self, head: ResponseHead) -> ResponseHead | None:
        """The head that the client gets of an answer with this one. None: the answer does not pass; this is a call
        whose answer has begun, and its reader cancels it in the end."""
        return head

    def broke(self, error: CallFailed) -> None:
        """There is no answer, or, where its head has passed, no whole one."""
        if self._is_passing:
            self.out.lost()
        else:
            self.out.x.reply(reply_of(error))

    def over_whole(self) -> None:
        """All of the answer is here: the client gets its last part now."""

    # --- the request (`contract.Passing`)

    def more(self, data: bytes, end: bool) -> None:
        if self.is_over:
            return
        self._is_request_here = end
        if self.up is None:  # it is not sent yet
            self.body += data
            if len(self.body) >= MOST_AHEAD and not end:
                self.out.hold_client(True)
            return
        self.is_repeatable = False
        self.up.content(data, end)
        if end and self._is_answered:
            self._ended()
            self.out.finish()

    def ends(self, lines: bytes) -> None:
        self._lines = lines
        if self.up is None or not lines:
            self.more(b"", True)
        elif not self.is_over:
            self.is_repeatable = False
            self._is_request_here = True
            self.up.trailers(lines)

    def lease_ready(self, up: Upstream) -> None:
        here = self._is_request_here
        up.begin(self.consumer, self.block, self.body, here and not self._lines)
        if here and self._lines:
            up.trailers(self._lines)
        elif not here:
            self.out.hold_client(False)

    def upstream_blocked(self) -> None:
        self.out.hold_client(True)

    def upstream_drained(self) -> None:
        self.out.hold_client(False)

    # --- the answer

    def switched(self, head: ResponseHead, first: bytes, end: bool) -> None:
        if not self.upgrade:
            super().switched(head, first, end)
            return
        self.head_of_answer = head
        self._is_tunnel = True
        self.answered(head, first, end)

    def answered(self, head: ResponseHead, first: bytes, end: bool) -> None:
        passed = self.passed(head)
        if passed is None:
            self.out.take_back()
            self.hold(False)
            super().answered(head, first, end)
            return
        connecting.leave_endpoint(self)
        self.out.x.endpoint = self.endpoint
        self._is_passing = True
        if end:
            self._over()
        self.out.pass_head(passed, first, end)
        if end:
            self.out.finish()

    def upstream_interim(self, head: ResponseHead) -> None:
        self.out.pass_interim(head)

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None:
        self.out.never_index(names)

    def upstream_content(self, data: bytes, end: bool) -> None:
        if not self._is_passing:
            super().upstream_content(data, end)
            return
        if end:
            self._over()
        self.out.give(data)
        if end:
            self.out.end()
            if self.is_over:
                self.out.finish()

    def upstream_trailers(self, lines: bytes) -> None:
        if not self._is_passing:
            super().upstream_trailers(lines)
            return
        self._over()
        self.out.end(lines)
        self.out.finish()

    def upstream_lost(self, cause: str, stale: bool) -> None:
        if not self._is_tunnel:
            super().upstream_lost(cause, stale)
            return
        self._ended()
        self.out.lost(cause)
        self.out.finish()

    def _over(self) -> None:
        """The endpoint has said all, and where this is no tunnel nothing more goes to it."""
        self._is_answered = True
        if not self._is_tunnel or self._is_request_here:
            self._ended()
        self.over_whole()

    def fail(self, error: CallFailed) -> None:
        was_begun = self.head_of_answer is not None and not self._is_passing
        self.out.x.endpoint = self.endpoint
        super().fail(error)
        if not was_begun:
            self.out.take_back()
            self.broke(error)
            self.out.finish()

    def cancel(self) -> None:
        if not self.is_over:
            super().fail(CallFailed("lost", f"{self.where()}: given up"))

    def __repr__(self) -> str:
        return f"Forwarding({self.plan.key}, {'passing' if self._is_passing else 'asking'})"
