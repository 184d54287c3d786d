"""What a bind asks of the PROXY header of a connection, and what becomes of its first bytes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dataplane.net.proxy_header import ABSENT, Header, Malformed, More, Reader

READ_TIMEOUT: Final = 5.0
"""Seconds in which a PROXY header has to be here."""

AMBIGUOUS: Final = 3
"""Bytes with which requests begin as well as headers: "PRO" (PROPFIND), an empty line."""

MALFORMED: Final = "ProxyHeaderMalformed"
MISSING: Final = "ProxyHeaderMissing"
LATE: Final = "ProxyHeaderTimeout"
UNTRUSTED: Final = "ProxyHeaderUntrusted"
UNUSABLE: Final = "PolicyUnusable"
"""Why a connection was refused, in log and metrics."""


@dataclass(frozen=True, slots=True)
class ProxyRules:
    """`is_strict`: without a header no client may connect. `refused`: why none may at all."""

    reader: Reader
    is_strict: bool = True
    refused: str = ""

    def judge(self, data: bytes) -> Header | str | None:
        """Of the first bytes of a connection: its header (of size 0 where it has none and needs none), the reason of a
        refusal, or None while that is not known."""
        if self.refused:
            return UNUSABLE
        try:
            found = self.reader.read(data)
        except Malformed:
            return MALFORMED
        if isinstance(found, More):
            return None
        if found is ABSENT:
            return MISSING if self.is_strict else NONE
        assert isinstance(found, Header)
        return found

    def late(self, data: bytes) -> Header | str:
        """The same when no more came in time: who needs no header has none, with what may still become a request. Half
        a header is not waited for once more as a request."""
        if not self.is_strict and len(data) <= AMBIGUOUS:
            return NONE
        return LATE if data else MISSING


NONE: Final = Header(0)
"""There is no header."""
