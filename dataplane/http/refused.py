"""What the log shows of a request whose head was refused: what could be read of it, bounded, of characters that cannot
be misread in a line. Nothing else may be made of it. Pure.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dataplane.http.uri import MAX_AUTHORITY

MAX_METHOD: Final = 24
MAX_TARGET: Final = 4096
NOT_READ: Final = b"-"

_LINE = re.compile(rb"(?:\r\n)?([!#$%&'*+\-.^_`|~0-9A-Za-z]+)(?: ([\x21-\x7e]+))?").match
_HOST = re.compile(rb"\r\nhost[ \t]*:[ \t]*([^\r\n]+)", re.IGNORECASE).search
_IS_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_STRANGE = re.compile(rb"[^a-z0-9._:\[\]%\-]").sub
_PORT = re.compile(rb":[0-9]*\Z").sub


class Shown(NamedTuple):
    """`host`: in lower case, "?" in place of what no name has; b"" where none was read."""

    method: bytes = NOT_READ
    target: bytes = NOT_READ
    host: bytes = b""


NOTHING: Final = Shown()


def of_bytes(data: bytes) -> Shown:
    """Of a head of HTTP/1, or a part of one, whatever it is."""
    line = _LINE(data)
    if line is None:
        return NOTHING
    host = _HOST(data)
    return of_parts(line[1], line[2] or b"", b"" if host is None else host[1].strip(b" \t"))


def of_parts(method: bytes, target: bytes, authority: bytes) -> Shown:
    """Of what a client sent in these places."""
    shown = _STRANGE(b"?", _PORT(b"", authority[:MAX_AUTHORITY].lower()))
    is_method = _IS_TOKEN(method[:MAX_METHOD]) is not None
    return Shown(method[:MAX_METHOD] if is_method else NOT_READ, target[:MAX_TARGET] or NOT_READ, shown)
