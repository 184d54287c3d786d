"""LLM providers. Each is a part with an address of its own, but for a custom one that names a Service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from gatewright import aws_hosts, google_hosts
from gatewright.api.backend.providers import (
    AIBackend,
    AzureConfig,
    BedrockConfig,
    LLMProvider,
    VertexAIConfig,
)
from gatewright.api.checks.backend_kinds import KINDS
from gatewright.api.lower.kinds.kind import BackendReferences, Kind, Lowered, Policies
from gatewright.api.text.places import Path
from gatewright.attach.policies import BY_NAME
from gatewright.wire.v1 import ai_pb2, backend_pb2, backend_policy_pb2, policy_pb2

_OF_CALLS: Final = "backend_ai"
"""The policy of the backend that is for requests to all of its providers; others are for connecting to them."""
ONLY: Final = "provider"
"""Name of the one provider of a backend without groups."""
HTTPS: Final = 443
_TLS: Final = "https"

HOSTS: Final = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "gemini": "generativelanguage.googleapis.com",
}
"""Of providers that have one for all."""
_KINDS: Final = {
    "openai": ai_pb2.AI_PROVIDER_KIND_OPENAI,
    "anthropic": ai_pb2.AI_PROVIDER_KIND_ANTHROPIC,
    "gemini": ai_pb2.AI_PROVIDER_KIND_GEMINI,
    "azureopenai": ai_pb2.AI_PROVIDER_KIND_AZURE_OPENAI,
    "custom": ai_pb2.AI_PROVIDER_KIND_CUSTOM,
    "bedrock": ai_pb2.AI_PROVIDER_KIND_BEDROCK,
    "vertexai": ai_pb2.AI_PROVIDER_KIND_VERTEX_AI,
}
AZURE_KINDS: Final = {
    "OpenAI": (ai_pb2.AI_PROVIDER_KIND_AZURE_OPENAI, "openai.azure.com"),
    "Foundry": (ai_pb2.AI_PROVIDER_KIND_AZURE_FOUNDRY, "services.ai.azure.com"),
}
"""By `resourceType`: the kind, and the domain that the name of a resource is put before."""
AZURE_AUDIENCES: Final = {"OpenAI": "https://cognitiveservices.azure.com", "Foundry": "https://ai.azure.com"}
"""By the same: whom tokens of Microsoft Entra are for."""
FORMATS: Final = {
    "Completions": ai_pb2.AI_FORMAT_COMPLETIONS,
    "Messages": ai_pb2.AI_FORMAT_MESSAGES,
    "Responses": ai_pb2.AI_FORMAT_RESPONSES,
    "Embeddings": ai_pb2.AI_FORMAT_EMBEDDINGS,
    "AnthropicTokenCount": ai_pb2.AI_FORMAT_ANTHROPIC_TOKEN_COUNT,
    "Realtime": ai_pb2.AI_FORMAT_REALTIME,
    "Rerank": ai_pb2.AI_FORMAT_RERANK,
}


class _Placed(NamedTuple):
    """A provider, and where it stands below the kind's field. `name`: its own, or `ONLY`."""

    name: str
    model: LLMProvider
    path: Path


class Ai(Kind):
    """`spec.ai`."""

    facts = KINDS["ai"]

    def lowered(self, model: AIBackend, policies: Policies, references: BackendReferences) -> Lowered:
        message = backend_pb2.Backend(ai=ai_pb2.AiBackend(), policies=(policies[field] for field in sorted(policies)))
        parts: dict[str, backend_pb2.Backend] = {}
        leads = []
        for group in _groups(model):
            providers = message.ai.groups.add().providers
            for each in group:
                key = _key(each, policies, references, parts)
                leads.append((each.name, key))
                providers.append(_provider(each, key))
        names = [] if model.groups is None else [name for name, _ in leads]
        return Lowered(message, parts, tuple(leads), tuple(names))


def _groups(model: AIBackend) -> Iterator[list[_Placed]]:
    if model.provider is not None:
        yield [_Placed(ONLY, model.provider, ("provider",))]
    for index, group in enumerate(model.groups or ()):
        path = ("groups", index, "providers")
        yield [_Placed(each.name, each, (*path, number)) for number, each in enumerate(group.providers)]


