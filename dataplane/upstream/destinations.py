"""Backends whose destination each request or connection names (`kinds.Kind.by_request`), as those see them who look for
an endpoint. The kind's package carries it out; leases ask for it by the kind of a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol


class NoDestination(Exception):
    """Nothing is sent. `cause`: as of `endpoint.Lease.lease_failed`. The text is for the log."""

    def __init__(self, cause: str, text: str) -> None:
        super().__init__(text)
        self.cause = cause


class Named(NamedTuple):
    """What a request or a connection names. `host`: as `http/uri` makes it canonical, b"" where nothing is named;
    `port`: 0 for that of the scheme."""

    host: bytes
    port: int
    client: str | None = None
    """Address of the client who names it; None: no client's."""


NOTHING: Final = Named(b"", 0)


class Destinations(Protocol):
    """What a worker keeps for such a kind."""

    def toward(self, plan: Any, named: Named, ready: Callable[[], None]) -> Any:  # a BackendPlan: leases import this
        """The plan for this destination, with the endpoints that may be connected to. None: its name is being looked
        up, and `ready` will be called. Raises `NoDestination`."""
