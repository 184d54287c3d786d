"""GET: what servers have to say beside answers (of several: `merged_streams`). DELETE: the end of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.backends.mcp import merged_streams, processing
from dataplane.backends.mcp.answers import TargetFailed
from dataplane.backends.mcp.arranging import SessionLost
from dataplane.backends.mcp.following import relay_stream
from dataplane.backends.mcp.relay import relay
from dataplane.backends.mcp.upstreams import NOT_FOUND, Upstreams, together
from dataplane.backends.mcp.visit import EVENTS, Visit
from dataplane.mcp import endpoints, errors, versions
from dataplane.mcp.messages import INTERNAL_ERROR
from dataplane.mcp.policies import MCP

if TYPE_CHECKING:
    from dataplane.backends.terminating.terminator import Terminator
    from dataplane.chain.reply import Reply

_OK: Final = 200
_NO_SUCCESS: Final = 300


async def get(visit: Visit, body: bytes, out: Terminator) -> Reply | None:
    if not visit.takes_stream:
        return errors.refused("McpNotAcceptable")
    if visit.session_id is None and endpoints.is_stream(visit.x.asked_target.partition(b"?")[0]):
        from dataplane.backends.mcp.legacy import client_streams  # few need it

        return await client_streams.serve(visit)
    if visit.plan.stateless:
        return errors.refused("McpNoStream", headers=b"allow: POST\r\n")
    reply = _version(visit) or visit.open_session()
    if reply is not None:
        return reply
    visit.describe("stream")
    upstreams = Upstreams(visit)
    is_shown = processing.reads_any_answers(visit)
    last = None if is_shown else visit.head.get(b"last-event-id")
    try:
        if visit.plan.several:
            return await merged_streams.pass_on(visit, last)
        (target,) = visit.plan.targets
        opened = await upstreams.get(target, last)
        try:
            if opened.answer.status == NOT_FOUND:  # its session is there: it has no such stream
                return errors.refused("McpNoStream", headers=merged_streams.WITHOUT_STREAM)
            if (is_shown or visit.policies.rules) and opened.answer.status < _NO_SUCCESS:
                processing.check_stream(opened)
                visit.out.head(_OK, EVENTS)
                await relay_stream(visit, target, opened)
                visit.out.end()
            else:
                await relay(visit, opened)
        finally:
            opened.call.cancel()
    except TargetFailed as failed:
        return _failed(visit, failed)
    return None


def _version(visit: Visit) -> Reply | None:
    asked = visit.version()
    return errors.wrong_version(asked, None) if asked and asked not in versions.KNOWN else None


def _failed(visit: Visit, failed: TargetFailed) -> Reply | None:
    if visit.out.has_begun:
        visit.out.lost()
        return None
    if isinstance(failed, SessionLost):
        return errors.refused("McpSessionUnknown", str(failed))
    return errors.error(failed.reason, INTERNAL_ERROR, "MCP server is not available", None, str(failed))


async def delete(visit: Visit, body: bytes, out: Terminator) -> Reply | None:
    if visit.plan.stateless:
        return errors.refused("McpNoStream", headers=b"allow: POST\r\n")
    reply = _version(visit) or visit.open_session()
    if reply is not None:
        return reply
    assert visit.session is not None  # it was opened
    visit.describe("delete")
    upstreams, context = Upstreams(visit), visit.x.context
    context.of_kind(MCP).memory.end(visit.session.number)
    await together(visit, [upstreams.delete(target) for target in visit.plan.targets])
    if any(target.is_sse for target in visit.plan.targets):
        from dataplane.backends.mcp.legacy import requests  # only where there are some

        await requests.end_session(visit)
    visit.out.whole(_OK, b"", b"")
    return None
