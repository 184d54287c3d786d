"""Words of a command line, or of the environment, to values. A ValueError carries what is wrong and what is right."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dataplane.settings import MAX_SHUTDOWN, Address, SessionKey

OFF: Final = "off"
"""Instead of an address: there is no such page."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_TRUST_DOMAIN = re.compile(r"[a-z0-9._-]{1,255}")
_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|)")
_UNIT = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def remote(text: str) -> Address:
    """`unix:/path` or `host:port`."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path:
            raise ValueError(f"{text!r} names no socket; write unix:/path/to/xds.sock")
        return Address(path=path)
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not an address; write HOST:PORT or unix:/path, for example 127.0.0.1:18000")
    return Address(host, int(port))


def local(text: str) -> Address | str:
    """`ip:port`, `localhost:port`, `unix:/path` or `off`."""
    if text == OFF:
        return OFF
    import ipaddress

    address = remote(text)
    if address.path or address.host == "localhost":
        return address
    try:
        ipaddress.ip_address(address.host)
    except ValueError as error:
        raise ValueError(f"{error}; write IP:PORT, localhost:PORT, unix:/path or off") from error
    return address


def is_ip(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def gateway(text: str) -> str:
    namespace, slash, name = text.partition("/")
    if not slash or not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
        raise ValueError(f"{text!r} is not a Gateway; write NAMESPACE/NAME, for example default/web")
    return text


def authority(text: str) -> Address:
    """`https://host:port` or `host:port`: a mesh's authority, which gets a token and so is asked over TLS alone."""
    if text.startswith(("http://", "unix:")):
        raise ValueError(f"{text!r} cannot be asked over TLS; write HOST:PORT or https://HOST:PORT")
    return remote(text.removeprefix("https://").removesuffix("/"))


def trust_domain(text: str) -> str:
    """SPIFFE-ID 2.1."""
    if not _TRUST_DOMAIN.fullmatch(text):
        raise ValueError(f"{text!r} is not a trust domain; write lower-case letters, digits, '-', '.' and '_'")
    return text


def trust_domains(text: str) -> list[str]:
    """Separated by commas."""
    return [trust_domain(each.strip()) for each in text.split(",") if each.strip()]


def name(text: str) -> str:
    """Of an object of Kubernetes."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a name; write lower-case letters, digits, '-' and '.'")
    return text


def key(text: str) -> SessionKey:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise ValueError(f"must be 64 hex digits, got {len(text)} characters; make one with `openssl rand -hex 32`")
    return SessionKey(bytes.fromhex(text), is_given=True)


def seconds(text: str) -> float:
    match = _SECONDS.fullmatch(text)
    value = float(match[1]) * _UNIT[match[2]] if match else -1.0
    if not 0 <= value <= MAX_SHUTDOWN:
        raise ValueError(f"{text!r} is not a time from 0 to {MAX_SHUTDOWN} seconds; write 10, 10s or 1m")
    return value


def instance(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} cannot name an instance; use lower-case letters, digits, '-' and '.'")
    return text


def number(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise ValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return read
