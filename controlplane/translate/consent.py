"""Whether a Secret goes to the proxies of a Gateway: only where the namespace that it is in chose that.

The one place that decides it, for everything that carries Secrets: certificates of listeners and Gateways,
GatewayPolicies, GatewayBackends and their parts. Following a reference to a Service or GatewayBackend brings policies
along that its owner wrote, and these name Secrets; a reference that may be followed is no consent to that. Pure; who
leads to a Secret is found out by its caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from controlplane.translate.conditions import MOST_NAMED
from controlplane.translate.keys import ObjectKey, SecretUse
from gatewright.api.objects import grants
from gatewright.api.objects.grants import Permission

NOT_PERMITTED: Final = "RefNotPermitted"
"""The reason of Gateway API for a reference that lacks a ReferenceGrant."""

Granted = Callable[[Permission], bool]
"""Whether some ReferenceGrant gives exactly this."""


class Chooser(NamedTuple):
    """Objects of a kind and namespace of which one leads to a Secret: the Gateway itself, or what is attached to it."""

    group: str
    kind: str
    namespace: str


def missing(choosers: Iterable[Chooser], secret: ObjectKey, is_granted: Granted) -> tuple[Permission, ...]:
    """Nothing where the Secret goes to the Gateway: one of those that lead to it is of its own namespace, or has a
    ReferenceGrant there to it (Gateway API GEP-709). Else the permissions of which each would let it go.

    One choice is enough: what a proxy has, it has for all of its Gateway's routes.
    """
    lacking: dict[Permission, None] = {}
    for chooser in choosers:
        wanted = Permission(*chooser, "", "Secret", *secret)
        if grants.permitted(wanted, is_granted):
            return ()
        lacking[wanted] = None
    assert lacking  # a way leads to it, or it would not be asked for
    return tuple(lacking)


def withheld(use: SecretUse, lacking: Sequence[Permission]) -> str:
    """What is reported of a Secret that lacks permissions."""
    return f"Secret {use.secret} is kept from Gateway {use.gateway}: {grants.lacking(*lacking[:MOST_NAMED])} to use it"
