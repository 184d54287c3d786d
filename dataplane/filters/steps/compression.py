"""Response compression, a Gatewright extension (RFC 9110 8.4, 12.5.3).

Decided with the head of a response, by what the client sent. What must not be transformed is not (RFC 9110 7.7, RFC
9111 5.2.2.6), nor what is encoded already, a part of a representation, an answer to HEAD, or gRPC, which compresses by
itself.
A response of unknown length may be one of events: all of it that is here is passed on at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from dataplane.chain.filter import Env, Filter, Refused
from dataplane.chain.reply import Reply
from dataplane.chain.streaming import TOO_LARGE
from dataplane.http.accepted import IDENTITY, best
from dataplane.http.body import TooLarge
from dataplane.http.codings import CODINGS, Compressor
from dataplane.http.statuses import BODILESS, RESET_CONTENT
from dataplane.link.pools import COMPRESSED, Full, Key, Places, Shares, key_of
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.http.heads import Head
    from dataplane.streams import Outlet

NAME = "compression"

MOST_AT_A_TIME: Final = 1024
"""Responses that a worker compresses: each takes up to 2 MiB. Further ones, and those of a client that has its
share (`link/pools`), pass as they are."""
PARTIAL_CONTENT: Final = 206
ATTRIBUTE: Final = "compression"
"""Where an exchange has what its client accepts, as it came (`Exchange.attributes`)."""

_GRPC: Final = b"application/grpc"
_KEY: Final = "compression"


class Crowd(Places):
    """Those that a worker compresses now."""

    __slots__ = ("__weakref__",)

    def __init__(self, full: Full | None = None) -> None:
        super().__init__(MOST_AT_A_TIME, Shares(COMPRESSED, full))


def build(config: traffic_pb2.Compression, env: Env) -> Filter:
    """Raises `Refused` for a coding that is not supported."""
    unknown = next((each for each in config.encodings if each.encode() not in CODINGS), None)
    if unknown is not None or not config.encodings:
        raise Refused(f"encodings: {unknown or 'none'} is not one of {', '.join(each.decode() for each in CODINGS)}")
    offered = tuple(each.encode() for each in config.encodings)
    for each in offered:
        CODINGS[each]()  # its library is loaded now, not by a request
    is_listed = _listed(config.content_types)
    crowd = env.kept(_KEY, partial(Crowd, env.full))

    def note(x: Exchange) -> None:
        """What a later step takes away from the backend is still the client's word."""
        values = x.request.get_all(b"accept-encoding")
        if values:
            x.leave(ATTRIBUTE, b",".join(values))

    def compress(x: Exchange) -> Awaitable[Reply | None] | Reply | None:
        head = x.response
        assert head is not None  # response hooks run when there is one
        if not _may_be_compressed(x, head, is_listed, config.min_size):
            return None
        _vary(head)
        accepted = None if x.attributes is None else x.attributes.get(ATTRIBUTE)
        coding = best(accepted if isinstance(accepted, bytes) else None, offered)
        if coding == IDENTITY or not crowd.fits(key_of(x.peer)):
            return None
        return _installed(x, head, coding, crowd)

    return Filter(NAME, request=note, response=compress, makes_stages=True)


def _listed(types: Sequence[str]) -> Callable[[bytes], bool]:
    """Whether a media type, in lower case and without parameters, is one of those of the configuration."""
    low = [each.lower().encode() for each in types]
    exact = frozenset(each for each in low if not each.endswith(b"/*"))
    kinds = tuple(each[:-1] for each in low if each.endswith(b"/*"))
    return lambda found: found in exact or (bool(kinds) and found.startswith(kinds))


