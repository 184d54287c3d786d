"""The protocols that plaintext listeners speak, and the plan that a bind's connections get of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http.h2.settings import Settings
from dataplane.server.h1.connection import Connection as Http1Connection
from dataplane.server.h2.connection import Connection as Http2Connection
from dataplane.server.plan import ConnectionPlan, Row

if TYPE_CHECKING:
    from dataplane.proxy.context import Context

HTTP1 = Row("HTTP/1.1", b"", Http1Connection)

HEAD_OF_PREFACE = b"PRI * HTTP/2.0\r\n\r\n"
"""RFC 9113 3.4: what of HTTP/2's preface looks like a request of HTTP/1; the codec reads the rest."""


def plan_of(context: Context, bind: str) -> ConnectionPlan:
    """The plan of the bind with this key: HTTP/1.1, and HTTP/2 of clients with prior knowledge (RFC 9113 3.3)."""
    limits = context.limits
    settings = Settings(limits.max_streams, max_header_size=limits.max_header_list, max_headers=limits.max_headers)
    http2 = Row("HTTP/2", HEAD_OF_PREFACE, lambda plan: Http2Connection(plan, settings))
    return ConnectionPlan(context, bind, HTTP1, http2)
