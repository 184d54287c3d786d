"""Tokens of MCP clients, asked by the backend itself (`backend.mcp.authentication`, deprecated): what
`jwtAuthentication.mcp` does before all other steps, this does behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.filter import Env
from dataplane.chain.reply import Reply
from dataplane.credentials import authentication, locations
from dataplane.credentials.mcp_discovery import Discovery
from gatewright.wire.v1 import authentication_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange


class McpAuthentication:
    """Of one policy. Raises `Refused`."""

    __slots__ = ("_check", "_discovery")

    def __init__(self, config: authentication_pb2.JwtAuthentication, env: Env) -> None:
        place = locations.in_header("Authorization", b"Bearer")
        self._check = authentication.of(config, place, env, any_issuer=True).hook()
        self._discovery = Discovery(config, env, any_mode=True)

    async def judge(self, x: Exchange, body: bytes) -> Reply | None:
        """The answer to a request for metadata, or why a client may not pass; None: it may. A valid token is taken out
        of the request."""
        discovery = self._discovery
        path = x.asked_target.partition(b"?")[0]
        answer = discovery.answer(x, path, lambda asking: discovery.registered(body, asking))
        if answer is None:
            answer = self._check(x)
        found = answer if answer is None or isinstance(answer, Reply) else await answer
        return None if found is None else discovery.led(x, found)
