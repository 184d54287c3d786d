"""The xDS side of the control plane: `XdsServer` serves snapshots, `Fleet` knows what the proxies made of them."""

from controlplane.xds.fleet import Fleet, Proxy, ProxyStatus, Refuser, View
from controlplane.xds.nacks import Refusal
from controlplane.xds.server import XdsServer
from controlplane.xds.unix_socket import SocketError
from controlplane.xds.xds_settings import XdsSettings

__all__ = ["Fleet", "Proxy", "ProxyStatus", "Refusal", "Refuser", "SocketError", "View", "XdsServer", "XdsSettings"]
