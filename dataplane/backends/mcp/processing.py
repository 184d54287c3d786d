"""Guardrails on their way: requests before they go to servers, results before they go to the client.

A request is shown with the params that its server gets, names as the server has them; one for several servers once,
without params, and what is made of it is not used. Results are shown once, of several servers merged. Errors, and
messages that are neither, pass. Where results are shown no stream can be resumed: what comes again would not be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw

from dataplane.backends.mcp.answers import WRONG, Opened, TargetFailed, unreadable, wrong
from dataplane.backends.mcp.relay import JSON, STREAM, Rewrite, kind_of, passed_lines, relay, whole
from dataplane.backends.mcp.visit import EVENTS, Visit
from dataplane.backends.terminating.pump import pumped
from dataplane.http.heads import Head
from dataplane.http.sse import Aside, Event, write, write_aside
from dataplane.mcp import asked, messages
from dataplane.mcp.messages import Malformed, Message, Object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.chain.reply import Reply
    from dataplane.mcp.verdicts import Outcome, Rejected

REQUEST, RESPONSE = 1, 2
"""As `mcp/guardrails`, which is loaded where there are some."""
_OK: Final = 200
_NO_SUCCESS: Final = 300


def names(visit: Visit) -> tuple[str, ...]:
    """All targets."""
    return tuple(target.name for target in visit.plan.targets)


def _concerned(visit: Visit, message: Message, phase: int) -> tuple[Any, ...]:
    configured = visit.policies.guardrails
    if configured is None:
        return ()
    from dataplane.mcp import guardrails

    return guardrails.concerned(configured.processors, str(message.method), phase)


def reads_answers(visit: Visit, message: Message) -> bool:
    """Whether somebody is shown the result of this request."""
    return bool(_concerned(visit, message, RESPONSE))


def reads_any_answers(visit: Visit) -> bool:
    """Whether somebody is shown results of any method."""
    configured = visit.policies.guardrails
    if configured is None:
        return False
    return any(phases & RESPONSE for each in configured.processors for _, phases in each.methods)


# --- requests


async def request(visit: Visit, message: Message, body: bytes) -> tuple[Message, bytes]:
    """The message as processors have it. Raises `verdicts.Rejected`."""
    concerned = _concerned(visit, message, REQUEST)
    if not concerned:
        return message, body
    if visit.plan.several:
        await _judged(visit, concerned, REQUEST, message, names(visit), None)
        return message, body
    params = await item(visit, message, names(visit)[0], messages.object_of(message.params))
    made = Message("2.0", message.id, message.method, messages.raw(params) if params else message.params)
    return made, messages.encode(made)


async def item(visit: Visit, message: Message, target: str, params: Object) -> Object:
    """The params of a request to one target. Raises `verdicts.Rejected`."""
    concerned = _concerned(visit, message, REQUEST)
    if not concerned:
        return params
    content = messages.text(messages.raw(params))
    outcome = await _judged(visit, concerned, REQUEST, message, (target,), content)
    _pass_headers(visit, outcome)
    return params if outcome.content is content else messages.object_of(Raw(outcome.content or b"{}"))


async def _judged(
    visit: Visit,
    concerned: Sequence[Any],
    phase: int,
    message: Message,
    targets: tuple[str, ...],
    content: bytes | None,
) -> Outcome:
    from dataplane.mcp import guardrails, verdicts

    shown = guardrails.Message(str(message.method), targets, content, _headers(visit) if phase == REQUEST else ())
    try:
        outcome = await guardrails.judge(
            concerned, phase, shown, visit.x, visit.policies.guardrails, may_change=content is not None
        )
    except verdicts.Rejected as rejected:
        _leave(visit, rejected.metadata)
        raise
    _leave(visit, outcome.metadata)
    return outcome


def _leave(visit: Visit, metadata: dict[str, Any]) -> None:
    """What verdicts say for expressions that come later."""
    if metadata:
        known: Any = (visit.x.attributes or {}).get("mcpGuardrails") or {}
        visit.x.leave("mcpGuardrails", {**known, **metadata})


def _headers(visit: Visit) -> tuple[tuple[str, bytes], ...]:
    """Pseudo-headers and headers of the client's request, as its steps left them."""
    x = visit.x
    pseudo = ((":method", x.method), (":path", x.target), (":authority", x.authority), (":scheme", x.scheme))
    return (*pseudo, *((name.decode("latin-1").lower(), value) for name, value in visit.head.items()))


def _pass_headers(visit: Visit, outcome: Outcome) -> None:
    """Change what goes on to servers of the client's headers."""
    if not outcome.headers and not outcome.removed:
        return
    head = Head(b"\r\n" + visit.passing)
    for name in (*outcome.removed, *outcome.headers):
        head.remove(name.encode())
    for name, value in outcome.headers.items():
        head.set(name.encode(), value)
    visit.passing = asked.passing(head)


# --- results


