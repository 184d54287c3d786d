"""What the head of a request says to MCP, read once for requests that are alike. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from dataplane.http.heads import Head, lines_without
from dataplane.mcp import accept
from dataplane.mcp.accept import Taken

SESSION: Final = b"mcp-session-id"
VERSION: Final = b"mcp-protocol-version"

_OWN: Final = frozenset(
    {
        *(b"host", b"accept", b"accept-encoding", SESSION, b"last-event-id", b"expect", b"range"),
        *(b"content-length", b"content-type", b"content-encoding", b"transfer-encoding", b"trailer", b"te"),
        *(b"connection", b"keep-alive", b"upgrade", b"proxy-connection", b"if-none-match", b"if-modified-since"),
        b"mcp-name",
    }
)
"""Headers of a client's request that are about its connection, its content or its session with us."""

MOST: Final = 256
"""Heads that are remembered: clients send the same again."""
LONGEST: Final = 2048
"""Bytes of one."""


class Asked(NamedTuple):
    """`passing`: the lines that go on to servers. `lasting`: those of them that the next request may have as well.
    `takes`: which kinds of answers the client takes. `session`: its name of it, None: it names none. `version`: the
    revision that it names, "": none. `has_json`: its content is JSON, as it says."""

    passing: bytes
    lasting: bytes
    takes: Taken
    session: bytes | None
    version: str
    has_json: bool


def passing(head: Head) -> bytes:
    """The lines of a request that go on to servers: all but those that are written anew."""
    return lines_without(head.block, head.low, _OWN)


def asked(head: Head) -> Asked:
    """Several versions are none that is known: a server might take another one of them."""
    kind = (head.get(b"content-type") or b"").partition(b";")[0].strip(b" \t").lower()
    version = b", ".join(head.get_all(VERSION)).decode("latin-1")
    lines = passing(head)
    return Asked(lines, lines, accept.taken(head.get_all(b"accept")), head.get(SESSION), version, kind == accept.JSON)


class Heads:
    """Remembers what was read, of heads that end with the id that every request is given: it is new each time."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, Asked] = {}
        """By all lines but the last, oldest first."""

    def asked(self, block: bytes) -> Asked:
        """As `asked`."""
        cut = block.rfind(b"\r\n", 0, -2) + 2
        if not block.startswith(_ID, cut):
            return asked(Head(block))
        before = block[:cut]
        known = self._known.get(before)
        if known is None:
            known = asked(Head(before))
            if cut <= LONGEST:
                if len(self._known) >= MOST:
                    del self._known[next(iter(self._known))]
                self._known[before] = known
        lines, lasting, takes, session, version, has_json = known
        return Asked(lines + block[cut:], lasting, takes, session, version, has_json)

    def __repr__(self) -> str:
        return f"Heads({len(self._known)})"  # the rest may be secret


_ID: Final = b"x-request-id:"
