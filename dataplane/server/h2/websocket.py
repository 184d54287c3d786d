"""What a WebSocket that came over HTTP/2 needs towards an endpoint of HTTP/1 (RFC 8441 5, RFC 6455 4.1)."""

from __future__ import annotations

import base64
import os


def key_line() -> bytes:
    """A generated `sec-websocket-key`. The client has none; its tunnel does not depend on the answer to this one."""
    return b"sec-websocket-key: %b\r\n" % base64.b64encode(os.urandom(16))