async def result(visit: Visit, message: Message, targets: tuple[str, ...], found: Raw) -> Raw:
    """The result of a request as processors have it. Raises `verdicts.Rejected`."""
    concerned = _concerned(visit, message, RESPONSE)
    if not concerned:
        return found
    outcome = await _judged(visit, concerned, RESPONSE, message, targets, messages.text(found))
    return Raw(outcome.content or b"{}")


def refused(visit: Visit, message: Message, rejected: Rejected) -> Reply | None:
    """What a client gets of a message that is rejected: 200, with a JSON-RPC error."""
    visit.x.reason, visit.x.detail = "McpRejected", rejected.who
    visit.give_last(messages.error(message.request_id, rejected.code, rejected.text, rejected.data))
    return None


async def relay_shown(
    visit: Visit, opened: Opened, rewrite: Rewrite | None, message: Message, target: str, lines: bytes = b""
) -> None:
    """Pass an answer on, its result as processors have it; without any, where none of them is shown results of this
    method. `rewrite`: how its messages become the gateway's after that. Raises `verdicts.Rejected`."""
    kind = kind_of(opened)
    if opened.answer.status != _OK:
        await _relay_failure(visit, opened, target, lines)
    elif kind == JSON:
        shown = await _shown(visit, await whole(visit, opened), rewrite, message, target)
        if shown is None:
            raise TargetFailed(target, "it answered what was not asked")
        visit.give(shown, lines)
    elif kind == STREAM:
        visit.out.head(_OK, EVENTS + lines)
        await _relay_events(visit, opened, rewrite, message, target)
        visit.out.end()
    else:
        raise TargetFailed(target, "its answer is neither JSON nor a stream of events")


async def _relay_failure(visit: Visit, opened: Opened, target: str, lines: bytes) -> None:
    """An answer that is no success passes as it is, unless it has a result all the same: no processor was shown
    that."""
    status, kind = opened.answer.status, kind_of(opened)
    if status < _NO_SUCCESS or kind == STREAM:
        raise TargetFailed(target, f"it answered with status {status} and {kind[:40].decode('latin-1')}")
    if kind != JSON:
        await relay(visit, opened, lines)
        return
    text = await whole(visit, opened)
    try:
        has_result = bool(text) and "result" in messages.object_of(Raw(text))
    except Malformed as error:
        raise TargetFailed(target, f"its answer with status {status} is not readable: {error}") from None
    if has_result:
        raise TargetFailed(target, f"it answered with status {status} and a result")
    visit.out.whole(status, passed_lines(opened.answer.head) + lines, text)


async def _relay_events(visit: Visit, opened: Opened, rewrite: Rewrite | None, message: Message, target: str) -> None:
    async def shown(event: Event) -> bytes:
        text = await _shown(visit, event.data, rewrite, message, target) if event.data else b""
        return b"" if text is None else write(Event(text, event.type, None, event.retry))

    most = visit.plan.max_answer
    try:
        await pumped(
            opened.call, lambda event: _aside(event) if isinstance(event, Aside) else shown(event), visit.out, most
        )
    except WRONG as error:
        raise wrong(target, most, error) from None


async def _shown(visit: Visit, text: bytes, rewrite: Rewrite | None, message: Message, target: str) -> bytes | None:
    """A message of a server as the client gets it; None: not at all, since it is the result of another request, perhaps
    of a method that other processors are shown."""
    try:
        found = messages.read(text)
        if found.is_response and found.result is not UNSET:
            if found.request_id != message.request_id:
                return None
            found.result = await result(visit, message, (target,), found.result)
            text = messages.encode(found)
        return text if rewrite is None else rewrite.message(text)
    except Malformed as error:
        raise unreadable(target, error) from None


def _aside(aside: Aside) -> bytes:
    """What is beside events, as far as it says nothing: no processor was shown the text of a comment. There are no
    ids."""
    if aside.comment is None and aside.retry is None:
        return b""
    return write_aside(Aside(None if aside.comment is None else b"", None, aside.retry))


def check_stream(opened: Opened) -> None:
    """Raises `TargetFailed` for an answer to GET that succeeds and is not read event by event."""
    status, kind = opened.answer.status, kind_of(opened)
    if status != _OK or kind != STREAM:
        raise TargetFailed(opened.target, f"it answered GET with status {status} and no stream of events")


async def relay_unsolicited(visit: Visit, opened: Opened, rewrite: Rewrite, target: str) -> None:
    """The events of a stream that a server speaks on of its own accord; answers, which no processor would be shown, are
    left out."""

    def shown(event: Event | Aside) -> bytes:
        if isinstance(event, Aside):
            return _aside(event)
        if not event.data or messages.read(event.data).is_response:
            return b""
        text = rewrite.message(event.data)
        return b"" if text is None else write(Event(text, event.type, None, event.retry))

    most = visit.plan.max_answer
    try:
        await pumped(opened.call, shown, visit.out, most)
    except WRONG as error:
        raise wrong(target, most, error) from None
