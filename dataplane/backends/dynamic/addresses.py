"""Which addresses a request may choose. Pure.

What is judged is the address that is connected to, never a name, and all that it may mean: some IPv6 addresses carry an
IPv4 one, which gateways between the two networks lead to. Networks are those of the IANA's special-purpose registries
(RFC 6890) that lead to this machine, to its own link, or nowhere; and addresses at which clouds give a machine its
credentials. Private networks are not among them: those are for authorization, and for the network's own rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_LOOPBACK: Final = "a loopback address"
_THIS_NETWORK: Final = "an address of this host"
_LINK: Final = "a link-local address"
_METADATA: Final = "a metadata address"
_GROUP: Final = "a multicast address"
_RESERVED: Final = "a reserved address"

FORBIDDEN: Final = tuple(
    (ip_network(text), what)
    for text, what in (
        ("0.0.0.0/8", _THIS_NETWORK),  # RFC 1122 3.2.1.3; the kernel leads the first one to this machine
        ("127.0.0.0/8", _LOOPBACK),
        ("169.254.169.254/32", _METADATA),  # most clouds
        ("169.254.170.2/32", _METADATA),  # containers of AWS
        ("169.254.0.0/16", _LINK),  # RFC 3927
        ("168.63.129.16/32", _METADATA),  # Azure
        ("100.100.100.200/32", _METADATA),  # Alibaba Cloud
        ("192.0.0.192/32", _METADATA),  # Oracle Cloud
        ("224.0.0.0/4", _GROUP),
        ("240.0.0.0/4", _RESERVED),  # the broadcast address as well
        ("::/128", _THIS_NETWORK),
        ("::1/128", _LOOPBACK),
        ("fd00:ec2::/32", _METADATA),  # AWS
        ("fd20:ce::254/128", _METADATA),  # Google Cloud
        ("fe80::/10", _LINK),
        ("fec0::/10", "a site-local address"),  # RFC 3879: some systems still take it for a link's
        ("ff00::/8", _GROUP),
        ("64:ff9b:1::/48", "an address of a translation that only its network knows"),  # RFC 8215
    )
)
"""Networks with what they are, the most exact first where they overlap."""


class Rules:
    """What is forbidden but for `allow`. `is_own(address, port)`: pages of this proxy; `api_server`: addresses of the
    cluster's API server."""

    __slots__ = ("_allowed", "_api_server", "_is_own")

    def __init__(
        self,
        allow: Iterable[str] = (),
        is_own: Callable[[str, int], bool] = lambda address, port: False,
        api_server: Iterable[str] = (),
    ) -> None:
        """Raises ValueError for what is no network or address."""
        self._allowed = tuple(ip_network(text) for text in allow)
        self._is_own = is_own
        self._api_server = frozenset(map(ip_address, api_server))

    def why(self, text: str, port: int, is_inner: bool = False) -> str:
        """Why nothing may be sent to this address; "": it may, unless it is an endpoint of a backend (`meanings`).
        `is_inner`: it was found by a name of the cluster."""
        try:
            address = ip_address(text)
        except ValueError:
            return "is no IP address"
        found = [address, *_embedded(address)]
        if any(self._is_own(str(each), port) for each in found):
            return "is one of the proxy's own pages"
        if self._is_allowed(address):
            return ""
        for each in found:
            if not self._is_allowed(each) and (what := self._forbidden(each)):
                return f"is {what}" if each == address else f"carries {each}, {what}"
        return "was found by a name of the cluster" if is_inner else ""

    @property
    def allows_some(self) -> bool:
        """Whether the operator allows for anything."""
        return bool(self._allowed)

    def allows(self, text: str) -> bool:
        """Whether the operator allows for an address by name of a network, whatever it is."""
        try:
            return self._is_allowed(ip_address(text))
        except ValueError:
            return False

    def _is_allowed(self, address: Address) -> bool:
        return any(address in network for network in self._allowed)

    def _forbidden(self, address: Address) -> str:
        what = next((what for network, what in FORBIDDEN if address in network), "")
        return what or ("the address of the API server" if address in self._api_server else "")


def meanings(text: str) -> tuple[str, ...]:
    """An address, in its usual spelling, and the IPv4 addresses that it carries; a name alone."""
    try:
        address = ip_address(text)
    except ValueError:
        return (text,)
    return (str(address), *map(str, _embedded(address)))


def _embedded(address: Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 one embeds, in every form that something translates."""
    if isinstance(address, IPv4Address):
        return
    number, last = int(address), IPv4Address(int(address) & 0xFFFFFFFF)
    if number >> 32 in _LAST_32 and number > 1:  # `::` and `::1` are no IPv4 addresses
        yield last
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        yield last
    if number >> 112 == 0x2002:  # 6to4 (RFC 3056)
        yield IPv4Address((number >> 80) & 0xFFFFFFFF)
    if number >> 96 == 0x2001_0000:  # Teredo (RFC 4380 4): the server, and the client inverted
        yield IPv4Address((number >> 64) & 0xFFFFFFFF)
        yield IPv4Address(int(last) ^ 0xFFFFFFFF)


_LAST_32: Final = frozenset(
    int(IPv6Address(text)) >> 32
    for text in (
        "::ffff:0:0",  # IPv4-mapped (RFC 4291 2.5.5.2)
        "::",  # IPv4-compatible (RFC 4291 2.5.5.1)
        "::ffff:0:0:0",  # IPv4-translated (RFC 2765 2.1)
        "64:ff9b::",  # NAT64 (RFC 6052 2.1)
    )
)
_ISATAP: Final = frozenset((0x00005EFE, 0x02005EFE))
"""Of interface identifiers (RFC 5214 6.1)."""
