"""`frontend.http` (spec 2): how listeners speak HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.schema.byte_size import byte_size
from gatewright.api.schema.fields import ByteSize, Integer, PositiveDuration
from gatewright.api.schema.model import Broken, RuledModel

FRAME_SIZES: Final = (16_384, 16_777_215)
"""RFC 9113 6.5.2, SETTINGS_MAX_FRAME_SIZE."""
MAX_WINDOW: Final = 2**31 - 1
"""RFC 9113 6.9.1."""


class FrontendHTTP(RuledModel):
    """HTTP settings of listeners."""

    max_buffer_size: ByteSize = "2mb"
    """The largest body that is held in memory for policies that need it whole."""
    http1_max_headers: Annotated[Integer, Field(ge=1, le=4096)] = 100
    """How many header fields an HTTP/1 request may have."""
    http1_idle_timeout: PositiveDuration = "10m"
    """How long an unused HTTP/1 connection is kept."""
    http1_header_case: Literal["Lowercase", "Preserve"] | None = None
    """Letter case of response header names in HTTP/1. Ignored where either side speaks HTTP/2, which has lower case
    only; policies that change headers may lose the original case."""
    http2_window_size: ByteSize | None = None
    """Initial flow-control window of a stream."""
    http2_connection_window_size: ByteSize | None = None
    """Initial flow-control window of a connection."""
    http2_frame_size: ByteSize = "16kb"
    """The largest frame that is accepted."""
    http2_max_header_size: ByteSize = "16Ki"
    """The largest header section, decoded."""
    http2_keepalive_interval: PositiveDuration | None = None
    """The time between pings."""
    http2_keepalive_timeout: PositiveDuration | None = None
    """How long a ping may stay unanswered."""
    max_connection_duration: PositiveDuration | None = None
    """After this time a connection is closed gracefully, once the request in flight has completed."""

    def broken_rules(self) -> Iterator[Broken]:
        low, high = FRAME_SIZES
        if not low <= byte_size(self.http2_frame_size) <= high:
            yield Broken(("http2FrameSize",), f"must be between {low} and {high} bytes")
        windows = (
            ("http2WindowSize", self.http2_window_size),
            ("http2ConnectionWindowSize", self.http2_connection_window_size),
        )
        for name, size in windows:
            if size is not None and byte_size(size) > MAX_WINDOW:
                yield Broken((name,), f"must be at most {MAX_WINDOW} bytes")
