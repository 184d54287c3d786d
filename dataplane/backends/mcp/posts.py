"""A message of a client: `initialize`, requests about one item, lists, what all servers are asked, notifications,
answers to requests of servers.

With one target, and no rules to ask, messages and answers pass as they are. What has to be read is read one message at
a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET, Raw

from dataplane.backends.mcp import guarding, lists
from dataplane.backends.mcp.relay import Rewrite, relay, relay_rewritten
from dataplane.backends.mcp.upstreams import (
    LIST_SECONDS,
    Opened,
    TargetFailed,
    Upstreams,
    together,
)
from dataplane.backends.mcp.visit import SESSION, Visit
from dataplane.mcp import accept, errors, merging, messages, modern, names, sessions, spellings, versions
from dataplane.mcp.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Malformed,
    Message,
    Object,
)
from dataplane.mcp.methods import ALL, ITEM, LIST, METHODS, OTHER, REFERENCE, REFERENCES, Method

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import TargetPlan

MAX_ARGUMENTS: Final = 65_536
"""Bytes of arguments that rules read: more are refused, since a rule could not see them."""


async def post(visit: Visit, body: bytes) -> Reply | None:
    """The checks in this order: Accept, Content-Type, JSON, version, session."""
    if not accept.takes_stream(visit.takes):
        return errors.refused("McpNotAcceptable")
    if not (visit.head.get(b"content-type") or b"").lower().startswith(b"application/json"):
        return errors.refused("McpContentType")
    try:
        message = messages.read(body)
        if visit.is_judged:
            body = messages.encode(message)  # what is judged is what is sent: nothing else beside it
        return await _message(visit, message, body)
    except Malformed as error:
        return errors.malformed(error)


async def _message(visit: Visit, message: Message, body: bytes) -> Reply | None:
    asked = visit.version()
    visit.is_modern = asked == modern.REVISION
    if asked and asked not in versions.KNOWN and not visit.is_modern:
        return errors.wrong_version(asked, message.request_id, modern.is_meant(message))
    if visit.is_modern:
        modern.check(message, visit.head)
    method = "" if message.method is UNSET else message.method
    is_first = method == "initialize" and message.is_request
    if not is_first and not visit.plan.stateless and not visit.is_modern:
        reply = visit.open_session()
        if reply is not None:
            return reply
    visit.describe(method or "response")
    outcome = "failed"
    try:
        reply = await _guarded(visit, message, body, is_first)
        outcome = "denied" if visit.x.reason in _DENIED else "answered" if reply is None else "failed"
        return reply
    finally:
        visit.count(outcome)


_DENIED: Final = frozenset({"McpDenied", "McpRejected"})


async def _guarded(visit: Visit, message: Message, body: bytes, is_first: bool) -> Reply | None:
    if visit.policies.guardrails is None:
        return await _served(visit, message, body, is_first)
    from dataplane.mcp.guardrails import Rejected  # with protobuf's JSON: not where there are none

    try:
        if message.is_request and not (visit.plan.several and _is_addressed(str(message.method))):
            message, body = await guarding.request(visit, message, body)
        return await _served(visit, message, body, is_first)
    except Rejected as rejected:
        return guarding.refused(visit, message, rejected)


def _is_addressed(method: str) -> bool:
    """It is for one target, which its params name: guardrails are asked when that is known."""
    return METHODS.get(method, OTHER).form in (ITEM, REFERENCE)


async def _served(visit: Visit, message: Message, body: bytes, is_first: bool) -> Reply | None:
    upstreams = Upstreams(visit)
    try:
        if is_first:
            return await _initialize(visit, upstreams, message, body)
        if message.is_response:
            return await _respond(visit, upstreams, message, body)
        if not message.is_request:
            return await _notify(visit, upstreams, str(message.method), body)
        if message.method == "server/discover" and visit.plan.several:
            return await _discover(visit, upstreams, message, body)
        form = METHODS.get(str(message.method), OTHER).form
        return await _FORMS[form](visit, upstreams, message, body)
    except TargetFailed as failed:
        return _failed(visit, message, failed)
    finally:
        if visit.plan.stateless and not visit.is_modern:
            upstreams.leave()


def _failed(visit: Visit, message: Message, failed: TargetFailed) -> Reply | None:
    """A target that was needed gave no answer; with failureMode FailClosed the session ends with it."""
    if visit.out.has_begun:
        visit.out.lost()
        return None
    session = visit.session
    if session is not None and visit.plan.several and not visit.plan.fail_open:
        visit.x.context.mcp_memory.end(session.number)
    text = f"MCP server {failed.target} is not available"
    return errors.error("McpTargetFailed", INTERNAL_ERROR, text, message.request_id, str(failed))


# --- initialize


async def _initialize(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    params = messages.object_of(message.params)
    hello = b"{}" if message.params is UNSET else bytes(message.params)
    visit.session = None if visit.plan.stateless else visit.new_session(hello)
    if visit.plan.several:
        return await _initialize_all(visit, upstreams, message, params, body)
    (target,) = visit.plan.targets
    opened = await upstreams.hello(target, body)
    try:
        lines = b""
        if opened.answer.status == _OK and visit.session is not None:
            visit.session.upstreams.append(upstreams.begun(target, opened))
            lines = _session_line(visit)
        elif opened.answer.status == _OK:
            upstreams.begun(target, opened)
        if guarding.reads_any_answers(visit):
            await guarding.relay_shown(visit, opened, None, message, target.name, lines)
        else:
            await relay(visit, opened, lines)
    finally:
        opened.call.cancel()
    return None


_OK: Final = 200


def _session_line(visit: Visit) -> bytes:
    """The header that gives the client its session. Raises `TargetFailed` where that is too long."""
    assert visit.session is not None  # there is one while it is made
    try:
        text = sessions.sealed(visit.session, visit.x.context.sealer, visit.owner)
    except sessions.TooLong as error:
        raise TargetFailed("all", str(error)) from None
    visit.describe("initialize")
    return b"%b: %b\r\n" % (SESSION, text.encode())


async def _initialize_all(
    visit: Visit, upstreams: Upstreams, message: Message, params: Object, body: bytes
) -> Reply | None:
    targets = visit.plan.targets
    found = await together(visit, [_hello(upstreams, target, message, body) for target in targets])
    failures = [each for each in found if isinstance(each, TargetFailed)]
    if failures and (not visit.plan.fail_open or len(failures) == len(targets)):
        raise failures[0]
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
        result = merging.hello(version, answers, visit.plan.stateless, VERSION_OF_OURS)
    except Malformed as error:
        raise TargetFailed("one of them", f"its answer is not readable: {error}") from None
    result = await guarding.result(visit, message, guarding.names(visit), result)
    lines = b"" if visit.session is None else _session_line(visit)
    visit.give(messages.result(message.request_id, result), lines)
    return None


VERSION_OF_OURS: Final = "1"


async def _hello(
    upstreams: Upstreams, target: TargetPlan, message: Message, body: bytes
) -> tuple[sessions.UpstreamSession, Raw]:
    opened = await upstreams.hello(target, body)
    try:
        if opened.answer.status != _OK:
            raise TargetFailed(target.name, f"it answered initialize with {opened.answer.status}")
        answer = await upstreams.read(opened, message.request_id, target.name)
        if answer.result is UNSET:
            raise TargetFailed(target.name, "it answered initialize with an error")
        return upstreams.begun(target, opened), answer.result
    finally:
        opened.call.cancel()


# --- one item


class _Addressed(NamedTuple):
    """A request about one item: whose it is, and what its target gets."""

    target: TargetPlan
    name: str
    params: Object


async def _item(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    method = METHODS[str(message.method)]
    params = messages.object_of(message.params)
    if visit.is_judged:
        messages.exact(params, method.key, "arguments")
    name = messages.text_of(params.get(method.key))
    if name is None:
        raise Malformed(INVALID_PARAMS, f"params.{method.key} must be a string", message.request_id)
    found = _addressed(visit, method.kind, name, params, method.key)
    if found is None:
        return _missing(visit, message, method, name, "it names no target")
    if visit.plan.several and visit.policies.guardrails is not None:
        found = await _guarded_item(visit, message, method, found)
    visit.item(method.kind, found.target.name, found.name)
    if visit.policies.rules:
        arguments = _arguments(visit, found.params, message)
        denied = _denied(visit, method.kind, found, arguments)
        if denied is not None:
            return _missing(visit, message, method, name, denied)
    if visit.is_modern:
        visit.name_line = modern.name_line(found.name)
    if visit.plan.several or visit.policies.rules:  # what was looked at is written anew
        body = messages.encode(Message("2.0", message.id, message.method, messages.raw(found.params)))
    return await _pass(visit, upstreams, found.target, message, body, _rewriting(visit, message, found.target))


async def _guarded_item(visit: Visit, message: Message, method: Method, found: _Addressed) -> _Addressed:
    """What processors make of it: another item of the same target, perhaps, which rules are asked about then."""
    params = await guarding.item(visit, message, found.target.name, found.params)
    name = messages.text_of(params.get(method.key))
    if name is None:
        raise Malformed(INVALID_PARAMS, f"params.{method.key} must be a string", message.request_id)
    return _Addressed(found.target, name, params)


def _addressed(visit: Visit, kind: str, name: str, params: Object, key: str) -> _Addressed | None:
    plan = visit.plan
    if not plan.several:
        return _Addressed(plan.targets[0], name, params)
    target_name, own = names.parted(kind, name)
    target = plan.by_name.get(target_name)
    return None if target is None else _Addressed(target, own, {**params, key: messages.raw(own)})


def _denied(visit: Visit, kind: str, found: _Addressed, arguments: Any = None) -> str | None:
    """Why rules refuse an item, whichever way its server may read its name; None: they do not."""
    for name in spellings.spelled(kind, found.name):
        visit.item(kind, found.target.name, name, arguments)
        denied = visit.policies.for_calls(visit.x)  # type: ignore[arg-type]  # the exchange is the context
        if denied is not None:
            break
    visit.item(kind, found.target.name, found.name, arguments)
    return denied


def _arguments(visit: Visit, params: Object, message: Message) -> Any:
    """As expressions read them, and from now on the server; None where none does. Raises `Malformed`, also for names
    that the server may take for others."""
    try:
        if not visit.policies.reads_arguments or "arguments" not in params:
            return None
        value = messages.value_of(params["arguments"], MAX_ARGUMENTS)
        spellings.check_values(value)
        params["arguments"] = messages.raw(value)
        return value
    except Malformed as error:
        raise Malformed(error.code, f"params.arguments: {error}", message.request_id) from None


def _missing(visit: Visit, message: Message, method: Method, name: str, why: str) -> Reply | None:
    """What a client is told of an item that is not there, or not for it: the same (decisions, Refused MCP call)."""
    if visit.is_modern:  # MCP 2026-07-28, Transports: status of a JSON-RPC error
        text = method.missing + name
        data = {"uri": name} if method.kind == "resource" else None
        return errors.error("McpItemUnknown", INVALID_PARAMS, text, message.request_id, why, data)
    visit.x.detail = why
    visit.x.reason = "McpDenied"
    visit.give(messages.error(message.request_id, INVALID_PARAMS, method.missing + name))
    return None


class _Referred(NamedTuple):
    """What `ref` is about."""

    kind: str
    key: str
    name: str
    ref: Object


def _referred(message: Message, params: Object) -> _Referred:
    """Raises `Malformed`."""
    ref = messages.object_of(params.get("ref", UNSET))
    kind, key = REFERENCES.get(messages.text_of(ref.get("type")) or "", ("", ""))
    name = messages.text_of(ref.get(key))
    if name is None:
        raise Malformed(INVALID_PARAMS, "params.ref must be a reference to a prompt or a resource", message.request_id)
    return _Referred(kind, key, name, ref)


async def _reference(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """`completion/complete`: about the prompt or resource in `ref`."""
    params = messages.object_of(message.params)
    kind, key, name, ref = _referred(message, params)
    if visit.is_judged:
        messages.exact(params, "ref")
        messages.exact(ref, "type", *(key for _, key in REFERENCES.values()))
    found = _addressed(visit, kind, name, ref, key)
    method = METHODS["completion/complete"]
    if found is None:
        return _missing(visit, message, method, name, "it names no target")
    params["ref"] = messages.raw(found.params)
    own = found.name
    if visit.plan.several and visit.policies.guardrails is not None:
        params = await guarding.item(visit, message, found.target.name, params)
        kind, _, own, _ = _referred(message, params)
    visit.item(kind, found.target.name, own)
    if visit.policies.rules:
        denied = _denied(visit, kind, _Addressed(found.target, own, params))
        if denied is not None:
            return _missing(visit, message, method, name, denied)
    if visit.plan.several or visit.policies.rules:
        body = messages.encode(Message("2.0", message.id, message.method, messages.raw(params)))
    return await _pass(visit, upstreams, found.target, message, body, _rewriting(visit, message, found.target))


async def _other(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """A method that is not known here: the only target may know it."""
    if (visit.plan.several and visit.is_modern) or (visit.is_judged and spellings.is_disguised(str(message.method))):
        raise Malformed(METHOD_NOT_FOUND, "Method not found", message.request_id)
    if visit.plan.several:
        visit.give(messages.error(message.request_id, METHOD_NOT_FOUND, "Method not found"))
        return None
    return await _pass(visit, upstreams, visit.plan.targets[0], message, body, None)


def _rewriting(visit: Visit, message: Message, target: TargetPlan) -> Rewrite | None:
    return Rewrite(target.name, message.request_id, str(message.method)) if visit.plan.several else None


async def _pass(
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


# --- all of them


async def _all(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """`ping` and what else is for all servers: their answers are one."""
    if not visit.plan.several:
        return await _pass(visit, upstreams, visit.plan.targets[0], message, body, None)
    found = await together(visit, [_asked(upstreams, target, message, body) for target in visit.plan.targets])
    failures = [each for each in found if isinstance(each, TargetFailed)]
    if failures and (not visit.plan.fail_open or len(failures) == len(found)):
        raise failures[0]
    answers = [each for each in found if not isinstance(each, TargetFailed)]
    wrong = [each for each in answers if each.result is UNSET]
    if len(wrong) == len(answers):
        visit.give(messages.encode(wrong[0]))
    else:
        result = await guarding.result(visit, message, guarding.names(visit), Raw(b"{}"))
        visit.give(messages.result(message.request_id, result))
    return None


async def _asked(upstreams: Upstreams, target: TargetPlan, message: Message, body: bytes) -> Message:
    opened = await upstreams.post(target, body, LIST_SECONDS)
    try:
        return await upstreams.read(opened, message.request_id, target.name)
    finally:
        opened.call.cancel()


async def _discover(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """What all servers are, as one. When one of them does not know this revision, the client is told of the others, in
    which all of them can be had."""
    found = await together(visit, [_asked(upstreams, target, message, body) for target in visit.plan.targets])
    failures = [each for each in found if isinstance(each, TargetFailed)]
    if failures and (not visit.plan.fail_open or len(failures) == len(found)):
        raise failures[0]
    answers: list[tuple[str, Raw]] = []
    for target, each in zip(visit.plan.targets, found, strict=True):
        if isinstance(each, TargetFailed):
            continue
        if each.result is UNSET and _code(each) == INVALID_PARAMS:
            return errors.error("McpBadMessage", INVALID_PARAMS, "params are refused", message.request_id)
        if each.result is UNSET:
            return errors.wrong_version(modern.REVISION, message.request_id)
        answers.append((target.name, each.result))
    try:
        result = merging.discovered(answers, VERSION_OF_OURS)
    except Malformed as error:
        raise TargetFailed("one of them", f"its answer is not readable: {error}") from None
    result = await guarding.result(visit, message, guarding.names(visit), result)
    visit.give(messages.result(message.request_id, result))
    return None


def _code(answer: Message) -> Any:
    return messages.value_of(messages.object_of(answer.error).get("code"), _CODE)


_CODE: Final = 32
"""Bytes of a code."""


async def _notify(visit: Visit, upstreams: Upstreams, method: str, body: bytes) -> Reply | None:
    """A notification is for all servers: what it is about is known to one of them, the others pass it over."""
    if not method.startswith("notifications/") and (visit.policies.rules or visit.policies.guardrails is not None):
        raise Malformed(INVALID_REQUEST, "a request needs an id")  # nobody would be asked about it
    targets = [each for each in visit.plan.targets if not _is_lost(upstreams, each)]
    if visit.plan.stateless or visit.is_modern:
        visit.out.whole(_ACCEPTED, b"", b"")  # there is no session that it could be about
        return None
    if not visit.plan.several:
        return await _told(visit, await upstreams.post(visit.plan.targets[0], body))
    found = await together(visit, [_tell(upstreams, target, body) for target in targets])
    failures = [each for each in found if isinstance(each, TargetFailed)]
    if failures and not visit.plan.fail_open:
        raise failures[0]
    visit.out.whole(_ACCEPTED, b"", b"")
    return None


_ACCEPTED: Final = 202


def _is_lost(upstreams: Upstreams, target: TargetPlan) -> bool:
    known = upstreams.of(target.name)
    return known is None or known.lost


async def _told(visit: Visit, opened: Opened) -> Reply | None:
    """The only server's answer to what wants none."""
    try:
        if opened.answer.status in (_OK, _ACCEPTED, _NO_CONTENT):
            visit.out.whole(_ACCEPTED, b"", b"")
        else:
            await relay(visit, opened)
    finally:
        opened.call.cancel()
    return None


_NO_CONTENT: Final = 204


async def _tell(upstreams: Upstreams, target: TargetPlan, body: bytes) -> None:
    opened = await upstreams.post(target, body, LIST_SECONDS)
    opened.call.cancel()


async def _respond(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """The client's answer to a request of a server."""
    if not visit.plan.several:
        return await _told(visit, await upstreams.post(visit.plan.targets[0], body))
    found = names.untagged(message.id)
    target = None if found is None else visit.plan.by_name.get(found[0])
    if found is None or target is None:
        raise Malformed(INVALID_PARAMS, "the id is that of no request", message.request_id)
    message.id = found[1]
    return await _told(visit, await upstreams.post(target, messages.encode(message)))


_FORMS: Final[dict[str, Callable[[Visit, Upstreams, Message, bytes], Awaitable[Reply | None]]]] = {
    ITEM: _item,
    LIST: lists.merged,
    ALL: _all,
    REFERENCE: _reference,
    OTHER.form: _other,
}
