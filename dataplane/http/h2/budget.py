"""What a peer may make us do for nothing: limits on frames that cost it less than they cost us.

Each kind has a bucket: full at the beginning, refilled with time and with real work, so that a connection that lives
for days with a PING every ten seconds, or sends window updates for what it reads, is never cut. A count above the
bucket ends the connection with ENHANCE_YOUR_CALM and the kind's name. The clock is read only when a bucket seems
empty; what time gave until then is counted at once, so the most that passes in no time is twice the bucket.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from dataplane.http.h2.errors import ENHANCE_YOUR_CALM, ConnectionFailure


class Limit(NamedTuple):
    burst: int
    """What passes at once."""
    per_second: float
    per_stream: float = 0
    """For each stream that ran to its end; of an endpoint, that was opened to it."""
    per_frame: float = 0
    """For each DATA frame that we sent."""


RESET, MALFORMED, PING, SETTINGS, PRIORITY, WINDOW_UPDATE, EMPTY, UNKNOWN, STALE, OVERSIZED = range(10)

CLIENTS: Final = {
    "RapidReset": Limit(200, 10, per_stream=1),  # the peer resets, or opens above the limit (CVE-2023-44487)
    "MalformedStreams": Limit(100, 10),  # streams that we have to reset (CVE-2025-8671)
    "PingFlood": Limit(100, 10, per_frame=1),  # CVE-2019-9512; a gRPC peer measures with one for each DATA frame
    "SettingsFlood": Limit(50, 1),  # CVE-2019-9515
    "PriorityFlood": Limit(200, 20, per_stream=4),  # CVE-2019-9513
    "WindowUpdateFlood": Limit(400, 50, per_stream=2, per_frame=4),  # for stream and connection, in halves
    "EmptyFrames": Limit(100, 10),  # CVE-2019-9518: DATA, HEADERS and CONTINUATION that carry and end nothing
    "UnknownFrames": Limit(200, 20),  # RFC 9113 5.5: ignored, but not without end
    "StaleFrames": Limit(400, 100),  # on streams that we have reset: what was under way
    "OversizedHeads": Limit(100, 10),  # the tables of HPACK make 60 KB of 60 bytes
}
"""What a client may send: names and limits, in the order of the numbers above."""

SERVERS: Final = {
    **CLIENTS,
    # Its content is malformed or reset as its client wished: once for each stream that we opened.
    "MalformedStreams": Limit(1000, 100, per_stream=1),
    "PingFlood": Limit(1000, 100, per_stream=4, per_frame=2),  # gRPC measures with one for each frame or message
    "SettingsFlood": Limit(200, 10),
    # It answers each piece of content with up to two, and may see more pieces than we sent frames: messages of gRPC.
    "WindowUpdateFlood": Limit(20_000, 20_000, per_stream=8, per_frame=8),
    "EmptyFrames": Limit(1000, 100, per_stream=8),
    "UnknownFrames": Limit(2000, 200, per_stream=4),  # ALTSVC, ORIGIN, and types that do not exist yet
    # A client that goes away leaves a window's worth of whatever pieces the server sends.
    "StaleFrames": Limit(20_000, 5_000, per_stream=64),
}
"""What an endpoint may send. Its connection carries the requests of many clients, and most of these frames answer what
one of them sent: no client may end it for the others by that. What passes costs an endpoint its pace (`net/turns`)."""

_NAMES: Final = tuple(CLIENTS)


def _limits(of: dict[str, Limit]) -> tuple[tuple[Limit, ...], tuple[int, ...]]:
    """Rows and, for the look of each frame, bursts alone."""
    rows = tuple(of[name] for name in _NAMES)
    return rows, tuple(row.burst for row in rows)


_OF_CLIENTS: Final = _limits(CLIENTS)
_OF_SERVERS: Final = _limits(SERVERS)

SETTINGS_AT_ONCE = 64
"""Values of one SETTINGS frame that count as one frame; more count as more. There are fewer than 16 kinds of them."""
MAX_UNSENT_REPLIES = 1000
"""Acknowledgements of PING and SETTINGS, and resets, that wait for a peer that does not read: "HeldReplies"."""
MAX_CONTINUATIONS = 8
"""CONTINUATION frames of one header block, and one more for each frame's worth of the limit: "Continuation"."""


class Budget:
    """The buckets of one connection."""

    __slots__ = ("_bursts", "_clock", "_levels", "_rows", "_seen", "_started", "frames", "streams")

    def __init__(self, clock: Callable[[], float], of_client: bool) -> None:
        """`of_client`: the peer is one; else it is an endpoint."""
        self._clock = clock
        self._started = clock()
        self._rows, self._bursts = _OF_CLIENTS if of_client else _OF_SERVERS
        self._levels: list[float] = [0] * len(_NAMES)
        self._seen: list[tuple[float, int, int]] | None = None
        """For each kind the time, streams and frames up to which its bucket was refilled; made when one is needed."""
        self.streams = 0
        """Streams that ran to their end, or that we opened."""
        self.frames = 0
        """DATA frames sent."""

    def charge(self, kind: int, count: int = 1) -> None:
        """Count so many. Raises ConnectionFailure above the limit."""
        level = self._levels[kind] + count
        if level > self._bursts[kind]:
            level = self._refilled(kind, level)
        self._levels[kind] = level

    def _refilled(self, kind: int, level: float) -> float:
        limit, now = self._rows[kind], self._clock()
        if self._seen is None:
            self._seen = [(self._started, 0, 0)] * len(_NAMES)
        at, streams, frames = self._seen[kind]
        self._seen[kind] = (now, self.streams, self.frames)
        level -= (now - at) * limit.per_second
        level -= (self.streams - streams) * limit.per_stream + (self.frames - frames) * limit.per_frame
        if level > limit.burst:
            raise ConnectionFailure(ENHANCE_YOUR_CALM, _NAMES[kind])
        return max(level, 1)
