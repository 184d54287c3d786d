"""What the authorization server is asked over HTTP: a request's own call, of expressions and bytes of its head.

GET to the path of the request, with its `Authorization`, unless configured otherwise. Values
come from clients: a target is escaped, a header value that could end its line is not sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions, header_edits
from dataplane.chain.calls import CallRequest
from dataplane.chain.expressions import Evaluate
from dataplane.chain.filter import Refused
from dataplane.chain.header_edits import header_name
from dataplane.credentials.locations import REDACTED
from dataplane.filters.steps.ext_auth.verdict import NoQuestion
from dataplane.http.heads import is_name, plain_name
from dataplane.http.uri import canonical_host
from gatewright.cel.errors import CelError
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

OF_A_BODY: Final = (b"content-type", b"content-encoding", b"content-language")
"""What a body is read by goes with it (RFC 9110 8)."""

PATH, METHOD, AUTHORITY = ":path", ":method", ":authority"
PSEUDO: Final = (PATH, METHOD, AUTHORITY)

_ESCAPED = re.compile(rb"[^\x21-\x7e]|#").sub
_ESCAPED_LOCATION = re.compile(rb"[^\x21-\x7e]").sub


class Question:
    """Makes calls: `of(x)`. Raises `Refused` for names that no header can have."""

    __slots__ = (
        "_added",
        "_authority",
        "_forwards_host",
        "_method",
        "_needles",
        "_path",
        "_with_body",
        "copied",
        "programs",
    )

    def __init__(self, config: traffic_pb2.ExtAuthHttp, with_body: bool) -> None:
        self.programs: list[Program] = []
        """All that is evaluated."""
        added = {name: self._compiled(text, name) for name, text in sorted(config.add_request_headers.items())}
        self._path = added.pop(PATH, None)
        if self._path is None and config.path:
            self._path = self._program(config.path, "http.path")
        self._method, self._authority = added.pop(METHOD, None), added.pop(AUTHORITY, None)
        self._added = [(name.encode() + b": ", evaluate) for name, evaluate in added.items()]
        copied = [header_name(name, "http.allowedRequestHeaders") for name in config.allowed_request_headers]
        self._forwards_host = b"host" in copied and self._authority is None
        names = dict.fromkeys((b"authorization", *copied, *(OF_A_BODY if with_body else ())))
        # One that is not sent is not the client's either.
        own = {b"host", *(plain_name(name.encode()) for name in added)}
        self.copied = frozenset(names)
        """Headers that the authorization server sees."""
        self._needles = tuple(b"\r\n" + name + b":" for name in names if name not in own)
        self._with_body = with_body

    def _compiled(self, text: str, name: str) -> Evaluate:
        where = "http.addRequestHeaders"
        if name.startswith(":"):
            if name not in PSEUDO:
                raise Refused(f"{where}: {name} is not one of {', '.join(PSEUDO)}")
        elif header_name(name, where) == b"host":
            raise Refused(f"{where}: host is written {AUTHORITY}")
        return self._program(text, f"{where}.{name}")

    def _program(self, text: str, where: str) -> Evaluate:
        program = expressions.compiled(text, "request", where)
        self.programs.append(program)
        return program.evaluate

    def of(self, x: Exchange) -> CallRequest:
        """Raises `NoQuestion` when the path has no value: another one would be answered for something else."""
        with_body = self._with_body
        method, authority = (_method(x.method) if with_body else b"") or b"GET", b""
        if self._forwards_host:
            authority = x.authority
        if self._method is not None:
            method = _method(bytes_of(self._method, x)) or method
        if self._authority is not None:
            authority = _host(bytes_of(self._authority, x))
        headers = lines(x.request, self._needles)
        for prefix, evaluate in self._added:
            value = header_edits.value_of(evaluate, x)
            if value is not None:
                headers += b"%b%b\r\n" % (prefix, value)
        return CallRequest(method, self._target(x), authority, headers, (x.body or b"") if with_body else b"")

    def _target(self, x: Exchange) -> bytes:
        if self._path is None:
            # Where a credential of the query was taken out of what the log shows, what is shown is no target any more.
            target = x.target if REDACTED in x.asked_target else x.asked_target
            return target if target.startswith(b"/") else b"/"  # `OPTIONS *`
        value = bytes_of(self._path, x)
        if not value:
            raise NoQuestion("the path of the call has no value")
        target = _ESCAPED(_escape, value)
        return target if target.startswith(b"/") else b"/" + target


def lines(head: Any, needles: Iterable[bytes]) -> bytes:  # Any: a Head, or what has its block and low
    """The lines of a head whose names these are, as they came (needle: `b"\\r\\nname:"`)."""
    found, low = b"", head.low
    for needle in needles:
        p = low.find(needle)
        while p >= 0:
            q = low.find(b"\r\n", p + 2)
            found += head.block[p + 2 : q + 2]
            p = low.find(needle, q)
    return found


def bytes_of(evaluate: Evaluate, x: Exchange) -> bytes | None:
    """An expression's value as bytes; None when it fails or is no text, number or truth value."""
    try:
        value = evaluate(x)
    except CelError:
        return None
    found = expressions.header_value(value)
    return None if found is None else found.strip(b" \t")


def location(evaluate: Evaluate, x: Exchange) -> bytes | None:
    """An expression's value as that of `Location`; None when it has none."""
    value = bytes_of(evaluate, x)
    return _ESCAPED_LOCATION(_escape, value) if value else None


def _escape(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]


def _method(value: bytes | None) -> bytes:
    """CONNECT asks for a tunnel, not a question (RFC 9110 9.3.6)."""
    return value if value and is_name(value) and value != b"CONNECT" else b""


def _host(value: bytes | None) -> bytes:
    return value if value and canonical_host(value) is not None else b""
