"""The first line of a request (RFC 9112 section 3). Pure.

Almost every request has a plain one, which `PLAIN` takes apart in one go. All others are read by `read`: forms of the
target with an authority, escapes, dot segments, HTTP/1.0. What it answers is canonical: what is matched is sent on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dataplane.http import uri
from dataplane.http.connect_rules import CONNECT

PLAIN = re.compile(
    rb"(GET|POST|HEAD|PUT|DELETE|PATCH|OPTIONS) "
    rb"(" + uri.PLAIN_PATH + rb")(\?[\x21\x22\x24-\x7e]*+)? HTTP/1\.1(?=\r\n)"
).match
"""(method, path, "?query" or None) of a head whose path is a plain one (`uri.PLAIN_PATH`)."""

_ANY = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]++) ([\x21-\x7e]++) HTTP/([0-9])\.([0-9])").fullmatch

_BEGINNING = re.compile(
    rb"(?:\r\n)?(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++(?: (?:[\x21-\x7e]++(?: (HTTP/[0-9]\.[0-9]|[A-Z0-9/.]{0,7})\r?)?)?)?)?"
).fullmatch
_VERSION = b"HTTP/"

PREFACE = b"PRI * HTTP/2.0"
"""RFC 9113 3.4: a client that speaks HTTP/2 without having asked."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a request line says of whom it is for: `scheme`, in lower case, and `authority` of an absolute-form; of a
    CONNECT the authority alone; b"" where it does not say."""

    scheme: bytes = b""
    authority: bytes = b""


UNNAMED = Named()


MOST_JUDGED = 4096
"""Bytes of a line that is judged before its head is whole: a longer one costs too much to be read twice, or with each
byte that comes."""


def judged(data: bytes, before: int) -> str:
    """The reason code of a refusal of a head of which a part has come, `before` bytes of it at the last look; "" where
    it may still become one. What speaks another protocol is refused by its first bytes."""
    end = data.find(b"\r\n", 2)
    if max(end, 0) > MOST_JUDGED or (end < 0 and len(data) > MOST_JUDGED):
        return ""
    if end < 0:
        return "" if data in (b"", b"\r") or _may_begin(data) else "BadRequest"
    if end + 2 <= before:
        return ""
    found = read(data[:end].removeprefix(b"\r\n"))
    return found if isinstance(found, str) else ""


def _may_begin(data: bytes) -> bool:
    match = _BEGINNING(data)
    if match is None:
        return False
    version = match[1] or b""
    return version[: len(_VERSION)] == _VERSION[: len(version)]


def read(line: bytes) -> tuple[bytes, bytes, bytes, bytes, Named] | str:
    """A request line -> (method, path, "?query", version, whom it names), or a reason code."""
    match = _ANY(line)
    if match is None or line == PREFACE:
        return "BadRequest"
    method, target, major, minor = match.groups()
    if major != b"1" or minor not in (b"0", b"1"):
        return "VersionNotSupported"
    version = b"HTTP/1." + minor
    if method == CONNECT:
        if uri.split_authority(target) is None:
            return "BadRequest"
        return method, uri.NO_PATH, b"", version, Named(authority=target)
    if target == uri.NO_PATH and method == b"OPTIONS":
        return method, uri.NO_PATH, b"", version, UNNAMED
    named = UNNAMED
    absolute = uri.split_absolute(target)
    if absolute is not None:
        scheme, authority, target = absolute
        if uri.canonical_host(authority) is None:
            return "BadRequest"
        named = Named(scheme, authority)
    split = uri.split_target(target)
    if split is None:
        return "BadRequest"
    path, query = split
    return method, path, b"?" + query if b"?" in target else b"", version, named
