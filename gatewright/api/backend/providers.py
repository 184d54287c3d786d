"""LLM providers (AIBackend): how to reach a model, of one provider or of several in groups."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.backend.backend import BackendWithAI
from gatewright.api.schema.checks import OfKinds
from gatewright.api.schema.fields import LongString, Port, SectionName, ShortString, TinyString
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.names import INFERENCE_GROUP
from gatewright.api.schema.references import LocalBackendObjectReference
from gatewright.api.schema.rules import Rule, distinct, exactly_one, not_both, required_where, where_set
from gatewright.google_hosts import GLOBAL

REGION_PATTERN: Final = r"^[a-z0-9-]+$"
ProviderFormat = Literal[
    "Completions", "Messages", "Responses", "Embeddings", "AnthropicTokenCount", "Realtime", "Rerank"
]


class ModelConfig(Model):
    """Settings of OpenAI, Anthropic and Gemini."""

    model: ShortString | None = None
    """The model, in place of the one that the request names."""


class AzureOpenAIConfig(RuledModel):
    """OpenAI's models on Azure."""

    endpoint: ShortString
    """The host; a scheme before it is dropped."""
    deployment_name: ShortString | None = None
    """The deployment; required unless apiVersion is v1, where the request may name the model."""
    api_version: TinyString = "v1"
    """Version of the API."""

    @property
    def host(self) -> str:
        """Of the endpoint, which may be written as a URL."""
        _, scheme, rest = self.endpoint.partition("://")
        return (rest if scheme else self.endpoint).partition("/")[0]

    cel_rules = (required_where("deploymentName", "self.apiVersion != 'v1'", "is required unless apiVersion is v1"),)


class AzureConfig(RuledModel):
    """A resource of Azure."""

    resource_name: ShortString
    """The resource, of which the host is made."""
    resource_type: Literal["OpenAI", "Foundry"]
    """`OpenAI` is <resourceName>.openai.azure.com, `Foundry` is <resourceName>.services.ai.azure.com."""
    model: ShortString | None = None
    """The model, in place of the one that the request names."""
    api_version: TinyString = "v1"
    """Version of the API."""
    project_name: ShortString | None = None
    """The project; required for Foundry."""

    cel_rules = (
        required_where(
            "projectName", "self.resourceType in ['Foundry', 'TypeB']", "is required when resourceType is Foundry"
        ),
    )


class VertexAIConfig(Model):
    """Google Vertex AI."""

    model: ShortString | None = None
    """The model, in place of the one that the request names."""
    project_id: TinyString
    """The project."""
    region: TinyString = GLOBAL
    """The region."""


class GuardrailConfig(Model):
    """A guardrail that the provider applies."""

    identifier: ShortString
    """The guardrail."""
    version: ShortString
    """Its version."""


class BedrockConfig(Model):
    """Amazon Bedrock."""

    region: Annotated[str, Field(min_length=1, max_length=63, pattern=REGION_PATTERN)] = "us-east-1"
    """The region."""
    model: ShortString | None = None
    """The model, in place of the one that the request names."""
    guardrail: GuardrailConfig | None = None
    """A guardrail that Bedrock applies; none when unset."""


class ProviderFormatConfig(Model):
    """A format that a custom provider speaks."""

    type: ProviderFormat
    """The format."""
    path: LongString | None = None
    """Path of the provider for it; default is the format's own."""


_TARGETS: Final = (("", "Service"), (INFERENCE_GROUP, "InferencePool"))


class CustomProvider(RuledModel):
    """A self-hosted or other provider."""

    backend_ref: LocalBackendObjectReference | None = None
    """A Service or InferencePool of the same namespace; without it host and port of the provider are required."""
    model: ShortString | None = None
    """The model, in place of the one that the request names."""
    formats: Annotated[tuple[ProviderFormatConfig, ...], Field(min_length=1, max_length=6)]
    """Formats that it speaks."""

    cel_rules = (
        Rule(
            f"!has(self.backendRef) || {OfKinds(_TARGETS).cel.replace('{}', 'self.backendRef')}",
            f"backendRef.kind must be Service, or InferencePool of group {INFERENCE_GROUP}",
            path=("backendRef", "kind"),
            given="backendRef",
        ),
    )


_KINDS: Final = ("openai", "azureopenai", "azure", "anthropic", "gemini", "vertexai", "bedrock", "custom")


class LLMProvider(RuledModel):
    """How to reach one provider: one kind of it, and where it is."""

    openai: ModelConfig | None = None
    """OpenAI."""
    azureopenai: AzureOpenAIConfig | None = None
    """OpenAI's models on Azure."""
    azure: AzureConfig | None = None
    """A resource of Azure."""
    anthropic: ModelConfig | None = None
    """Anthropic."""
    gemini: ModelConfig | None = None
    """Google Gemini."""
    vertexai: VertexAIConfig | None = None
    """Google Vertex AI."""
    bedrock: BedrockConfig | None = None
    """Amazon Bedrock."""
    custom: CustomProvider | None = None
    """A self-hosted or other provider."""
    host: ShortString | None = None
    """The host of a custom provider without backendRef, or in place of a managed provider's own."""
    port: Port | None = None
    """The port of a custom provider without backendRef, or in place of a managed provider's own."""
    path: LongString | None = None
    """The path of all requests, in place of the provider's own."""
    path_prefix: LongString | None = None
    """What the provider's paths begin with, in place of /v1 for example. For OpenAI and Anthropic only."""

    cel_rules = (
        exactly_one(*_KINDS),
        not_both("path", "pathPrefix"),
        where_set("pathPrefix", "has(self.openai) || has(self.anthropic)", "is valid only with openai or anthropic"),
        *(
            required_where(
                name,
                "has(self.custom) && !has(self.custom.backendRef)",
                "is required for a custom provider without backendRef",
            )
            for name in ("host", "port")
        ),
    )


class NamedLLMProvider(LLMProvider):
    """A provider of a group."""

    name: SectionName
    """Its name, by which policies can target it."""
    policies: BackendWithAI | None = None
    """Policies for connecting to it; they win over those of the GatewayBackend and of GatewayPolicies."""


class PriorityGroup(Model):
    """Providers of equal priority, weighted by their health."""

    providers: Annotated[tuple[NamedLLMProvider, ...], Field(min_length=1, max_length=16)]
    """The providers."""


class AIBackend(RuledModel):
    """LLM providers."""

    provider: LLMProvider | None = None
    """One provider."""
    groups: Annotated[tuple[PriorityGroup, ...], Field(min_length=1, max_length=8)] | None = None
    """Groups of providers, that of the highest priority first."""

    cel_rules = (
        exactly_one("provider", "groups"),
        distinct("groups", "providers", "name"),
    )
