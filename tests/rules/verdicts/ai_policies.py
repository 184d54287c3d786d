"""Verdicts on the policies of LLM backends (2-policies, BackendAI)."""

from __future__ import annotations

from typing import Any, Final

from tests.rules.verdicts.authentication import AUTHORIZATION
from tests.rules.verdicts.backend_policies import INT32, SIMPLE
from tests.rules.verdicts.common import D, K, P, X, header_name, short_string
from tests.rules.verdicts.references import (
    BACKEND_REF,
)
from tests.rules.verdicts.table import Nested, Rows, Shape, shape
from tests.rules.verdicts.words import (
    alone,
    boolean,
    duration,
    entries,
    enum,
    exactly_one,
    expression,
    first_of,
    in_list,
    integer,
    invalid,
    items,
    nested,
    required,
    text,
    unknown,
    valid,
)

_PROMPT = (
    P + "| prompt | AIPromptEnrichment | `prepend` and `append`: arrays of Message `{role: string, content: string}`"
)
_MESSAGE = {"role": "SYSTEM", "content": "c"}
MESSAGE = shape(
    _MESSAGE,
    required("role", _PROMPT),
    text("role", None, None, _PROMPT),
    required("content", _PROMPT),
    text("content", None, None, _PROMPT),
)
PROMPT = shape(
    {},
    items("prepend", 0, None, _PROMPT, _MESSAGE),
    first_of("prepend", MESSAGE, _PROMPT),
    items("append", 0, None, _PROMPT, _MESSAGE),
    first_of("append", MESSAGE, _PROMPT),
)

# Guards.

_GUARDS = P + "| promptGuard | AIPromptGuard | `request` (array of PromptguardRequest, 1 to 8) and `response`"
_GUARD_LIMIT = P + "| Prompt guards per request list / response list | 1 to 8 each |"
_REQUEST = P + "PromptguardRequest (exactly one of `regex`, `webhook`, `providerAModeration`, `providerGGuardrails`,"
_RESPONSE = P + "PromptguardResponse (exactly one of `regex`, `webhook`, `providerGGuardrails`, `cloudCModelFilter`)"
_CUSTOM = P + "each also has `response` (CustomResponse: `message` string"
_REGEX = P + "| Regex | `matches` (array of LongString patterns, each 1 to 1024); `builtins`"
_WEBHOOK = P + "| Webhook | `backendRef` (required; Service or Backend); `forwardHeaderMatches`"
_MODERATION = P + "| providerAModeration | `model` (string, optional); `policies` (BackendSimple) |"
_BEDROCK = P + "| providerGGuardrails | `identifier`, `version`, `region` (each ShortString, required);"
_ARMOR = P + "| cloudCModelFilter | `templateId`, `projectId` (ShortString, required); `location`"

REGEX = shape(
    {},
    items("matches", 0, None, _REGEX, lambda n: f"a{n}"),
    in_list("matches", text("matches", 1, 1024, _REGEX)),
    *(valid("matches", [good], _REGEX) for good in (r"\d{3}-\d{2}", "(?i)secret", "[[:alpha:]]+")),
    *(invalid("matches", [bad], _REGEX, cel=False) for bad in ("a(b", "(?=x)", "[", "*", r"(a)\1")),
    in_list("builtins", enum("builtins", ("Ssn", "CreditCard", "PhoneNumber", "Email", "CaSin"), _REGEX)),
    items("builtins", 0, None, _REGEX, "Ssn"),
    enum("action", ("Mask", "Reject"), _REGEX),
)