def _may_be_compressed(x: Exchange, head: Head, is_listed: Callable[[bytes], bool], least: int) -> bool:
    """Whether it is compressed for clients that accept that."""
    status = x.status
    if x.reason or x.method == b"HEAD" or x.grpc is not None:
        return False
    if status < 200 or status in BODILESS or status in (RESET_CONTENT, PARTIAL_CONTENT):
        return False
    kind = (head.get(b"content-type") or b"").partition(b";")[0].strip(b" \t").lower()
    if not is_listed(kind) or kind.startswith(_GRPC):
        return False
    if head.get(b"content-range") is not None or head.is_coded:
        return False
    if _forbids(head) or _forbids(x.request):
        return False
    length = _length(x, head)
    return length is None or length >= least


def _forbids(head: Head) -> bool:
    """`Cache-Control: no-transform`, of a response or a request (RFC 9111 5.2.1.6, 5.2.2.6)."""
    if b"no-transform" not in head.low:
        return False
    directives = b",".join(head.get_all(b"cache-control")).lower().split(b",")
    return any(each.strip(b" \t") == b"no-transform" for each in directives)


def _length(x: Exchange, head: Head) -> int | None:
    """Bytes of content; None: not known yet."""
    if x.response_body is not None:
        return len(x.response_body)
    value = head.get(b"content-length")
    return int(value) if value is not None and value.isdigit() else None


def _vary(head: Head) -> None:
    """Caches have to keep apart what is compressed for some (RFC 9110 12.5.5)."""
    names = [each.strip(b" \t").lower() for each in b",".join(head.get_all(b"vary")).split(b",")]
    if b"*" not in names and b"accept-encoding" not in names:
        head.add(b"vary", b"Accept-Encoding")


def _installed(x: Exchange, head: Head, coding: bytes, crowd: Crowd) -> Awaitable[Reply | None] | Reply | None:
    """Have the content pass a compressor, and the head say so."""
    etag, flushes = head.get(b"etag"), _length(x, head) is None
    try:
        answer = x.stream_response(
            lambda x, outlet: Compressing(CODINGS[coding](), outlet, crowd, key_of(x.peer), flushes)
        )
    except TooLarge:
        return TOO_LARGE
    if answer is not None and not isinstance(answer, Reply):
        return _later(answer, head, coding, etag)
    if answer is None:
        _describe(head, coding, etag)
    return answer


async def _later(answer: Awaitable[Reply | None], head: Head, coding: bytes, etag: bytes | None) -> Reply | None:
    try:
        found = await answer
    except TooLarge:
        return TOO_LARGE
    if found is None:
        _describe(head, coding, etag)
    return found


def _describe(head: Head, coding: bytes, etag: bytes | None) -> None:
    """What is true of the compressed content. It is equivalent to the other, but not byte by byte: a weak entity tag
    (RFC 9110 8.8.1) still validates it."""
    head.set(b"content-encoding", coding)
    if etag is not None:
        head.add(b"etag", etag if etag.startswith(b"W/") else b"W/" + etag)


class Compressing:
    """The stage of one response (`dataplane/streams`)."""

    __slots__ = ("_compressor", "_crowd", "_flushes", "_key", "_outlet", "pause", "resume")

    def __init__(self, compressor: Compressor, outlet: Outlet, crowd: Crowd, key: Key, flushes: bool) -> None:
        """`key`: whose share of `crowd` it takes a place of; `flushes`: what comes is passed on at once."""
        self._compressor: Compressor | None = compressor
        self._outlet, self._crowd, self._key, self._flushes = outlet, crowd, key, flushes
        self.pause, self.resume = outlet.pause, outlet.resume
        crowd.hold(key)

    def content(self, data: bytes, end: bool) -> None:
        compressor = self._compressor
        if compressor is None:
            return
        made = compressor.compress(data) if data else b""
        if end:
            made += compressor.finish()
            self.cancel()
        elif self._flushes:
            made += compressor.flush()
        if made or end:
            self._outlet.content(made, end)

    def cancel(self) -> None:
        if self._compressor is not None:
            self._compressor = None
            self._crowd.free(self._key)
