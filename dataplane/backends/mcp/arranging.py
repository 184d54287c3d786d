"""What a client has arranged in its session with a server: noted on its way there, and said again to a session that
takes the place of one. Where that cannot be, the client's own session ends, so that it begins anew and arranges all of
it again (MCP 2025-11-25, Transports: 404).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import UNSET, Raw

from dataplane.backends.mcp.answers import TargetFailed, unreadable
from dataplane.mcp import arranged, messages
from dataplane.mcp.messages import Malformed
from dataplane.mcp.policies import MCP

if TYPE_CHECKING:
    from dataplane.backends.mcp.answers import Opened
    from dataplane.backends.mcp.typing import McpWorker
    from dataplane.backends.mcp.visit import Visit
    from dataplane.mcp.arranged import Arrangement
    from dataplane.mcp.messages import Message
    from dataplane.mcp.plans import TargetPlan
    from dataplane.mcp.sessions import Session, UpstreamSession

_REQUEST: Final = "gw-again"


class Servers(Protocol):
    """`upstreams.Upstreams`, as far as this asks it."""

    visit: Visit

    async def answer(self, target: TargetPlan, known: UpstreamSession, body: bytes) -> Opened: ...

    async def read(self, opened: Opened, request_id: messages.Id | None, target: str) -> Message: ...


class SessionLost(TargetFailed):
    """A server has forgotten its session, and with it what only the client can arrange anew."""


def note(visit: Visit, target: TargetPlan, message: Message, value: str | None) -> None:
    """A request goes to this server, which may arrange something: `value` is the level, or a URI as that has it."""
    session, method = visit.session, message.method
    if method in arranged.METHODS and session is not None and value is not None:
        context = visit.x.context
        context.of_kind(MCP).memory.arrangements.note(session.number, target.name, str(method), value, context.clock())


async def again(upstreams: Servers, target: TargetPlan, made: UpstreamSession, hello: Raw, was_there: bool) -> None:
    """Arrange in a new session what the one before had. `hello`: how its server answered `initialize`; `was_there`:
    there was one before. Raises `TargetFailed`, `SessionLost` where something may be lost."""
    session = upstreams.visit.session
    if session is None:
        return
    known = _known(upstreams.visit.x.context, session, target, upstreams.visit.now)
    try:
        can_arrange = arranged.can_arrange(hello)
    except Malformed as error:
        raise unreadable(target.name, error) from None
    if known is None and can_arrange and was_there:
        raise SessionLost(target.name, "it has forgotten the session, and not all is known that was arranged in it")
    for method, params in known.requests() if known is not None else ():
        await _said(upstreams, target, made, method, params)


def _known(context: McpWorker, session: Session, target: TargetPlan, now: float) -> Arrangement | None:
    began = context.clock() - (now - session.created)
    is_held = target.is_stdio or target.is_sse
    return context.of_kind(MCP).memory.arrangements.of(session.number, target.name, began, is_held)


async def _said(upstreams: Servers, target: TargetPlan, made: UpstreamSession, method: str, params: Raw) -> None:
    opened: Opened = await upstreams.answer(target, made, messages.request(method, _REQUEST, params))
    try:
        answer: Any = await upstreams.read(opened, _REQUEST, target.name)
    finally:
        opened.call.cancel()
    if answer.result is UNSET:
        raise SessionLost(target.name, f"it has forgotten the session, and takes {method} no more")
