"""The methods that requests may have, as llhttp reads them (RFC 9110 16.1.1), and what they allow."""

from __future__ import annotations

METHODS = frozenset(
    (
        *(b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH", b"QUERY"),
        *(b"PROPFIND", b"PROPPATCH", b"MKCOL", b"COPY", b"MOVE", b"LOCK", b"UNLOCK", b"SEARCH", b"REPORT", b"PURGE"),
        *(b"ACL", b"BIND", b"REBIND", b"UNBIND", b"MKACTIVITY", b"MKCALENDAR", b"CHECKOUT", b"MERGE", b"NOTIFY"),
        *(b"LINK", b"UNLINK", b"SUBSCRIBE", b"UNSUBSCRIBE", b"SOURCE", b"M-SEARCH"),
    )
)
"""Others are answered with 501."""

IDEMPOTENT = frozenset((b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"PUT", b"DELETE"))
"""RFC 9110 9.2.2: what may be sent again although the endpoint might have acted on it."""
