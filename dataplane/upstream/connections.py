"""What a connection to an endpoint is to those who keep and lend it: one request at a time, or streams of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from dataplane.carriers import Upstream

SPEAKS_HTTP1: Final = "it chose HTTP/1.1"
"""In place of a cause: a connection came that is none of HTTP/2, and is kept in the pool."""


class Pooled(Upstream, Protocol):
    """A connection that carries one request at a time and is kept between two."""

    idle_since: float
    """When it was first seen unused (monotonic seconds); 0: it is in use, or not looked at yet."""

    def park(self) -> None:
        """It is not needed now: keep it for the next request."""

    def close(self) -> None: ...

    @property
    def is_gone(self) -> bool:
        """It is closed, by either end."""


class Shared(Protocol):
    """A connection of which streams are lent (`h2/shared_connection.SharedConnection`)."""

    on_capacity: Callable[[], None]
    idle_since: float

    @property
    def is_spent(self) -> bool: ...

    @property
    def streams(self) -> int: ...

    def free_streams(self) -> int: ...

    def lend(self) -> Upstream: ...

    def retire(self) -> None: ...

    def close(self) -> None: ...

    @property
    def is_gone(self) -> bool:
        """It is closed, by either end."""

    def is_late(self, now: float) -> bool:
        """It broke off, because the endpoint does not answer what it has to."""
