"""Messages to one server, and what becomes of its answer: relayed, read, or acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET

from dataplane.backends.mcp import processing
from dataplane.backends.mcp.answers import Opened, TargetFailed
from dataplane.backends.mcp.relay import Rewrite, relay, relay_rewritten, rewrite_of, whole
from dataplane.backends.mcp.upstreams import LIST_SECONDS, NOT_FOUND, Upstreams
from dataplane.backends.mcp.visit import Visit
from dataplane.mcp import messages, sessions
from dataplane.mcp.messages import Id, Malformed, Message
from dataplane.mcp.policies import MCP

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import TargetPlan

OK: Final = 200
ACCEPTED: Final = 202
NO_CONTENT: Final = 204

_WITHIN: Final = "it answered 404 within a session that it has"

MAX_ASKED: Final = 256
"""Requests of one server for which ids are remembered while it answers one of the client's."""


class Sent(NamedTuple):
    """What goes to one server, and how its answer becomes the gateway's; None: it passes as it is."""

    target: TargetPlan
    body: bytes
    rewrite: Rewrite | None


class Tags:
    """Ids of requests for a client that has no session: who waits for the answer is sealed in them, so that any worker
    can carry it. An id that is asked for again is the same: the server may withdraw its request."""

    def __init__(self, visit: Visit, upstreams: Upstreams) -> None:
        self._visit, self._upstreams = visit, upstreams
        self._known: dict[Id, str] = {}

    def __call__(self, target: str, request_id: Id) -> str:
        """Raises `TargetFailed` for an id that is too long."""
        found = self._known.get(request_id)
        if found is None:
            found = self._known[request_id] = self._made(target, request_id)
            if len(self._known) > MAX_ASKED:
                del self._known[next(iter(self._known))]
        return found

    def _made(self, target: str, request_id: Id) -> str:
        session = self._upstreams.of(target) or sessions.UpstreamSession(target)
        visit = self._visit
        text = sessions.sealed_question(
            sessions.Question(session, request_id), visit.x.context.of_kind(MCP).sealer, visit.owner
        )
        if text is None:
            raise TargetFailed(target, "its request has too long an id")
        return text


def rewriting(visit: Visit, upstreams: Upstreams, message: Message, target: TargetPlan) -> Rewrite | None:
    """What has to change in the answer: with several targets names and ids, with rules notices of what they refuse,
    without sessions ids of the server's requests."""
    tag = Tags(visit, upstreams) if visit.plan.stateless and not visit.is_modern else None
    if tag is None and not visit.plan.several and not visit.policies.rules:
        return None
    return rewrite_of(visit, target.name, message.request_id, tag)


async def passed_on(
    visit: Visit, upstreams: Upstreams, target: TargetPlan, message: Message, body: bytes, rewrite: Rewrite | None
) -> Reply | None:
    """Send a request to one target and relay what it answers."""
    await relayed(visit, await upstreams.post(target, body), message, rewrite)
    return None


async def relayed(visit: Visit, opened: Opened, message: Message, rewrite: Rewrite | None) -> None:
    """Relay what a target answers to a request."""
    try:
        if opened.answer.status == NOT_FOUND and visit.session is not None:
            visit.give(await _not_found(visit, opened, message))
        elif processing.reads_any_answers(visit):
            await processing.relay_shown(visit, opened, rewrite, message, opened.target)
        elif rewrite is None:
            await relay(visit, opened)
        else:
            await relay_rewritten(visit, opened, rewrite)
    finally:
        opened.call.cancel()


async def _not_found(visit: Visit, opened: Opened, message: Message) -> bytes:
    """A 404 that is not about the session, which was asked after (`Upstreams`): the client would take it for the end of
    its own. A JSON-RPC error that answers the request is one with any status. Raises `TargetFailed`."""
    text = await whole(visit, opened)
    try:
        found = messages.read(text)
    except Malformed:
        found = None
    if found is None or found.error is UNSET or found.request_id not in (message.request_id, None):
        raise TargetFailed(opened.target, _WITHIN)
    found.id = message.id
    return messages.encode(found)


async def asked(upstreams: Upstreams, target: TargetPlan, message: Message, body: bytes) -> Message:
    """A target's answer, read whole. Raises `TargetFailed`."""
    opened = await upstreams.post(target, body, LIST_SECONDS)
    try:
        return await upstreams.read(opened, message.request_id, target.name)
    finally:
        opened.call.cancel()


async def acknowledged(visit: Visit, opened: Opened) -> Reply | None:
    """The only server's answer to what wants none."""
    try:
        if opened.answer.status in (OK, ACCEPTED, NO_CONTENT):
            visit.out.whole(ACCEPTED, b"", b"")
        elif opened.answer.status == NOT_FOUND and visit.session is not None:
            raise TargetFailed(opened.target, _WITHIN)
        else:
            await relay(visit, opened)
    finally:
        opened.call.cancel()
    return None


async def notified(upstreams: Upstreams, target: TargetPlan, body: bytes) -> None:
    """Send what wants no answer. Raises `TargetFailed`."""
    opened = await upstreams.post(target, body, LIST_SECONDS)
    opened.call.cancel()
