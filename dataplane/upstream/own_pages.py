"""The proxy's own pages (admin, metrics, readiness) are no backend.

They answer every request from this machine, and a worker is on it: anyone who may write a route and a backend could
read through it what others configured, and change levels of the log.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable

from dataplane.net.addresses import is_here

_LOCAL = "localhost"


class OwnPages:
    """Where admin pages are served: pairs of host and port; of a path and 0 for a Unix socket."""

    __slots__ = ("_everywhere", "_hosts", "_paths")

    def __init__(self, places: Iterable[tuple[str, int]] = ()) -> None:
        found = tuple(places)
        self._hosts = frozenset((_host(host), port) for host, port in found if port)
        self._everywhere = frozenset(port for host, port in found if port and _is_unspecified(host))
        """Ports of pages on all addresses of this machine."""
        self._paths = frozenset(host for host, port in found if not port)

    def are_at(self, address: str, port: int, unix_path: str) -> bool:
        """Whether a connection to this would reach them. `address`: an IP address, as names are resolved to, or a name
        that a proxy on the way resolves: of these those that mean its own machine, which may be this one."""
        if unix_path:
            return bool(self._paths) and _is_one_of(unix_path, self._paths)
        return (_host(address), port) in self._hosts or (
            port in self._everywhere and (is_here(address) or _host(address) == _LOCAL)
        )


def _host(address: str) -> str:
    """All addresses of this machine itself as one: the kernel leads the unspecified one there too."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return _LOCAL if f".{address.lower().rstrip('.')}".endswith(f".{_LOCAL}") else address  # RFC 6761 6.3
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return _LOCAL if found.is_loopback or found.is_unspecified else str(found)


def _is_unspecified(host: str) -> bool:
    return host in ("0.0.0.0", "::")


def _is_one_of(path: str, paths: Iterable[str]) -> bool:
    """Whatever links and dots lead there."""
    return os.path.realpath(path) in {os.path.realpath(each) for each in paths}
