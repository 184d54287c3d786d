"""Names of response headers in lower case, where `frontend.http.http1HeaderCase` asks for it.

A connection of its own kind, so that others pay nothing. Its bind has a listener that asks for it; whether the one that
took the request does is looked up for each response. Trailers pass as they are.
"""

from __future__ import annotations

from dataplane.http.heads import with_low_names
from dataplane.server.h1.h1_connection import Connection


class LowercaseConnection(Connection):
    """As `Connection`, but for the heads that it writes."""

    __slots__ = ()

    def head(self, line: bytes, block: bytes, length: int, first: bytes, end: bool) -> None:
        super().head(line, self._written(block), length, first, end)

    def interim(self, line: bytes, block: bytes) -> None:
        super().interim(line, self._written(block))

    def switch(self, line: bytes, block: bytes, first: bytes) -> None:
        super().switch(line, self._written(block), first)

    def _written(self, block: bytes) -> bytes:
        x = self.exchange
        asks = x is not None and x.listener is not None and x.listener.http.connection.lowers_names
        return with_low_names(block) if asks else block
