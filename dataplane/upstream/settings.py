"""How a backend is connected to: what policies set (BackendTCP, BackendTLS, BackendHTTP), merged and finished.

Values only, made when a table is built; `table/plans.BackendPlan` has what they come to, `upstream/connector` acts on
it. Policies merge per field, never deeply (GatewayPolicy): the `http` of a backend replaces that of a route.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from dataplane.net.keepalive import DEFAULT, Keepalive
from dataplane.upstream.limits import Quota
from dataplane.upstream.versions import BY_REQUEST, HTTP1, HTTP2, NAMES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from dataplane.chain.filter import Filter
    from dataplane.http.messages import Peer
    from dataplane.tls.client import ClientSecurity, Kept


class Http(NamedTuple):
    """`backend.http`."""

    version: int = BY_REQUEST
    """One of `upstream/versions`."""
    request_timeout: float | None = None
    """Seconds from the begin of a try to the head of its response; None: no limit of its own."""


class Tcp(NamedTuple):
    """`backend.tcp`."""

    connect_timeout: float = 10.0
    """Seconds until a connection is established, TLS included (10 s when unset)."""
    keepalive: Keepalive = DEFAULT
    proxy_version: int = 0
    """Of the PROXY header that connections begin with; 0: they begin with none."""


class Client(NamedTuple):
    """For whom a connection is made, where its PROXY header says so: it is used for no other client."""

    address: str = ""
    """"": for no client, but by ourselves."""
    port: int = 0
    local: bytes = b""
    """Our address and port, that the client connected to."""


OURSELVES: Final = Client()


PLAIN_TCP: Final = Tcp()


@dataclass(frozen=True, slots=True)
class Tls:
    """`backend.tls`. Equal only while certificates and authorities are the same: `security` is one object for these."""

    security: ClientSecurity | None = None
    """What handshakes are made with; None where `refused`."""
    refused: str = ""
    """Why it cannot be honoured: nothing may be sent to what it covers."""
    sni: str = ""
    """"": the host of the destination."""
    names: tuple[str, ...] = ()
    """DNS names, addresses or URIs, of which a certificate must have one; (): `sni`."""
    verifies_names: bool = True
    alpn: tuple[str, ...] = ("h2", "http/1.1")
    """What is offered to servers of which nothing is known but that they speak TLS."""

    @property
    def versions(self) -> tuple[int, ...]:
        """Versions of HTTP that may be negotiated, the preferred one first."""
        return tuple(NAMES[name] for name in self.alpn if name in NAMES)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """Our certificate for servers whose `Tls` has none of its own."""

    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    refused: str = ""
    """Why it cannot be used; nothing is sent with TLS that would present it."""
    kept: Kept | None = field(default=None, repr=False, compare=False)
    """As `tls.client.security` takes it."""

    def on(self, tls: Tls) -> Tls:
        """The same TLS, with this certificate where it has none."""
        security = tls.security
        if security is None or security.has_certificate:
            return tls
        if self.refused or self.kept is None:
            return replace(tls, security=None, refused=self.refused)
        return replace(tls, security=security.presenting(self.kept, self.certificate, self.key))


class CloudPlace(NamedTuple):
    """Whom credentials of clouds are for, where a backend says it: service and region of AWS, the audience of tokens of
    Azure. "": its host says it."""

    service: str = ""
    region: str = ""
    audience: str = ""


NO_CLOUD: Final = CloudPlace()


class Auth(Protocol):
    """`backend.auth` (`auth/setting`). Equal where all that it is made of is equal."""

    def finisher(self, host: str, is_tls: bool, cloud: CloudPlace) -> Any:  # a Finisher, which knows plans
        """What writes the credential into requests to this host."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Tunnel:
    """`backend.tunnel`: connections go through a forward proxy, which is asked for them by CONNECT (RFC 9110 9.3.6), or
    for single requests."""

    backend: str = ""
    """Key of the proxy's Backend."""
    refused: str = ""
    """Why it cannot be honoured: nothing may be sent to what it covers, for it would go past the proxy."""
    is_absolute: bool = False
    """What goes in plain text is sent to the proxy itself, in absolute form (RFC 9112 3.2.2,
    `Transport.is_absolute`)."""
    way: Hashable = None
    """What the proxy's plan says of connections to it, so that those that were made in another way are used no more
    (`dial/proxies.Proxies.way`). None: it is not looked up yet."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What one level comes to; None: it does not say. Its hash is computed once: a request with a policy asks for it
    (`plans.BackendPlan.under`)."""

    http: Http | None = None
    tcp: Tcp | None = None
    tls: Tls | None = None
    client: ClientCertificate | None = None
    tunnel: Tunnel | None = None
    auth: Auth | None = None
    ext_auth: Filter | None = None
    transformation: Filter | None = None
    picker: Filter | None = None
    """Who picks the endpoint of each request, where the backend is a pool that has one (`upstream/picked`)."""
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        how, what = (self.http, self.tcp, self.tls, self.client, self.tunnel), (self.auth, *self.steps)
        object.__setattr__(self, "_hash", hash((how, what)))

    def __hash__(self) -> int:
        return self._hash

    def over(self, less: Settings) -> Settings:
        """These, and those of `less` where these say nothing."""
        if less is NO_SETTINGS:
            return self
        return Settings(
            self.http or less.http,
            self.tcp or less.tcp,
            self.tls or less.tls,
            self.client or less.client,
            self.tunnel or less.tunnel,
            self.auth or less.auth,
            self.ext_auth or less.ext_auth,
            self.transformation or less.transformation,
            self.picker or less.picker,
        )

    @property
    def is_connecting(self) -> bool:
        """Whether they say how to connect, and nothing else."""
        return self.auth is None and not self.steps

    @property
    def connecting(self) -> Settings:
        """Of these what calls inherit: how to connect, no credential and no step."""
        return self if self.is_connecting else Settings(self.http, self.tcp, self.tls, self.client, self.tunnel)

    @property
    def steps(self) -> tuple[Filter, ...]:
        """The steps of a backend, in their order: who decides sees what the route sends, who picks
        an endpoint what that will get."""
        return tuple(each for each in (self.ext_auth, self.transformation, self.picker) if each is not None)

    def without_steps(self, others: Settings | None = None) -> Settings:
        """What is for the parts of a backend: its steps act before its kind. `others`: whose steps these are, where not
        all go."""
        if self.ext_auth is None and self.transformation is None:
            return self
        if others is None:
            return replace(self, ext_auth=None, transformation=None)
        return replace(
            self,
            ext_auth=None if self.ext_auth is others.ext_auth else self.ext_auth,
            transformation=None if self.transformation is others.transformation else self.transformation,
        )