def _key(
    each: _Placed, policies: Policies, references: BackendReferences, parts: dict[str, backend_pb2.Backend]
) -> str:
    """The Backend that a provider's requests go to."""
    own = getattr(each.model, "policies", None)
    custom = each.model.custom
    if custom is not None and custom.backend_ref is not None:
        path = (*each.path, "custom", "backendRef")
        if own is None:
            return references.named(each.name, custom.backend_ref, getattr(custom.backend_ref, "port", None), path)
        parts[each.name] = backend_pb2.Backend(
            static=backend_pb2.StaticBackend(host="invalid."),
            refused=f"provider {each.name}: policies beside backendRef are not supported yet; a GatewayPolicy whose"
            " sectionName is the provider's name does it",
        )
        return references.part(each.name)
    made = references.policies(each.name, own, (*each.path, "policies")) if own is not None else {}
    host, port = _address(each.model)
    # A provider's own host gets no key in plain text, whatever the port.
    is_tls = port == HTTPS or not each.model.host
    address = backend_pb2.StaticBackend(host=host, port=port, app_protocol=_TLS if is_tls else "")
    place, fallback = _cloud(each.model)
    parts[each.name] = backend_pb2.Backend(
        static=address, policies=_of_part(policies, made), cloud=place, fallback=fallback
    )
    return references.part(each.name)


def _of_part(policies: Policies, own: Policies) -> Iterator[policy_pb2.Policy]:
    """Those for connecting to a provider, which may have its `own`: these win, field by field. What the whole says of
    requests is in the whole."""
    taken_over = {field: policy for field, policy in policies.items() if field != _OF_CALLS}
    both = {field: policy for field, policy in taken_over.items() if not BY_NAME[field].is_step} | dict(own)
    return (both[field] for field in sorted(both))


def _address(model: LLMProvider) -> tuple[str, int]:
    """Host and port. Of a managed provider the port is that of HTTPS, on whatever host."""
    return model.host or _host(model), model.port or HTTPS


def _host(model: LLMProvider) -> str:
    if model.azureopenai is not None:
        return model.azureopenai.host
    if model.azure is not None:
        return f"{model.azure.resource_name}.{AZURE_KINDS[model.azure.resource_type][1]}"
    if model.bedrock is not None:
        return aws_hosts.host_of("bedrock-runtime", model.bedrock.region)
    if model.vertexai is not None:
        return google_hosts.host_of(model.vertexai.region, _model(model.vertexai))
    return next((host for name, host in HOSTS.items() if getattr(model, name) is not None), "")


def _cloud(model: LLMProvider) -> tuple[backend_pb2.CloudPlace | None, list[policy_pb2.Policy]]:
    """Whom credentials of its cloud are for, and those that it gets where no policy says it."""
    if model.bedrock is not None:
        place = backend_pb2.CloudPlace(service="bedrock", region=model.bedrock.region)
        return place, [credentials(aws=backend_policy_pb2.AwsAuth())]
    if model.vertexai is not None:
        return None, [credentials(gcp=backend_policy_pb2.GcpAuth())]
    if model.azure is not None:
        return backend_pb2.CloudPlace(audience=AZURE_AUDIENCES[model.azure.resource_type]), []
    return None, []


def credentials(**kind: Any) -> policy_pb2.Policy:  # Any: one of the messages of a cloud
    return policy_pb2.Policy(backend_auth=backend_policy_pb2.BackendAuth(**kind))


def _provider(each: _Placed, key: str) -> ai_pb2.AiProvider:
    model = each.model
    message = ai_pb2.AiProvider(name=each.name, backend=key, path=model.path or "", path_prefix=model.path_prefix or "")
    if model.azure is not None:
        _azure(model.azure, message)
        return message
    name, config = next((name, found) for name in _KINDS if (found := getattr(model, name)) is not None)
    message.kind = _KINDS[name]
    message.model = _model(config)
    message.api_version = getattr(config, "api_version", "")
    if isinstance(config, VertexAIConfig):
        message.project, message.region = config.project_id, config.region
    if isinstance(config, BedrockConfig) and config.guardrail is not None:
        message.guardrail.identifier = config.guardrail.identifier
        message.guardrail.version = config.guardrail.version
    for form in getattr(config, "formats", ()):
        message.formats.add(type=FORMATS[form.type], path=form.path or "")
    return message


def _azure(config: AzureConfig, message: ai_pb2.AiProvider) -> None:
    message.kind = AZURE_KINDS[config.resource_type][0]
    message.model = config.model or ""
    message.api_version = config.api_version
    message.project = config.project_name or ""


def _model(config: Any) -> str:  # Any: one of the models of a provider's settings
    """In place of the request's; of Azure a deployment."""
    found: str | None = getattr(config, "model", None) or getattr(config, "deployment_name", None)
    return found or ""
