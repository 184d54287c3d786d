"""Providers as rows: what each speaks, where, with which headers, and where it looks for a credential. Pure.

A row makes finished values of a provider's settings (`Settings`). Sources: the providers' API references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

from dataplane.llm.clouds import bedrock, vertex
from dataplane.llm.paths import Dialect, Path, Paths, Settings, Variant, escaped_of_gemini
from dataplane.llm.routes import Format


class Family(NamedTuple):
    """Headers of one API, lower case. `credentials`: where clients put theirs; `prefixes`: of what else is its own."""

    credentials: tuple[bytes, ...]
    prefixes: tuple[bytes, ...]


OPENAI: Final = Family((b"authorization",), (b"openai-",))
ANTHROPIC: Final = Family((b"x-api-key",), (b"anthropic-",))
AZURE: Final = Family((b"api-key", b"authorization"), (b"openai-", b"x-ms-"))
GOOGLE: Final = Family((b"authorization", b"x-goog-api-key"), (b"x-goog-",))
AMAZON: Final = Family((b"authorization",), (b"x-amz-", b"x-amzn-", b"amz-sdk-"))
FAMILIES: Final = (OPENAI, ANTHROPIC, AZURE, GOOGLE, AMAZON)


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


def usual(form: Format) -> str:
    """The path of a format where nothing else is said: as its own API has it."""
    return _VERSIONS.get(form, "/v1") + SUFFIXES[form]


def _below(prefix: str, formats: tuple[Format, ...], query: str = "") -> Paths:
    return {form: Path((prefix + SUFFIXES[form]).encode(), query=query.encode()) for form in formats}


def _openai(settings: Settings) -> Paths:
    prefix = settings.path_prefix.rstrip("/") if settings.path_prefix else "/v1"
    return _below(prefix, (*OF_OPENAI, Format.REALTIME))


def _anthropic(settings: Settings) -> Paths:
    return _below(settings.path_prefix.rstrip("/") if settings.path_prefix else "/v1", OF_ANTHROPIC)


def _gemini(settings: Settings) -> Paths:
    """Its native API, for requests that are translated, and its endpoint for clients of OpenAI's API."""
    above, streamed = b"/v1beta/models/", (b":streamGenerateContent", b"alt=sse")
    counting = Dialect(Format.GENERATE_CONTENT, shape="count-gemini")
    return {
        Format.GENERATE_CONTENT: Path(above, b":generateContent", streamed=streamed, named=escaped_of_gemini),
        **_below("/v1beta/openai", (Format.COMPLETIONS, Format.EMBEDDINGS)),
        Format.TOKEN_COUNT: Path(above, b":countTokens", dialect=counting, named=escaped_of_gemini),
    }


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


def _no_variants(settings: Settings) -> tuple[Variant, ...]:
    return ()


class Row(NamedTuple):
    """One provider. `system`: its name in OpenTelemetry (`gen_ai.provider.name`). Its host is that of the Backend that
    comes with it."""

    name: str
    system: str
    paths: Callable[[Settings], Paths]
    place: Place
    family: Family
    caches: re.Pattern[str] | None = None
    """Models that cache prompts up to points that are set for them."""
    native: Place | None = None
    """Of its own API, where that is another place."""
    lists: bool = False
    """Its API lists the models that a request can name. Azure's and those of clouds list what there is to deploy."""
    variants: Callable[[Settings], tuple[Variant, ...]] = _no_variants
    """Where its API depends on the model; `paths` are then those of all others."""


