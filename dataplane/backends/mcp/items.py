"""Requests about one item of one server: a tool, a prompt, a resource, or what `completion/complete` refers to.

Its name leads to the server; guardrails and rules are asked about it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET

from dataplane.backends.mcp import arranging, processing
from dataplane.backends.mcp.sending import Sent, passed_on, rewriting
from dataplane.backends.mcp.upstreams import Upstreams
from dataplane.backends.mcp.visit import Visit
from dataplane.mcp import errors, messages, modern, names, spellings
from dataplane.mcp.messages import INVALID_PARAMS, Malformed, Message, Object
from dataplane.mcp.methods import METHODS, REFERENCES, Method

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import TargetPlan

MAX_ARGUMENTS: Final = 65_536
"""Bytes of arguments that rules read: more are refused, since a rule could not see them."""


class _Addressed(NamedTuple):
    """A request about one item: whose it is, and what its target gets."""

    target: TargetPlan
    name: str
    params: Object


async def item(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """A request whose params name a tool, a prompt or a resource. Raises `Malformed`, `TargetFailed`."""
    method, name, found = _asked(visit, message)
    if found is not None and visit.plan.several and visit.policies.guardrails is not None:
        found = await _processed_item(visit, message, method, found)
    return await _passed_on(visit, upstreams, message, _judged(visit, upstreams, message, body, (method, name, found)))


def ready(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Sent | Reply | None:
    """The same where there are no guardrails, as far as it needs no waiting. Raises `Malformed`."""
    return _judged(visit, upstreams, message, body, _asked(visit, message))


async def _passed_on(visit: Visit, upstreams: Upstreams, message: Message, sent: Sent | Reply | None) -> Reply | None:
    if not isinstance(sent, Sent):
        return sent
    return await passed_on(visit, upstreams, sent.target, message, sent.body, sent.rewrite)


def _asked(visit: Visit, message: Message) -> tuple[Method, str, _Addressed | None]:
    """Method, the name of the item as the client has it, and whose it is; None: no target's. Raises `Malformed`."""
    method = METHODS[str(message.method)]
    params = messages.object_of(message.params)
    if visit.is_judged:
        messages.exact(params, method.key, "arguments")
    name = messages.text_of(params.get(method.key))
    if name is None:
        raise Malformed(INVALID_PARAMS, f"params.{method.key} must be a string", message.request_id)
    return method, name, _addressed(visit, method.kind, name, params, method.key)


def _judged(
    visit: Visit, upstreams: Upstreams, message: Message, body: bytes, asked: tuple[Method, str, _Addressed | None]
) -> Sent | Reply | None:
    """What its target gets, where rules let it; None: it is answered. Raises `Malformed`."""
    method, name, found = asked
    if found is None:
        return _missing(visit, message, method, name, "it names no target")
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
    arranging.note(visit, found.target, message, found.name)
    return Sent(found.target, body, rewriting(visit, upstreams, message, found.target))


async def _processed_item(visit: Visit, message: Message, method: Method, found: _Addressed) -> _Addressed:
    """What processors make of it: another item of the same target, perhaps, which rules are asked about then."""
    params = await processing.item(visit, message, found.target.name, found.params)
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
    denied = visit.refuses(kind, found.target.name, found.name, arguments)
    visit.item(kind, found.target.name, found.name, arguments)
    return denied


def _arguments(visit: Visit, params: Object, message: Message) -> Any:
    """As expressions read them, and from now on the server; None where none does, or there are none. Raises
    `Malformed`, also for names that the server may take for others."""
    try:
        if not visit.policies.reads_arguments or "arguments" not in params:
            return None
        value = messages.value_of(params["arguments"], MAX_ARGUMENTS)
        if value is not None and not isinstance(value, dict):
            raise Malformed(INVALID_PARAMS, "must be an object")
        spellings.check_values(value)
        params["arguments"] = messages.raw(value)
        return value
    except Malformed as error:
        raise Malformed(error.code, f"params.arguments: {error}", message.request_id) from None


def _missing(visit: Visit, message: Message, method: Method, name: str, why: str) -> Reply | None:
    """What a client reads of an item that is not there, or not for it: the same."""
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
    found = REFERENCES.get(messages.text_of(ref.get("type")) or "")
    name = None if found is None else messages.text_of(ref.get(found[1]))
    if found is None or name is None:
        raise Malformed(INVALID_PARAMS, "params.ref must be a reference to a prompt or a resource", message.request_id)
    return _Referred(*found, name, ref)


async def reference(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """`completion/complete`: about the prompt or resource in `ref`. Raises `Malformed`, `TargetFailed`."""
    params, found = _reference_asked(visit, message)
    if found is not None and visit.plan.several and visit.policies.guardrails is not None:
        params = await processing.item(visit, message, found.target.name, params)
        found = _Addressed(found.target, _referred(message, params).name, params)
    sent = _reference_judged(visit, upstreams, message, body, params, found)
    return await _passed_on(visit, upstreams, message, sent)


def reference_ready(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Sent | Reply | None:
    """As `ready`."""
    return _reference_judged(visit, upstreams, message, body, *_reference_asked(visit, message))


def _reference_asked(visit: Visit, message: Message) -> tuple[Object, _Addressed | None]:
    """The params that its target gets, and whose it is. Raises `Malformed`."""
    params = messages.object_of(message.params)
    kind, key, name, ref = _referred(message, params)
    if visit.is_judged:
        messages.exact(params, "ref")
        messages.exact(ref, "type", *(key for _, key in REFERENCES.values()))
    found = _addressed(visit, kind, name, ref, key)
    if found is not None:
        params["ref"] = messages.raw(found.params)
    return params, found


def _reference_judged(
    visit: Visit, upstreams: Upstreams, message: Message, body: bytes, params: Object, found: _Addressed | None
) -> Sent | Reply | None:
    """As `_judged`."""
    kind, _, name, _ = _referred(message, messages.object_of(message.params))
    method = METHODS["completion/complete"]
    if found is None:
        return _missing(visit, message, method, name, "it names no target")
    kind = _referred(message, params).kind
    visit.item(kind, found.target.name, found.name)
    if visit.policies.rules:
        denied = _denied(visit, kind, _Addressed(found.target, found.name, params))
        if denied is not None:
            return _missing(visit, message, method, name, denied)
    if visit.plan.several or visit.policies.rules:
        body = messages.encode(Message("2.0", message.id, message.method, messages.raw(params)))
    return Sent(found.target, body, rewriting(visit, upstreams, message, found.target))
