"""W3C Trace Context: what `traceparent` and `tracestate` of a request say, and what is sent on.

Pure. A traceparent that the recommendation does not allow counts as none, and its tracestate with it (3.2.3, 3.3.1.5);
a tracestate that is not allowed is dropped alone. This proxy adds no member of its own to a tracestate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

TRACEPARENT: Final = b"traceparent"
TRACESTATE: Final = b"tracestate"

SAMPLED: Final = 0x01
"""The flag that says that the caller may have recorded its span (3.2.2.5.1)."""

MOST_MEMBERS: Final = 32
"""Of a tracestate (3.3.1.1)."""
MOST_STATE: Final = 4096
"""Bytes of a tracestate that is passed on; at least 512 have to be (3.3.1.5)."""

_PARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_KEY: Final = rb"(?:[a-z0-9][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
_MEMBER: Final = re.compile(rb"(" + _KEY + rb")=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])")
_NO_TRACE: Final = "0" * 32
_NO_SPAN: Final = "0" * 16
_UNUSED_VERSION: Final = b"ff"
_FIRST_VERSION: Final = b"00"


class SpanContext(NamedTuple):
    """One span, as others name it. `trace_id`, `span_id`: 32 and 16 lower-case hexadecimal digits; `state`: a
    tracestate, b"" for none."""

    trace_id: str
    span_id: str
    flags: int
    state: bytes = b""

    @property
    def is_sampled(self) -> bool:
        return bool(self.flags & SAMPLED)

    def child(self, span_id: str, is_sampled: bool) -> SpanContext:
        """Of a span below this one, in the same trace. Other flags pass as they came: the trace id stays as random as
        it was (Level 2, 3.2.2.5.2)."""
        flags = self.flags | SAMPLED if is_sampled else self.flags & ~SAMPLED
        return SpanContext(self.trace_id, span_id, flags, self.state)

    def header_lines(self) -> bytes:
        """The two lines of a request, each with its end."""
        parent = f"traceparent: 00-{self.trace_id}-{self.span_id}-{self.flags & 0x03:02x}\r\n".encode()
        return parent + b"tracestate: %b\r\n" % self.state if self.state else parent


def parsed(parents: Sequence[bytes], states: Sequence[bytes]) -> SpanContext | None:
    """The caller's span. `parents`, `states`: the values of all fields of that name, in their order; None: no trace
    (none given, several traceparents, or one that is not allowed)."""
    if len(parents) != 1:
        return None
    found = _PARENT.fullmatch(parents[0].strip(b" \t"))
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == _UNUSED_VERSION or (version == _FIRST_VERSION and more is not None):
        return None
    trace_id, span_id = trace.decode(), span.decode()
    if trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    return SpanContext(trace_id, span_id, int(flags, 16) & 0x03, state_of(states))


def state_of(values: Sequence[bytes]) -> bytes:
    """A tracestate as it is passed on, its fields joined (RFC 9110 5.3); b"": there is none, or it is not allowed."""
    if not values:
        return b""
    joined = b",".join(values)
    if len(joined) > MOST_STATE:
        return b""
    members = [member.strip(b" \t") for member in joined.split(b",")]
    members = [member for member in members if member]
    keys = set()
    for member in members:
        found = _MEMBER.fullmatch(member)
        if found is None or found[1] in keys:
            return b""
        keys.add(found[1])
    return b",".join(members) if len(members) <= MOST_MEMBERS else b""


def root(trace: int, span: int) -> SpanContext:
    """A recorded trace that begins here, of 128 and 64 random bits. Ids of zeros alone are none (3.2.2.3, 3.2.2.4)."""
    return SpanContext(f"{trace or 1:032x}", f"{span or 1:016x}", SAMPLED)
