"""Listeners as people reach them on their own machine: an address for each, and a command to try. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gatewright.api.objects.gateway import Gateway
from gatewright.api.schema.metadata import ObjectKey

LOOPBACK: Final = "127.0.0.1"
SCHEMES: Final[Mapping[str, str]] = {"HTTP": "http", "HTTPS": "https", "TLS": "tls", "TCP": "tcp", "UDP": "udp"}
"""Protocols of listeners (Gateway API ProtocolType), and how their addresses begin."""
ANY_NAME: Final = "www"
"""What stands in a command for the wildcard of a hostname."""


@dataclass(frozen=True, slots=True)
class ServedListener:
    """One listener of a Gateway. `port`: on the machine."""

    gateway: ObjectKey
    name: str
    protocol: str
    port: int
    hostname: str

    @property
    def is_datagram(self) -> bool:
        return self.protocol == "UDP"

    @property
    def address(self) -> str:
        return f"{SCHEMES[self.protocol]}://{LOOPBACK}:{self.port}"

    def command(self) -> str:
        """A line that talks with what is behind a listener whose routes say nothing of requests; empty for HTTP."""
        name = self.hostname.replace("*", ANY_NAME)
        if self.protocol == "TLS":
            named = ["-servername", name] if name else []
            return shlex.join(["openssl", "s_client", "-connect", f"{LOOPBACK}:{self.port}", *named])
        if self.protocol in ("TCP", "UDP"):
            return shlex.join(["nc", *(["-u"] if self.is_datagram else []), LOOPBACK, str(self.port)])
        return ""


def listeners(gateways: Iterable[Gateway], offset: int) -> list[ServedListener]:
    """Every listener, as the proxy with this offset opens it; those of unsupported protocols are left out."""
    return [
        ServedListener(gateway.key, listener.name, listener.protocol, listener.port + offset, listener.hostname or "")
        for gateway in gateways
        for listener in gateway.spec.listeners
        if listener.protocol in SCHEMES
    ]


def commands(found: Iterable[ServedListener]) -> Iterator[str]:
    """One for each protocol whose listeners carry no requests."""
    shown = set()
    for listener in found:
        line = listener.command()
        if line and listener.protocol not in shown:
            shown.add(listener.protocol)
            yield line
