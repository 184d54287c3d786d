"""Messages to one server, and what becomes of its answer: relayed, read, or acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.backends.mcp import guarding
from dataplane.backends.mcp.relay import Rewrite, relay, relay_rewritten
from dataplane.backends.mcp.upstreams import LIST_SECONDS, Opened, Upstreams
from dataplane.backends.mcp.visit import Visit
from dataplane.mcp.messages import Message

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import TargetPlan

OK: Final = 200
ACCEPTED: Final = 202
NO_CONTENT: Final = 204


def rewriting(visit: Visit, message: Message, target: TargetPlan) -> Rewrite | None:
    """What has to change in the answer: with several targets, names and ids."""
    return Rewrite(target.name, message.request_id, str(message.method)) if visit.plan.several else None


async def passed_on(
    visit: Visit, upstreams: Upstreams, target: TargetPlan, message: Message, body: bytes, rewrite: Rewrite | None
) -> Reply | None:
    """Send a request to one target and relay what it answers."""
    opened = await upstreams.post(target, body)
    try:
        if guarding.reads_any_answers(visit):
            await guarding.relay_shown(visit, opened, rewrite, message, target.name)
        elif rewrite is None:
            await relay(visit, opened)
        else:
            await relay_rewritten(visit, opened, rewrite)
    finally:
        opened.call.cancel()
    return None


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
        else:
            await relay(visit, opened)
    finally:
        opened.call.cancel()
    return None


async def notified(upstreams: Upstreams, target: TargetPlan, body: bytes) -> None:
    """Send what wants no answer. Raises `TargetFailed`."""
    opened = await upstreams.post(target, body, LIST_SECONDS)
    opened.call.cancel()
