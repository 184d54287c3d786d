"""Providers as rows: what each speaks, where, with which headers, and where it looks for a credential. Pure.

A row makes finished values of a provider's settings (`Settings`). Sources: the providers' API references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from dataplane.llm.routes import Format


class Family(NamedTuple):
    """Headers of one API, lower case. `credentials`: where clients put theirs; `prefixes`: of what else is its own."""

    credentials: tuple[bytes, ...]
    prefixes: tuple[bytes, ...]


OPENAI: Final = Family((b"authorization",), (b"openai-",))
ANTHROPIC: Final = Family((b"x-api-key",), (b"anthropic-",))
AZURE: Final = Family((b"api-key", b"authorization"), (b"openai-", b"x-ms-"))
GOOGLE: Final = Family((b"authorization", b"x-goog-api-key"), (b"x-goog-",))
FAMILIES: Final = (OPENAI, ANTHROPIC, AZURE, GOOGLE)


def _with_messages(family: Family) -> Family:
    """Anthropic's API at another provider, which takes its own credentials for it too: Anthropic's newest SDKs send a
    key as a bearer, older ones in a header of their own."""
    return Family((*ANTHROPIC.credentials, *family.credentials), ANTHROPIC.prefixes)


MESSAGES_ELSEWHERE: Final = {family: _with_messages(family) for family in FAMILIES if family is not ANTHROPIC}
TOKEN_OF_ANTHROPIC: Final = b"sk-ant-"
"""What its tokens begin with, which clients send as bearers: they are in `authorization` and still its own."""


def foreign_lines(family: Family) -> bytes:
    """What header lines of another API begin with, in lower case, as a pattern: they do not go there
    (docs/llm/credentials.md)."""
    names = {name for each in FAMILIES for name in each.credentials} - set(family.credentials)
    prefixes = {prefix for each in FAMILIES for prefix in each.prefixes} - set(family.prefixes)
    found = [b"%b:" % name for name in sorted(names)] + sorted(prefixes)
    if family is ANTHROPIC:
        found[found.index(b"authorization:")] += b"(?!.*%b)" % TOKEN_OF_ANTHROPIC
    return b"(?:%b)" % b"|".join(found)


def is_foreign(family: Family, line: bytes) -> bool:
    """Whether a header line of the client's, in lower case, is of another API."""
    return re.match(foreign_lines(family), line) is not None


class Place(NamedTuple):
    """Where a credential is written that no `location` says a place for."""

    header: bytes
    prefix: bytes


BEARER: Final = Place(b"authorization", b"Bearer")
API_KEY: Final = Place(b"x-api-key", b"")
GOOGLE_KEY: Final = Place(b"x-goog-api-key", b"")
AZURE_KEY: Final = Place(b"api-key", b"")


class Path(NamedTuple):
    """Path of requests of one format, with the parameters that it needs. `behind`: not b"": the model's name stands
    between the two, escaped. `streamed`: these two where a stream is asked for, if its path is another."""

    text: bytes
    behind: bytes = b""
    query: bytes = b""
    streamed: tuple[bytes, bytes] | None = None

    def of(self, model: str, asked: bytes, is_stream: bool = False) -> bytes:
        """The target. `asked`: the query of the client, whose parameters stay but for those that are ours."""
        if is_stream and self.streamed is not None:
            return Path(self.text, *self.streamed).of(model, asked)
        found = self.text
        if self.behind:
            found += quote(model, safe="").encode() + self.behind
        query = b"&".join(filter(None, (self.query, *_others(asked, self.query))))
        return found + b"?" + query if query else found


def _others(asked: bytes, ours: bytes) -> list[bytes]:
    name, equals, _ = ours.partition(b"=")
    if not equals:
        return [asked]
    return [pair for pair in asked.split(b"&") if pair.partition(b"=")[0] != name]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user says of a provider, whichever it is; "" where it says nothing."""

    model: str = ""
    path: str = ""
    path_prefix: str = ""
    api_version: str = ""
    project: str = ""
    formats: tuple[tuple[Format, str], ...] = ()
    """Of a custom provider: with a path, "" for the usual one."""


SUFFIXES: Final = {
    Format.COMPLETIONS: "/chat/completions",
    Format.RESPONSES: "/responses",
    Format.EMBEDDINGS: "/embeddings",
    Format.MESSAGES: "/messages",
    Format.TOKEN_COUNT: "/messages/count_tokens",
    Format.REALTIME: "/realtime",
    Format.RERANK: "/rerank",
}
_VERSIONS: Final = {Format.RERANK: "/v2"}
OF_OPENAI: Final = (Format.COMPLETIONS, Format.RESPONSES, Format.EMBEDDINGS)
OF_ANTHROPIC: Final = (Format.MESSAGES, Format.TOKEN_COUNT)

Paths = dict[Format, Path]


def usual(form: Format) -> str:
    """The path of a format where nothing else is said: as its own API has it."""
    return _VERSIONS.get(form, "/v1") + SUFFIXES[form]


def _below(prefix: str, formats: tuple[Format, ...], query: str = "") -> Paths:
    return {form: Path((prefix + SUFFIXES[form]).encode(), query=query.encode()) for form in formats}


def _openai(settings: Settings) -> Paths:
    return _below(settings.path_prefix.rstrip("/") if settings.path_prefix else "/v1", OF_OPENAI)


def _anthropic(settings: Settings) -> Paths:
    return _below(settings.path_prefix.rstrip("/") if settings.path_prefix else "/v1", OF_ANTHROPIC)


def _gemini(settings: Settings) -> Paths:
    """Its native API, for requests that are translated, and its endpoint for clients of OpenAI's API."""
    native = Path(b"/v1beta/models/", b":generateContent", streamed=(b":streamGenerateContent", b"alt=sse"))
    openai = _below("/v1beta/openai", (Format.COMPLETIONS, Format.EMBEDDINGS))
    return {Format.GENERATE_CONTENT: native, **openai}


