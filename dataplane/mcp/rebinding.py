"""Requests that a browser was tricked into: a page of somebody else whose name was made to lead to this machine (DNS
rebinding). What a client on this machine asks of the loopback interface names it as such; what names another host there
came by another name than its user meant. Elsewhere a name is what listeners and routes match.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_LOCAL: Final = frozenset((b"localhost", b"127.0.0.1", b"::1", b"[::1]"))


@lru_cache(1024)
def is_loopback(local: bytes) -> bool:
    """Whether our side of a connection (`ADDRESS:PORT`) is reached from this machine alone."""
    try:
        return ip_address(local.rpartition(b":")[0].strip(b"[]").decode("ascii", "replace")).is_loopback
    except ValueError:
        return False


def is_tricked(host: bytes, origin: bytes | None) -> bool:
    """Of a request on the loopback interface. `host`: lower case, without a port."""
    if host not in _LOCAL:
        return True
    if origin is None:
        return False
    try:
        name = urlsplit(origin.decode("ascii")).hostname
    except ValueError:
        return True
    return name is None or name.encode() not in _LOCAL
