"""What the agent and its workers say to each other. Values only; how they become bytes is `link/codec`.

A worker is sent in this order: `Hello` and `Common`, then a whole state (`Changes`..., `StateEnd`), which it answers
with `Prepared`; when that is committed, sockets for the binds that it knows; then, for ever, the differences between
states. One state is under way at a time: a worker begins with the next when the one before is committed. Descriptors
travel beside the bytes: messages whose `carries_fd` is true come with exactly one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

RESOURCE = "type.googleapis.com/gatewright.wire.v1.Resource"
ENDPOINT = "type.googleapis.com/gatewright.wire.v1.Endpoint"
TYPE_URLS = (ENDPOINT, RESOURCE)
"""The types that a proxy knows, in the order in which a state brings them: endpoints before what uses them."""


class Record(NamedTuple):
    """One resource of a state; `value` None: it is gone. The same fields as `table.store.Change`."""

    type_url: str
    name: str
    value: bytes | None

    def __repr__(self) -> str:
        return f"Record({self.name})"  # the value may be a Secret


@dataclass(frozen=True, slots=True)
class Message:
    carries_fd: ClassVar[bool] = False


# Agent to worker.


@dataclass(frozen=True, slots=True, repr=False)
class Hello(Message):
    """First. The descriptor is the region of this worker's metrics. The repr is bare: the key is secret."""

    carries_fd: ClassVar[bool] = True
    index: int
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Common(Message):
    """Second. The descriptor is the region that all workers of the proxy have in common (`commits.Commits`)."""

    carries_fd: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Changes(Message):
    """A part of a state; takes no effect before its `StateEnd` and the commit."""

    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class StateEnd(Message):
    number: int


@dataclass(frozen=True, slots=True)
class Commit(Message):
    """The state with this number is in effect: wakes a worker that has had no request since."""

    number: int


@dataclass(frozen=True, slots=True)
class OpenBind(Message):
    """The descriptor is a listening socket for the bind with this key, or one that datagrams come to."""

    carries_fd: ClassVar[bool] = True
    key: str


@dataclass(frozen=True, slots=True)
class CloseBind(Message):
    """Take what waits in the socket, then stop accepting; answered with `BindClosed`."""

    key: str


@dataclass(frozen=True, slots=True)
class Drain(Message):
    """Go on accepting for `minimum` seconds, let connections end, then end; at `maximum` whatever is open."""

    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Ping(Message):
    """Answered with `Pong` by an event loop that turns."""

    number: int


@dataclass(frozen=True, slots=True)
class DumpRequest(Message):
    number: int


@dataclass(frozen=True, slots=True)
class LogLevel(Message):
    """New log levels: of everything, and of modules that differ."""

    default: str
    modules: dict[str, str] = field(default_factory=dict)


# Worker to agent.


class WantedBind(NamedTuple):
    """Where the worker's table says that a bind listens (part of `Prepared`)."""

    key: str
    port: int
    addresses: tuple[str, ...]
    streams: bool = True
    """Connections come to it."""
    datagrams: bool = False
    """Datagrams of UDP do."""


@dataclass(frozen=True, slots=True)
class Prepared(Message):
    """The state is ready, but for the resources in `refused` (key -> reason); no request meets it before the commit,
    and none meets the state before afterwards."""

    number: int
    refused: dict[str, str]
    binds: tuple[WantedBind, ...]


@dataclass(frozen=True, slots=True)
class BindOpened(Message):
    key: str


@dataclass(frozen=True, slots=True)
class BindClosed(Message):
    key: str


@dataclass(frozen=True, slots=True)
class Pong(Message):
    number: int


class Trouble(NamedTuple):
    """An endpoint of a backend that is not well, as one worker has it (part of `Troubles`). Moments are monotonic
    seconds, the same for all processes."""

    backend: str
    """Its key; "": of a failed connection that no try of a backend was judged by."""
    endpoint: str
    """As it appears in logs."""
    unhealthy: int
    """Percent, as a health policy has it."""
    evicted_until: float
    """0: it is not evicted."""
    server_name: str
    """Of TLS, with which connecting failed."""
    reason: str
    """The system's or OpenSSL's; "": connections come."""
    failures: int
    """Connections that did not come, since the last one that did."""
    last_failure: float


@dataclass(frozen=True, slots=True)
class Troubles(Message):
    """All endpoints that are not well, in place of those reported before."""

    rows: tuple[Trouble, ...]


@dataclass(frozen=True, slots=True)
class DumpAnswer(Message):
    number: int
    dump: dict[str, Any]
