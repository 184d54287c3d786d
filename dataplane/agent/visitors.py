"""Who may read the agent's private pages, from the head of a request: no site of others by way of a browser. Pure.

A page of the web cannot read answers of another host, but a name of its own may be made to lead here (DNS rebinding),
and it may send forms anywhere. So a request has to name this proxy as a person would, and what changes something must
not come from another site (Fetch Metadata, `Sec-Fetch-Site`; RFC 6454, `Origin`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable

_OWN_SITES = frozenset(("same-origin", "none"))


def refusal(method: str, fields: Iterable[tuple[str, str]], names: Collection[str]) -> str:
    """Why a request is refused; "" when it is not. `fields`: lower-case names with values; `names`: hosts beside IP
    addresses and localhost, lower-case."""
    found = list(fields)
    hosts = [value for name, value in found if name == "host"]
    for host in hosts:
        if not _is_plain(_host_of(host), names):
            return "these pages answer when addressed by IP address, as localhost, or by a name given with --admin-host"
    if method in ("GET", "HEAD"):
        return ""
    for name, value in found:
        if name == "sec-fetch-site" and value not in _OWN_SITES:
            return "a page of another site may change nothing here"
        if name == "origin" and value.partition("://")[2].lower() not in {host.lower() for host in hosts}:
            return "a page of another origin may change nothing here"
    return ""


def fields_of(head: str) -> list[tuple[str, str]]:
    """The fields of a head, whose first line is something else."""
    lines = (line.partition(":") for line in head.split("\r\n")[1:])
    return [(name.strip().lower(), value.strip()) for name, colon, value in lines if colon]


def _host_of(authority: str) -> str:
    """Without port; an IPv6 address without its brackets."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0].lower()


def _is_plain(host: str, names: Collection[str]) -> bool:
    if host == "localhost" or host.endswith(".localhost") or host in names:  # RFC 6761, 6.3
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
