"""`backend.ai` (BackendAI): what happens with requests to LLM providers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.backend.prompt_guard import AIPromptGuard
from gatewright.api.schema.cel_field import RequestExpression
from gatewright.api.schema.fields import Boolean, Integer, Json, PositiveDuration, ShortString
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.traffic.authorization import Authorization

_FIELDS = Field(min_length=1, max_length=64)
RouteType = Literal[
    "Completions",
    "Messages",
    "Models",
    "Passthrough",
    "Detect",
    "Responses",
    "AnthropicTokenCount",
    "Embeddings",
    "Realtime",
    "Rerank",
]


class Message(Model):
    """A message of a prompt."""

    role: str
    """Who speaks; which roles there are depends on the provider, for example SYSTEM and USER."""
    content: str
    """What is said."""


class AIPromptEnrichment(Model):
    """Messages added to every prompt. Only for providers with a chat route; where a provider knows no system
    message, `defaults` can set its `system` field."""

    prepend: tuple[Message, ...] | None = None
    """Messages before those of the request."""
    append: tuple[Message, ...] | None = None
    """Messages after those of the request."""


class FieldDefault(RuledModel):
    """A field of the request's JSON body and its value."""

    field: ShortString
    """Name of a field at the top of the body."""
    value: Json
    """Its value."""


class FieldTransformation(Model):
    """A field of the request's JSON body and the expression that gives its value."""

    field: ShortString
    """Name of a field at the top of the body."""
    expression: RequestExpression
    """Its value."""


class PromptCachingConfig(Model):
    """Cache points that are set automatically for models of Amazon Bedrock (Claude 3 and later, Nova)."""

    cache_system: Boolean = True
    """Set one after the system messages."""
    cache_messages: Boolean = True
    """Set one among the messages."""
    cache_tools: Boolean = False
    """Set one after the tools."""
    min_tokens: Annotated[Integer, Field(ge=0, le=2**31 - 1)] = 1024
    """The shortest prompt, estimated as 1.3 times its words."""
    cache_message_offset: Annotated[Integer, Field(ge=0, le=2**31 - 1)] = 0
    """Where among the messages: 0 is the second to last, higher values lie further toward the start."""


class AIAuthorization(Authorization):
    """A rule, asked when the body of a request was read. `llm.*` has values there."""


class BackendAI(RuledModel):
    """Policies for backends of type `ai`."""

    prompt: AIPromptEnrichment | None = None
    """Messages added to every prompt."""
    prompt_guard: AIPromptGuard | None = None
    """What may be asked and answered."""
    defaults: Annotated[tuple[FieldDefault, ...], _FIELDS] | None = None
    """Fields of the body for requests that have no value of their own."""
    overrides: Annotated[tuple[FieldDefault, ...], _FIELDS] | None = None
    """Fields of the body in place of the request's own."""
    transformations: Annotated[tuple[FieldTransformation, ...], _FIELDS] | None = None
    """Fields of the body computed by expressions; they win over overrides of the same field."""
    model_aliases: Annotated[dict[str, str], Field(max_length=64)] | None = None
    """Names of models as clients may say them, and the provider's names for them."""
    prompt_caching: PromptCachingConfig | None = None
    """Cache points that are set automatically."""
    routes: dict[str, RouteType] | None = None
    """What a request is, by the end of its path; `*` is any path. Default is Completions for all."""
    authorization: AIAuthorization | None = None
    """A rule about who may use which model: requests that it refuses are answered with 403, and lists of models leave
    out what it refuses. Rules of several policies add up. Gatewright extension."""
    unsupported_fields: Literal["Reject", "Drop"] | None = None
    """Whether fields of a request that the provider's API cannot carry are refused with 400, or left out. What is
    harmless is left out by both. Default is Reject. Gatewright extension."""
    list_provider_models: Boolean = False
    """Lists of models also have those of the providers' own lists. Gatewright extension."""
    first_event_timeout: PositiveDuration | None = None
    """How long a provider has until the first content of a stream, when another one can be asked. Default is no
    limit. Gatewright extension."""