_MATCH = D + "HTTPHeaderMatch = `name, type Exact|RegularExpression, value`"
_LEAST_MATCH = {"name": "x-a", "value": "v"}
HEADER_MATCH = shape(
    _LEAST_MATCH,
    required("name", _MATCH),
    header_name("name", _MATCH),
    enum("type", ("Exact", "RegularExpression"), _MATCH),
    required("value", _MATCH),
    text("value", 1, 4096, _MATCH),
    invalid("value", "a\nb", K + "a header value has no line breaks"),
    invalid("", {"name": "a", "type": "RegularExpression", "value": "a("}, _MATCH, cel=False),
)
WEBHOOK = shape(
    {"backendRef": BACKEND_REF.least},
    required("backendRef", _WEBHOOK),
    nested("backendRef", BACKEND_REF, _WEBHOOK),
    items("forwardHeaderMatches", 0, None, _WEBHOOK, _LEAST_MATCH),
    first_of("forwardHeaderMatches", HEADER_MATCH, _WEBHOOK, backendRef=BACKEND_REF.least),
    enum("failureMode", ("FailClosed", "FailOpen"), _WEBHOOK),
)
_FAILS = X + "`failureMode` of guards that have none in the specification"
_SCOPE = X + "which texts a guard judges"
_SCOPES = ("SystemPrompt", "Messages", "ToolInput", "ToolOutput")
_HELD = X + "how long a match may be, and so how much text of a stream waits"
MODERATION = shape(
    {},
    text("model", None, None, _MODERATION),
    nested("policies", SIMPLE, _MODERATION),
    enum("failureMode", ("FailClosed", "FailOpen"), _FAILS),
)


def _required_texts(spec: str, *names: str) -> Rows:
    for name in names:
        yield required(name, spec)
        yield from short_string(name, spec)


BEDROCK = shape(
    {"identifier": "i", "version": "1", "region": "r"},
    _required_texts(_BEDROCK, "identifier", "version", "region"),
    nested("policies", SIMPLE, _BEDROCK),
    enum("failureMode", ("FailClosed", "FailOpen"), _FAILS),
)
ARMOR = shape(
    {"templateId": "t", "projectId": "p"},
    _required_texts(_ARMOR, "templateId", "projectId"),
    short_string("location", _ARMOR),
    nested("policies", SIMPLE, _ARMOR),
    enum("failureMode", ("FailClosed", "FailOpen"), _FAILS),
)


def _rejection() -> Shape:
    return shape({}, text("message", None, None, _CUSTOM), integer("statusCode", 200, 599, _CUSTOM))


_WAYS: Final[dict[str, tuple[Shape, str]]] = {
    "regex": (REGEX, _REGEX),
    "webhook": (WEBHOOK, _WEBHOOK),
    "openAIModeration": (MODERATION, _MODERATION),
    "bedrockGuardrails": (BEDROCK, _BEDROCK),
    "googleModelArmor": (ARMOR, _ARMOR),
}


def _guard(spec: str, *names: str) -> Shape:
    ways: dict[str, Any] = {name: _WAYS[name][0].least for name in names}
    below: list[Nested] = [alone(name, _WAYS[name][0], spec) for name in names]
    return shape(
        {"regex": {}},
        exactly_one(spec, ways),
        *below,
        nested("response", _rejection(), _CUSTOM),
        items("scope", 1, 4, _SCOPE, "Messages"),
        in_list("scope", enum("scope", _SCOPES, _SCOPE)),
    )


REQUEST_GUARD = _guard(_REQUEST, *_WAYS)
RESPONSE_GUARD = _guard(_RESPONSE, *(name for name in _WAYS if name != "openAIModeration"))
GUARD = shape(
    {},
    items("request", 1, 8, _GUARD_LIMIT, {"regex": {}}),
    first_of("request", REQUEST_GUARD, _GUARDS),
    items("response", 1, 8, _GUARD_LIMIT, {"regex": {}}),
    first_of("response", RESPONSE_GUARD, _GUARDS),
    invalid("response", [{"openAIModeration": {}}], _RESPONSE),
    *(valid("holdBack", good, _HELD) for good in (64, "64", "1Ki", "64Ki", 65536)),
    *(invalid("holdBack", bad, _HELD, cel=False) for bad in (63, 65537, "65Ki", 0)),
    *(invalid("holdBack", bad, _HELD) for bad in ("much", -1, True)),
)

