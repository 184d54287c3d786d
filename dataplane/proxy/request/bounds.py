"""What an exchange has of the limits of requests (`admission` keeps them)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.proxy.deadlines import NEVER

if TYPE_CHECKING:
    from dataplane.table.limits import LimitsPlan


class Bounds:
    """What limits keep of one request."""

    __slots__ = ("bytes", "is_counted", "is_too_large", "most_bytes", "quiet_since", "stream_idle")

    quiet_since: float
    """Set where there is a `stream_idle`."""

    def __init__(self, limits: LimitsPlan) -> None:
        self.is_counted = limits.requests is not None
        """Among the requests in flight."""
        self.most_bytes: float = NEVER if limits.request_bytes is None else limits.request_bytes
        self.is_too_large = False
        self.stream_idle = limits.stream_idle
        self.bytes = 0
        """That had come and gone at the last look."""
