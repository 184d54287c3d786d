"""The methods that requests may have: registered ones, as llhttp reads them (RFC 9110 16.1.1)."""

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
