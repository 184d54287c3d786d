"""Headers as servers of Envoy's protocols give them: a name, a value, and whether it replaces or joins what is there.

What an answer gives is made into edits first, all of them, and acts then: an answer acts whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Final

from dataplane.chain.calls import CallFailed
from dataplane.chain.header_edits import FRAMING
from dataplane.http.heads import Head, is_name, is_value, plain_name
from gatewright.wire.external import ext_authz_pb2 as pb

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
    connection are written by Gatewright and left out. Raises `CallFailed` for what cannot be a header."""
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
