"""The first line of a request (RFC 9112 section 3). Pure.

Almost every request has a plain one, which `PLAIN` takes apart in one go. All others are read by `read`: forms of the
target with an authority, escapes, dot segments, HTTP/1.0. What it answers is canonical: what is matched is sent on.
"""

from __future__ import annotations

import re

from dataplane.http import uri
from dataplane.http.connect_rules import CONNECT

PLAIN = re.compile(
    rb"(GET|POST|HEAD|PUT|DELETE|PATCH|OPTIONS) "
    rb"(" + uri.PLAIN_PATH + rb")(\?[\x21\x22\x24-\x7e]*+)? HTTP/1\.1(?=\r\n)"
).match
"""(method, path, "?query" or None) of a head whose path is a plain one (`uri.PLAIN_PATH`)."""

_ANY = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]++) ([\x21-\x7e]++) HTTP/([0-9])\.([0-9])").fullmatch

PREFACE = b"PRI * HTTP/2.0"
"""RFC 9113 3.4: a client that speaks HTTP/2 without having asked."""


def read(line: bytes, scheme: bytes) -> tuple[bytes, bytes, bytes, bytes, bytes] | str:
    """A request line -> (method, path, "?query", version, authority of an absolute-form or of a CONNECT), or a reason
    code.

    `scheme`: what the connection speaks, b"http" or b"https".
    """
    match = _ANY(line)
    if match is None or line == PREFACE:
        return "BadRequest"
    method, target, major, minor = match.groups()
    if major != b"1" or minor not in (b"0", b"1"):
        return "VersionNotSupported"
    version = b"HTTP/1." + minor
    if method == CONNECT:
        return "BadRequest" if uri.split_authority(target) is None else (method, uri.NO_PATH, b"", version, target)
    if target == uri.NO_PATH and method == b"OPTIONS":
        return method, uri.NO_PATH, b"", version, b""
    authority = b""
    absolute = uri.split_absolute(target)
    if absolute is not None:
        named, authority, target = absolute
        if named != scheme or uri.canonical_host(authority) is None:  # RFC 9110 7.4: not meant for this connection
            return "BadRequest"
    split = uri.split_target(target)
    if split is None:
        return "BadRequest"
    path, query = split
    return method, path, b"?" + query if b"?" in target else b"", version, authority
