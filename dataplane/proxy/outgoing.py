"""The header block that one attempt sends, where it is not the request's own: the destination's host, a retry's number.

Edits of bytes at the moment of sending; the request stays as the steps left it, for expressions and the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http.heads import Head

if TYPE_CHECKING:
    from dataplane.proxy.exchange import ActiveExchange
    from dataplane.table.plans import BackendPlan

RETRY_HEADER = b"x-retry-attempt"


def backend_of(x: ActiveExchange, key: str) -> BackendPlan | None:
    """The backend of this key, as the policies of the route want it spoken to; None: it is not known."""
    backend = x.table.backends.get(key)
    if backend is None:
        return None
    rules = x.policies.rules
    backend = backend.under(x.policies.backend, x.plan.http_version)
    return backend if rules is None else backend.guarded(rules)


def authority(x: ActiveExchange, backend: BackendPlan) -> bytes:
    """What the Host header becomes on the way to `backend`; b"": it stays (spec 2, hostRewrite).

    `Auto` is the default of backends that are named by a host name. A host that a step chose stays in any case.
    """
    mode = x.policies.host_rewrite
    return backend.authority if (backend.renames if mode is None else mode) and not x.host_set else b""


def block(x: ActiveExchange, backend: BackendPlan, tries: int = 0) -> bytes:
    """The headers to send to `backend`; `tries`: how many tries there were before this one."""
    head = x.request
    host = authority(x, backend)
    lines = with_host(head.block, head.low, host) if host else head.block
    return lines + b"%b: %d\r\n" % (RETRY_HEADER, tries) if tries else lines


def with_length(lines: bytes, size: int) -> bytes:
    """A block for a body of `size` bytes."""
    head = Head(lines)
    head.set(b"content-length", b"%d" % size)
    return head.block


def with_host(lines: bytes, low: bytes, host: bytes) -> bytes:
    """A block with `host` as the value of its Host header, of which it has one or none (RFC 9112 3.2)."""
    start = low.find(b"\r\nhost:")
    if start < 0:
        return b"\r\nhost: %b%b" % (host, lines)
    return b"%b\r\nhost: %b%b" % (lines[:start], host, lines[low.find(b"\r\n", start + 2) :])
