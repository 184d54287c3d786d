"""What verdicts of processors come to: a message that passes, one that is changed, a rejection; or no verdict at all.

A verdict acts whole or not at all: of one that cannot be carried out nothing is. A rejection stands, whatever is beside
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct
from msgspec import Raw

from dataplane.mcp import messages
from dataplane.mcp.messages import Malformed
from gatewright.wire.external import ext_mcp_pb2

CODES: Final = {
    ext_mcp_pb2.AuthorizationError.UNKNOWN: -32603,
    ext_mcp_pb2.AuthorizationError.PERMISSION_DENIED: -32001,
    ext_mcp_pb2.AuthorizationError.RESOURCE_EXHAUSTED: -32003,
    ext_mcp_pb2.AuthorizationError.INVALID: -32600,
}
"""JSON-RPC's codes for those of an error."""
FAILED: Final = -32603
MAX_REASON: Final = 1024
"""Characters of a reason that clients get."""
MAX_METADATA: Final = 65_536
"""Bytes of metadata that a verdict leaves."""
MAX_DATA: Final = 65_536
"""Bytes of what a rejection has beside its reason."""

_OF_THE_CONNECTION: Final = frozenset(
    (
        *("host", "content-length", "connection", "transfer-encoding"),
        *("mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"),
    )
)
"""Headers that no verdict changes: they are about the connection or the session with a server, or repeat what the
message says."""


class Failed(Exception):
    """A processor gave no verdict. The text is for the log; `blames_message`: it takes no such message, which a client
    could have at will."""

    def __init__(self, text: str, blames_message: bool = False) -> None:
        super().__init__(text)
        self.blames_message = blames_message


class Rejected(Exception):
    """A processor rejects the message: the JSON-RPC error that the client gets. `who`: the processor, for the log;
    `metadata`: what verdicts have left until then."""

    def __init__(
        self, code: int, text: str, data: Any = None, who: str = "", metadata: dict[str, Any] | None = None
    ) -> None:
        super().__init__(who)
        self.code, self.text, self.data, self.who = code, text, data, who
        self.metadata = metadata or {}


@dataclass(slots=True)
class Outcome:
    """What became of a message: its content, headers to set and to remove, and what verdicts leave for expressions."""

    content: bytes | None
    headers: dict[str, bytes] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    metadata: dict[str, Any] = field(default_factory=dict)


def read(kind: Any, data: bytes) -> Any:
    """A verdict of this kind of message. Raises `Failed`."""
    try:
        verdict = kind.FromString(data)
    except DecodeError:
        raise Failed("an answer that is not readable") from None
    if verdict.WhichOneof("result") is None:
        raise Failed("an answer without a verdict")
    return verdict


def apply(verdict: Any, outcome: Outcome, who: str, may_change: bool) -> None:
    """Add it to what became of the message. Raises `Rejected`, or `Failed` for a verdict that cannot be carried out;
    then nothing of it was."""
    if verdict.WhichOneof("result") == "error":
        raise _rejected(verdict, outcome, who)
    metadata = _metadata(verdict.metadata)
    if may_change:
        content = _changed(verdict, outcome.content)
        headers, removed = _headers(verdict.header_mutation, outcome)
        outcome.content, outcome.headers, outcome.removed = content, headers, removed
    outcome.metadata |= metadata


def _changed(verdict: Any, content: bytes | None) -> bytes | None:
    if verdict.WhichOneof("result") != "mutated":
        return content
    if not _is_object(verdict.mutated):
        raise Failed("a message that is no JSON object")
    mutated: bytes = verdict.mutated
    return mutated


def _rejected(verdict: Any, outcome: Outcome, who: str) -> Rejected:
    """It stands, whatever is beside it."""
    error, data, metadata = verdict.error, None, dict[str, Any]()
    try:
        metadata = _metadata(verdict.metadata)
        data = messages.value_of(Raw(error.mcp_error), MAX_DATA) if error.mcp_error else None
    except (Failed, Malformed):
        data = None
    text = error.reason[:MAX_REASON] or "rejected by a guardrail"
    who = f"{who}: {error.reason[:200]}"
    return Rejected(CODES.get(error.code, FAILED), text, data, who, outcome.metadata | metadata)


def _metadata(struct: Struct) -> dict[str, Any]:
    if not struct.fields:
        return {}
    if struct.ByteSize() > MAX_METADATA:
        raise Failed(f"metadata of more than {MAX_METADATA} bytes")
    try:
        found: dict[str, Any] = json_format.MessageToDict(struct)
    except ValueError:
        raise Failed("metadata with a number that JSON does not have") from None
    return found


def _is_object(data: bytes) -> bool:
    """As messages are read, which pass nothing on that readers could take for something else."""
    try:
        str(data, "utf-8")
        messages.object_of(Raw(data))
    except (Malformed, UnicodeError):
        return False
    return True


def _headers(mutation: Any, outcome: Outcome) -> tuple[dict[str, bytes], set[str]]:
    """Headers to set and to remove, with those of verdicts before."""
    headers, removed = dict(outcome.headers), set(outcome.removed)
    for name in map(str.lower, mutation.remove):
        if _is_theirs(name):
            headers.pop(name, None)
            removed.add(name)
    for header in mutation.set:
        name = header.key.lower()
        if _is_theirs(name):
            _check_value(name, header.value)
            removed.discard(name)
            headers[name] = header.value
    return headers, removed


def _check_value(name: str, value: bytes) -> None:
    if any((byte < 0x20 and byte != 0x09) or byte == 0x7F for byte in value):
        raise Failed(f"a value of {name[:40]} that no header can have")


_NAME: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.!#$%&'*+^`|~")


def _is_theirs(name: str) -> bool:
    """A header that a verdict may change. Raises `Failed` for what is no name."""
    if not name or not _NAME.issuperset(name):
        raise Failed("a header whose name is none")
    return name not in _OF_THE_CONNECTION
