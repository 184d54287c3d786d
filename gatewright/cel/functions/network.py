"""IP addresses and networks: `ip()`, `cidr()`, and what can be asked of them.

As the network library of the specification (and Kubernetes): no zones, no IPv4 in the dotted form inside IPv6. An IPv6
address that maps an IPv4 one, written in hexadecimal, equals the IPv4 address. Addresses are integers, so a test
against a literal network is one shift and one comparison.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from gatewright.cel.errors import Fault
from gatewright.cel.functions.standard import identity
from gatewright.cel.functions.table import function, method
from gatewright.cel.types import BOOL, CIDR, INT, IP, STRING

BITS = {4: 32, 6: 128}
PREFIX_LENGTH = re.compile("0|[1-9][0-9]{0,2}")


class Address:
    """An address. `version` and `value` are those after a mapped IPv4 address was taken out of its IPv6 form."""

    __slots__ = ("text", "value", "version", "written")
    cel_type = "net.IP"

    def __init__(self, written: int, value: int, text: str) -> None:
        self.written = written
        self.text = text
        mapped = written == 6 and value >> 32 == 0xFFFF
        self.version = 4 if mapped else written
        self.value = value & 0xFFFFFFFF if mapped else value

    def __eq__(self, other: object) -> bool:
        return type(other) is Address and other.value == self.value and other.version == self.version

    def __hash__(self) -> int:
        return hash((self.version, self.value))

    def __repr__(self) -> str:
        return f"ip({self.text!r})"


class Network:
    """A network as written: the host bits are kept, `masked()` clears them."""

    __slots__ = ("address", "length", "shift")
    cel_type = "net.CIDR"

    def __init__(self, address: Address, length: int) -> None:
        self.address = address
        self.length = length
        self.shift = BITS[address.version] - length

    def __eq__(self, other: object) -> bool:
        return type(other) is Network and other.length == self.length and other.address == self.address

    def __hash__(self) -> int:
        return hash((self.address, self.length))

    def __repr__(self) -> str:
        return f"cidr({cidr_text(self)!r})"


def _v4(text: str) -> int | None:
    """Dotted decimal without leading zeros; None for anything else."""
    parts = text.split(".")
    if len(parts) != 4:
        return None
    value = 0
    for part in parts:
        if not (part.isascii() and part.isdigit()) or len(part) > 3 or (part[0] == "0" and part != "0"):
            return None
        number = int(part)
        if number > 255:
            return None
        value = value << 8 | number
    return value


def _address(text: str) -> Address:
    """Raises ValueError with the reason."""
    if ":" not in text:
        value = _v4(text)
        if value is None:
            raise ValueError("not an IP address")
        return Address(4, value, text)
    if "%" in text:
        raise ValueError("an IP address with a zone is not allowed")
    if "." in text:
        raise ValueError("an IPv4 address inside an IPv6 one is not allowed")
    from ipaddress import IPv6Address

    value = int(IPv6Address(text))
    return Address(6, value, _v6_text(value))


def _v6_text(value: int) -> str:
    from ipaddress import IPv6Address

    return IPv6Address(value).compressed


LONGEST: Final = 64
"""Characters above which no text is an address: it is not looked at."""


def parse_ip(text: str) -> Address:
    if len(text) > LONGEST:
        raise Fault("not an IP address: too long")
    return _parsed(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Address:
    """Remembered for the last few thousand texts: a client's address is asked about by many expressions."""
    try:
        return _address(text)
    except ValueError as error:
        raise Fault(f"not an IP address: {error}") from None


def parse_cidr(text: str) -> Network:
    if len(text) > LONGEST:
        raise Fault("not a network: too long")
    host, _, length = text.partition("/")
    try:
        address = _address(host)
    except ValueError as error:
        raise Fault(f"not a network: {error}") from None
    is_number = PREFIX_LENGTH.fullmatch(length)
    if not is_number or address.version != address.written or int(length) > BITS[address.version]:
        raise Fault("not a network: expected address/prefix length")
    return Network(address, int(length))


