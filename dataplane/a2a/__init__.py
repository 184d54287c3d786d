"""The A2A protocol as far as a gateway reads it: which call a request is, what came of it, where a card leads. Pure.

Versions 0.3 and 1.0, in the bindings of both: JSON-RPC, REST and gRPC.
"""

from dataplane.a2a.call import Call, Facts
from dataplane.a2a.cards import BadCard, Way
from dataplane.a2a.documents import Unreadable

__all__ = ["BadCard", "Call", "Facts", "Unreadable", "Way"]
