"""A phase of a connection: what it is given, and what it answers. The phases in their order are `entry.PHASES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from dataplane.http.messages import Peer
    from dataplane.proxy.context import Context
    from dataplane.table.binds import ListenerPlan, Phases
    from dataplane.tls.transport import TlsTransport

MORE, NEXT, OVER = range(3)
"""MORE: it waits, for bytes or for something that will call `Arrival.go_on`; NEXT: it is done, or has nothing to do;
OVER: the connection was closed, or is somebody else's now."""


class Arrival(Protocol):
    """A connection that has no protocol yet (`entry.Entry`): `net.crowd.Guest`, and asyncio's protocol by shape."""

    context: Context
    bind: str
    phases: Phases
    transport: Any
    """Below: the socket's, or what a phase has put on it."""
    peer: Peer
    data: bytes
    """What came and belongs to no phase yet."""
    wanted: int
    """Bytes of `data` that a phase waits for."""
    listener: ListenerPlan | None
    """Chosen by a phase."""
    server_name: bytes
    """That the client asked for, of TLS, in lower case."""
    secure: TlsTransport | None
    """Whose handshake is under way, or done."""
    is_new: bool
    """It is a socket's, and has not been judged by limits of connections."""
    is_over: bool
    """It was handed on, or closed."""

    @property
    def idle_from(self) -> float: ...

    def close_idle(self) -> None: ...

    def connection_lost(self, error: Exception | None) -> None: ...

    def has_time(self, seconds: float) -> None:
        """From now on, for what comes next."""

    def go_on(self) -> None:
        """Take phases while they answer `NEXT`."""

    def hang_up(self) -> int:
        """End the connection without a word; `OVER`."""


ArrivalT = TypeVar("ArrivalT", bound=Arrival)


@dataclass(frozen=True, slots=True)
class Phase(Generic[ArrivalT]):
    """`step` looks at `arrival.data`, takes what is its own off the front, and answers `MORE`, `NEXT` or `OVER`; `NEXT`
    at once where `arrival.phases` has nothing for it. It is called again when more has come, or by `arrival.go_on`."""

    name: str
    step: Callable[[ArrivalT], int]
    reason: str
    late: Callable[[ArrivalT], int] | None = None
    """Called when the time is over while the connection is here; answers as `step`. None: it is closed."""
