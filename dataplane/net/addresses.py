"""Which IP addresses are this machine's own."""

from __future__ import annotations

import errno
import ipaddress
import socket
from functools import lru_cache


@lru_cache(maxsize=1024)
def is_here(address: str) -> bool:
    """Whether a connection to `address` (an IP address as text) stays on this machine: the system binds a socket to it
    then. Anything else is no address of this machine. One that the machine gets later may be found late: it is asked
    once."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if found.is_loopback or found.is_unspecified:  # the kernel leads the unspecified one here, too
        return True
    family = socket.AF_INET if found.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(found), 0))
    except OSError as error:
        return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EINVAL, errno.EACCES, errno.EMFILE)
    return True
