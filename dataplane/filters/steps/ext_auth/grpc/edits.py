"""What an answer over gRPC changes: headers by their append action, and parameters of the query."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from dataplane.chain import pseudo_headers
from dataplane.chain.calls import CallFailed
from dataplane.chain.header_edits import FRAMING
from dataplane.http.heads import Head, is_name, is_value, plain_name
from gatewright.wire.external import ext_authz_pb2 as pb

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

APPEND, IF_ABSENT, OVERWRITE, IF_EXISTS = (
    pb.HeaderValueOption.APPEND_IF_EXISTS_OR_ADD,
    pb.HeaderValueOption.ADD_IF_ABSENT,
    pb.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD,
    pb.HeaderValueOption.OVERWRITE_IF_EXISTS,
)


@dataclass(frozen=True, slots=True)
class HeaderEdit:
    """`low`: the name as twins have it, or that of a pseudo-header; `value`: None takes the header out."""

    act: Callable[[Head, HeaderEdit], None]
    name: bytes
    low: bytes
    value: bytes | None = field(repr=False)


def _append(head: Head, edit: HeaderEdit) -> None:
    if edit.value is not None:
        head.add(edit.name, edit.value)


def _if_absent(head: Head, edit: HeaderEdit) -> None:
    if head.get(edit.low) is None:
        _append(head, edit)


def _overwrite(head: Head, edit: HeaderEdit) -> None:
    head.remove(edit.low)
    _append(head, edit)


def _if_exists(head: Head, edit: HeaderEdit) -> None:
    if head.get(edit.low) is not None:
        _overwrite(head, edit)


_ACTIONS: Final[dict[int, Callable[[Head, HeaderEdit], None]]] = {
    APPEND: _append,
    IF_ABSENT: _if_absent,
    OVERWRITE: _overwrite,
    IF_EXISTS: _if_exists,
}


def header_edits(
    options: Iterable[pb.HeaderValueOption], usual: int, pseudo: Container[bytes] = ()
) -> tuple[HeaderEdit, ...]:
    """`usual`: the action of an option that names none; `pseudo`: pseudo-headers that may be written. Headers of the
    connection are ours and left out. Raises `CallFailed` for what cannot be a header."""
    return tuple(edit for option in options if (edit := _edit(option, usual, pseudo)) is not None)


def _edit(option: pb.HeaderValueOption, usual: int, pseudo: Container[bytes]) -> HeaderEdit | None:
    name = option.header.key.encode()
    value = option.header.raw_value or option.header.value.encode()
    value = value.strip(b" \t")
    low = name.lower() if name.lower() in pseudo else plain_name(name)
    if low in FRAMING:
        return None
    if (low not in pseudo and is_name(name) is None) or is_value(value) is None:
        raise CallFailed("invalid", f"an answer with a header that cannot be: {name[:64]!r}")
    kept = value if value or option.keep_empty_value else None
    return HeaderEdit(_ACTIONS[_action(option, usual)], name, low, kept)


def _action(option: pb.HeaderValueOption, usual: int) -> int:
    """`append` is the older way to say it and wins where it is set. Raises `CallFailed`."""
    if option.HasField("append"):
        return APPEND if option.append.value else OVERWRITE
    if option.append_action not in _ACTIONS:
        raise CallFailed("invalid", f"an answer with an append action that is not known: {option.append_action}")
    return option.append_action or usual


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
    """The name as whoever reads the query takes it: a client must not escape removal by another spelling."""
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
