"""GET: what servers have to say beside answers, several streams as one. DELETE: the end of a session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dataplane.backends.mcp import guarding
from dataplane.backends.mcp.answers import TargetFailed
from dataplane.backends.mcp.arranging import SessionLost
from dataplane.backends.mcp.relay import STREAM, kind_of, relay, relay_events, rewrite_of
from dataplane.backends.mcp.upstreams import NOT_FOUND, Upstreams, together
from dataplane.backends.mcp.visit import EVENTS, Visit
from dataplane.mcp import endpoints, errors, versions
from dataplane.mcp.messages import INTERNAL_ERROR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.backends.mcp.answers import Opened
    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import TargetPlan

_OK: Final = 200
_NO_SUCCESS: Final = 300
_WITHOUT_STREAM: Final = b"allow: POST, DELETE\r\n"


async def get(visit: Visit, body: bytes) -> Reply | None:
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
    is_shown = guarding.reads_any_answers(visit)
    last = None if is_shown else visit.head.get(b"last-event-id")
    try:
        if visit.plan.several:
            return await _merged(visit, upstreams, last)
        (target,) = visit.plan.targets
        opened = await upstreams.get(target, last)
        try:
            if opened.answer.status == NOT_FOUND:  # its session is there: it has no such stream
                return errors.refused("McpNoStream", headers=_WITHOUT_STREAM)
            if (is_shown or visit.policies.rules) and opened.answer.status < _NO_SUCCESS:
                guarding.check_stream(opened)
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
    return errors.error("McpTargetFailed", INTERNAL_ERROR, "MCP server is not available", None, str(failed))


async def _merged(visit: Visit, upstreams: Upstreams, last: bytes | None) -> Reply | None:
    """All streams as one. It begins with the first of them: a server may begin its own with the first event. With the
    id of an event: the stream of the target that it names goes on, alone. Raises `TargetFailed`."""
    targets, theirs = _resumed(visit, last)
    is_closed = not visit.plan.fail_open
    found = await together(visit, [_joined(visit, upstreams, each, theirs) for each in targets], is_closed)
    failures = [each for each in found if isinstance(each, TargetFailed)]
    if failures and (is_closed or len(failures) == len(found) or (visit.out.has_begun and True not in found)):
        raise failures[0]
    if not visit.out.has_begun:
        return errors.refused("McpNoStream", headers=_WITHOUT_STREAM)
    visit.out.end()
    return None


async def _joined(visit: Visit, upstreams: Upstreams, target: TargetPlan, last: bytes | None) -> bool:
    """Pass what one server says on the stream of all. False: it has none. Raises `TargetFailed`."""
    opened = await upstreams.get(target, last)
    try:
        if opened.answer.status != _OK or kind_of(opened) != STREAM:
            return False
        if not visit.out.has_begun:
            visit.out.head(_OK, EVENTS)
        await relay_stream(visit, target, opened, last is not None)
        return True
    finally:
        opened.call.cancel()


def _resumed(visit: Visit, last: bytes | None) -> tuple[Sequence[TargetPlan], bytes | None]:
    name, mark, theirs = (last or b"").partition(b":")
    target = visit.plan.by_name.get(name.decode("latin-1")) if mark else None
    return ((target,), theirs) if target is not None else (visit.plan.targets, None)


async def relay_stream(visit: Visit, target: TargetPlan, opened: Opened, is_resumed: bool = False) -> None:
    """What a server says beside answers, as the client may have it. Raises `TargetFailed`."""
    rewrite = replace(rewrite_of(visit, target.name), is_resumed=is_resumed)
    if guarding.reads_any_answers(visit):
        await guarding.relay_unasked(visit, opened, rewrite, target.name)
    else:
        await relay_events(visit, opened, rewrite)


async def delete(visit: Visit, body: bytes) -> Reply | None:
    if visit.plan.stateless:
        return errors.refused("McpNoStream", headers=b"allow: POST\r\n")
    reply = _version(visit) or visit.open_session()
    if reply is not None:
        return reply
    assert visit.session is not None  # it was opened
    visit.describe("delete")
    upstreams, context = Upstreams(visit), visit.x.context
    context.mcp_memory.end(visit.session.number)
    await together(visit, [upstreams.delete(target) for target in visit.plan.targets])
    if any(target.is_sse for target in visit.plan.targets):
        from dataplane.backends.mcp.legacy import requests  # only where there are some

        await requests.end_session(visit)
    visit.out.whole(_OK, b"", b"")
    return None
