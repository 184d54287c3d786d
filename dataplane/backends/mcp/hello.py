"""What servers say of themselves, to a client as one: `initialize`, which begins a session, and `server/discover`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Raw

from dataplane.backends.mcp import processing
from dataplane.backends.mcp.answers import TargetFailed, unreadable
from dataplane.backends.mcp.relay import relay, relay_rewritten
from dataplane.backends.mcp.sending import OK, rewriting
from dataplane.backends.mcp.upstreams import LIST_SECONDS, Upstreams, together
from dataplane.backends.mcp.visit import Visit
from dataplane.mcp import errors, merging, messages, modern, sessions, versions
from dataplane.mcp.asked import SESSION
from dataplane.mcp.messages import INVALID_PARAMS, Malformed, Message, Object
from dataplane.mcp.policies import MCP
from gatewright.kept_errors import again

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import TargetPlan


async def initialize(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """`initialize`: a session with each target, of which the client gets one. Raises `TargetFailed`."""
    try:
        return await _initialized(visit, upstreams, message, body)
    except BaseException:  # it failed, was rejected, or its client left: what was opened will never be asked for
        upstreams.leave()
        raise


async def _initialized(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    params = messages.object_of(message.params)
    hello = b"{}" if message.params is UNSET else bytes(message.params)
    visit.session = None if visit.plan.stateless else visit.new_session(hello)
    if visit.plan.several:
        return await _initialize_all(visit, upstreams, message, params, body)
    (target,) = visit.plan.targets
    opened = await upstreams.hello(target, body)
    try:
        lines = b""
        if opened.answer.status == OK and visit.session is not None:
            visit.session.upstreams.append(upstreams.begun(target, opened))
            lines = _session_line(visit)
        elif opened.answer.status == OK:
            upstreams.begun(target, opened)
        rewrite = rewriting(visit, upstreams, message, target)
        if processing.reads_any_answers(visit):
            await processing.relay_shown(visit, opened, rewrite, message, target.name, lines)
        elif rewrite is not None:
            await relay_rewritten(visit, opened, rewrite, lines)
        else:
            await relay(visit, opened, lines)
    finally:
        opened.call.cancel()
    return None


def _session_line(visit: Visit) -> bytes:
    """The header that gives the client its session. Raises `TargetFailed` where that is too long."""
    assert visit.session is not None  # there is one while it is made
    try:
        text = sessions.sealed(visit.session, visit.x.context.of_kind(MCP).sealer, visit.owner)
    except sessions.TooLong as error:
        raise TargetFailed("all", str(error)) from None
    visit.enter()
    visit.describe("initialize")
    return b"%b: %b\r\n" % (SESSION, text.encode())


async def _initialize_all(
    visit: Visit, upstreams: Upstreams, message: Message, params: Object, body: bytes
) -> Reply | None:
    targets = visit.plan.targets
    found = await together(visit, [_hello(upstreams, target, message, body) for target in targets])
    failures = [each for each in found if isinstance(each, TargetFailed)]
    if failures and (not visit.plan.fail_open or len(failures) == len(targets)):
        raise again(failures[0])
    answers: list[tuple[str, Raw]] = []
    for target, each in zip(targets, found, strict=True):
        if isinstance(each, TargetFailed):
            made = sessions.UpstreamSession(target.name, lost=True)
        else:
            made, result = each
            answers.append((target.name, result))
        if visit.session is not None:
            visit.session.upstreams.append(made)
    version = messages.text_of(params.get("protocolVersion")) or versions.UNSPOKEN
    try:
        result = merging.hello(version, answers, visit.plan.stateless, GATEWAY_VERSION)
    except Malformed as error:
        raise unreadable("one of them", error) from None
    result = await processing.result(visit, message, processing.names(visit), result)
    lines = b"" if visit.session is None else _session_line(visit)
    visit.give(messages.result(message.request_id, result), lines)
    return None


GATEWAY_VERSION: Final = "1"


async def _hello(
    upstreams: Upstreams, target: TargetPlan, message: Message, body: bytes
) -> tuple[sessions.UpstreamSession, Raw]:
    opened = await upstreams.hello(target, body)
    try:
        if opened.answer.status != OK:
            raise TargetFailed(target.name, f"it answered initialize with {opened.answer.status}")
        answer = await upstreams.read(opened, message.request_id, target.name)
        if answer.result is UNSET:
            raise TargetFailed(target.name, "it answered initialize with an error")
        return upstreams.begun(target, opened), answer.result
    finally:
        opened.call.cancel()


async def discover(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """What all servers are, as one. When one of them does not know this revision, the client gets the
    revisions in which all of them can be had."""
    found = await together(visit, [_discovered(upstreams, target, message, body) for target in visit.plan.targets])
    failures = [each for each in found if isinstance(each, TargetFailed)]
    if failures and (not visit.plan.fail_open or len(failures) == len(found)):
        raise again(failures[0])
    answers: list[tuple[str, Raw]] = []
    for target, each in zip(visit.plan.targets, found, strict=True):
        if isinstance(each, TargetFailed):
            continue
        if each is not None and each.result is UNSET and messages.code_of(each) == INVALID_PARAMS:
            return errors.error("McpBadMessage", INVALID_PARAMS, "params are refused", message.request_id)
        if each is None or each.result is UNSET:
            return errors.wrong_version(modern.REVISION, message.request_id)
        answers.append((target.name, each.result))
    try:
        result = merging.discovered(answers, GATEWAY_VERSION)
    except Malformed as error:
        raise unreadable("one of them", error) from None
    result = await processing.result(visit, message, processing.names(visit), result)
    visit.give(messages.result(message.request_id, result))
    return None


async def _discovered(upstreams: Upstreams, target: TargetPlan, message: Message, body: bytes) -> Message | None:
    """What one server answers; None: it knows no requests without a session, and says so as servers of older revisions
    do, in a text. Raises `TargetFailed`."""
    opened = await upstreams.post(target, body, LIST_SECONDS)
    try:
        return await upstreams.read(opened, message.request_id, target.name)
    except TargetFailed:
        if opened.answer.status in _OF_OLD:
            return None
        raise
    finally:
        opened.call.cancel()


_OF_OLD: Final = frozenset({400, 404, 405, 406})
