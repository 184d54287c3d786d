"""AWS's event stream as a server writes it: headers that are text, both checksums."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any


def frame(payload: bytes, **headers: str) -> bytes:
    """`headers`: `event_type` is `:event-type`."""
    written = b""
    for name, value in headers.items():
        key = f":{name.replace('_', '-')}".encode()
        written += bytes([len(key)]) + key + b"\x07" + struct.pack(">H", len(value.encode())) + value.encode()
    prelude = struct.pack(">II", 16 + len(written) + len(payload), len(written))
    data = prelude + struct.pack(">I", zlib.crc32(prelude)) + written + payload
    return data + struct.pack(">I", zlib.crc32(data))


def event(name: str, value: Any) -> bytes:
    return frame(json.dumps(value).encode(), message_type="event", event_type=name, content_type="application/json")


def exception(name: str, message: str) -> bytes:
    return frame(json.dumps({"message": message}).encode(), message_type="exception", exception_type=name)


def chunk(value: Any) -> bytes:
    """One of InvokeModelWithResponseStream."""
    return event("chunk", {"bytes": base64.b64encode(json.dumps(value).encode()).decode(), "p": "abcd"})
