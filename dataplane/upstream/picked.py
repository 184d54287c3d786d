"""Endpoints that a step of the backend has picked for a request (the picker of an InferencePool): left by the step,
read by leases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.upstream.endpoint import Endpoint

_NAME: Final = "?picked"


class Holder(Protocol):
    """Of `endpoint.Lease`."""

    @property
    def attributes(self) -> Mapping[str, object] | None: ...

    @property
    def retries(self) -> Tried | None: ...


class Tried(Protocol):
    @property
    def tried(self) -> list[Endpoint]: ...


def leave(x: Exchange, endpoints: Sequence[Endpoint]) -> None:
    """These, in the order of preference."""
    x.leave(_NAME, endpoints)


def forget(x: Exchange) -> None:
    """What another try has left."""
    if x.attributes is not None:
        x.attributes.pop(_NAME, None)


def chosen(holder: Holder, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
    """Of `endpoints` those that `holder` may be sent to: the first that was picked and not tried, or, where nothing was
    picked, all. A step that must pick has refused before."""
    found: Any = None if holder.attributes is None else holder.attributes.get(_NAME)
    if not found:
        return endpoints
    tried = () if holder.retries is None else holder.retries.tried
    return (next((each for each in found if each not in tried), found[0]),)
