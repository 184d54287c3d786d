"""The states of a stream (RFC 9113 section 5.1) as a table. We never push, and are never pushed to: no reserved
states."""

from __future__ import annotations

IDLE, OPEN, HALF_CLOSED_LOCAL, HALF_CLOSED_REMOTE, CLOSED = range(5)
RECEIVING = (OPEN, HALF_CLOSED_LOCAL)
"""The peer may send content."""
NAMES = ("idle", "open", "half-closed (local)", "half-closed (remote)", "closed")

RECEIVE, RECEIVE_END, SEND, SEND_END, RESET = range(5)
"""What happens to a stream: HEADERS or DATA without or with END_STREAM, from the peer or from us; RST_STREAM, of
either."""

ERROR = -1
"""From the peer: a stream error STREAM_CLOSED; from us: a bug."""

NEXT = (
    # RECEIVE, RECEIVE_END, SEND, SEND_END, RESET
    (OPEN, HALF_CLOSED_REMOTE, OPEN, HALF_CLOSED_LOCAL, ERROR),  # IDLE
    (OPEN, HALF_CLOSED_REMOTE, OPEN, HALF_CLOSED_LOCAL, CLOSED),  # OPEN
    (HALF_CLOSED_LOCAL, CLOSED, ERROR, ERROR, CLOSED),  # HALF_CLOSED_LOCAL
    (ERROR, ERROR, HALF_CLOSED_REMOTE, CLOSED, CLOSED),  # HALF_CLOSED_REMOTE
    (ERROR, ERROR, ERROR, ERROR, ERROR),  # CLOSED
)
"""`NEXT[state][what happens]`."""
