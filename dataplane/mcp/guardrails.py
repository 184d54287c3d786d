"""Processors of MCP messages: which are asked about a message, what is sent to them, what their verdicts mean.

Pure, but for `Asks`, who asks one processor (`guardrail_calls`). Processors act in their order, each on what the ones
before it made of the message; the first that rejects ends it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct

from gatewright.wire.external import ext_mcp_pb2

REQUEST, RESPONSE = 1, 2
"""Phases, as bits: `Full` is both, `Off` neither."""

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

_OF_THE_CONNECTION: Final = frozenset(
    (
        *("host", "content-length", "connection", "transfer-encoding"),
        *("mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"),
    )
)
"""Headers that no verdict changes: they are about the connection or the session with a server, or repeat what the
message says."""


class Failed(Exception):
    """A processor gave no verdict. The text is for the log."""


class Rejected(Exception):
    """A processor rejects the message: the JSON-RPC error that the client gets. `who`: the processor, for the log."""

    def __init__(self, code: int, text: str, data: Any = None, who: str = "") -> None:
        super().__init__(who)
        self.code, self.text, self.data, self.who = code, text, data, who


Metadata = Callable[[Any], Mapping[str, Any]]
"""Values of a context of expressions that a processor gets; one that fails is absent."""


def no_metadata(context: Any) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Processor:
    """One processor of a policy."""

    backend: str
    methods: tuple[tuple[str, int], ...]
    """Keys with their phases, the most specific first (`sorted_methods`)."""
    fail_open: bool = False
    metadata: Metadata = no_metadata
    allowed: frozenset[str] = frozenset()
    """Names of headers, in lower case; none: all of them."""
    disallowed: frozenset[str] = frozenset()

    def phases(self, method: str) -> int:
        """Of a method: those of the most specific key that fits; 0 where none does."""
        return next((phases for key, phases in self.methods if fits(key, method)), 0)

    def sees(self, name: str) -> bool:
        """Whether a header is sent to it: what is disallowed never, also when it is allowed."""
        return name not in self.disallowed and (not self.allowed or name in self.allowed)


def fits(key: str, method: str) -> bool:
    if key.endswith("*"):
        return method.startswith(key[:-1])
    return method.endswith(key[1:]) if key.startswith("*") else method == key


def sorted_methods(methods: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """The most specific first: whole names, then `tools/*`, then `*/list`, then `*`; of one form the longest, then by
    the alphabet."""
    return tuple(sorted(methods.items(), key=lambda item: (_form(item[0]), -len(item[0]), item[0])))


def _form(key: str) -> int:
    if "*" not in key:
        return 0
    return 3 if key == "*" else 1 if key.endswith("*") else 2


@dataclass(frozen=True, slots=True)
class Message:
    """A request or a result that is judged. `content`: JSON of its params or result; None where none is to see."""

    method: str
    targets: tuple[str, ...]
    content: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    """Pseudo-headers and headers, names in lower case."""


@dataclass(slots=True)
class Outcome:
    """What became of a message: its content, headers to set and to remove, and what verdicts leave for expressions."""

    content: bytes | None
    headers: dict[str, bytes] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    metadata: dict[str, Any] = field(default_factory=dict)


class Asks(Protocol):
    """Asks a processor and gives its answer. Raises `Failed`."""

    async def __call__(self, processor: Processor, phase: int, message: bytes) -> bytes: ...


def concerned(processors: Sequence[Processor], method: str, phase: int) -> tuple[Processor, ...]:
    """Those that a message is shown to."""
    return tuple(each for each in processors if each.phases(method) & phase)


async def judge(
    processors: Iterable[Processor], phase: int, message: Message, context: Any, asks: Asks, may_change: bool = True
) -> Outcome:
    """Ask them in their order. `may_change`: False where a message goes to several targets: what is made of it then is
    not used. Raises `Rejected`, also for a processor that fails and must not."""
    outcome = Outcome(message.content)
    for processor in processors:
        told = _told(processor, phase, message, outcome.content, context)
        try:
            verdict = _read(phase, await asks(processor, phase, told))
            _apply(verdict, outcome, processor, may_change)
        except Failed as error:
            if not processor.fail_open:
                raise Rejected(FAILED, "guardrail failed", who=f"{processor.backend}: {error}") from None
    return outcome


def _told(processor: Processor, phase: int, message: Message, content: bytes | None, context: Any) -> bytes:
    made: Any = ext_mcp_pb2.McpRequest() if phase == REQUEST else ext_mcp_pb2.McpResponse()
    made.service_names.extend(message.targets)
    made.method = message.method
    metadata = processor.metadata(context)
    if metadata:
        json_format.ParseDict(dict(metadata), made.metadata_context)
    if phase == RESPONSE:
        made.mcp_response = content or b"null"
    else:
        if content is not None:
            made.mcp_request = content
        for name, value in message.headers:
            if processor.sees(name):
                made.headers.add(key=name, value=value)
    found: bytes = made.SerializeToString()
    return found


def _read(phase: int, data: bytes) -> Any:
    kind: Any = ext_mcp_pb2.McpRequestResult if phase == REQUEST else ext_mcp_pb2.McpResponseResult
    try:
        verdict = kind.FromString(data)
    except DecodeError:
        raise Failed("an answer that is not readable") from None
    if verdict.WhichOneof("result") is None:
        raise Failed("an answer without a verdict")
    return verdict


def _apply(verdict: Any, outcome: Outcome, processor: Processor, may_change: bool) -> None:
    """Raises `Rejected`, or `Failed` for a verdict that cannot be carried out; then nothing of it was."""
    kind = verdict.WhichOneof("result")
    metadata = _metadata(verdict.metadata)
    if kind == "error":
        outcome.metadata |= metadata
        raise _rejected(verdict.error, processor)
    if kind == "mutated" and may_change:
        if not _is_object(verdict.mutated):
            raise Failed("a message that is no JSON object")
        outcome.content = verdict.mutated
    outcome.metadata |= metadata
    if may_change:
        for name in verdict.header_mutation.remove:
            _remove(outcome, name.lower())
        for header in verdict.header_mutation.set:
            _set(outcome, header.key.lower(), header.value)


def _rejected(error: Any, processor: Processor) -> Rejected:
    data = None
    if error.mcp_error:
        try:
            data = json.loads(error.mcp_error)
        except (ValueError, RecursionError):
            data = None  # the verdict stands, whatever is beside it
    text = error.reason[:MAX_REASON] or "rejected by a guardrail"
    return Rejected(CODES.get(error.code, FAILED), text, data, f"{processor.backend}: {error.reason[:200]}")


def _metadata(struct: Struct) -> dict[str, Any]:
    if not struct.fields:
        return {}
    if struct.ByteSize() > MAX_METADATA:
        raise Failed(f"metadata of more than {MAX_METADATA} bytes")
    found: dict[str, Any] = json_format.MessageToDict(struct)
    return found


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


def _remove(outcome: Outcome, name: str) -> None:
    if _is_theirs(name):
        outcome.headers.pop(name, None)
        outcome.removed.add(name)


def _set(outcome: Outcome, name: str, value: bytes) -> None:
    if not _is_theirs(name):
        return
    if any((byte < 0x20 and byte != 0x09) or byte == 0x7F for byte in value):
        raise Failed(f"a value of {name[:40]} that no header can have")
    outcome.removed.discard(name)
    outcome.headers[name] = value


_NAME: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.!#$%&'*+^`|~")


def _is_theirs(name: str) -> bool:
    """A header that a verdict may change. Raises `Failed` for what is no name."""
    if not name or not _NAME.issuperset(name):
        raise Failed("a header whose name is none")
    return name not in _OF_THE_CONNECTION
