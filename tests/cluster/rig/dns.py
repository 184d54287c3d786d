"""The names of a cluster: A records of Services."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Mapping
from typing import cast

from tests.cluster.rig.api import Json
from tests.cluster.rig.kubelet import Kubelet

A, IN = b"\0\1", b"\0\1"
SERVICE = re.compile(r"([^.]+)\.([^.]+)\.svc(\.cluster\.local)?")


def resolver(
    services: Mapping[str, Json], kubelet: Kubelet, fixed: Mapping[str, str]
) -> Callable[[str], list[str] | None]:
    """Addresses of a name; None where there is no such name. `fixed`: names of what runs beside the cluster."""

    def found(name: str) -> list[str] | None:
        short = name.removesuffix(".cluster.local")
        if short in fixed:
            return [fixed[short]]
        parts = SERVICE.fullmatch(name)
        for service in services.values() if parts else ():
            if parts and (service["metadata"]["name"], service["metadata"]["namespace"]) == parts.group(1, 2):
                address = service["spec"].get("clusterIP")
                return [pod.address for pod in kubelet.behind(service)] if address == "None" else [address]
        return None

    return found


class Dns(asyncio.DatagramProtocol):
    """Answers queries for one name each, as all resolvers ask."""

    def __init__(self, resolve: Callable[[str], list[str] | None]) -> None:
        self._resolve = resolve
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, query: bytes, client: tuple[str, int]) -> None:
        labels, at = [], 12
        while at < len(query) and query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace").lower())
            at += 1 + query[at]
        if at + 5 > len(query):
            return
        found = self._resolve(".".join(labels))
        addresses = (found or []) if query[at + 1 : at + 3] == A else []
        flags = bytes([0x84 | query[2] & 1, 0x83 if found is None else 0x80])
        counts = b"\0\1" + len(addresses).to_bytes(2, "big") + bytes(4)
        records = [b"\xc0\x0c" + A + IN + b"\0\0\0\5\0\4" + socket.inet_aton(each) for each in addresses]
        self._transport.sendto(query[:2] + flags + counts + query[12 : at + 5] + b"".join(records), client)
