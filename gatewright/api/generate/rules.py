"""The models' rules between fields, in CEL, for API servers.

A model that has its rules as data (`RuledModel.cel_rules`) is asked for them. One that checks its rules in Python
(`broken_rules`) has a row here that says the same, or the reason why an API server cannot. Fields are named
canonically; `spellings` adds the other spelling. A rule costs what an API server estimates from the largest object that
the bounds allow, so whatever a rule walks over has a bound, if need be one of `BOUNDS`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from pydantic import BaseModel

from gatewright.api.backend import auth, mcp, mcp_targets, prompt_guard, providers
from gatewright.api.checks.backend_kinds import KINDS
from gatewright.api.frontend import http as frontend_http
from gatewright.api.frontend import limits as frontend_limits
from gatewright.api.frontend import tls as frontend_tls
from gatewright.api.generate import sizes
from gatewright.api.objects import gateway_backend, gateway_parameters, gateway_policy
from gatewright.api.routes import http_filters, http_route
from gatewright.api.schema import label_selector as labels
from gatewright.api.schema import references as refs
from gatewright.api.schema.model import RuledModel, to_camel
from gatewright.api.schema.names import GATEWAY_API_GROUP, GATEWAY_BACKEND, GROUP, INFERENCE_GROUP
from gatewright.api.schema.rules import Rule, exactly_one, fields_read, not_both, only_with
from gatewright.api.traffic import (
    conditional,
    csrf,
    direct_response,
    ext_auth,
    ext_proc,
    jwt_authentication,
    rate_limit,
    traffic,
    transformation,
    upgrades,
)
from gatewright.attach.policies import LATE


def names_among(kinds: Sequence[tuple[str, str]], group: str = "self.group", kind: str = "self.kind") -> str:
    """That group and kind are among these."""
    by_group: dict[str, list[str]] = {}
    for of_group, name in kinds:
        by_group.setdefault(of_group, []).append(f"'{name}'")
    options = [f"{group} == '{name}' && {kind} in [{', '.join(every)}]" for name, every in by_group.items()]
    return options[0] if len(options) == 1 else " || ".join(f"({option})" for option in options)


def _or_conditional(siblings: Sequence[str], required: Sequence[str], others: Sequence[Rule]) -> tuple[Rule, ...]:
    """The conditional pattern: `conditional` excludes the siblings; without it `others` hold."""
    any_sibling = " || ".join(f"has(self.{name})" for name in siblings)
    last = "has(self.conditional[self.conditional.size() - 1].condition) ? 0 : 1"
    return (
        Rule(
            f"!has(self.conditional) || !({any_sibling})",
            f"{', '.join(siblings)} must be absent when conditional is set",
        ),
        Rule(
            f"!has(self.conditional) || self.conditional.filter(item, !has(item.condition)).size() <= ({last})",
            "condition is required: only the last item of conditional may leave it out",
        ),
        *(
            Rule(f"has(self.conditional) || has(self.{name})", f"{name} is required, or conditional")
            for name in required
        ),
        *(Rule(f"has(self.conditional) || ({rule.cel})", rule.message) for rule in others),
    )


_CORE_SERVICE: Final = "self.group == '' && self.kind == 'Service'"
_PORT: Final = Rule(f"!({_CORE_SERVICE}) || has(self.port)", "port is required for a Service")
_CONNECTION_HEADERS: Final = ", ".join(f"'{name}'" for name in sorted(http_filters.CONNECTION_HEADERS))
_CONNECTION_MESSAGE: Final = "headers of the connection cannot be edited: connection, content-length and the like"


def _no_connection_headers(name: str, item: str) -> Rule:
    return Rule(
        f"!has(self.{name}) || !self.{name}.exists(h, {item}.lowerAscii() in [{_CONNECTION_HEADERS}])",
        _CONNECTION_MESSAGE,
    )


_HEADER_EDITS: Final = (
    _no_connection_headers("set", "h.name"),
    _no_connection_headers("add", "h.name"),
    _no_connection_headers("remove", "h"),
)
_EXT_AUTH: Final = (exactly_one("grpc", "http"),)
_DIRECT_RESPONSE: Final = (not_both("body", "bodyExpression"), _no_connection_headers("headers", "h.name"))
_PROVIDERS: Final = ("openai", "azureopenai", "azure", "anthropic", "gemini", "vertexai", "bedrock", "custom")
_LEVEL: Final = r"\\s*([^,=]*=\\s*)?(?i:off|error|warn|warning|info|debug)\\s*"
_ORIGIN: Final = r"[A-Za-z][A-Za-z0-9+.-]*://(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?"
_LATE: Final = [to_camel(name) for name in LATE]


def _targets(section: str) -> tuple[Rule, ...]:
    """Which kinds the policies of a section attach to."""
    kinds = gateway_policy.TARGETS[section]
    allowed = names_among(kinds, "t.group", "t.kind")
    message = f"{section} policies attach to {', '.join(kind for _, kind in kinds)} only"
    return tuple(
        Rule(f"!has(self.{section}) || !has(self.{name}) || self.{name}.all(t, {allowed})", message)
        for name in ("targetRefs", "targetSelectors")
    )


def _each_target(when: str, holds: str, message: str) -> tuple[Rule, ...]:
    return tuple(
        Rule(f"!({when}) || !has(self.{name}) || self.{name}.all(t, {holds})", message)
        for name in ("targetRefs", "targetSelectors")
    )


_EARLY: Final = "has(self.traffic) && self.traffic.phase == 'PreRouting'"
_NO_SERVICE: Final = "!(t.group == '' && t.kind == 'Service')"
_ROUTE_TARGET: Final = f"!(t.group == '{GATEWAY_API_GROUP}' && t.kind in ['HTTPRoute', 'GRPCRoute'])"


RULES: Final[dict[type[BaseModel], tuple[Rule, ...]]] = {
    # GatewayBackend
    gateway_backend.GatewayBackendSpec: (
        exactly_one(*map(to_camel, KINDS)),
        *(
            Rule(
                f"!has(self.policies) || !has(self.policies.{kind.policy}) || has(self.{kind.name})",
                f"policies.{kind.policy} is for backends of type {kind.name}",
            )
            for kind in KINDS.values()
            if kind.policy
        ),
    ),
    gateway_backend.StaticBackend: (
        Rule(
            "has(self.unixPath) ? !has(self.host) && !has(self.port) : has(self.host)",
            "either unixPath, or host must be set",
        ),
    ),
    mcp_targets.McpTarget: (
        exactly_one("host", "backendRef"),
        not_both("policies", "backendRef", "policies is valid only with host; attach a GatewayPolicy to the Service"),
    ),
    mcp_targets.MCPBackend: (
        Rule(*sizes.at_least("maxAnswerSize", mcp_targets.ANSWER_SIZES[0])),
        Rule(*sizes.at_most("maxAnswerSize", mcp_targets.ANSWER_SIZES[1])),
    ),
    providers.AIBackend: (
        exactly_one("provider", "groups"),
        Rule(
            "!has(self.groups) || self.groups.all(g, g.providers.all(p, "
            "self.groups.map(h, h.providers.filter(q, q.name == p.name).size()).sum() == 1))",
            "names of providers must be unique over all groups",
        ),
    ),
    providers.LLMProvider: (
        exactly_one(*_PROVIDERS),
        not_both("path", "pathPrefix"),
        only_with("pathPrefix", "has(self.openai) || has(self.anthropic)", "is for openai and anthropic"),
        Rule(
            "!has(self.custom) || has(self.custom.backendRef) || (has(self.host) && has(self.port))",
            "host and port are required for a custom provider without backendRef",
        ),
    ),
    providers.AzureOpenAIConfig: (
        Rule(
            "self.apiVersion == 'v1' || has(self.deploymentName)", "deploymentName is required unless apiVersion is v1"
        ),
    ),
    providers.AzureConfig: (
        Rule(
            "!(self.resourceType in ['Foundry', 'TypeB']) || has(self.projectName)",
            "projectName is required when resourceType is Foundry",
        ),
    ),
    providers.CustomProvider: (
        Rule(
            "!has(self.backendRef) || "
            + names_among(
                (("", "Service"), (INFERENCE_GROUP, "InferencePool")), "self.backendRef.group", "self.backendRef.kind"
            ),
            f"backendRef must be a Service, or an InferencePool of group {INFERENCE_GROUP}",
        ),
    ),
    # References
    refs.BackendObjectReference: (_PORT,),
    refs.LocalBackendObjectReference: (_PORT,),
    refs.PolicyBackendReference: (
        _PORT,
        Rule(
            names_among((("", "Service"), (GROUP, GATEWAY_BACKEND))),
            f"must be a Service, or a {GATEWAY_BACKEND} of group {GROUP}",
        ),
    ),
    refs.LocalServiceReference: (Rule(_CORE_SERVICE, "must be a Service"),),
    refs.ConfigMapReference: (Rule("self.group == '' && self.kind == 'ConfigMap'", "must be a ConfigMap"),),
    refs.LocalSecretObjectRef: (
        Rule("self.group != '' || self.kind in ['', 'Secret']", "kind must be Secret in the core group"),
        Rule("self.group == '' || self.kind != ''", "kind is required with group"),
    ),
    labels.LabelSelectorRequirement: (
        Rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
            "values is required for In and NotIn, and must be absent for Exists and DoesNotExist",
        ),
    ),
    # Policies for backends
    auth.BackendAuth: (
        exactly_one("key", "secretRef", "passthrough", "aws", "azure", "gcp"),
        only_with(
            "location",
            "!(has(self.aws) || has(self.azure) || has(self.gcp))",
            "must be absent when aws, azure or gcp is set",
        ),
    ),
    mcp.MCPGuardrailsProcessor: (
        exactly_one("remote"),
        Rule(
            "self.methods.all(key, key.matches('^([*]|[*]?[^*]+|[^*]+[*])$'))",
            "keys of methods must be a method, or have one * at the start or end",
        ),
    ),
    # Policies for requests
    traffic.Traffic: (
        Rule(
            "self.phase != 'PreRouting' || !(" + " || ".join(f"has(self.{name})" for name in _LATE) + ")",
            f"{', '.join(_LATE)} must be absent when phase is PreRouting",
        ),
    ),
    transformation.RequestTransform: _HEADER_EDITS,
    transformation.ResponseTransform: _HEADER_EDITS,
    transformation.TransformationOrConditional: _or_conditional(("request", "response"), (), ()),
    ext_proc.ExtProcOrConditional: _or_conditional(
        ("backendRef", "processingOptions", "requestAttributes"), ("backendRef",), ()
    ),
    ext_auth.ExtAuth: _EXT_AUTH,
    ext_auth.ExtAuthOrConditional: _or_conditional(
        ("backendRef", "failureMode", "grpc", "http", "forwardBody", "cache"), ("backendRef",), _EXT_AUTH
    ),
    rate_limit.RateLimitsOrConditional: _or_conditional(("local", "global"), (), ()),
    direct_response.DirectResponse: _DIRECT_RESPONSE,
    direct_response.DirectResponseOrConditional: _or_conditional(
        ("status", "body", "bodyExpression", "headers"), ("status",), _DIRECT_RESPONSE
    ),
    csrf.CSRF: (
        Rule(
            f"!has(self.additionalOrigins) || self.additionalOrigins.all(o, o.matches('^{_ORIGIN}$'))",
            "additionalOrigins must be origins such as https://shop.example.com:8443",
        ),
    ),
    http_filters.HTTPCORSFilter: tuple(
        Rule(
            f"!has(self.{name}) || !('*' in self.{name}) || self.{name}.size() == 1",
            f'{name} must not contain "*" beside other values',
        )
        for name in ("allowOrigins", "allowMethods", "allowHeaders")
    ),
    http_filters.HTTPHeaderFilter: (
        *_HEADER_EDITS,
        Rule("!has(self.add) || !self.add.exists(h, h.name.lowerAscii() == 'host')", "host can be set, not added"),
        Rule("!has(self.remove) || !self.remove.exists(h, h.lowerAscii() == 'host')", "host can be set, not removed"),
        Rule(
            "!has(self.remove) || self.remove.all(h, h.matches('^[A-Za-z0-9!#$%&\\'*+.^_`|~-]+$'))",
            "remove must be header names",
        ),
    ),
    jwt_authentication.JWTAuthentication: (
        Rule("!has(self.mcp) || self.providers.size() == 1", "providers must have exactly one item when mcp is set"),
        Rule("!has(self.mcp) || self.mode == 'Strict'", "mode must be Strict when mcp is set"),
    ),
    # Policies for connections
    frontend_tls.FrontendTLS: (
        Rule(
            "!has(self.minProtocolVersion) || !has(self.maxProtocolVersion) || "
            "self.minProtocolVersion <= self.maxProtocolVersion",
            "minProtocolVersion must not be newer than maxProtocolVersion",
        ),
        Rule(
            "!has(self.minProtocolVersion) || self.minProtocolVersion != '1.3' || !has(self.cipherSuites) || "
            "self.cipherSuites.size() == 0 || self.cipherSuites.exists(s, s.startsWith('TLS13_'))",
            "minProtocolVersion must be 1.2 where all cipherSuites are of TLS 1.2",
        ),
        Rule(
            "!has(self.maxProtocolVersion) || self.maxProtocolVersion != '1.2' || !has(self.cipherSuites) || "
            "self.cipherSuites.size() == 0 || self.cipherSuites.exists(s, !s.startsWith('TLS13_'))",
            "maxProtocolVersion must be 1.3 where all cipherSuites are of TLS 1.3",
        ),
    ),
    upgrades.Upgrades: (
        Rule(
            f"!self.protocols.exists(p, p.lowerAscii() in {[*upgrades.HTTP]})",
            "protocols must not be HTTP: requests would pass policies by",
        ),
    ),
    frontend_http.FrontendHTTP: (
        Rule(*sizes.at_least("http2FrameSize", frontend_http.FRAME_SIZES[0])),
        Rule(*sizes.at_most("http2FrameSize", frontend_http.FRAME_SIZES[1])),
        Rule(*sizes.at_most("http2WindowSize", frontend_http.MAX_WINDOW)),
        Rule(*sizes.at_most("http2ConnectionWindowSize", frontend_http.MAX_WINDOW)),
        Rule(
            "!has(self.requestId) || self.requestId != 'KeepFromTrusted' || has(self.trustedHops)",
            "requestId KeepFromTrusted needs trustedHops",
        ),
        Rule(
            f"!has(self.ownedHeaders) || !self.ownedHeaders.exists(h, h.lowerAscii() in {[*frontend_http.NOT_OWNED]})",
            "ownedHeaders must not name headers of the connection, x-forwarded-for or x-request-id",
        ),
    ),
    frontend_limits.FrontendLimits: tuple(
        Rule(*sizes.at_least(name, frontend_limits.SMALLEST)) for name in ("maxHeldBytes", "maxRequestBytes")
    ),
    # GatewayPolicy
    gateway_policy.GatewayPolicySpec: (
        exactly_one("targetRefs", "targetSelectors"),
        *_targets("frontend"),
        *_targets("traffic"),
        *_targets("backend"),
        *_each_target(
            "has(self.frontend)", "!has(t.sectionName)", "frontend policies attach to whole Gateways: no sectionName"
        ),
        *_each_target("has(self.backend) && has(self.backend.ai)", _NO_SERVICE, "backend.ai acts on no Service"),
        *_each_target(_EARLY, _ROUTE_TARGET, "PreRouting policies attach to Gateways and listeners only"),
    ),
    # GatewayParameters
    gateway_parameters.ParametersLogging: (
        Rule(
            f"!has(self.level) || self.level.matches('^{_LEVEL}(,{_LEVEL})*$')",
            "level must be one of off, error, warn, info, debug, or module=LEVEL, separated by commas",
        ),
    ),
}
"""Class with rules to the same rules in CEL. A subclass without a row has its base's."""

