"""A request to MCP servers: what every one of them is asked, then its method of HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from dataplane.backends.mcp import farewell, posts, streams
from dataplane.backends.mcp.visit import Visit, policies_of
from dataplane.chain.origins import NAMED
from dataplane.chain.reply import Reply
from dataplane.http.heads import Head
from dataplane.mcp import errors, rebinding

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.backends.mcp.typing import McpExchange
    from dataplane.backends.terminating.contract import Served
    from dataplane.backends.terminating.terminator import Terminator
    from dataplane.mcp.plans import McpPlan
    from dataplane.mcp.policies import McpPolicies, Tokens

METHODS: Final[dict[bytes, Callable[[Visit, bytes, Terminator], Served]]] = {
    b"POST": posts.post,
    b"GET": streams.get,
    b"DELETE": streams.delete,
}


def serve(out: Terminator) -> Served:
    """Answer a request through `out`, or with a `Reply`."""
    x = cast("McpExchange", out.x)
    plan = cast("McpPlan", x.backend_plan.of_kind)  # which the row (`backend`) has made
    policies = policies_of(x, plan)
    out.keep_alive = policies.keep_alive
    if policies.authentication is not None:
        return _served_if_authentic(x, out, plan, policies)
    return _served(x, out, plan, policies)


def _served(x: McpExchange, out: Terminator, plan: McpPlan, policies: McpPolicies) -> Served:
    handler = METHODS.get(x.method)
    if handler is None:
        return errors.refused("McpMethodNotAllowed", headers=b"allow: GET, POST, DELETE\r\n")
    visit = Visit(x, out, out.block, plan, policies)
    visit.farewell = farewell.of
    out.at_end = visit.over
    return visit.unusable() or _tricked(visit) or handler(visit, out.whole_body or b"", out)


async def _served_if_authentic(x: McpExchange, out: Terminator, plan: McpPlan, policies: McpPolicies) -> Reply | None:
    assert policies.authentication is not None  # that is why
    reply = await _authenticated(x, out, policies.authentication, out.whole_body or b"")
    if reply is not None:
        return reply
    found = _served(x, out, plan, policies)
    return found if found is None or isinstance(found, Reply) else await found


async def _authenticated(x: McpExchange, out: Terminator, tokens: Tokens, body: bytes) -> Reply | None:
    """None: the client may pass; its token, which was meant for us, goes to no server."""
    request = x.request
    before = request.block
    reply = await tokens.judge(x, body)  # type: ignore[arg-type]  # the exchange, of which this package sees a part
    if request.block is not before:
        head = Head(out.block)
        head.remove(b"authorization")
        out.block = head.block
    return reply


def _tricked(visit: Visit) -> Reply | None:
    x = visit.x
    if x.plan.is_named or x.listener.hostname or not rebinding.is_loopback(x.client.local):
        return None
    is_named = (x.attributes or {}).get(NAMED) is True
    if rebinding.is_tricked(x.asked_host, None if is_named else visit.head.get(b"origin")):
        return errors.refused("McpOriginNotAllowed")
    return None
