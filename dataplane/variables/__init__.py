"""What expressions read of an exchange: the table of variables (`gatewright/variables`) as attributes.

`Exchange` inherits from `Variables`, so it is itself the context of evaluation and making one costs nothing. An
attribute is worked out when an expression reads it. Values that policies find out are in `Exchange.attributes`, by the
path of their variable ("jwt", "extauthz", "metadata", ...); one that no policy has set has no value (None), an open
map is empty.
"""

from dataplane.variables.contracts import (
    BackendFacts,
    ComputingTurns,
    EndpointFacts,
    ListenerFacts,
    RouteFacts,
    Services,
)
from dataplane.variables.facts import Unread
from dataplane.variables.variables import Variables

__all__ = [
    "BackendFacts",
    "ComputingTurns",
    "EndpointFacts",
    "ListenerFacts",
    "RouteFacts",
    "Services",
    "Unread",
    "Variables",
]
