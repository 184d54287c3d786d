"""A message that is forwarded: to the only server, within a session that is known, with nothing to judge in its answer.
Its head is edited, bytes pass both ways, and no coroutine waits.

What shows only in the answer (the session is gone, events that rules have to see) is served as ever from there on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.backends.mcp import calls, failing
from dataplane.backends.mcp.answers import Opened, TargetFailed
from dataplane.backends.mcp.relay import passed_head
from dataplane.backends.mcp.sending import passed_on, relayed
from dataplane.backends.mcp.upstreams import NOT_FOUND, TAKES_JSON
from dataplane.backends.terminating.forwarding import Forwarding
from dataplane.chain.calls import FOR_EVER, CallAnswer, CallFailed
from dataplane.http.heads import Head
from dataplane.mcp.accept import JSON
from dataplane.mcp.messages import Malformed
from dataplane.mcp.methods import LIST, LISTEN, METHODS, OTHER

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from dataplane.backends.mcp.sending import Sent
    from dataplane.backends.mcp.upstreams import Upstreams
    from dataplane.backends.mcp.visit import Visit
    from dataplane.backends.terminating.contract import Served
    from dataplane.backends.terminating.terminator import Terminator
    from dataplane.chain.reply import Reply
    from dataplane.http.messages import ResponseHead
    from dataplane.mcp.messages import Message
    from dataplane.mcp.sessions import UpstreamSession


def may_pass(visit: Visit, message: Message) -> bool:
    """Whether a message is a request for the only server, and its answer one that may pass as it comes."""
    plan, policies = visit.plan, visit.policies
    if visit.x.trace is not None:  # the context is written into the message, and the call is a span
        return False
    if not message.is_request or plan.several or not visit.takes_json or policies.guardrails is not None:
        return False
    if (plan.stateless and not visit.is_modern) or plan.targets[0].is_sse or message.method == "initialize":
        return False
    return not policies.rules or METHODS.get(str(message.method), OTHER).form not in (LIST, LISTEN)


def forward(visit: Visit, upstreams: Upstreams, message: Message, sent: Sent, out: Terminator) -> Served:
    """Send it, or open a session first."""
    known = upstreams.of(sent.target.name)
    if known is None or known.lost:
        work = passed_on(visit, upstreams, sent.target, message, sent.body, sent.rewrite)
        return _waited(visit, upstreams, message, work)
    try:
        call = Forward(visit, upstreams, message, sent, known, out)
    except CallFailed as error:
        return failing.answered(visit, upstreams, message, TargetFailed(sent.target.name, str(error)))
    call.go()
    return None


async def _waited(
    visit: Visit, upstreams: Upstreams, message: Message, work: Coroutine[Any, Any, Reply | None]
) -> Reply | None:
    try:
        reply = await work
    except TargetFailed as failed:
        reply = failing.answered(visit, upstreams, message, failed)
    except Malformed as error:
        reply = failing.malformed(error, message)
    visit.is_answered = reply is None
    return reply


class Forward(Forwarding):
    """One of them, on its way."""

    __slots__ = ("_known", "_limit", "_message", "_sent", "_upstreams", "_visit")

    def __init__(
        self, visit: Visit, upstreams: Upstreams, message: Message, sent: Sent, known: UpstreamSession, out: Terminator
    ) -> None:
        """Raises `CallFailed`."""
        x, target = visit.x, sent.target
        plan = calls.plan_of(x, target, known.endpoint)
        self._visit, self._upstreams, self._message = visit, upstreams, message
        self._sent, self._known = sent, known
        self._limit = calls.request_timeout(x, target, plan)
        request = upstreams.request(target, known, plan, b"POST", TAKES_JSON, sent.body)
        super().__init__(out, plan, request, visit.is_idempotent, has_body=True)
        self.upgrade = b""  # behind a 101 nothing would be judged

    def go(self, head_within: float = FOR_EVER) -> None:
        super().go(head_within if self._limit is None else self._limit)

    def passed(self, head: ResponseHead) -> ResponseHead | None:
        if head.status == NOT_FOUND and (self._known.session_id or self._visit.session is not None):
            self._serve(head)
            return None
        if self._sent.rewrite is not None and not _is_json(head):
            self._serve(head)
            return None
        return passed_head(head)

    def _serve(self, head: ResponseHead) -> None:
        """Serve the request as others are served, from its answer on."""
        opened = Opened(self, CallAnswer(head.status, Head(head.block, head.low), b""), self._sent.target.name)
        self.out.run(_waited(self._visit, self._upstreams, self._message, self._relayed(opened)))

    async def _relayed(self, opened: Opened) -> None:
        sent = self._sent
        try:
            found = await self._upstreams.posted(sent.target, self._known, sent.body, opened)
        except BaseException:
            self.cancel()
            raise
        await relayed(self._visit, found, self._message, sent.rewrite)

    def broke(self, error: CallFailed) -> None:
        if self.head_of_answer is not None:
            self.out.lost()
            return
        is_late = error.cause == "timeout" and self._limit is not None
        failed = TargetFailed(self._sent.target.name, str(error), is_late)
        reply = failing.answered(self._visit, self._upstreams, self._message, failed)
        if reply is not None:
            self._visit.x.reply(reply)

    def upstream_trailers(self, lines: bytes) -> None:
        super().upstream_trailers(b"")  # no header of the server's passes as one

    def over_whole(self) -> None:
        self._visit.is_answered = True


def _is_json(head: ResponseHead) -> bool:
    kind = Head(head.block, head.low).get(b"content-type") or b""
    return kind.partition(b";")[0].strip().lower() == JSON
