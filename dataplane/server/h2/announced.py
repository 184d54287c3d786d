"""What we announce to clients of HTTP/2, from the rules of a bind or listener."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from dataplane.http.h2.settings import Settings

if TYPE_CHECKING:
    from dataplane.http.connection_rules import ConnectionRules
    from dataplane.proxy.context import Limits

_OWN = Settings()


@lru_cache(maxsize=64)
def settings_of(limits: Limits, rules: ConnectionRules) -> Settings:
    """One object for equal rules. Fields of a head are as many as their size allows on the scale of the default, which
    has `max_headers` for `max_header_list` bytes."""
    size = rules.max_header_size or limits.max_header_list
    return Settings(
        rules.max_streams or limits.max_streams,
        rules.stream_window or _OWN.stream_window,
        rules.connection_window or _OWN.connection_window,
        rules.frame_size or _OWN.frame_size,
        size,
        max(limits.max_headers, limits.max_headers * size // limits.max_header_list),
    )
