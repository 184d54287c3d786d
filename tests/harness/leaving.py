"""Clients that leave."""

from __future__ import annotations

import asyncio
import socket
import struct

_AT_ONCE = struct.pack("ii", 1, 0)


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset: a client that merely ends its sending side may still wait for its answer (`half_closed`)."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    writer.transport.abort()
