"""A request to MCP servers: what every one of them is asked, then its method of HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.backends.mcp import posts, streams
from dataplane.backends.mcp.visit import Visit
from dataplane.mcp import errors, rebinding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dataplane.backends.mcp.outlet import Outlet
    from dataplane.chain.reply import Reply

METHODS: Final[dict[bytes, Callable[[Visit, bytes], Awaitable[Reply | None]]]] = {
    b"POST": posts.post,
    b"GET": streams.get,
    b"DELETE": streams.delete,
}


async def serve(out: Outlet, body: bytes) -> Reply | None:
    """Answer a request through `out`, or with a `Reply`."""
    handler = METHODS.get(out.x.method)
    if handler is None:
        return errors.refused("McpMethodNotAllowed", headers=b"allow: GET, POST, DELETE\r\n")
    visit = Visit(out)
    return visit.unusable() or _tricked(visit) or await handler(visit, body)


def _tricked(visit: Visit) -> Reply | None:
    x = visit.x
    address = x.client.local.rpartition(b":")[0].strip(b"[]").decode("ascii", "replace")
    if not rebinding.is_loopback(address) or x.plan.is_named or x.listener.hostname:
        return None
    host = x.asked_host
    if rebinding.is_tricked(host, visit.head.get(b"origin")):
        return errors.refused("McpOriginNotAllowed")
    return None
