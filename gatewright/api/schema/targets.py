"""Places on the network as the standalone file writes them: `host:port`, `[::1]:8080`, `unix:/path`, `off`, `fd00::/8`.

Used by the models of that file. It reads text; it looks nothing up.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator

from gatewright.api.schema.model import Broken, refuse

_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?):(?P<port>[0-9]{1,5})")


class Target(NamedTuple):
    """What a `host` text names: host and port, or the path of a Unix socket."""

    host: str
    port: int
    unix_path: str

    def __str__(self) -> str:
        if self.unix_path:
            return f"unix:{self.unix_path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def target(text: str) -> Target:
    """Read `host:port`, `[::1]:port` or `unix:/path`. Raises ValueError with what is right."""
    if text.startswith("unix:/"):
        return Target("", 0, text.removeprefix("unix:"))
    parts = _HOST.fullmatch(text)
    if parts is None or not 1 <= int(parts["port"]) <= 65535 or len(parts["host"]) > 256:
        raise ValueError(f'must be HOST:PORT or unix:/PATH, for example 127.0.0.1:8080, got "{text[:80]}"')
    host = parts["host"].strip("[]")
    if ":" in host:
        ipaddress.IPv6Address(host)
    return Target(host.lower(), int(parts["port"]), "")


def _target_text(text: str) -> str:
    try:
        target(text)
    except ValueError as failure:
        refuse([Broken((), str(failure))])
    return text


def _address_text(text: str) -> str:
    if not _is_address(text):
        refuse([Broken((), f'must be an IP address, got "{text[:80]}"')])
    return text


def _network_text(text: str) -> str:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        refuse([Broken((), f'must be a network such as 10.0.0.0/8 or fd00::/8, got "{text[:80]}"')])
    return text


def _page_text(text: str) -> str:
    host = text.rpartition(":")[0].strip("[]")
    if text != "off" and not text.startswith("unix:/") and (host != "localhost" and not _is_address(host)):
        refuse([Broken((), f'must be IP:PORT, localhost:PORT, unix:/PATH or off, got "{text[:80]}"')])
    return text if text == "off" else _target_text(text)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _off_is_a_word(value: object) -> object:
    """YAML reads a bare `off` as false."""
    return "off" if value is False else value


HostText = Annotated[str, AfterValidator(_target_text)]
AddressText = Annotated[str, AfterValidator(_address_text)]
PageText = Annotated[str, BeforeValidator(_off_is_a_word), AfterValidator(_page_text)]
NetworkText = Annotated[str, AfterValidator(_network_text)]
"""A network as CIDR (RFC 4632): no bit of the host part is set."""
