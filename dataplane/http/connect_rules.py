"""What a bind does with CONNECT (`frontend.connect`), as a value. Made when the configuration changes; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CONNECT: Final = b"CONNECT"

DENY, ROUTE, TUNNEL, UNUSABLE = "Deny", "Route", "Tunnel", "Unusable"
"""Refused; routed as any request; taken as a connection to another bind; asked for in a way that this proxy does not
know."""

MAX_DEPTH: Final = 4
"""Tunnels that a connection may lie within: each costs what it carries once more."""

IDLE_TIMEOUT: Final = 3600.0
"""Seconds without a byte in either direction after which a tunnel is closed, where `frontend.limits` says no
`streamIdleTimeout`."""


@dataclass(frozen=True, slots=True)
class ConnectRule:
    """`why`: of `UNUSABLE`, for the log."""

    mode: str
    why: str = ""


_STRICTEST: Final = (UNUSABLE, DENY, ROUTE, TUNNEL)


def strictest(rules: list[ConnectRule]) -> ConnectRule | None:
    """Of the listeners of a bind; None for none. They have one Gateway, so they are the same."""
    return min(rules, key=lambda rule: _STRICTEST.index(rule.mode), default=None)


def closed(why: str) -> ConnectRule:
    """The rule in place of one that cannot be applied."""
    return ConnectRule(UNUSABLE, why)