def is_ip(text: str) -> bool:
    try:
        parse_ip(text)
    except Fault:
        return False
    return True


def is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except Fault:
        return False
    return True


def is_canonical(text: str) -> bool:
    return parse_ip(text).text == text


def ip_text(address: Address) -> str:
    return address.text


def cidr_text(network: Network) -> str:
    return f"{network.address.text}/{network.length}"


def contains_ip(network: Network, address: Address) -> bool:
    return (
        address.version == network.address.version
        and address.value >> network.shift == network.address.value >> network.shift
    )


def contains_ip_text(network: Network, text: str) -> bool:
    return contains_ip(network, parse_ip(text))


def contains_cidr(network: Network, other: Network) -> bool:
    return other.length >= network.length and contains_ip(network, other.address)


def contains_cidr_text(network: Network, text: str) -> bool:
    return contains_cidr(network, parse_cidr(text))


def masked(network: Network) -> Network:
    address = network.address
    value = address.value >> network.shift << network.shift
    text = ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0)) if address.version == 4 else _v6_text(value)
    return Network(Address(address.version, value, text), network.length)


def family(address: Address) -> int:
    return address.version


def _within(version: int, prefix: int, length: int, address: Address) -> bool:
    return address.version == version and address.value >> (BITS[version] - length) == prefix >> (
        BITS[version] - length
    )


def is_unspecified(address: Address) -> bool:
    return address.value == 0


def is_loopback(address: Address) -> bool:
    return _within(4, 127 << 24, 8, address) or (address.version == 6 and address.value == 1)


def is_multicast(address: Address) -> bool:
    return _within(4, 224 << 24, 4, address) or _within(6, 0xFF << 120, 8, address)


def is_link_local_multicast(address: Address) -> bool:
    return _within(4, 224 << 24, 24, address) or (
        address.version == 6 and address.value >> 120 == 0xFF and address.value >> 112 & 0x0F == 2
    )


def is_link_local_unicast(address: Address) -> bool:
    return _within(4, 169 << 24 | 254 << 16, 16, address) or _within(6, 0xFE80 << 112, 10, address)


def is_global_unicast(address: Address) -> bool:
    """As Go says it: everything but unspecified, loopback, multicast, link-local and the broadcast address."""
    return not (
        is_unspecified(address)
        or is_loopback(address)
        or is_multicast(address)
        or is_link_local_unicast(address)
        or (address.version == 4 and address.value == 0xFFFFFFFF)
    )


def network_address(network: Network) -> Address:
    return network.address


def prefix_length(network: Network) -> int:
    return network.length


QUESTIONS: dict[str, Any] = {
    "isUnspecified": is_unspecified,
    "isLoopback": is_loopback,
    "isGlobalUnicast": is_global_unicast,
    "isLinkLocalMulticast": is_link_local_multicast,
    "isLinkLocalUnicast": is_link_local_unicast,
}

TABLE = (
    function("ip", (STRING,), IP, parse_ip),
    function("ip", (IP,), IP, identity),
    function("isIP", (STRING,), BOOL, is_ip),
    function("ip.isCanonical", (STRING,), BOOL, is_canonical),
    method("family", (IP,), INT, family),
    *(method(name, (IP,), BOOL, question) for name, question in QUESTIONS.items()),
    function("cidr", (STRING,), CIDR, parse_cidr),
    function("cidr", (CIDR,), CIDR, identity),
    function("isCIDR", (STRING,), BOOL, is_cidr),
    method("containsIP", (CIDR, IP), BOOL, contains_ip),
    method("containsIP", (CIDR, STRING), BOOL, contains_ip_text),
    method("containsCIDR", (CIDR, CIDR), BOOL, contains_cidr),
    method("containsCIDR", (CIDR, STRING), BOOL, contains_cidr_text),
    method("ip", (CIDR,), IP, network_address),
    method("masked", (CIDR,), CIDR, masked),
    method("prefixLength", (CIDR,), INT, prefix_length),
)
