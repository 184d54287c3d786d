"""Verdicts on LLM providers (1-resources, AIBackend)."""

from __future__ import annotations

from typing import Any, Final

from tests.rules.verdicts.common import (
    D,
    P,
    R,
    long_string,
    port,
    section_name,
    short_string,
    tiny_string,
)
from tests.rules.verdicts.references import (
    LOCAL_BACKEND,
)
from tests.rules.verdicts.subsets import WITH_AI
from tests.rules.verdicts.table import Nested, Rows, Shape, shape
from tests.rules.verdicts.words import (
    enum,
    exactly_one,
    first_of,
    given,
    invalid,
    items,
    nested,
    required,
    text,
    unknown,
    valid,
)

_MODEL = R + "| ProviderAConfig, ProviderDConfig, ProviderEConfig | `model` (ShortString, optional;"
_AZURE_OPENAI = R + "| ProviderBConfig | `endpoint` (ShortString, required;"
_AZURE = R + "| ProviderCConfig | `resourceName` (ShortString, required;"
_VERTEX = R + "| ProviderFConfig | `model` (ShortString, optional); `projectId` (TinyString, required, 1 to 64)"
_BEDROCK = R + "| ProviderGConfig | `region` (string, optional, 1 to 63 chars of lowercase letters, digits, hyphens"
_GUARDRAIL = R + "| GuardrailConfig | `identifier` (ShortString, required); `version` (ShortString, required) |"
_CUSTOM = (
    R + "| CustomProvider | `backendRef` (LocalBackendObjectReference; only a namespace-local Service or InferencePool"
)
_FORMAT = R + "| ProviderFormatConfig | `type` (ProviderFormat, required); `path` (LongString, optional;"
_FORMATS = R + "ProviderFormat values: `Completions` (chat completions format)"

MODEL = shape({}, short_string("model", _MODEL), unknown("region", "r", _MODEL))
AZURE_OPENAI = shape(
    {"endpoint": "e"},
    required("endpoint", _AZURE_OPENAI),
    short_string("endpoint", _AZURE_OPENAI),
    valid("endpoint", "https://a.example.com", _AZURE_OPENAI),
    short_string("deploymentName", _AZURE_OPENAI),
    given({"endpoint": "e", "deploymentName": "d"}, tiny_string("apiVersion", _AZURE_OPENAI)),
    valid("apiVersion", "v1", _AZURE_OPENAI),
    invalid("apiVersion", "2024-10-21", _AZURE_OPENAI),
)
_RESOURCE = {"resourceName": "r", "resourceType": "OpenAI"}
AZURE = shape(
    _RESOURCE,
    required("resourceName", _AZURE),
    short_string("resourceName", _AZURE),
    required("resourceType", _AZURE),
    given({**_RESOURCE, "projectName": "p"}, enum("resourceType", ("OpenAI", "Foundry"), _AZURE)),
    invalid("resourceType", "Foundry", _AZURE),
    short_string("model", _AZURE),
    tiny_string("apiVersion", _AZURE),
    short_string("projectName", _AZURE),
)
VERTEX = shape(
    {"projectId": "p"},
    short_string("model", _VERTEX),
    required("projectId", _VERTEX),
    tiny_string("projectId", _VERTEX),
    tiny_string("region", _VERTEX),
)
GUARDRAIL = shape(
    {"identifier": "i", "version": "1"},
    required("identifier", _GUARDRAIL),
    short_string("identifier", _GUARDRAIL),
    required("version", _GUARDRAIL),
    short_string("version", _GUARDRAIL),
)
BEDROCK = shape(
    {},
    text("region", 1, 63, _BEDROCK),
    *(valid("region", good, _BEDROCK) for good in ("us-east-1", "0", "-")),
    *(invalid("region", bad, _BEDROCK) for bad in ("US-EAST-1", "us_east_1", "us east", "a.b", "a\n")),
    short_string("model", _BEDROCK),
    nested("guardrail", GUARDRAIL, _BEDROCK),
)
_LEAST_FORMAT = {"type": "Completions"}
FORMAT = shape(
    _LEAST_FORMAT,
    required("type", _FORMAT),
    enum(
        "type",
        (
            "Completions",
            "Messages",
            "Responses",
            "Embeddings",
            "AnthropicTokenCount",
            "TokenCount",
            "Realtime",
            "Rerank",
        ),
        _FORMATS,
    ),
    invalid("type", "Models", _FORMATS),
    long_string("path", _FORMAT, of="/"),
)
_LEAST_CUSTOM: Final[dict[str, Any]] = {"formats": [_LEAST_FORMAT]}
CUSTOM = shape(
    _LEAST_CUSTOM,
    short_string("model", _CUSTOM),
    required("formats", _CUSTOM),
    items("formats", 1, 6, _CUSTOM, _LEAST_FORMAT),
    first_of("formats", FORMAT, _CUSTOM),
)
BY_REFERENCE = shape(
    {"backendRef": LOCAL_BACKEND.least, **_LEAST_CUSTOM},
    nested("backendRef", LOCAL_BACKEND, _CUSTOM),
    invalid("backendRef", {"name": "s", "kind": "Pod", "port": 1}, _CUSTOM),
    invalid("backendRef", {"name": "b", "group": "gatewright.dev", "kind": "GatewayBackend"}, _CUSTOM),
)

