"""The methods that requests may have, and what they allow: all of IANA's HTTP Method Registry (RFC 9110 16.1.1), and
some that are in use without being in it.
"""

from __future__ import annotations

from typing import Final

SAFE, IDEMPOTENT_ALONE, NEITHER = "safe", "idempotent", "neither"

REGISTERED: Final = (
    (b"ACL", IDEMPOTENT_ALONE),
    (b"BASELINE-CONTROL", IDEMPOTENT_ALONE),
    (b"BIND", IDEMPOTENT_ALONE),
    (b"CHECKIN", IDEMPOTENT_ALONE),
    (b"CHECKOUT", IDEMPOTENT_ALONE),
    (b"CONNECT", NEITHER),
    (b"COPY", IDEMPOTENT_ALONE),
    (b"DELETE", IDEMPOTENT_ALONE),
    (b"GET", SAFE),
    (b"HEAD", SAFE),
    (b"LABEL", IDEMPOTENT_ALONE),
    (b"LINK", IDEMPOTENT_ALONE),
    (b"LOCK", NEITHER),
    (b"MERGE", IDEMPOTENT_ALONE),
    (b"MKACTIVITY", IDEMPOTENT_ALONE),
    (b"MKCALENDAR", IDEMPOTENT_ALONE),
    (b"MKCOL", IDEMPOTENT_ALONE),
    (b"MKREDIRECTREF", IDEMPOTENT_ALONE),
    (b"MKWORKSPACE", IDEMPOTENT_ALONE),
    (b"MOVE", IDEMPOTENT_ALONE),
    (b"OPTIONS", SAFE),
    (b"ORDERPATCH", IDEMPOTENT_ALONE),
    (b"PATCH", NEITHER),
    (b"POST", NEITHER),
    (b"PROPFIND", SAFE),
    (b"PROPPATCH", IDEMPOTENT_ALONE),
    (b"PUT", IDEMPOTENT_ALONE),
    (b"QUERY", SAFE),
    (b"REBIND", IDEMPOTENT_ALONE),
    (b"REPORT", SAFE),
    (b"SEARCH", SAFE),
    (b"TRACE", SAFE),
    (b"UNBIND", IDEMPOTENT_ALONE),
    (b"UNCHECKOUT", IDEMPOTENT_ALONE),
    (b"UNLINK", IDEMPOTENT_ALONE),
    (b"UNLOCK", IDEMPOTENT_ALONE),
    (b"UPDATE", IDEMPOTENT_ALONE),
    (b"UPDATEREDIRECTREF", IDEMPOTENT_ALONE),
    (b"VERSION-CONTROL", IDEMPOTENT_ALONE),
)
"""The registry, with its columns Safe and Idempotent. Without "*" and PRI, which it reserves: RFC 9110 18.2, RFC 9113
11.6."""

IN_USE: Final = (b"PURGE", b"NOTIFY", b"SUBSCRIBE", b"UNSUBSCRIBE", b"SOURCE", b"M-SEARCH")
"""Of caches, UPnP and Icecast: what they do when they are sent twice is not known."""

METHODS: Final = frozenset((*(name for name, _ in REGISTERED), *IN_USE))
"""Others are answered with 501."""

IDEMPOTENT: Final = frozenset(name for name, kind in REGISTERED if kind != NEITHER)
"""RFC 9110 9.2.2: what may be sent again although the endpoint might have acted on it."""

UNKNOWN_TO_LLHTTP: Final = frozenset(
    (
        *(b"BASELINE-CONTROL", b"CHECKIN", b"LABEL", b"MKREDIRECTREF", b"MKWORKSPACE", b"ORDERPATCH"),
        *(b"UNCHECKOUT", b"UPDATE", b"UPDATEREDIRECTREF", b"VERSION-CONTROL"),
    )
)
"""It refuses them, and is asked about a POST instead: how a message ends is the same for both (RFC 9112 6.3)."""
