"""A conversation and its answer in no provider's format: what each format is read into and written from. Frozen, pure.

Nothing here is of one API. A thought's signature is proof for the provider that made it alone, so it says whose it is.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from dataplane.llm.features import Feature
from dataplane.llm.usage import NO_USAGE, Usage


class Role(StrEnum):
    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"


INSTRUCTIONS: Final = (Role.SYSTEM, Role.DEVELOPER)


class Media(StrEnum):
    IMAGE = "image"
    DOCUMENT = "document"
    AUDIO = "audio"


class Origin(StrEnum):
    """Whose signature it is. Anthropic's are valid wherever its models run."""

    UNSIGNED = ""
    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    GOOGLE = "google"


@dataclass(frozen=True, slots=True)
class Text:
    """`mark`: the prompt up to here is to be cached; for how long, or "default"; "": it has no mark."""

    text: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """An image, a document or audio: by exactly one of `data` (base64), `url` and `file_id`."""

    media: Media
    media_type: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""
    name: str = ""
    detail: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments`: the text of a JSON object, as the model wrote it: it may be neither."""

    id: str
    name: str
    arguments: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    parts: tuple[Text | File, ...]
    is_error: bool = False
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Thinking:
    """`text` may be empty where the provider shows none; `is_redacted`: `signature` is the thought, encrypted."""

    text: str
    signature: str = ""
    origin: Origin = Origin.UNSIGNED
    is_redacted: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """Text with which the model declines."""

    text: str


Part: TypeAlias = "Text | File | ToolCall | ToolResult | Thinking | Refused"


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    parts: tuple[Part, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the client runs. `parameters`: a JSON schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    strict: bool | None = None
    mark: str = ""


class Choosing(StrEnum):
    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class Choice:
    mode: Choosing
    name: str = ""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """`effort`: none, minimal, low, medium, high, xhigh or max, "" where it is left to the model. `budget`: tokens."""

    effort: str = ""
    budget: int | None = None
    shows: bool = False
    """The client asks to see it."""


@dataclass(frozen=True, slots=True)
class Output:
    """JSON as output. `schema` None: any object."""

    schema: dict[str, Any] | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request. `said`: what it says beyond `Feature.CORE`, and the field that says so first (`losses`)."""

    model: str
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    choice: Choice | None = None
    parallel: bool | None = None
    sampling: Sampling = Sampling()
    reasoning: Reasoning | None = None
    output: Output | None = None
    verbosity: str = ""
    user: str = ""
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    tier: str = ""
    stream: bool = False
    wants_usage: bool = True
    """At the end of a stream: clients of Completions must ask for it."""
    said: Mapping[Feature, str] = field(default_factory=lambda: MappingProxyType({}))


class Stop(StrEnum):
    """Why an answer ended."""

    END = "end"
    MAX_TOKENS = "max tokens"
    SEQUENCE = "stop sequence"
    TOOLS = "tools"
    REFUSAL = "refusal"
    """By the model or by a filter of the provider."""
    PAUSE = "pause"
    CONTEXT = "context window"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. `parts`: texts, thoughts, calls of tools, refusals, in their order."""

    id: str
    model: str
    parts: tuple[Part, ...]
    stop: Stop = Stop.END
    sequence: str = ""
    """The stop sequence that was met."""
    usage: Usage = NO_USAGE
    tier: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a provider. `kind`: its own word for it (`type`, `code` or `status`)."""

    status: int
    message: str
    kind: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer is written for. `id`: for an answer that has none; `created`: seconds since 1970."""

    talk: Conversation
    id: str
    created: int


# --- helpers of several formats


def merged(turns: Iterable[Turn]) -> list[Turn]:
    """One turn of each role after the other, for formats that take no two of one role in a row."""
    return [_one(list(group)) for _, group in groupby(turns, _SPEAKER)]


_SPEAKER: Final = attrgetter("role", "name")


def _one(turns: list[Turn]) -> Turn:
    if len(turns) == 1:
        return turns[0]
    return Turn(turns[0].role, tuple(part for turn in turns for part in turn.parts), turns[0].name)


def apart(turns: Iterable[Turn]) -> tuple[list[Text], list[Turn]]:
    """Instructions, and the conversation, for formats that have a place of their own for the first. A request that
    has nothing but instructions says them as the user: there must be a turn."""
    system = [part for turn in turns if turn.role in INSTRUCTIONS for part in turn.parts if isinstance(part, Text)]
    rest = merged(turn for turn in turns if turn.role not in INSTRUCTIONS)
    if not rest and system:
        return [], [Turn(Role.USER, tuple(system))]
    return system, rest


def tools_called(turns: Iterable[Turn]) -> tuple[Tool, ...]:
    """The tools that a history has calls of, for APIs that refuse those without their tools."""
    names = dict.fromkeys(part.name for turn in turns for part in turn.parts if isinstance(part, ToolCall))
    return tuple(Tool(name) for name in names)


def texts(parts: Iterable[Part], between: str = "\n\n") -> str:
    return between.join(part.text for part in parts if isinstance(part, (Text, Refused)) and part.text)


_object: Final = msgspec.json.Decoder(dict[str, Any])


def arguments(written: str) -> dict[str, Any]:
    """Of a call of a tool, for formats that have them as an object. What is none stands under the name `arguments`:
    a model's mistake is part of the history, and no reason to refuse that."""
    if not written.strip():
        return {}
    try:
        return _object.decode(written)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {"arguments": written}


DATA: Final = "data:"


def of_data_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 of a data URL; None: it is none (RFC 2397)."""
    if url[:5].lower() != DATA:
        return None
    head, comma, data = url.partition(",")
    kind, *parameters = head[5:].split(";")
    if not comma or "base64" not in parameters:
        return None
    return kind.lower(), data


def decoded(data: str) -> str:
    """The text of a document of text. Bytes that are no UTF-8 are replaced, as a reader would."""
    try:
        return b64decode(data, validate=False).decode("utf-8", "replace")
    except ValueError:
        return data


MAX_USER: Final = 64
"""Characters of a user's id that OpenAI's APIs take."""


def user_of(found: str) -> str:
    """A user's id where OpenAI's APIs have one: a longer one as its digest, which is the same each time."""
    return found if len(found) <= MAX_USER else sha256(found.encode("utf-8", "surrogatepass")).hexdigest()


def schema_of(parameters: dict[str, Any]) -> dict[str, Any]:
    """Of a tool: OpenAI's APIs want the properties of an object said, also where there are none."""
    if parameters.get("type") != "object" or "properties" in parameters:
        return parameters
    return {**parameters, "properties": {}}