# Fields of the body.

_FIELDS = P + "| FieldDefault lists (defaults, overrides), transformations, modelAliases | 1 to 64 items each"
_DEFAULTS = P + "| defaults | array of FieldDefault | 1 to 64; `{field: ShortString, value: JSON}`;"
_OVERRIDES = P + "| overrides | array of FieldDefault | 1 to 64; overwrite existing request fields |"
_TRANSFORMATIONS = P + "| transformations | array of FieldTransformation | 1 to 64;"
_ALIASES = P + "| modelAliases | map string to string | up to 64;"
_CACHING = P + "| promptCaching | PromptCachingConfig | automatic cache points for provider G models"
_POINTS = P + "PromptCachingConfig: `cacheSystem` (boolean, default true; cache point after all system messages)"
_ROUTES = P + "| routes | map string to RouteType | keys are URL path suffixes matched with ends-with;"
_TYPES = P + "RouteType values and the path they process: `Completions` (`/v1/chat/completions`)"

FIELD = shape(
    {"field": "f", "value": 1},
    required("field", _DEFAULTS),
    short_string("field", _DEFAULTS),
    required("value", _DEFAULTS),
    *(valid("value", value, _DEFAULTS) for value in (0, -1.5, "", True, [1, {"a": []}], {"a": {"b": [1]}})),
)
COMPUTED = shape(
    {"field": "f", "expression": "request.path"},
    required("field", _TRANSFORMATIONS),
    short_string("field", _TRANSFORMATIONS),
    required("expression", _TRANSFORMATIONS),
    expression("expression", _TRANSFORMATIONS, "request.path"),
)
CACHING = shape(
    {},
    boolean("cacheSystem", _POINTS),
    boolean("cacheMessages", _POINTS),
    boolean("cacheTools", _POINTS),
    integer("minTokens", 0, INT32, _POINTS),
    valid("minTokens", 1024, P + "| Prompt caching minimum tokens | default 1024 |"),
    integer("cacheMessageOffset", 0, INT32, _POINTS),
)
ROUTE_TYPES: Final = (
    *("Completions", "Messages", "Models", "Passthrough", "Detect", "Responses", "AnthropicTokenCount"),
    *("TokenCount", "Embeddings", "Realtime", "Rerank"),
)


def _fields(path: str, spec: str, least: dict[str, Any], of: Shape) -> tuple[Rows, Nested]:
    def item(n: int) -> dict[str, Any]:
        return {**least, "field": f"f{n}"}

    return items(path, 1, 64, _FIELDS, item), first_of(path, of, spec)


AI = shape(
    {},
    nested("prompt", PROMPT, _PROMPT),
    nested("promptGuard", GUARD, _GUARDS),
    *_fields("defaults", _DEFAULTS, FIELD.least, FIELD),
    *_fields("overrides", _OVERRIDES, FIELD.least, FIELD),
    *_fields("transformations", _TRANSFORMATIONS, COMPUTED.least, COMPUTED),
    entries("modelAliases", 0, 64, _ALIASES),
    invalid("modelAliases", {"a": 1}, _ALIASES),
    nested("promptCaching", CACHING, _CACHING),
    entries("routes", 0, None, _ROUTES, "Completions"),
    enum("routes.{/v1/chat/completions}", ROUTE_TYPES, _TYPES),
    valid("routes", {"*": "Passthrough"}, _ROUTES),
    unknown("models", [], _ROUTES),
    nested("authorization", AUTHORIZATION, X + "who may use which model"),
    enum("unsupportedFields", ("Reject", "Drop"), X + "what a provider's API cannot carry"),
    duration("firstEventTimeout", X + "until the first content of a stream"),
    boolean("listProviderModels", X + "providers' own lists of models"),
)
"""BackendAI."""