ROWS: Final = (
    Row("openai", "openai", _openai, BEARER, OPENAI, lists=True),
    Row("anthropic", "anthropic", _anthropic, API_KEY, ANTHROPIC, lists=True),
    Row("gemini", "gcp.gemini", _gemini, BEARER, GOOGLE, native=GOOGLE_KEY, lists=True),
    Row("azure-openai", "azure.ai.openai", _azure_openai, AZURE_KEY, AZURE),
    Row("azure-foundry", "azure.ai.inference", _azure_foundry, AZURE_KEY, AZURE),
    Row("custom", "custom", _custom, BEARER, OPENAI, lists=True),
    Row("bedrock", "aws.bedrock", bedrock.paths, BEARER, AMAZON, bedrock.CACHES, variants=bedrock.variants),
    Row("vertexai", "gcp.vertex_ai", vertex.paths, BEARER, GOOGLE, variants=vertex.variants),
)
PROVIDERS: Final[Mapping[str, Row]] = {row.name: row for row in ROWS}

VERSION_OF_MESSAGES: Final = (b"anthropic-version", b"2023-06-01")
"""Required by Anthropic's API; of a client that has one, that counts."""


class Provider(NamedTuple):
    """A provider's finished settings. `others`: what it is for some models, whose API is another one; the paths of the
    whole are then those of all models together."""

    row: Row
    model: str
    paths: Paths
    others: tuple[tuple[re.Pattern[str], Provider], ...] = ()

    def of(self, model: str) -> Provider:
        """What it is for a model."""
        return next((provider for models, provider in self.others if models.search(model)), self)

    def caches(self, model: str) -> bool:
        return self.row.caches is not None and self.row.caches.search(model) is not None

    def family(self, form: Format | None) -> Family:
        """Whose headers requests of a format have: Messages have those of Anthropic's API wherever they go as such."""
        path = None if form is None else self.paths.get(form)
        if path is not None and path.dialect is not None and path.dialect.is_another:
            return self.row.family
        return MESSAGES_ELSEWHERE.get(self.row.family, ANTHROPIC) if form in OF_ANTHROPIC else self.row.family

    def place(self, form: Format | None) -> Place:
        """Google's native API takes keys in a header of its own."""
        is_native = form is not None and (form is Format.GENERATE_CONTENT or self.paths[form].dialect is not None)
        return self.row.native or self.row.place if is_native else self.row.place

    @property
    def list_format(self) -> Format | None:
        """Of the API that lists its models, beside the path of that format; None: it has none, or its own `model` takes
        the place of whatever is named."""
        if not self.row.lists or self.model:
            return None
        return next((form for form in (*OF_OPENAI, Format.MESSAGES) if self._base(form) is not None), None)

    def list_path(self, form: Format) -> bytes:
        """Of its list of models, by `list_format`."""
        return (self._base(form) or b"") + b"/models"

    def _base(self, form: Format) -> bytes | None:
        path, end = self.paths.get(form), SUFFIXES[form].encode()
        return path.text.removesuffix(end) if path is not None and path.text.endswith(end) else None

    def needs_model(self, form: Format) -> bool:
        """Whether its path has the model's name."""
        return form in self.paths and bool(self.paths[form].behind)


def provider(name: str, settings: Settings) -> Provider:
    """`path` of the settings is that of all formats."""
    row = PROVIDERS[name]
    paths = _placed(row.paths(settings), settings)
    variants = row.variants(settings)
    if not variants:
        return Provider(row, settings.model, paths)
    others = [(each.models, Provider(row, settings.model, _placed(each.paths, settings))) for each in variants]
    every = (re.compile(""), Provider(row, settings.model, paths))
    united: Paths = {}
    for _, each in (*others, every):
        united |= {form: path for form, path in each.paths.items() if form not in united}
    return Provider(row, settings.model, united, (*others, every))


def _placed(paths: Paths, settings: Settings) -> Paths:
    if not settings.path:
        return paths
    text, _, query = settings.path.partition("?")
    # The model stands in these paths alone.
    native = (Format.GENERATE_CONTENT, Format.TOKEN_COUNT) if Format.GENERATE_CONTENT in paths else ()
    return {
        form: Path(text.encode(), query=query.encode(), dialect=path.dialect)
        for form, path in paths.items()
        if form not in native
    }
