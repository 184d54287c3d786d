"""Error codes (RFC 9113 section 7), and the two ways in which a peer breaks a rule."""

from __future__ import annotations

NO_ERROR = 0x0
PROTOCOL_ERROR = 0x1
INTERNAL_ERROR = 0x2
FLOW_CONTROL_ERROR = 0x3
SETTINGS_TIMEOUT = 0x4
STREAM_CLOSED = 0x5
FRAME_SIZE_ERROR = 0x6
REFUSED_STREAM = 0x7
CANCEL = 0x8
COMPRESSION_ERROR = 0x9
CONNECT_ERROR = 0xA
ENHANCE_YOUR_CALM = 0xB
INADEQUATE_SECURITY = 0xC
HTTP_1_1_REQUIRED = 0xD


class ConnectionFailure(Exception):
    """The peer broke a rule of the connection (RFC 9113 5.4.1). `reason`: one word, for counters and the log."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class StreamFailure(Exception):
    """The peer broke a rule of one stream (RFC 9113 5.4.2); the others go on."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Misuse(RuntimeError):
    """A carrier called the codec out of order (content before a head, or after the end): a bug in Gatewright."""
