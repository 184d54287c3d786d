"""A kind of backend, whole: what the table and the path of requests ask of one. The rows are `backends/registry.KINDS`.

Nothing outside a kind's package and the registry knows its name. A kind that only forwards has endpoints, or an address
that is written in its message; one that ends requests itself has parts (`parts`), and makes a finished value of its
message (`plan`), which it finds again in `BackendPlan.of_kind`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from dataplane.chain.filter import Refused

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange
    from dataplane.upstream.lease import BackendPlan, Lease, Leases
    from dataplane.upstream.outgoing import Finisher
    from dataplane.upstream.parts import Part

MAX_PORT: Final = 65535

FORWARDED, WITH_RULES, REFUSED, OUTSIDE = "forwarded", "with_rules", "refused", "outside"
"""Rows of `backends/registry` that are no kinds: endpoints and nothing else; policies for the sake of what forwards;
what nothing may be sent to; servers that no configuration names."""
UNKNOWN: Final = "unknown"
"""`backend.type` where nothing says what a backend is."""


class Address(NamedTuple):
    """What is written as an address: a host (a name, or an IP address) and port, 0 for that of the scheme; or the path
    of a Unix socket."""

    host: str
    port: int
    unix_path: str


class Position(NamedTuple):
    """Where policies for a backend are attached: the object that it was made from, and names of its part."""

    kind: str
    namespace: str
    name: str
    sections: tuple[str, ...]


class Services(Protocol):
    """What a worker keeps for a kind of backend."""

    @property
    def sockets(self) -> int:
        """Descriptors by which other workers of the proxy ask this one."""

    def close(self) -> None:
        """The worker ends: give back what outlives exchanges."""


class Kind(Protocol):
    """One row. Messages are those of the field `name` of the wire's Backend: each kind knows its own, so here they are
    Any."""

    name: str
    """Field of the wire's Backend."""
    policy: str
    """Field of the wire's Policy that says what happens in it (`chain/filter.OF_KIND`); "": none does."""
    type: str
    """What expressions call it (`backend.type`)."""
    protocol: str
    """What it is spoken to in (`backend.protocol`), where `application` says nothing else."""
    modules: tuple[str, ...]
    """What it needs loaded, in this order: workers without such a backend need no memory for it, and the loop serves
    between two of them."""
    keeps_name: bool
    """Requests keep their host where no `hostRewrite` says otherwise, unless the backend is a host name."""
    by_request: bool
    """Each request or connection names its destination: plans are finished for each (`plans.BackendPlan.toward`). Its
    services are `upstream/destinations.Destinations`."""

    def check(self, message: Any) -> None:
        """Raises `Refused` for what cannot work."""

    def address(self, message: Any) -> Address | None:
        """Where it is, where that is written in it; None: its endpoints are resources of their own, or its parts'."""

    def awaits(self, message: Any) -> bool:
        """Whether endpoints will come, without which nothing is sent to it."""

    def position(self, key: str, message: Any) -> Position:
        """Where policies for it are attached. `key`: of the Backend."""

    def host(self, message: Any) -> str:
        """Its host in lower case, as certificates have it; "" where it has none."""

    def spoken(self, message: Any) -> tuple[int, str]:
        """Its port, 0 where that is the scheme's, and what is spoken there (`appProtocol`)."""

    def application(self, message: Any) -> str:
        """Row of what stands between requests and its carrier; "": nothing."""

    def finishers(self, message: Any) -> Sequence[Finisher]:
        """What finishes each request to it before credentials do (`outgoing`)."""

    def parts(self, message: Any) -> Sequence[Part]:
        """What it sends requests on to; (): it only forwards."""

    def plan(self, message: Any, parts: Sequence[Part], policies: object) -> object:
        """The finished value for requests, None where it only forwards. `parts`: with what policies say of them;
        `policies`: what those of its own field come to, or None."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        """As `lease.Backend.begin`."""

    def services(self, worker: Any) -> Services | None:
        """What a worker keeps for it (`proxy/context.Context.of_kind`), made when that is first asked for. `worker`:
        the Context, whose type is above this package; a kind states what it needs of it."""

    def refusal(self, x: Exchange, reply: Reply) -> Reply:
        """A reply of the gateway to a request for backends of this kind, in the shape of the API that the client
        called; `reply` itself where that is as good. Asked for errors with the text of their row (`chain/replies`),
        once there is a route."""


class Row(ABC):
    """What most kinds answer."""

    name = ""
    policy = ""
    type = UNKNOWN
    protocol = "http"
    modules: tuple[str, ...] = ()
    keeps_name = True
    by_request = False

    def check(self, message: Any) -> None:  # noqa: B027  most have nothing to check
        """Nothing can be wrong with it."""

    def address(self, message: Any) -> Address | None:
        return None

    def awaits(self, message: Any) -> bool:
        return False

    def position(self, key: str, message: Any) -> Position:
        """Keys are `backend/gatewaybackend/<namespace>/<name>[/<part>]`."""
        _, _, namespace, name = key.split("/", 3) if key.count("/") >= 3 else ("", "", "", key)
        if ":" in name:  # an address, or a path of a socket, of the standalone file
            return Position("GatewayBackend", namespace, name, ())
        name, _, part = name.partition("/")
        return Position("GatewayBackend", namespace, name, (part,))

    def host(self, message: Any) -> str:
        address = self.address(message)
        return "" if address is None else address.host.lower().removeprefix("[").removesuffix("]")

    def spoken(self, message: Any) -> tuple[int, str]:
        address = self.address(message)
        return 0 if address is None else address.port, ""

    def application(self, message: Any) -> str:
        return ""

    def finishers(self, message: Any) -> Sequence[Finisher]:
        return ()

    def parts(self, message: Any) -> Sequence[Part]:
        return ()

    def plan(self, message: Any, parts: Sequence[Part], policies: object) -> object:
        return None

    def services(self, worker: Any) -> Services | None:
        return None

    def refusal(self, x: Exchange, reply: Reply) -> Reply:
        return reply

    @abstractmethod
    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None: ...


def checked(address: Address) -> None:
    """Raises `Refused` for an address that is none."""
    from gatewright.addresses import no_host, no_socket  # here: Services have none

    if bool(address.host) == bool(address.unix_path):
        raise Refused("a static backend needs a host or the path of a Unix socket")
    if address.port > MAX_PORT:
        raise Refused(f"port {address.port} is not between 1 and {MAX_PORT}")
    if why := no_host(address.host) if address.host else no_socket(address.unix_path):
        raise Refused(f"{(address.host or address.unix_path)[:80]!r} {why}")
