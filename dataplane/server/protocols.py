"""The protocols that plaintext listeners speak, and the plan that a bind's connections get of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.server.entry import Entry
from dataplane.server.h1.h1_connection import Connection as Http1Connection
from dataplane.server.h1.header_case import LowercaseConnection
from dataplane.server.h2.announced import settings_of
from dataplane.server.h2.h2_connection import Connection as Http2Connection
from dataplane.server.plan import ConnectionPlan, Row
from dataplane.server.raw.raw_connection import RawConnection

if TYPE_CHECKING:
    from dataplane.proxy.context import Context


def _http1(plan: ConnectionPlan) -> Http1Connection:
    lowers = plan.context.connection_rules(plan.bind).lowers_names
    return LowercaseConnection(plan) if lowers else Http1Connection(plan)


HTTP1 = Row("HTTP/1.1", b"", _http1)

RAW = Row("TCP", b"", RawConnection)

HEAD_OF_PREFACE = b"PRI * HTTP/2.0\r\n\r\n"
"""RFC 9113 3.4: what of HTTP/2's preface looks like a request of HTTP/1; the codec reads the rest."""


def plan_of(context: Context, bind: str) -> ConnectionPlan:
    """The plan of the bind with this key: HTTP/1.1, and HTTP/2 of clients with prior knowledge (RFC 9113 3.3)."""
    return ConnectionPlan(context, bind, HTTP1, HTTP2, RAW, Entry)


def _http2(plan: ConnectionPlan) -> Http2Connection:
    rules = plan.context.connection_rules(plan.bind)
    return Http2Connection(plan, settings_of(plan.context.limits, rules), rules)


HTTP2 = Row("HTTP/2", HEAD_OF_PREFACE, _http2)
