"""What a request says upstream of its client: forwarding headers, the same whatever protocol brought it. Pure.

The peer is appended to what came; protocol and host are set; nothing else that a client claims of itself is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.http.messages import Peer


def chain(sent: Iterable[bytes], peer: bytes) -> bytes:
    """`x-forwarded-for` with the peer behind the values that came."""
    return b", ".join([value for value in sent if value] + [peer])


def lines(authority: bytes, forwarded: bytes, peer: Peer) -> bytes:
    """The headers that are ours to say. `forwarded`: of `chain`; `authority`: b"" when the client named none."""
    ours = b"x-forwarded-for: %b\r\nx-forwarded-proto: %b\r\n" % (forwarded, peer.scheme)
    return ours + b"x-forwarded-host: %b\r\n" % authority if authority else ours
