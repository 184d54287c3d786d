"""Settings of a proxy process, as frozen values: decided once, before anything runs (`bootstrap`).

A worker gets its share over the link (`WorkerSettings`), so that the session key is in no command line and in no
environment of a child. Imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

DEFAULT_PORTS = {"admin": ("127.0.0.1", 15000), "stats": ("::", 15020), "readiness": ("::", 15021)}
"""A listener on one of these ports is `PortUnavailable`."""

DEFAULT_MINIMUM = 10.0
DEFAULT_MAXIMUM = 60.0
"""Seconds of a shutdown, at least and at most, where nothing else is configured."""

MAX_SHUTDOWN = 31_536_000
"""Seconds: the most that `shutdown` of GatewayParameters may say."""

MAX_WORKERS = 256
"""Worker processes of one proxy."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a page is served or a control plane is reached: `path` of a Unix socket, else host and port."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class XdsAccess:
    """How the control plane is reached. Files are PEM, but for `token_file`; they are read at each try.

    Without `ca_file` the authorities that gRPC knows are trusted. `server_name` is what the certificate must name
    instead of the host of the address.
    """

    tls: bool = False
    ca_file: Path | None = None
    token_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    server_name: str = ""


LOCAL = XdsAccess()
"""Over a Unix socket, whose peers are trusted."""


@dataclass(frozen=True, slots=True)
class MeshSettings:
    """Who the proxy is in an Istio mesh, and where it has its certificate from. Files are read at each try."""

    authority: Address
    server_name: str
    """That the authority's certificate must have."""
    trust_domains: tuple[str, ...]
    """Of peers that are believed; the first is our own."""
    namespace: str
    service_account: str
    token_file: Path | None = None
    ca_file: Path | None = None
    """Authorities of the mesh, PEM: they sign the authority's own certificate, and are believed of peers."""
    cluster_id: str = ""
    network: str = ""
    life: float = 86_400.0
    """Seconds for which certificates are asked for."""

    @property
    def identity(self) -> str:
        """The SPIFFE id."""
        return f"spiffe://{self.trust_domains[0]}/ns/{self.namespace}/sa/{self.service_account}"


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Seals sessions; the same for all workers of a proxy. Its repr shows nothing. `is_given`: other proxies may have
    it."""

    value: bytes
    is_given: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        return "SessionKey(...)"


@dataclass(frozen=True, slots=True)
class Logging:
    """`level` as written (`info,dataplane.http=debug`); `format`: text or json."""

    level: str = "info"
    format: str = "text"


@dataclass(frozen=True, slots=True)
class Drain:
    """Seconds: connections are accepted for `minimum` after SIGTERM, and none is open after `maximum`."""

    minimum: float = DEFAULT_MINIMUM
    maximum: float = DEFAULT_MAXIMUM


@dataclass(frozen=True, slots=True)
class Pages:
    """Addresses that the agent serves; None: off."""

    admin: Address | None
    stats: Address | None
    readiness: Address | None
    admin_hosts: frozenset[str] = frozenset()
    """Names by which the admin pages may be addressed, beside IP addresses and localhost."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is decided before the proxy starts."""

    file: Path | None
    xds: Address | None
    gateway: str
    """`namespace/name`; empty without a control plane."""
    instance: str
    workers: int
    port_offset: int | None
    """Added to every port; None: the system chooses the ports (`--any-port`)."""
    pages: Pages
    parent_fd: int | None
    logging: Logging
    drain: Drain
    session_key: SessionKey
    xds_access: XdsAccess = LOCAL
    notify_socket: str = ""
    """Where the service manager wants to hear of readiness; empty: nowhere."""
    zone: str = ""
    """Where the proxy runs, as hints of EndpointSlices name it; empty: not configured, and no hint counts."""
    mesh: MeshSettings | None = None
    """None: it takes no part in a mesh."""
    warnings: tuple[str, ...] = ()
    """What the operator should know, logged once."""
    forward_allow: tuple[str, ...] = ()
    """Networks that dynamic forward proxies may reach whatever they are."""
    api_server: tuple[str, ...] = ()
    """Addresses of the API server of the cluster that the proxy is in."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """`config` of the standalone file, for what neither flag nor environment says."""

    xds: str | None = None
    gateway: str | None = None
    workers: int | None = None
    admin: str | None = None
    stats: str | None = None
    readiness: str | None = None
    session_key: str | None = field(default=None, repr=False)
    log_level: str | None = None
    log_format: str | None = None
    forward_allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker gets of the settings."""

    gateway: str
    instance: str
    workers: int
    log_format: str
    log_default: str
    log_modules: dict[str, str]
    drain: Drain
    session_key: SessionKey
    zone: str = ""
    in_mesh: bool = False
    """Workloads of a mesh are reached by its tunnels."""
    shares_sessions: bool = False
    """Other proxies may have the key."""
    sockets: str = ""
    """Folder of the Unix sockets by which workers ask each other, made when it is needed; "": there is none."""
    own_pages: tuple[tuple[str, int], ...] = ()
    """Hosts and ports of admin pages, or a path and 0: no worker connects to them."""
    forward_allow: tuple[str, ...] = ()
    api_server: tuple[str, ...] = ()
    """As `Settings` has them."""

    def to_link(self) -> dict[str, Any]:
        """For `link.messages.Hello`."""
        return {**asdict(self), "session_key": self.session_key.value.hex()}

    @classmethod
    def from_link(cls, values: Mapping[str, Any]) -> WorkerSettings:
        """The inverse of `to_link`. Raises TypeError, KeyError or ValueError for anything else."""
        key = SessionKey(bytes.fromhex(values["session_key"]))
        pages = tuple((str(host), int(port)) for host, port in values["own_pages"])
        texts = {name: tuple(map(str, values[name])) for name in ("forward_allow", "api_server")}
        drain = Drain(**values["drain"])
        return cls(**{**values, **texts, "session_key": key, "drain": drain, "own_pages": pages})