_ONE = R + "LLMProvider (exactly one of `providerA`, `providerB`, `providerC`, `providerD`, `providerE`, `providerF`,"
_HOST = R + "| host | ShortString | optional, 1 to 256; target host."
_PORT = R + "| port | integer | optional, 1 to 65535 |"
_PATH = R + "| path | LongString | optional; URL path for provider API requests;"
_PREFIX = R + "| pathPrefix | LongString | optional; overrides the default base path prefix"
_NAMED = R + "NamedLLMProvider: `name` (SectionName, required); `policies` (BackendWithAI;"
_CONFIGS: Final[dict[str, tuple[Shape, str]]] = {
    "openai": (MODEL, R + "| providerA | ProviderAConfig | hosted provider A |"),
    "azureopenai": (AZURE_OPENAI, R + "| providerB | ProviderBConfig | provider A models hosted on cloud B |"),
    "azure": (AZURE, R + "| providerC | ProviderCConfig | resource-based cloud-B provider;"),
    "anthropic": (MODEL, R + "| providerD | ProviderDConfig | hosted provider D |"),
    "gemini": (MODEL, R + "| providerE | ProviderEConfig | hosted provider E |"),
    "vertexai": (VERTEX, R + "| providerF | ProviderFConfig | provider F on cloud C |"),
    "bedrock": (BEDROCK, R + "| providerG | ProviderGConfig | provider G on cloud A |"),
}
_CUSTOM_FIELD = R + "| custom | CustomProvider | non-managed or self-hosted provider with explicit formats |"


def _rules(extra: dict[str, Any]) -> Rows:
    """What the fields of a provider ask of each other; `extra` are the fields that it must have anyhow."""
    ways = {name: of.least for name, (of, _) in _CONFIGS.items()}
    yield from exactly_one(_ONE, {**ways, "custom": BY_REFERENCE.least}, none=extra)
    place = {"host": "h", "port": 1}
    yield valid("", {**extra, "custom": _LEAST_CUSTOM, **place}, _CUSTOM)
    for name, value in place.items():
        left = {key: each for key, each in place.items() if key != name}
        yield invalid("", {**extra, "custom": _LEAST_CUSTOM, **left}, _CUSTOM)
        yield valid("", {**extra, "custom": BY_REFERENCE.least, name: value}, _HOST)
        yield valid("", {**extra, "openai": {}, name: value}, _HOST)
    yield invalid("", {**extra, "openai": {}, "path": "/a", "pathPrefix": "/b"}, D + "`path` xor `pathPrefix`")
    for name, (of, _) in _CONFIGS.items():
        verdict = valid if name in ("openai", "anthropic") else invalid
        yield verdict("", {**extra, name: of.least, "pathPrefix": "/b"}, _PREFIX)
    yield invalid("", {**extra, "custom": BY_REFERENCE.least, "pathPrefix": "/b"}, _PREFIX)


def _provider(extra: dict[str, Any], *further: Any) -> Shape:
    return shape(
        {**extra, "openai": {}},
        _rules(extra),
        *(Nested(name, of, spec, {**extra, name: of.least}) for name, (of, spec) in _CONFIGS.items()),
        Nested("custom", CUSTOM, _CUSTOM_FIELD, {**extra, "host": "h", "port": 1}),
        Nested("custom", BY_REFERENCE, _CUSTOM_FIELD, extra),
        short_string("host", _HOST),
        port("port", _PORT),
        long_string("path", _PATH),
        long_string("pathPrefix", _PREFIX),
        *further,
    )


PROVIDER = _provider({})
NAMED = _provider(
    {"name": "p"},
    required("name", _NAMED),
    section_name("name", _NAMED),
    nested("policies", WITH_AI, _NAMED),
)

_GROUPS = R + "| groups | array of PriorityGroup | 1 to 8 items, in priority order;"
_PROVIDERS = R + "PriorityGroup: `providers` (array of NamedLLMProvider, required, 1 to 16 items)"
_LIMIT = P + "| AI backend groups; providers per group | 1 to 8; 1 to 16 |"


def _named(n: int) -> dict[str, Any]:
    return {"name": f"p{n}", "openai": {}}


def _group(n: int) -> dict[str, Any]:
    return {"providers": [_named(n)]}


GROUP = shape(
    _group(0),
    required("providers", _PROVIDERS),
    items("providers", 1, 16, _LIMIT, _named),
    first_of("providers", NAMED, _PROVIDERS),
    invalid("providers", [_named(0), _named(0)], _GROUPS),
    unknown("weight", 1, _PROVIDERS),
)
AI = shape(
    {"provider": {"openai": {}}},
    exactly_one(R + "Exactly one of `provider` or `groups`.", {"provider": {"openai": {}}, "groups": [_group(0)]}),
    nested("provider", PROVIDER, R + "| provider | LLMProvider | how to reach one LLM provider |"),
    given({}, items("groups", 1, 8, _LIMIT, _group), invalid("groups", [_group(0), _group(0)], _GROUPS)),
    Nested("groups[0]", GROUP, _GROUPS, {"groups": [_group(0)]}),
)
"""AIBackend."""
