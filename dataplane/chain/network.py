"""Who may connect: rules of `frontend.networkAuthorization`, decided before a connection's protocol is read.

A bind has one `NetworkGate`, made of the rules of all its listeners when the configuration changes: which of them a
connection is for is not known yet. It is asked for connections of TCP, whatever they carry, and for each session of
UDP.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dataplane.chain.rules import DENY, Rule, decision
from dataplane.variables import Variables

if TYPE_CHECKING:
    from dataplane.http.messages import Peer
    from dataplane.variables import ListenerFacts
    from gatewright.cel.errors import CelError

REFUSED: Final = "NetworkAuthorizationDenied"
"""Why a connection was refused, in log and metrics."""


class Arrival(Variables):
    """A connection as expressions read it: who connects, and to which Gateway."""

    __slots__ = ("backend_plan", "bind", "client", "listener", "peer", "plan")

    def __init__(self, peer: Peer, bind: str, listener: ListenerFacts | None) -> None:
        self.client = peer
        self.peer = peer.address
        self.bind = bind
        self.listener = listener
        self.plan = self.backend_plan = self.attributes = None

    def evaluations_end(self, now: float, seconds: float) -> float:
        """All rules together, once for each connection. Nothing of what they read is as long as a client likes."""
        known = self.evaluations = getattr(self, "evaluations", None) or (0, now + seconds)
        return known[1]

    def cut_off(self, error: CelError) -> Exception:
        return error


class NetworkGate:
    """The rules of a bind. `listener`: any of its listeners, for the Gateway's name."""

    __slots__ = ("_bind", "_decide", "_listener", "rules")

    def __init__(self, rules: Iterable[Rule], bind: str, listener: ListenerFacts | None) -> None:
        self.rules = tuple(dict.fromkeys(rules))
        self._bind, self._listener = bind, listener
        self._decide = decision(self.rules, str)

    def refuses(self, peer: Peer) -> str:
        """Why nothing of this peer is read; "": it may connect."""
        return self._decide(Arrival(peer, self._bind, self._listener)) or ""

    def __repr__(self) -> str:
        return f"NetworkGate({len(self.rules)} rules)"


def closed(why: str) -> Rule:
    """The rule in place of one that cannot be applied: no client may connect."""
    return Rule(DENY, (), why, 0)
