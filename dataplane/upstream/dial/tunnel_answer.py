"""What a forward proxy is asked to open a tunnel, and what its answer means (RFC 9110 9.3.6). Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from dataplane.http.h1 import response_head
from dataplane.http.statuses import SWITCHING

MAX_HEAD: Final = 16_384
"""Bytes of the head of an answer: it says yes or no."""
MAX_INTERIM: Final = 8
"""Interim answers before it."""
UNAUTHENTICATED: Final = 407

_MEANINGS: Final = {
    403: "it does not allow that",
    404: "it does not find that",
    405: "it makes no tunnels",
    UNAUTHENTICATED: "it wants credentials, or others",
    429: "too many at once",
    500: "it failed",
    502: "it cannot reach that",
    503: "it cannot reach that",
    504: "it cannot reach that in time",
}
"""Of statuses that proxies refuse a tunnel with. What they write themselves is not repeated: anybody may have chosen
it."""


class Answer(NamedTuple):
    """`problem`: why there is no tunnel; "": there is one. `status`: 0 where the answer was none. `rest`: what came
    behind the head of the answer: the tunnel's first bytes, or what is left to read."""

    problem: str
    status: int
    rest: bytes


def question(host: str, port: int) -> tuple[bytes, bytes]:
    """The target of the CONNECT and its header lines: both name the destination (RFC 9112 3.2.3, RFC 9110 7.2)."""
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    text = target.encode("latin-1")
    return text, b"\r\nhost: %b\r\n" % text


def read(data: bytes) -> Answer | None:
    """The answer that has come whole, past interim ones; None: it is to be waited for."""
    for _ in range(MAX_INTERIM + 1):
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return _unfinished(data)
        if end > MAX_HEAD:
            return _TOO_LARGE
        head = response_head.read(_unframed(data[: end + 2]), True)
        rest = data[end + 4 :]
        if isinstance(head, str):
            return Answer(f"sent no answer to CONNECT: {head}", 0, b"")
        if head.status == SWITCHING:
            return Answer("answered CONNECT with 101", head.status, b"")
        if head.status >= 200:
            return Answer("" if head.status < 300 else refusal(head.status), head.status, rest)
        data = rest
    return Answer("sent too many interim answers", 0, b"")


def _unfinished(data: bytes) -> Answer | None:
    if len(data) > MAX_HEAD:
        return _TOO_LARGE
    return None if response_head.may_begin(data) else Answer("sent no answer to CONNECT: malformed status line", 0, b"")


def refusal(status: int) -> str:
    """What an answer of this status says."""
    meaning = _MEANINGS.get(status, "")
    return f"answered {status}{f' ({meaning})' if meaning else ''}"


def _unframed(raw: bytes) -> bytes:
    """Without the fields that frame content: a 2xx has none, whatever these say, and what frames the content of others
    does not matter, because their connection is closed (RFC 9110 9.3.6)."""
    first, *lines = raw.split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].strip(b" \t").lower() not in _FRAMING]
    return b"\r\n".join((first, *kept))


_FRAMING: Final = frozenset((b"content-length", b"transfer-encoding"))
_TOO_LARGE: Final = Answer("sent too large an answer to CONNECT", 0, b"")