NO_SETTINGS: Final = Settings()


@dataclass(frozen=True, slots=True)
class Transport:
    """How connections to an endpoint are made where it is not the plain way: connections of equal transports are kept
    together (`Endpoint.pool`). Its hash is computed once, as a request asks for it."""

    tcp: Tcp
    tls: Tls | None
    host: str
    """The destination's, as a certificate has it: a DNS name, an address, or "" for a Unix socket. Without TLS ""."""
    quota: Quota | None = None
    """Limits of these connections; None: there are none."""
    client: Client | None = None
    """For whom they are; None: for anybody."""
    tunnel: Tunnel | None = None
    """The proxy that they go through; None: through none."""
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.tcp, self.tls, self.host, self.quota, self.client, self.tunnel)))

    def __hash__(self) -> int:
        return self._hash

    def of(self, peer: Peer | None) -> Transport:
        """That of connections for this client; None: for none."""
        client = OURSELVES if peer is None else Client(peer.address, peer.port, peer.local)
        return replace(self, client=client)

    @property
    def is_absolute(self) -> bool:
        """Whether requests of HTTP/1.1 are sent to the forward proxy itself. What is for the destination alone, TLS or
        a PROXY header, needs a tunnel."""
        tunnel = self.tunnel
        return tunnel is not None and tunnel.is_absolute and self.tls is None and not self.tcp.proxy_version

    @property
    def tunnelled(self) -> Transport:
        """The same by CONNECT."""
        return self if self.tunnel is None else replace(self, tunnel=replace(self.tunnel, is_absolute=False))

    @property
    def server_name(self) -> str:
        """The name that a handshake sends and, where no others are given, a certificate must have."""
        return self.tls.sni or self.host if self.tls is not None else ""

    @property
    def names(self) -> tuple[str, ...]:
        """Of which a certificate must have one."""
        if self.tls is None or not self.tls.verifies_names:
            return ()
        return self.tls.names or (self.server_name,)


class Finished(NamedTuple):
    """What the settings of all levels come to, for one backend."""

    version: int
    request_timeout: float | None
    transport: Transport | None
    """None: connections are made in the plain way."""
    refused: str


def finished(settings: Settings, version: int, host: str) -> Finished:
    """`version`: what holds where no policy names one (`versions.configured`); `host`: the destination's."""
    http = settings.http or Http()
    version = http.version or version
    transport = _transport(settings, host)
    tls = None if transport is None else transport.tls
    refused = _refused(tls, transport, version) or _refused_tunnel(settings.tunnel, host)
    return Finished(version, http.request_timeout, transport, refused)


def _transport(settings: Settings, host: str) -> Transport | None:
    tcp, tls, tunnel = settings.tcp or PLAIN_TCP, settings.tls, settings.tunnel
    if tls is None:
        return None if tcp == PLAIN_TCP and tunnel is None else Transport(tcp, None, "", tunnel=tunnel)
    return Transport(tcp, tls if settings.client is None else settings.client.on(tls), host, tunnel=tunnel)


def limited(transport: Transport | None, quota: Quota | None) -> Transport | None:
    """The same with these limits, in place of those that it has."""
    if transport is None:
        return None if quota is None else Transport(PLAIN_TCP, None, "", quota)
    return transport if transport.quota == quota else replace(transport, quota=quota)


def _refused(tls: Tls | None, transport: Transport | None, version: int) -> str:
    """Why nothing may be sent with these settings; "" where it may."""
    if tls is None or transport is None:
        return ""
    if tls.refused:
        return f"tls: {tls.refused}"
    if tls.verifies_names and not all(transport.names):
        return "tls: a Unix socket has no name that a certificate could be verified for: set sni"
    if not tls.versions or (version and version not in tls.versions):
        return f"tls.alpnProtocols {_listed(tls.alpn)} leaves nothing to offer{_SPOKEN.get(version, ' for HTTP')}"
    return ""


def _refused_tunnel(tunnel: Tunnel | None, host: str) -> str:
    """As `_refused`."""
    if tunnel is None:
        return ""
    if tunnel.refused:
        return f"tunnel: {tunnel.refused}"
    return "" if host else "tunnel: a Unix socket is reached through no proxy"


_SPOKEN: Final = {HTTP1: " for HTTP/1.1", HTTP2: " for HTTP/2"}


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"
