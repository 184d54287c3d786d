"""Where requests of a format go at a provider, and what is different there from the format's own API. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from dataplane.llm.routes import Format


class Dialect(NamedTuple):
    """What is different from the format's own API."""

    errors: Format
    """How errors are written."""
    fields: tuple[tuple[str, bytes], ...] = ()
    """Of each body, with their values as JSON."""
    without: tuple[str, ...] = ()
    """Fields that no body has."""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Of each request, in place of a client's."""
    betas: frozenset[str] | None = None
    """The features of `anthropic-beta` that there are, which stand in the body; None: the header goes there."""
    renamed: Callable[[str], str] | None = None
    """The body's name of the model, by the client's."""
    shape: str = ""
    """The API that does the same (`shapes.SHAPES`); "": bodies are of the format."""
    is_framed: bool = False
    """Streams are messages of AWS's event stream around the format's events."""

    @property
    def is_another(self) -> bool:
        """Whether headers of the format's own API mean nothing there."""
        return bool(self.shape) and self.betas is None


def escaped(model: str) -> str:
    return quote(model, safe="")


def of_gemini(model: str) -> str:
    """Google lists its models as `models/<model>`."""
    return model.removeprefix("models/")


def escaped_of_gemini(model: str) -> str:
    return escaped(of_gemini(model))


class Path(NamedTuple):
    """Path of requests of one format, with the parameters that it needs. `behind`: not b"": the model's name stands
    between the two, as `named` has it. `streamed`: these two where a stream is asked for, if its path is another.
    `dialect`: None where it is the format's own API."""

    text: bytes
    behind: bytes = b""
    query: bytes = b""
    streamed: tuple[bytes, bytes] | None = None
    dialect: Dialect | None = None
    named: Callable[[str], str] = escaped

    def of(self, model: str, asked: bytes, is_stream: bool = False) -> bytes:
        """The target. `asked`: the query of the client, whose parameters stay but for those that are set here."""
        if is_stream and self.streamed is not None:
            return Path(self.text, *self.streamed, named=self.named).of(model, asked)
        found = self.text
        if self.behind:
            found += self.named(model).encode() + self.behind
        query = b"&".join(filter(None, (self.query, *_others(asked, self.query))))
        return found + b"?" + query if query else found


def _others(asked: bytes, own: bytes) -> list[bytes]:
    name, equals, _ = own.partition(b"=")
    if not equals:
        return [asked]
    return [pair for pair in asked.split(b"&") if pair.partition(b"=")[0] != name]


Paths = dict[Format, Path]


class Variant(NamedTuple):
    """What a provider has for models with such names."""

    models: re.Pattern[str]
    paths: Paths


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user says of a provider, whichever it is; "" where it says nothing."""

    model: str = ""
    path: str = ""
    path_prefix: str = ""
    api_version: str = ""
    project: str = ""
    """Of Azure AI Foundry, or of Google Cloud."""
    formats: tuple[tuple[Format, str], ...] = ()
    """Of a custom provider: with a path, "" for the usual one."""
    region: str = ""
    guardrail: tuple[str, str] | None = None
    """Identifier and version, of Bedrock."""


CLAUDE: Final = re.compile("claude")
