"""What an answer over gRPC changes: headers by their append action, and parameters of the query."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from dataplane.chain import pseudo_headers
from dataplane.chain.header_edits import FRAMING
from dataplane.http.heads import is_name, plain_name

if TYPE_CHECKING:
    from dataplane.chain.header_options import HeaderEdit
    from dataplane.exchange import Exchange


@dataclass(frozen=True, slots=True)
class RequestEdits:
    """Of a request that may go on. `state`: the name under which `response` waits for the response."""

    headers: tuple[HeaderEdit, ...]
    removed: tuple[bytes, ...]
    parameters: tuple[tuple[bytes, bytes], ...] = field(repr=False)
    parameters_removed: frozenset[bytes]
    response: tuple[HeaderEdit, ...]
    state: str

    def apply(self, x: Exchange) -> bool:
        for edit in self.headers:
            write = pseudo_headers.REQUEST.get(edit.low)
            if write is None:
                edit.act(x.request, edit)
            elif not write(x, edit.value or b""):
                return False
        for name in self.removed:
            x.request.remove(name)
        if self.parameters or self.parameters_removed:
            _edit_query(x, self.parameters, self.parameters_removed)
        if self.response:
            x.leave(self.state, self.response)
        return True


def removable(names: Iterable[str]) -> tuple[bytes, ...]:
    """Names of headers to take out: pseudo-headers and `host` stay (OkHttpResponse.headers_to_remove)."""
    found = (plain_name(name.encode()) for name in names if is_name(name.encode()))
    return tuple(name for name in found if name != b"host" and name not in FRAMING)


_UNSAFE = re.compile(rb"%(?![0-9A-Fa-f]{2})|[^\x21-\x7e]|[#&+;]")
_UNSAFE_NAME = re.compile(rb"%(?![0-9A-Fa-f]{2})|[^\x21-\x7e]|[#&+;=]")


def parameter(key: str, value: str) -> tuple[bytes, bytes]:
    """As the query has it: what is escaped stays so, and what a query cannot have is escaped."""
    return _UNSAFE_NAME.sub(_escape, key.encode()), _UNSAFE.sub(_escape, value.encode())


def _escape(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]


def plain_parameter(name: bytes) -> bytes:
    """The name as readers of the query decode it: a client must not escape removal by another spelling."""
    return unquote_to_bytes(name.replace(b"+", b" "))


def _names(part: bytes) -> Iterable[bytes]:
    """Of a part of the query. Some readers take `;` for another `&`: what stands behind one has a name for them."""
    return (plain_parameter(each.partition(b"=")[0]) for each in (part, *part.split(b";")))


def _edit_query(x: Exchange, given: tuple[tuple[bytes, bytes], ...], removed: frozenset[bytes]) -> None:
    path, _, query = x.target.partition(b"?")
    gone = removed | {plain_parameter(name) for name, _ in given}
    kept = [each for each in query.split(b"&") if each and gone.isdisjoint(_names(each))]
    kept += [b"%b=%b" % each for each in given if plain_parameter(each[0]) not in removed]
    x.query = b"&".join(kept)
    x.target = path + b"?" + x.query if kept else path