V1: Final = "v1"
PREVIEW: Final = "preview"


def _azure_openai(settings: Settings) -> Paths:
    """Of a version with a date a deployment is part of the path, of the others it is the body's model."""
    version = settings.api_version or V1
    if version == V1:
        return _below("/openai/v1", OF_OPENAI)
    query = f"api-version={quote(version, safe='')}"
    if version == PREVIEW:
        return _below("/openai/v1", OF_OPENAI, query)
    found = {
        form: Path(b"/openai/deployments/", SUFFIXES[form].encode(), query.encode())
        for form in (Format.COMPLETIONS, Format.EMBEDDINGS)
    }
    return {**found, **_below("/openai", (Format.RESPONSES,), query)}


def _azure_foundry(settings: Settings) -> Paths:
    """A project of Azure AI Foundry; its models of Anthropic have a path of their own."""
    project = quote(settings.project, safe="")
    version = settings.api_version or V1
    query = "" if version == V1 else f"api-version={quote(version, safe='')}"
    return {
        **_below(f"/api/projects/{project}/openai/v1", OF_OPENAI, query),
        **_below("/anthropic/v1", OF_ANTHROPIC),
    }


def _custom(settings: Settings) -> Paths:
    return {form: Path((path or usual(form)).encode()) for form, path in settings.formats}


class Row(NamedTuple):
    """One provider. `system`: its name in OpenTelemetry (`gen_ai.provider.name`). Its host is that of the Backend that
    comes with it."""

    name: str
    system: str
    paths: Callable[[Settings], Paths]
    place: Place
    family: Family


ROWS: Final = (
    Row("openai", "openai", _openai, BEARER, OPENAI),
    Row("anthropic", "anthropic", _anthropic, API_KEY, ANTHROPIC),
    Row("gemini", "gcp.gemini", _gemini, BEARER, GOOGLE),
    Row("azure-openai", "azure.ai.openai", _azure_openai, AZURE_KEY, AZURE),
    Row("azure-foundry", "azure.ai.inference", _azure_foundry, AZURE_KEY, AZURE),
    Row("custom", "custom", _custom, BEARER, OPENAI),
)
PROVIDERS: Final[Mapping[str, Row]] = {row.name: row for row in ROWS}

VERSION_OF_MESSAGES: Final = (b"anthropic-version", b"2023-06-01")
"""Required by Anthropic's API; of a client that has one, that counts."""


class Provider(NamedTuple):
    """A provider's finished settings."""

    row: Row
    model: str
    paths: Paths

    def family(self, form: Format | None) -> Family:
        """Whose headers requests of a format have: Messages have those of Anthropic's API wherever they go."""
        return MESSAGES_ELSEWHERE.get(self.row.family, ANTHROPIC) if form in OF_ANTHROPIC else self.row.family

    def place(self, form: Format | None) -> Place:
        """Google's native API takes keys in a header of its own."""
        return GOOGLE_KEY if form is Format.GENERATE_CONTENT else self.row.place

    def needs_model(self, form: Format) -> bool:
        """Whether its path has the model's name."""
        return form in self.paths and bool(self.paths[form].behind)


def provider(name: str, settings: Settings) -> Provider:
    """`path` of the settings is that of all formats."""
    row = PROVIDERS[name]
    paths = row.paths(settings)
    if settings.path:
        paths.pop(Format.GENERATE_CONTENT, None)  # the model stands in its path
        text, _, query = settings.path.partition("?")
        paths = dict.fromkeys(paths, Path(text.encode(), query=query.encode()))
    return Provider(row, settings.model, paths)
