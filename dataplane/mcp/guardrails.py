"""Processors of MCP messages: which are asked about a message, and what is sent to them.

Pure, but for `Asks`, who asks one processor (`guardrail_calls`). Processors act in their order, each on what the ones
before it made of the message; the first that rejects ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct, Value

from dataplane.mcp import verdicts
from dataplane.mcp.verdicts import FAILED, Failed, Outcome, Rejected
from gatewright.wire.external import ext_mcp_pb2

REQUEST, RESPONSE = 1, 2
"""Phases, as bits: `Full` is both, `Off` neither."""

MAX_LEVELS: Final = 24
"""Of a value that a processor gets: protobuf reads 100 levels of messages, and each of these is three."""

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


class Asks(Protocol):
    """Asks a processor for the sake of the exchange `x`, and gives its answer. Raises `Failed`."""

    async def __call__(self, processor: Processor, phase: int, message: bytes, x: Any) -> bytes: ...


def concerned(processors: Sequence[Processor], method: str, phase: int) -> tuple[Processor, ...]:
    """Those that a message is shown to."""
    return tuple(each for each in processors if each.phases(method) & phase)


_VERDICTS: Final[dict[int, Any]] = {REQUEST: ext_mcp_pb2.McpRequestResult, RESPONSE: ext_mcp_pb2.McpResponseResult}


async def judge(
    processors: Iterable[Processor], phase: int, message: Message, x: Any, asks: Asks, may_change: bool = True
) -> Outcome:
    """Ask them in their order. `x`: the exchange, which expressions read. `may_change`: False where a message goes to
    several targets: what is made of it then is not used. Raises `Rejected`, also for a processor that fails and must
    not."""
    outcome = Outcome(message.content)
    for processor in processors:
        question = _question(processor, phase, message, outcome.content, x)
        try:
            verdict = verdicts.read(_VERDICTS[phase], await asks(processor, phase, question, x))
            verdicts.apply(verdict, outcome, processor.backend, may_change)
        except Failed as error:
            if error.blames_message or not processor.fail_open:
                who = f"{processor.backend}: {error}"
                raise Rejected(FAILED, "guardrail failed", who=who, metadata=outcome.metadata) from None
    return outcome


def _question(processor: Processor, phase: int, message: Message, content: bytes | None, context: Any) -> bytes:
    made: Any = ext_mcp_pb2.McpRequest() if phase == REQUEST else ext_mcp_pb2.McpResponse()
    made.service_names.extend(message.targets)
    made.method = message.method
    for name, value in processor.metadata(context).items():
        _put(made.metadata_context, name, value)
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


def _put(struct: Struct, name: str, value: Any) -> None:
    """One value; one that no `Struct` can have, or that not every processor could read, is absent."""
    made = Value()
    if not has_levels(value, MAX_LEVELS):
        return
    try:
        json_format.ParseDict(value, made)
    except (json_format.ParseError, OverflowError):
        return
    struct.fields[name].CopyFrom(made)


def has_levels(value: Any, most: int) -> bool:
    """Whether it has `most` levels at most."""
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (most > 0 and all(has_levels(each, most - 1) for each in value))
