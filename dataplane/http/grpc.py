"""gRPC as far as a gateway has to know it: its content types, its status beside HTTP's, its deadline.

Source: the gRPC documents PROTOCOL-HTTP2 and PROTOCOL-WEB. Pure; the frames of gRPC-Web are in `grpc_web`.
"""

from __future__ import annotations

from typing import Final

from dataplane.http.heads import Head

NOT_GRPC, GRPC, WEB, WEB_TEXT = range(4)
UNREAD: Final = -1
"""Kinds of requests; UNREAD: not looked at yet. WEB frames its trailers as content; WEB_TEXT is that in base64."""

_KINDS: Final = {b"application/grpc": GRPC, b"application/grpc-web": WEB, b"application/grpc-web-text": WEB_TEXT}
_USUAL: Final = _KINDS | {b"%b+proto" % name: number for name, number in _KINDS.items()}
"""What nearly all clients say, as they say it."""


class Call:
    """What is known of an exchange that speaks gRPC."""

    __slots__ = ("is_sized", "kind", "status")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        """As its request said: one of the kinds above."""
        self.is_sized = False
        """Its response has a content-length."""
        self.status: int | None = None
        """gRPC's status, once it is known; None: there is none, or it did not come."""


def kind(content_type: bytes) -> int:
    """Of a `content-type` value: the media type alone decides, without its suffix (`+proto`) and its parameters."""
    usual = _USUAL.get(content_type)
    if usual is not None:
        return usual
    if content_type[:16].lower() != b"application/grpc":
        return NOT_GRPC
    media = content_type.partition(b";")[0].partition(b"+")[0].strip().lower()
    return _KINDS.get(media, NOT_GRPC)


def is_meant(method: bytes, head: Head) -> bool:
    """Whether a request is one of gRPC or gRPC-Web, or the preflight of one (Fetch: it names the headers to come, of
    which clients of gRPC-Web always send `x-grpc-web`)."""
    if method == b"OPTIONS":
        return b"x-grpc-web" in (head.get(b"access-control-request-headers") or b"").lower()
    return b"application/grpc" in head.low and kind(head.get(b"content-type") or b"") != NOT_GRPC


# --- status

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = range(8)
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = range(8, 15)
DATA_LOSS, UNAUTHENTICATED = 15, 16

_OF_STATUS: Final = {
    401: UNAUTHENTICATED,
    403: PERMISSION_DENIED,
    404: UNIMPLEMENTED,
    408: DEADLINE_EXCEEDED,  # the request did not come in time
    413: RESOURCE_EXHAUSTED,
    429: RESOURCE_EXHAUSTED,
    431: RESOURCE_EXHAUSTED,
    502: UNAVAILABLE,
    503: UNAVAILABLE,
    504: DEADLINE_EXCEEDED,
}


_OF_REASON: Final = {
    "NoValidBackend": UNAVAILABLE,  # Gateway API GRPCRouteRule, backendRefs
    "InvalidBackend": UNAVAILABLE,
    "BackendRefused": UNAVAILABLE,
}


def status_of(status: int, reason: str = "") -> int:
    """The gRPC status of a reply of the gateway with this HTTP status, 400 to 599. What has no row is INTERNAL."""
    return _OF_REASON.get(reason) or _OF_STATUS.get(status, INTERNAL)


def given_status(value: bytes) -> int | None:
    """Of a `grpc-status` field. Codes that gRPC does not know are UNKNOWN to a client; None: it is no number at all."""
    if not value.isdigit() or len(value) > 10:
        return None
    return int(value)


_STATUS: Final = b"\r\ngrpc-status:"
_SUCCESS: Final = _STATUS + b" 0\r\n"


def status_in(low: bytes) -> int | None:
    """The status that lines say: a header block, or trailers behind a CRLF, in lower case. None: they have none; one
    that is no number is UNKNOWN, as clients take it."""
    if low == _SUCCESS:  # mostly
        return OK
    at = low.find(_STATUS)
    if at < 0:
        return None
    start = at + len(_STATUS)
    found = given_status(low[start : low.find(b"\r\n", start)].strip(b" \t"))
    return UNKNOWN if found is None else found


_PLAIN: Final = frozenset(range(0x20, 0x7F)) - {ord("%")}


def message(text: bytes) -> bytes:
    """A value of `grpc-message`: percent-encoded UTF-8, in which nothing can end a line."""
    if _PLAIN.issuperset(text):
        return text
    return b"".join(b"%c" % byte if byte in _PLAIN else b"%%%02X" % byte for byte in text)


def trailers_only(content_type: bytes, status: int, text: bytes) -> bytes:
    """Header lines of an answer that is nothing but a status: no content follows. `content_type`: the request's;
    `status`: gRPC's. Clients of gRPC-Web read the status from the head, too, where there is no content."""
    lines = b"content-type: %b\r\ngrpc-status: %d\r\n" % (content_type, status)
    return lines + b"grpc-message: %b\r\n" % message(text) if text else lines


# --- deadline

_UNITS: Final = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}


def timeout(value: bytes) -> float | None:
    """Seconds of a `grpc-timeout` field: one to eight digits and a unit. None: it is malformed."""
    digits, unit = value[:-1], _UNITS.get(value[-1:])
    if unit is None or not digits.isdigit() or len(digits) > 8:
        return None
    return int(digits) * unit
