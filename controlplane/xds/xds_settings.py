"""Where the xDS server listens and whom it serves there: made of a controller's settings, once, when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from controlplane.settings import Settings
from controlplane.xds.trust import exposure
from controlplane.xds.trust.certificates import Certificates, Files
from controlplane.xds.trust.tokens import Tokens


class Shown(Protocol):
    """What a TLS listener shows: `Certificates`, or the `Issuer` of a cluster."""

    def credentials(self) -> Any:  # Any: grpc is not typed
        """For `add_secure_port`."""
        ...


@dataclass(frozen=True, slots=True)
class XdsSettings:
    """Where to listen. None switches a listener off; TCP port 0 takes a free one (`XdsServer.tcp_port`).

    A proxy that does not answer a ping is dropped after `keepalive` + `keepalive_timeout` seconds, one that answers
    pings and takes no response after `send_timeout`.
    """

    unix_path: Path | None
    tcp: tuple[str, int] | None = ("127.0.0.1", 18000)
    resources_over_tcp: bool = False
    certificates: Shown | None = None
    """TLS over TCP; then its address offers resources and health alone."""
    tokens: Tokens | None = None
    """What a proxy needs over TCP."""
    keepalive: float = 10.0
    keepalive_timeout: float = 5.0
    send_timeout: float = 30.0


def made_of(settings: Settings, issuer: Shown | None = None) -> XdsSettings:
    """Reads the files; `issuer` is what a cluster's controller shows. Raises Exposed or CredentialError."""
    security = settings.security
    exposure.check(settings.xds, security)
    certificates: Shown | None = issuer
    tokens = None
    if security.certificate is not None and security.key is not None:
        files = Files(security.certificate, security.key, security.client_authority)
        certificates = Certificates(files)
    if security.token_file is not None:
        tokens = Tokens(security.token_file)
    return XdsSettings(settings.socket, settings.xds, security.insecure, certificates, tokens)
