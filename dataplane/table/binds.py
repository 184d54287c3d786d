"""Finished settings of a bind and its listeners, and which listener takes a request. `plans` has what is below them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dataplane.chain.chain import EMPTY, Chain
from dataplane.http import connection_rules
from dataplane.http.connect_rules import ConnectRule
from dataplane.http.connection_rules import ConnectionRules
from dataplane.http.rules import DEFAULT, Hops, HttpRules
from dataplane.tls.settings import DEFAULT as DEFAULT_TLS
from dataplane.tls.settings import HANDSHAKE_TIMEOUT, TlsSettings

if TYPE_CHECKING:
    from dataplane.chain.network import NetworkGate
    from dataplane.chain.rules import Rule
    from dataplane.net.keepalive import Keepalive
    from dataplane.net.proxy_rules import ProxyRules
    from dataplane.table.limits import LimitsPlan
    from dataplane.table.plans import Upper
    from dataplane.table.router import Router
    from dataplane.table.security import TlsPlan
    from dataplane.telemetry.plan import TelemetryPlan


HTTP, HTTPS = "HTTP", "HTTPS"
HBONE = "HBONE"
"""Of the listener that ends tunnels of a mesh (`hbone`)."""


@dataclass(frozen=True, slots=True)
class Phases:
    """What a connection of a bind goes through before its first protocol (`server/entry`)."""

    tls: bool = False
    """It begins with TLS, whose server name chooses the listener."""
    timeout: float = HANDSHAKE_TIMEOUT
    """Seconds that a client has for all of it, but for the PROXY header."""
    proxy: ProxyRules | None = None
    """What stands before everything else; None: nothing of the PROXY protocol."""
    hops: tuple[Hops, ...] = ()
    """Whom listeners believe, of those that say so: all of them have to trust who sends a PROXY header."""
    network: NetworkGate | None = None
    """Who may connect; None: everybody."""


@dataclass(slots=True, eq=False)
class ListenerPlan:
    """One listener of a bind, with the routes that are attached to it."""

    key: str
    name: str
    gateway: str
    """`namespace/name`."""
    hostname: str
    log: str
    """Ready-made log fields: ` gateway=ns/name listener=name`."""
    log_json: str
    router: Router
    port: int = 0
    """Of its bind, as configured."""
    chain: Chain = EMPTY
    """Gateway phase (PreRouting)."""
    upper: Upper | None = None
    """What its routes inherit; None when that is nothing."""
    telemetry: TelemetryPlan | None = None
    """What its Gateway wants to know of exchanges; None: the default."""
    http: HttpRules = DEFAULT
    """How heads of its requests are read."""
    limits: LimitsPlan | None = None
    """How much its Gateway's proxy takes on; None: no policy says so."""
    tls_settings: TlsSettings = DEFAULT_TLS
    """How TLS is spoken."""
    tcp: Keepalive | None = None
    """Of its connections; None: the default."""
    proxy_protocol: ProxyRules | None = None
    """What its connections begin with; None: nothing of it."""
    network: tuple[Rule, ...] = ()
    """Who may connect."""
    connect: ConnectRule | None = None
    """What becomes of CONNECT; None: it is not allowed."""
    protocol: str = HTTP
    """Of `listener.proto`: HTTP, HTTPS, TLS, TCP, UDP."""
    tls: TlsPlan | None = None
    """None: plaintext."""


@dataclass(slots=True, eq=False)
class BindPlan:
    """One port with its listeners; `choose` says which of them takes a request."""

    key: str
    port: int
    addresses: tuple[str, ...]
    exact: dict[bytes, ListenerPlan] = field(default_factory=dict)
    """By host name, lower case."""
    wildcards: dict[bytes, ListenerPlan] = field(default_factory=dict)
    """By what follows the "*" (b".example.com")."""
    default: ListenerPlan | None = None
    connection: ConnectionRules = connection_rules.DEFAULT
    """How its connections are carried: the strictest of its listeners."""
    phases: Phases | None = None
    """None: its connections begin with a request."""
    tcp: Keepalive | None = None
    """Keepalive of its connections; None: the default."""
    network: NetworkGate | None = None
    """Who may connect, whatever the protocol (of UDP: begin a session); None: everybody."""
    connect: ConnectRule | None = None
    """What becomes of CONNECT, whichever listener it would be for; None: it is not allowed."""
    datagrams: ListenerPlan | None = None
    """The listener of UDP, whose port is another one than TCP's."""

    is_raw: bool = False
    """Its TCP port has one listener, of protocol TCP: bytes pass as they are."""

    of_key: dict[str, ListenerPlan] = field(default_factory=dict)
    """Its listeners by their key: a port may have thousands, and each connection of TLS asks for one."""

    @property
    def has_streams(self) -> bool:
        """Whether a TCP port is opened."""
        return bool(self.default or self.exact or self.wildcards)

    def listeners(self) -> Iterator[ListenerPlan]:
        """All of them."""
        yield from self.exact.values()
        yield from self.wildcards.values()
        if self.default is not None:
            yield self.default
        if self.datagrams is not None:
            yield self.datagrams


def choose(bind: BindPlan, host: bytes) -> ListenerPlan | None:
    """The listener for a host: exact, then the longest wildcard, then the one without hostname. None: 404."""
    listener = bind.exact.get(host)
    if listener is not None:
        return listener
    wildcards = bind.wildcards
    if wildcards:
        dot = host.find(b".", 1)
        while dot != -1:
            listener = wildcards.get(host[dot:])
            if listener is not None:
                return listener
            dot = host.find(b".", dot + 1)
    return bind.default
