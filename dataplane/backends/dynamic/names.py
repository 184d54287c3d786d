"""Hosts and ports as requests name them. Pure.

A name is looked up as it stands, from the root on: with the search list of the machine `kubernetes.default` would be a
name of the cluster. A number is an IPv4 address in its one form of four decimal numbers, or nothing: what reads octal,
hexadecimal and short forms is not what an authorization compares (RFC 3986 7.4).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)").fullmatch
_PORT: Final = re.compile(rb":([0-9]{1,5})").search
_MOST: Final = 65535


def host_of(host: bytes) -> str:
    """A canonical host (`http/uri`) or a server name of TLS as a destination: a name in lower case without a dot at its
    end, or an IP address without brackets. Raises ValueError, which says why it is none."""
    text = host.decode("latin-1").lower()
    if text.startswith("["):
        return str(ip_address(text[1:-1]))
    text = text.removesuffix(".")
    if not text:
        raise ValueError("it names no host")
    if _NUMBER(text.rpartition(".")[2]):
        try:
            return str(ip_address(text))
        except ValueError:
            raise ValueError(f"{text} is neither a name nor an IPv4 address of four decimal numbers") from None
    return text


def port_of(authority: bytes) -> int:
    """That of an authority; 0: it has none. Raises ValueError."""
    found = _PORT(authority, authority.rfind(b"]") + 1)
    if found is None:
        return 0
    port = int(found[1])
    if not 0 < port <= _MOST:
        raise ValueError(f"{port} is no port")
    return port


def is_address(host: str) -> bool:
    """Of a destination: whether it is an IP address."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_below(host: str, suffixes: Iterable[str]) -> bool:
    """Whether the name is one of these or below one."""
    return any(f".{host}".endswith(f".{suffix}") for suffix in suffixes)


def cluster_suffixes(resolv_conf: str) -> frozenset[str]:
    """Suffixes of the cluster's DNS: the usual one, and the one that the search list of a pod has (`svc.<suffix>`)."""
    found = {"cluster.local"}
    for line in resolv_conf.splitlines():
        words = line.split()
        if words[:1] == ["search"]:
            found.update(each.lower().strip(".")[4:] for each in words[1:] if each.lower().startswith("svc."))
    return frozenset(each for each in found if each)
