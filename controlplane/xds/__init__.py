"""The xDS side of the control plane: `XdsServer` serves snapshots and reports what proxies answer to `answers`."""

from controlplane.xds.server import XdsServer
from controlplane.xds.unix_socket import SocketError
from controlplane.xds.xds_settings import XdsSettings

__all__ = ["SocketError", "XdsServer", "XdsSettings"]
