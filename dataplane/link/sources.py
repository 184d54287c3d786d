"""What connections of one client have in common.

A client address is an IPv4 address, or the first 64 bits of an IPv6 one: a network of that size is one customer's, who
has all of its addresses (RFC 6177).
"""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Final

_PREFIX: Final = 8
"""Bytes of an IPv6 address that say whose it is."""


def shown(source: str | bytes) -> str:
    """A client address, or another one who has a share (`pools`), as the log has it."""
    if isinstance(source, str):
        return source or "a Unix socket"
    if len(source) == _PREFIX:
        return f"{IPv6Address(source.ljust(16, bytes(1)))}/64"
    return f"identity {source.hex()[:8]}"


def source_of(address: str) -> str | bytes:
    """The client address of `address`, which is as the system writes it, "" of a Unix socket."""
    if ":" not in address:
        return address
    try:
        return IPv6Address(address.partition("%")[0]).packed[:_PREFIX]
    except ValueError:
        return address