BASE_ONLY: Final = "the base of classes that have rows of their own"
LEFT_OUT: Final[dict[type[BaseModel], str]] = {
    prompt_guard.Regex: "that a text is a regular expression: CEL can use one, not ask whether it is one",
    prompt_guard.AIPromptGuard: "how many bytes a quantity is: CEL of API servers cannot add fractions of units",
    http_route.HTTPHeaderMatch: "that a text is a regular expression: CEL can use one, not ask whether it is one",
    conditional.OrConditional: BASE_ONLY,
}
"""Rules that only the gateway checks, and why."""

BOUNDS: Final[dict[tuple[type[BaseModel], str], int]] = {
    (http_filters.HTTPHeaderFilter, "remove"): 256,
    (frontend_tls.FrontendTLS, "cipher_suites"): 64,
}
"""Bounds that a model lacks and a rule needs so as not to cost too much: most characters of a text or of each text of a
list, most items of other lists. The API server refuses what is longer (here as for names of headers to set)."""


def rules_of(model: type[BaseModel]) -> tuple[Rule, ...]:
    """The CEL rules of a class: its own row, or that of the nearest base, up to the one that defines the rules.

    Raises LookupError for a class whose rules have neither a row nor a reason.
    """
    for base in model.__mro__:
        own = (*vars(base).get("cel_rules", ()), *RULES.get(base, ()))
        if own:
            return own
        if "broken_rules" in vars(base):
            if base is RuledModel or base in LEFT_OUT:
                return ()
            raise LookupError(f"{model.__name__} has rules, but no row in RULES and no reason in LEFT_OUT")
    return ()


def known_rules(model: type[BaseModel], names: Collection[str]) -> tuple[Rule, ...]:
    """As `rules_of`, for parts of the standalone file as well: what no API server checks has no row, and none here.

    `names` are the fields of the part. The file's form of a part may lack some, and has no rule that is about them.
    """
    try:
        return tuple(rule for rule in rules_of(model) if fields_read(rule) <= set(names))
    except LookupError:
        return ()


def bound_of(model: type[BaseModel], attribute: str) -> int | None:
    """The bound of a field that its model lacks, if a rule needs one."""
    return next((bound for base in model.__mro__ if (bound := BOUNDS.get((base, attribute)))), None)
