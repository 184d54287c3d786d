"""A session of a client with the servers behind one endpoint. All that is needed to go on with it is in its id, sealed:
which worker, replica or restarted proxy gets the next request does not matter.
"""

from __future__ import annotations

import zlib
from typing import Final

import msgspec

from dataplane.credentials.sealing import MAX_SEALED, Sealer

LIFETIME: Final = 24 * 3600.0
"""Seconds after which a session is over in any case: ids do not live for ever."""
IDLE: Final = 1800.0
"""Seconds without a request or an open stream after which a session is over."""
MAX_HELLO: Final = 16_384
"""Bytes of what a client said of itself at `initialize`, as it is kept for servers that have to hear it again."""
MAX_UPSTREAM_ID: Final = 1024
"""Characters of the session id of a server."""
MAX_CONTENT: Final = 262_144
"""Bytes of what an id says: a short one may say much, and anyone who has the key may have made it."""


class UpstreamSession(msgspec.Struct, array_like=True, frozen=True):
    """A session that a target has for this one. `session_id`: "" where the server gave none; `endpoint`: the address
    that is pinned. `lost`: the target could not be reached (failureMode FailOpen)."""

    target: str
    session_id: str = ""
    endpoint: str = ""
    lost: bool = False

    def __repr__(self) -> str:
        return f"UpstreamSession({self.target!r}, endpoint={self.endpoint!r})"


class Session(msgspec.Struct, array_like=True):
    """`number`: random, for logs and for what workers remember. `hello`: the params of the client's `initialize`."""

    number: bytes
    created: int
    hello: bytes
    upstreams: list[UpstreamSession]
    was_initialized: bool = True

    def of(self, target: str) -> UpstreamSession | None:
        for each in self.upstreams:
            if each.target == target:
                return each
        return None

    @property
    def size(self) -> int:
        """Characters of all that is said here, but for names of endpoints."""
        return len(self.hello) + sum(len(each.target) + len(each.session_id) for each in self.upstreams)

    @property
    def label(self) -> str:
        """As logs and expressions see it: it opens nothing."""
        return self.number.hex()

    def __repr__(self) -> str:
        return f"Session({self.label}, {self.upstreams!r})"


_decode = msgspec.msgpack.Decoder(Session).decode


class TooLong(Exception):
    """What the servers gave does not fit into an id."""


def sealed(session: Session, sealer: Sealer, owner: bytes) -> str:
    """The id of a session. `owner`: backend and caller. Raises `TooLong`."""
    content = msgspec.msgpack.encode(session)
    if len(content) > MAX_CONTENT:
        raise TooLong(f"a session of {len(content)} bytes")
    text = sealer.seal(zlib.compress(content, 1), b"mcp session\0" + owner)
    if len(text) > MAX_SEALED:
        raise TooLong(f"a session id of {len(text)} characters")
    return text


def opened(text: str, sealer: Sealer, owner: bytes, now: float) -> Session | None:
    """The session of an id; None where it is none of this owner's, or is over."""
    content = sealer.open(text, b"mcp session\0" + owner)
    if content is None:
        return None
    try:
        session = _decode(_inflated(content))
    except (zlib.error, msgspec.MsgspecError):
        return None
    return session if is_lasting(session, now) else None


def is_lasting(session: Session, now: float) -> bool:
    """Whether it is not over by its age."""
    return session.created <= now + _SKEW and now - session.created < LIFETIME


_SKEW: Final = 300.0


def _inflated(content: bytes) -> bytes:
    """What was compressed, within its bound: beyond it nothing is made. Raises `zlib.error`."""
    reader = zlib.decompressobj()
    found = reader.decompress(content, MAX_CONTENT + 1)
    if len(found) > MAX_CONTENT or not reader.eof:
        raise zlib.error(f"more than {MAX_CONTENT} bytes, or cut off")
    return found


class Question(msgspec.Struct, array_like=True, frozen=True):
    """A request that a server has for a client without a session: the session in which the server waits."""

    session: UpstreamSession
    request_id: str | int


_decode_question = msgspec.msgpack.Decoder(Question).decode


def sealed_question(question: Question, sealer: Sealer, owner: bytes) -> str | None:
    """The id that the client sees; None where it would be too long."""
    if isinstance(question.request_id, str) and len(question.request_id) > MAX_UPSTREAM_ID:
        return None
    try:
        text = sealer.seal(msgspec.msgpack.encode(question), b"mcp question\0" + owner)
    except OverflowError:
        return None  # a number that no id should be
    return text if len(text) <= MAX_SEALED else None


def opened_question(text: str, sealer: Sealer, owner: bytes) -> Question | None:
    """None for what was not sealed for this owner."""
    content = sealer.open(text, b"mcp question\0" + owner)
    if content is None:
        return None
    try:
        return _decode_question(content)
    except msgspec.MsgspecError:
        return None


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """Where a merged list goes on: targets with the cursors that they gave."""

    method: str
    pages: list[tuple[str, str]]


_decode_cursor = msgspec.msgpack.Decoder(Cursor).decode


def sealed_cursor(cursor: Cursor, sealer: Sealer, owner: bytes) -> str | None:
    """None where it would be too long."""
    text = sealer.seal(msgspec.msgpack.encode(cursor), b"mcp cursor\0" + owner)
    return text if len(text) <= MAX_SEALED else None


def opened_cursor(text: str, sealer: Sealer, owner: bytes, method: str) -> Cursor | None:
    """None for what was not sealed for this owner and method."""
    content = sealer.open(text, b"mcp cursor\0" + owner)
    if content is None:
        return None
    try:
        cursor = _decode_cursor(content)
    except msgspec.MsgspecError:
        return None
    return cursor if cursor.method == method else None
