"""What becomes of a new connection to one bind, before any request: finished when the bind is opened.

Rows of protocols; where a bind has phases (`entry`), they choose among the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dataplane.http.messages import Peer
    from dataplane.proxy.context import Context
    from dataplane.table.binds import BindPlan, Phases


class Successor(Protocol):
    """Takes over a connection whose first bytes were another protocol's preface, or whose phases are done. asyncio's
    protocol by shape."""

    def take_over(self, transport: Any, peer: Peer, data: bytes) -> None:
        """Go on with `transport`, of which `data` (the whole preface, and what came behind it) was read already. It has
        taken the place of the connection object before (`net.crowd.Crowd.replace`)."""


@dataclass(frozen=True, slots=True)
class Row:
    """A protocol that listeners speak. `preface`: what a client begins with; b"": nothing that identifies it."""

    name: str
    preface: bytes
    make: Callable[[ConnectionPlan], Any]
    """A connection: asyncio's protocol by shape; of one with requests also a `Successor`."""


@dataclass(frozen=True, slots=True, eq=False)
class ConnectionPlan:
    """Of one bind. A plaintext connection begins as `first`, which looks for the preface of `other` in bytes that are
    no request of its own: who speaks the first protocol pays nothing for the second."""

    context: Context
    bind: str
    first: Row
    other: Row
    raw: Row
    """Of listeners whose bytes pass as they are."""
    entry: Callable[[ConnectionPlan, BindPlan, Phases], Any]
    """Makes what a connection begins as where its bind has phases (`entry.Entry`)."""

    def open(self) -> Any:
        """A new connection: asyncio's protocol by shape."""
        bind = self.context.bind_of(self.bind)
        if bind is not None and bind.phases is not None:
            return self.entry(self, bind, bind.phases)
        if bind is not None and bind.is_raw:
            return self.raw.make(self)
        return self.first.make(self)
