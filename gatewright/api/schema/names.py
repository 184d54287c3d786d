"""The names of the API, and the two spellings of some of them: one table, applied at decode.

Called by the decoding of every source. Beyond this module only canonical names exist: status, dumps and messages
print them. It renames in place only what the table names at that place, so labels, header names and free JSON of a
user are never touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

GROUP: Final = "gatewright.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CONTROLLER_NAME: Final = "gatewright.dev/controller"
GATEWAY_CLASS: Final = "gatewright"
GATEWAY_API_GROUP: Final = "gateway.networking.k8s.io"
INFERENCE_GROUP: Final = "inference.networking.k8s.io"
INFERENCE_POOL: Final = "InferencePool"
AWAITED: Final[dict[str, str]] = {}
"""Kinds of objects that are known and cannot be honoured yet, with their groups."""

GATEWAY_BACKEND: Final = "GatewayBackend"
GATEWAY_PARAMETERS: Final = "GatewayParameters"
GATEWAY_POLICY: Final = "GatewayPolicy"
OUR_KINDS: Final = (GATEWAY_BACKEND, GATEWAY_PARAMETERS, GATEWAY_POLICY)

Path = tuple[str | int, ...]


class FieldName(NamedTuple):
    """A field of two spellings, in objects that are the value of one of the fields `within` (an item of a list
    counts as the list)."""

    neutral: str
    canonical: str
    within: frozenset[str]


class Value(NamedTuple):
    """An enum value of two spellings, of field `field` in objects under one of the fields `within`."""

    neutral: str
    canonical: str
    field: str
    within: frozenset[str]


_PROVIDER = frozenset({"provider", "providers", "ai"})
_GUARDS = frozenset({"request", "response"})
_SPEC = frozenset({"spec"})
_MCP = frozenset({"mcp", "authentication"})
_AUTH = frozenset({"auth", "backendAuth"})

FIELDS: Final[tuple[FieldName, ...]] = (
    FieldName("providerA", "openai", _PROVIDER),
    FieldName("providerB", "azureopenai", _PROVIDER),
    FieldName("providerC", "azure", _PROVIDER),
    FieldName("providerD", "anthropic", _PROVIDER),
    FieldName("providerE", "gemini", _PROVIDER),
    FieldName("providerF", "vertexai", _PROVIDER),
    FieldName("providerG", "bedrock", _PROVIDER),
    FieldName("cloudA", "aws", _AUTH | _SPEC | {"backends"}),
    FieldName("cloudB", "azure", _AUTH),
    FieldName("cloudC", "gcp", _AUTH),
    FieldName("agentCore", "agentRuntime", frozenset({"aws"})),
    FieldName("providerAModeration", "openAIModeration", _GUARDS),
    FieldName("providerGGuardrails", "bedrockGuardrails", _GUARDS),
    FieldName("cloudCModelFilter", "googleModelArmor", _GUARDS),
    FieldName("mesh", "istio", _SPEC),
)

VALUES: Final[tuple[Value, ...]] = (
    Value("TypeA", "OpenAI", "resourceType", frozenset({"azure"})),
    Value("TypeB", "Foundry", "resourceType", frozenset({"azure"})),
    Value("TokenCount", "AnthropicTokenCount", "type", frozenset({"formats"})),
    Value("IdpA", "Auth0", "provider", _MCP),
    Value("IdpB", "Keycloak", "provider", _MCP),
    Value("IdpC", "Okta", "provider", _MCP),
)

# Maps from a user's own key to an enum value: every value is renamed, no key is.
MAP_VALUES: Final = {"routes": {"TokenCount": "AnthropicTokenCount"}}

# What a user may fill freely: nothing below may be renamed.
_FREE: Final = frozenset(
    {"metadata", "rawConfig", "labels", "annotations", "matchLabels", "defaults", "overrides", "deployment", "service",
     "serviceAccount", "podDisruptionBudget", "horizontalPodAutoscaler", "env", "resources"}
)  # fmt: skip

NEUTRAL_OF: Final = {row.canonical: tuple(r.neutral for r in FIELDS if r.canonical == row.canonical) for row in FIELDS}
"""Canonical field name to the neutral ones: how a canonical path is found again in the user's text."""


class BothSpellings(NamedTuple):
    """Both spellings of one field in one object."""

    neutral: Path
    canonical: Path


def canonical(document: Any, conflicts: list[BothSpellings], *, root: str = "") -> Any:
    """`document` with canonical names, as a copy where something changed; both spellings at once go to `conflicts`.

    `root` is the name of the field whose value `document` is, "" for a whole object.
    """
    return _canonical(document, root, (), conflicts)


def _canonical(value: Any, within: str, path: Path, conflicts: list[BothSpellings]) -> Any:
    if isinstance(value, dict):
        return dict(_renamed(value, within, path, conflicts))
    if isinstance(value, list):
        return [_canonical(item, within, (*path, index), conflicts) for index, item in enumerate(value)]
    return value


def _renamed(
    fields: dict[Any, Any], within: str, path: Path, conflicts: list[BothSpellings]
) -> Iterator[tuple[Any, Any]]:
    renames = {row.neutral: row.canonical for row in FIELDS if within in row.within and row.neutral in fields}
    for key, value in fields.items():
        name = renames.get(key, key)
        if key in renames and name in fields:
            conflicts.append(BothSpellings((*path, key), (*path, name)))
            continue
        if isinstance(value, str):
            yield name, _canonical_value(within, name, value)
        elif name in _FREE:
            yield name, value
        elif name in MAP_VALUES and isinstance(value, dict):
            table = MAP_VALUES[name]
            yield name, {k: table.get(item, item) if isinstance(item, str) else item for k, item in value.items()}
        else:
            yield name, _canonical(value, name, (*path, name), conflicts)


def _canonical_value(within: str, field: str, value: str) -> str:
    for row in VALUES:
        if row.neutral == value and row.field == field and within in row.within:
            return row.canonical
    return value
