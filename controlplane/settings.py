"""Where one controller reads from and listens. Made by the command line, read by the composition root."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SOCKET_NAME = "xds.sock"
FOLDER = "gatewright"
LOCAL_NAMES = frozenset(("localhost", "localhost."))


class UnsafeFolder(Exception):
    """The folder for the socket belongs to somebody else, or others may write to it."""


@dataclass(frozen=True, slots=True)
class Security:
    """Of the xDS address, as files. `insecure`: resources for every client that reaches a loopback address."""

    certificate: Path | None = None
    key: Path | None = None
    client_authority: Path | None = None
    token_file: Path | None = None
    insecure: bool = False
    service_accounts: bool = False
    """TLS with an authority kept in the cluster, and tokens of service accounts; no files."""

    @property
    def is_secured(self) -> bool:
        """Over TLS, for proxies that show who they are."""
        return self.certificate is not None or self.service_accounts

    @property
    def serves_resources(self) -> bool:
        return self.is_secured or self.insecure


@dataclass(frozen=True, slots=True)
class Proxies:
    """What all proxies have in common that a controller starts in a cluster; "" takes what is usual."""

    registry: str | None = None
    """Of their image; "" for one without."""
    repository: str = ""
    tag: str = ""
    xds: str = ""
    """Where they reach the controllers: HOST:PORT."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which cluster is read. `kubeconfig` None: by the pod's own service account, or else the usual file."""

    kubeconfig: Path | None = None
    context: str | None = None
    """Of the kubeconfig file; None: its current one."""
    namespace: str = ""
    """Of the controller's own objects; "": the pod's, or that of the context."""
    peers: tuple[str, int] = ("127.0.0.1", 0)
    """Where other controllers bring what their proxies answered."""
    proxies: Proxies | None = None
    """How proxies of Gateways are started; None: they are not."""
    namespaces: str = ""
    """A selector of the namespaces whose objects are read; "": all."""

    def __str__(self) -> str:
        where = "the cluster" if self.kubeconfig is None else f"the cluster of {self.kubeconfig}"
        return where if self.context is None else f"{where}, context {self.context}"


@dataclass(frozen=True, slots=True)
class Mcp:
    """Of the servers that MCP backends find."""

    selectors_need_grants: bool = False
    """Selectors find Services of another namespace only where a ReferenceGrant there lets GatewayBackends name them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Port 0 takes a free port."""

    source: Path | Cluster
    """A folder of YAML, or a cluster."""
    socket: Path
    xds: tuple[str, int] = ("127.0.0.1", 18000)
    admin: tuple[str, int] = ("127.0.0.1", 18001)
    stats: tuple[str, int] | None = None
    """A page of metrics for scrapers elsewhere; the admin address has it anyhow."""
    readiness: tuple[str, int] | None = None
    """Pages for probes from elsewhere; the admin address has them anyhow."""
    security: Security = Security()
    admin_hosts: frozenset[str] = frozenset()
    """Names by which the admin API may be addressed, beside IP addresses and localhost."""
    mcp: Mcp = Mcp()


def address(text: str) -> tuple[str, int]:
    """`127.0.0.1:18000` or `[::1]:18000` to host and port; the command line has checked the form."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def shown(where: tuple[str, int]) -> str:
    """The inverse of `address`."""
    host, port = where
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a host name or address (IPv6 with or without brackets) can only mean this machine."""
    import ipaddress  # here: it loads much that no other command needs

    bare = host.strip("[]").lower()
    if bare in LOCAL_NAMES or bare.endswith(".localhost"):  # RFC 6761, 6.3
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def is_address(host: str) -> bool:
    """Whether a host is an IP address (IPv6 with or without brackets)."""
    import ipaddress

    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def default_socket(environment: Mapping[str, str]) -> Path:
    """The socket that controller and proxies of one user agree on without configuration.

    Makes its folder, for this user alone. Raises UnsafeFolder when the folder in the shared temporary directory was
    made by somebody else, who could put a socket of his own there.
    """
    import tempfile  # here: it loads much that no other command needs

    runtime = environment.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / FOLDER if runtime else Path(tempfile.gettempdir()) / f"{FOLDER}-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise UnsafeFolder(f"{folder} is not a folder of this user alone; name another socket with --socket")
    return folder / SOCKET_NAME
