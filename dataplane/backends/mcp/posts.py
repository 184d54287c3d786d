"""A message of a client: what it is, and who answers it (`hello`, `items`, `lists`); what is for all servers,
notifications and answers to requests of servers.

With one target, and no rules to ask, messages and answers pass as they are. What has to be read is read one message at
a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Raw

from dataplane.backends.mcp import arranging, failing, forwarding, hello, items, listening, lists, processing
from dataplane.backends.mcp.answers import TargetFailed
from dataplane.backends.mcp.sending import ACCEPTED, Sent, acknowledged, asked, notified, passed_on, rewriting
from dataplane.backends.mcp.upstreams import Upstreams, together
from dataplane.backends.mcp.visit import Visit
from dataplane.chain.reply import Reply
from dataplane.mcp import errors, merging, messages, modern, names, sessions, spellings, versions
from dataplane.mcp.arranged import SET_LEVEL
from dataplane.mcp.endpoints import QUERY
from dataplane.mcp.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Malformed,
    Message,
)
from dataplane.mcp.methods import ALL, ITEM, LIST, LISTEN, METHODS, OTHER, REFERENCE, is_idempotent
from dataplane.mcp.policies import MCP
from gatewright.kept_errors import again

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dataplane.backends.terminating.contract import Served
    from dataplane.backends.terminating.terminator import Terminator
    from dataplane.mcp.plans import TargetPlan


def post(visit: Visit, body: bytes, out: Terminator | None) -> Served:
    """The checks in this order: Accept, Content-Type, JSON, version, session. What needs no waiting is answered, or
    forwarded through `out`, before this returns. None: nothing is forwarded."""
    if QUERY in visit.x.asked_target:
        from dataplane.backends.mcp.legacy import client_posts  # few need it

        stream = client_posts.stream_of(visit)
        if stream is not None:
            return client_posts.post(visit, body, stream, served)
    if not visit.takes_stream:
        return errors.refused("McpNotAcceptable")
    if not visit.has_json:
        return errors.refused("McpContentType")
    return _begun(visit, body, out)


async def served(visit: Visit, body: bytes) -> Reply | None:
    """A message that another transport has brought."""
    found = _begun(visit, body, None)
    return found if found is None or isinstance(found, Reply) else await found


def _begun(visit: Visit, body: bytes, out: Terminator | None) -> Served:
    """`out`: through which it may be forwarded; None: it may not."""
    message = None
    try:
        message = messages.read(body)
        if visit.is_judged:
            body = messages.encode(message)  # what is judged is what is sent: nothing else beside it
        reply = _checked(visit, message)
        if reply is not None:
            return reply
        if out is not None and forwarding.may_pass(visit, message):
            return _forwarded(visit, message, body, out)
    except Malformed as error:
        return failing.malformed(error, message)
    return _served(visit, message, body)


def _checked(visit: Visit, message: Message) -> Reply | None:
    """Why a message is not served; None: it is, within its session. Raises `Malformed`."""
    asked = visit.version()
    visit.is_modern = asked == modern.REVISION
    if asked and asked not in versions.KNOWN and not visit.is_modern:
        return errors.wrong_version(asked, message.request_id, modern.is_meant(message))
    if visit.is_modern:
        modern.check(message, visit.head)
        if not visit.plan.may_be_modern:
            return errors.wrong_version(asked, message.request_id)
    method = "" if message.method is UNSET else message.method
    is_first = method == "initialize" and message.is_request
    if not is_first and not visit.plan.stateless and not visit.is_modern:
        reply = visit.open_session()
        if reply is not None:
            return reply
    visit.is_idempotent = is_idempotent(method)
    visit.describe(method or "response")
    visit.is_counted = True
    return None


def _forwarded(visit: Visit, message: Message, body: bytes, out: Terminator) -> Served:
    """A request for the only server, of which all is known. Raises `Malformed`."""
    upstreams = Upstreams(visit)
    sent = _READY.get(METHODS.get(str(message.method), OTHER).form, _ready)(visit, upstreams, message, body)
    if isinstance(sent, Sent):
        return forwarding.forward(visit, upstreams, message, sent, out)
    visit.is_answered = sent is None
    return sent


def _ready(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Sent:
    """What is about no item goes as it is. Raises `Malformed`."""
    method = str(message.method)
    if visit.is_judged and method not in METHODS and spellings.is_disguised(method):
        raise Malformed(METHOD_NOT_FOUND, "Method not found", message.request_id)
    (target,) = visit.plan.targets
    if method == SET_LEVEL:
        arranging.note(visit, target, message, _level(message))
    return Sent(target, body, rewriting(visit, upstreams, message, target))


def _level(message: Message) -> str | None:
    return messages.text_of(messages.object_of(message.params).get("level"))


_READY: Final[dict[str, Callable[[Visit, Upstreams, Message, bytes], Sent | Reply | None]]] = {
    ITEM: items.ready,
    REFERENCE: items.reference_ready,
}


async def _served(visit: Visit, message: Message, body: bytes) -> Reply | None:
    try:
        reply = await _processed(visit, message, body, message.method == "initialize" and message.is_request)
    except Malformed as error:
        return failing.malformed(error, message)
    visit.is_answered = reply is None
    return reply


async def _processed(visit: Visit, message: Message, body: bytes, is_first: bool) -> Reply | None:
    if visit.policies.guardrails is None:
        return await _asked(visit, message, body, is_first)
    from dataplane.mcp.verdicts import Rejected  # with protobuf's JSON: not where there are none

    try:
        if message.is_request and not (visit.plan.several and _is_addressed(str(message.method))):
            message, body = await processing.request(visit, message, body)
        return await _asked(visit, message, body, is_first)
    except Rejected as rejected:
        return processing.refused(visit, message, rejected)


def _is_addressed(method: str) -> bool:
    """It is for one target, which its params name: guardrails are asked when that is known."""
    return METHODS.get(method, OTHER).form in (ITEM, REFERENCE)


async def _asked(visit: Visit, message: Message, body: bytes, is_first: bool) -> Reply | None:
    upstreams = Upstreams(visit)
    try:
        if is_first:
            return await hello.initialize(visit, upstreams, message, body)
        if message.is_response:
            return await _respond(visit, upstreams, message, body)
        if not message.is_request:
            return await _notify(visit, upstreams, message, body)
        if message.method == "server/discover" and visit.plan.several:
            return await hello.discover(visit, upstreams, message, body)
        form = METHODS.get(str(message.method), OTHER).form
        return await _FORMS[form](visit, upstreams, message, body)
    except TargetFailed as failed:
        return failing.answered(visit, upstreams, message, failed)
    finally:
        if visit.plan.stateless and not visit.is_modern:
            upstreams.leave()


async def _other(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """A method that is not known here: the only target may know it."""
    if (visit.plan.several and visit.is_modern) or (visit.is_judged and spellings.is_disguised(str(message.method))):
        raise Malformed(METHOD_NOT_FOUND, "Method not found", message.request_id)
    if visit.plan.several:
        visit.give(messages.error(message.request_id, METHOD_NOT_FOUND, "Method not found"))
        return None
    return await _to_the_only_one(visit, upstreams, message, body)


async def _to_the_only_one(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    (target,) = visit.plan.targets
    return await passed_on(visit, upstreams, target, message, body, rewriting(visit, upstreams, message, target))


async def _all(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """`ping` and what else is for all servers: their answers are one."""
    if message.method == SET_LEVEL:
        for target in visit.plan.targets:
            arranging.note(visit, target, message, _level(message))
    if not visit.plan.several:
        return await _to_the_only_one(visit, upstreams, message, body)
    found = await together(visit, [asked(upstreams, target, message, body) for target in visit.plan.targets])
    failures = [each for each in found if isinstance(each, TargetFailed)]
    if failures and (not visit.plan.fail_open or len(failures) == len(found)):
        raise again(failures[0])
    answers = [each for each in found if not isinstance(each, TargetFailed)]
    wrong = [each for each in answers if each.result is UNSET]
    if len(wrong) == len(answers):
        visit.give(messages.encode(wrong[0]))
    else:
        result = await processing.result(visit, message, processing.names(visit), Raw(b"{}"))
        visit.give(messages.result(message.request_id, result))
    return None


async def _notify(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """A notification is for all servers: what it is about is known to one of them, the others pass it over. Progress is
    for the one that asked, since tokens of servers may be alike."""
    method = str(message.method)
    if not method.startswith("notifications/") and (visit.policies.rules or visit.policies.guardrails is not None):
        raise Malformed(INVALID_REQUEST, "a request needs an id")  # no rule or processor would be asked about it
    targets = [each for each in visit.plan.targets if not _is_lost(upstreams, each)]
    if visit.plan.stateless or visit.is_modern:
        visit.out.whole(ACCEPTED, b"", b"")  # there is no session that it could be about
        return None
    if not visit.plan.several:
        return await acknowledged(visit, await upstreams.post(visit.plan.targets[0], body))
    if method == "notifications/progress":
        body, targets = _progressed(message, targets)
    found = await together(visit, [notified(upstreams, target, body) for target in targets])
    failures = [each for each in found if isinstance(each, TargetFailed)]
    if failures and not visit.plan.fail_open:
        raise again(failures[0])
    visit.out.whole(ACCEPTED, b"", b"")
    return None


def _progressed(message: Message, targets: list[TargetPlan]) -> tuple[bytes, list[TargetPlan]]:
    """Progress of what a server has asked for, with the token that it gave; for no target where that is unknown
    here."""
    params = messages.object_of(message.params)
    found = names.untagged(messages.id_of(params.get(merging.TOKEN)))
    if found is None:
        return b"", []
    params[merging.TOKEN] = messages.raw(found[1])
    body = messages.notification(str(message.method), messages.raw(params))
    return body, [each for each in targets if each.name == found[0]]


def _is_lost(upstreams: Upstreams, target: TargetPlan) -> bool:
    known = upstreams.of(target.name)
    return known is None or known.lost


async def _respond(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """The client's answer to a request of a server."""
    if visit.plan.stateless:
        return await _respond_without_session(visit, upstreams, message)
    if not visit.plan.several:
        return await acknowledged(visit, await upstreams.post(visit.plan.targets[0], body))
    found = names.untagged(message.id)
    target = None if found is None else visit.plan.by_name.get(found[0])
    if found is None or target is None:
        raise Malformed(INVALID_PARAMS, "the id is that of no request", message.request_id)
    message.id = found[1]
    if merging.RELATED.encode() in body:
        message.result = merging.related(message.result, _own_task)
    return await acknowledged(visit, await upstreams.post(target, messages.encode(message)))


def _own_task(name: str) -> str:
    return names.parted("task", name)[1]


async def _respond_without_session(visit: Visit, upstreams: Upstreams, message: Message) -> Reply | None:
    """It goes to the session that was opened for the request of the client which the server works on."""
    text = message.id
    found = (
        sessions.opened_question(text, visit.x.context.of_kind(MCP).sealer, visit.owner)
        if isinstance(text, str)
        else None
    )
    target = None if found is None else visit.plan.by_name.get(found.session.target)
    if found is None or target is None:
        raise Malformed(INVALID_PARAMS, "the id is that of no request", message.request_id)
    message.id = found.request_id
    return await acknowledged(visit, await upstreams.answer(target, found.session, messages.encode(message)))


_FORMS: Final[dict[str, Callable[[Visit, Upstreams, Message, bytes], Awaitable[Reply | None]]]] = {
    ITEM: items.item,
    LIST: lists.merged,
    ALL: _all,
    REFERENCE: items.reference,
    LISTEN: listening.listen,
    OTHER.form: _other,
}
