"""`backend.auth` as a value of `upstream/settings.Settings`: what makes a finisher for each backend that it covers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.upstream.auth.finishers import Refusing

if TYPE_CHECKING:
    from dataplane.upstream.outgoing import Finisher
    from dataplane.upstream.settings import CloudPlace

Made = Callable[[str, bool, "CloudPlace"], "Finisher"]
"""What writes credentials into requests to a host, with TLS or without; and what its backend says of a cloud."""


class BackendAuth:
    """Equal where `identity` is, a digest of the policy and of what is in its Secrets."""

    __slots__ = ("_identity", "finisher")

    def __init__(self, identity: bytes, finisher: Made) -> None:
        self._identity = identity
        self.finisher = finisher

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BackendAuth) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return "BackendAuth(<redacted>)"


def refused_auth(refused: str) -> BackendAuth:
    """Of one that cannot be built: nothing is sent without it."""
    return BackendAuth(refused.encode(), lambda host, is_tls, cloud: Refusing(refused))
