"""What a new connection's transport says of its two ends. Asked once per connection."""

from __future__ import annotations

from typing import Any

from dataplane.http.messages import Peer


def peer_of(transport: Any) -> Peer:
    """Who is at the other end of `transport`; of a Unix socket nothing is known."""
    name = transport.get_extra_info("peername")
    local = authority_of(transport.get_extra_info("sockname"))
    if not isinstance(name, tuple):
        return Peer("", local=local)
    return Peer(plain_address(str(name[0])), local=local, port=name[1])


def plain_address(address: str) -> str:
    """An IPv4 address that came in on a dual-stack socket, written plainly."""
    return address[7:] if address.startswith("::ffff:") else address


def authority_of(name: Any) -> bytes:
    """Host and port of our end."""
    if not isinstance(name, tuple):
        return b"localhost"
    host = plain_address(str(name[0]))
    return f"[{host}]:{name[1]}".encode() if ":" in host else f"{host}:{name[1]}".encode()
