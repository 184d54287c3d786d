"""What may stand where an address of a server is written: a host, or the path of a Unix socket. Pure.

The definitions take any text there. It becomes a question to the DNS, a Host header, a server name of TLS and a path of
the system, which take less: called by what judges objects, and by proxies, which trust no other check.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

LONGEST_NAME: Final = 253
"""Characters of a host name, without a dot at its end (RFC 1035 2.3.4)."""
LONGEST_PATH: Final = 107
"""Bytes of the path of a Unix socket: the system has space for one more, which ends it (unix(7))."""

_LABEL: Final = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_is_name = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?").fullmatch
"""Underscores are in no host name of RFC 1123, and in many of inner networks."""


def no_host(text: str) -> str:
    """Why this is neither a host name nor an IP address, which may stand in brackets; "" where it is one."""
    if _is_ip(text.removeprefix("[").removesuffix("]")):
        return ""
    if "://" in text:
        return "is a URL, not a host name"
    if not text.isascii():
        return "is no host name: write an international one in its form of xn--"
    if not _is_name(text) or len(text.removesuffix(".")) > LONGEST_NAME:
        return "is no host name, and no IP address"
    return ""


def no_socket(path: str) -> str:
    """Why this is no path of a Unix socket; "" where it is one."""
    if not path.startswith("/"):
        return "must begin with /"
    if "\0" in path:
        return "has a NUL character"
    size = len(path.encode())
    return f"has {size} bytes, and a path of a socket {LONGEST_PATH} at most" if size > LONGEST_PATH else ""


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
