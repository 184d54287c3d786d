"""`backend.ai.promptGuard`: what may be asked of a model, and what it may answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.backend.simple import BackendSimple
from gatewright.api.routes.http_route import HTTPHeaderMatch, searched_regex_rule
from gatewright.api.schema.byte_size import byte_size
from gatewright.api.schema.fields import ByteSize, FailureMode, Integer, LongString, ShortString
from gatewright.api.schema.model import Broken, Model, RuledModel
from gatewright.api.schema.references import PolicyBackendReference
from gatewright.api.schema.rules import exactly_one

Builtin = Literal["Ssn", "CreditCard", "PhoneNumber", "Email", "CaSin"]
_Scope = Annotated[
    tuple[Literal["SystemPrompt", "Messages", "ToolInput", "ToolOutput"], ...], Field(min_length=1, max_length=4)
]
MIN_HELD, MAX_HELD = 64, 65_536
"""Bytes of `holdBack`."""
_BOUND: Final = 1024
"""The same, where it is unset."""


class Regex(Model):
    """Patterns of text; those of both lists count."""

    matches: tuple[LongString, ...] | None = None
    """Regular expressions in RE2 syntax."""
    builtins: tuple[Builtin, ...] | None = None
    """Kinds of text that the gateway knows."""
    action: Literal["Mask", "Reject"] = "Mask"
    """What happens with a request that matches; matches in responses are always masked."""


class Webhook(Model):
    """A server that decides."""

    backend_ref: PolicyBackendReference
    """The server: a Service or GatewayBackend."""
    forward_header_matches: tuple[HTTPHeaderMatch, ...] | None = None
    """Which headers of the request are sent along; none by default."""
    failure_mode: FailureMode = "FailClosed"
    """What happens when the server is unavailable or fails: reject (FailClosed) or continue (FailOpen)."""


class OpenAIModeration(Model):
    """OpenAI's moderation endpoint."""

    model: str | None = None
    """The moderation model."""
    policies: BackendSimple | None = None
    """Policies for connecting to it."""
    failure_mode: FailureMode = "FailClosed"
    """What happens when it cannot be asked: reject (FailClosed) or continue (FailOpen). Gatewright extension."""


class BedrockGuardrails(Model):
    """A guardrail of Amazon Bedrock."""

    identifier: ShortString
    """The guardrail."""
    version: ShortString
    """Its version."""
    region: ShortString
    """Its region."""
    policies: BackendSimple | None = None
    """Policies for connecting to it."""
    failure_mode: FailureMode = "FailClosed"
    """What happens when it cannot be asked: reject (FailClosed) or continue (FailOpen). Gatewright extension."""


class GoogleModelArmor(Model):
    """A template of Google Model Armor."""

    template_id: ShortString
    """The template."""
    project_id: ShortString
    """Its project."""
    location: ShortString = "us-central1"
    """Its location."""
    policies: BackendSimple | None = None
    """Policies for connecting to it."""
    failure_mode: FailureMode = "FailClosed"
    """What happens when it cannot be asked: reject (FailClosed) or continue (FailOpen). Gatewright extension."""


class RequestRejection(Model):
    """The answer to a rejected request."""

    message: str = "The request was rejected due to inappropriate content"
    """Its text."""
    status_code: Annotated[Integer, Field(ge=200, le=599)] = 403
    """Its status."""


class ResponseRejection(Model):
    """The answer in place of a rejected response."""

    message: str = "The response was rejected due to inappropriate content"
    """Its text."""
    status_code: Annotated[Integer, Field(ge=200, le=599)] = 403
    """Its status."""


class PromptguardRequest(RuledModel):
    """A guard of requests: one kind of them."""

    regex: Regex | None = None
    """Patterns of text."""
    webhook: Webhook | None = None
    """A server that decides."""
    openai_moderation: Annotated[OpenAIModeration | None, Field(alias="openAIModeration")] = None
    """OpenAI's moderation endpoint."""
    bedrock_guardrails: BedrockGuardrails | None = None
    """A guardrail of Amazon Bedrock."""
    google_model_armor: GoogleModelArmor | None = None
    """A template of Google Model Armor."""
    response: RequestRejection | None = None
    """The answer to a rejected request."""
    scope: _Scope | None = None
    """Which texts it judges; all of them when unset. Gatewright extension."""

    cel_rules = (exactly_one("regex", "webhook", "openAIModeration", "bedrockGuardrails", "googleModelArmor"),)


class PromptguardResponse(RuledModel):
    """A guard of responses: one kind of them."""

    regex: Regex | None = None
    """Patterns of text; what matches is masked."""
    webhook: Webhook | None = None
    """A server that decides."""
    bedrock_guardrails: BedrockGuardrails | None = None
    """A guardrail of Amazon Bedrock."""
    google_model_armor: GoogleModelArmor | None = None
    """A template of Google Model Armor."""
    response: ResponseRejection | None = None
    """The answer in place of a rejected response."""
    scope: _Scope | None = None
    """Which texts it judges; all of them when unset. Gatewright extension."""

    cel_rules = (exactly_one("regex", "webhook", "bedrockGuardrails", "googleModelArmor"),)


_GUARDS = Field(min_length=1, max_length=8)


class AIPromptGuard(RuledModel):
    """Guards of requests and responses, in order."""

    request: Annotated[tuple[PromptguardRequest, ...], _GUARDS] | None = None
    """Guards of requests."""
    response: Annotated[tuple[PromptguardResponse, ...], _GUARDS] | None = None
    """Guards of responses."""
    hold_back: ByteSize | None = None
    """Bytes of what a pattern matches at most, and so of the text of a stream that waits until it is judged; 1Ki when
    unset, 64 to 64Ki. Gatewright extension."""

    gateway_only = (
        "how many bytes holdBack is: with many providers that costs more than an API server allows;"
        " that a text is a regular expression, and what it costs: CEL can use one, not ask"
    )

    def broken_rules(self) -> Iterator[Broken]:
        if self.hold_back is not None and not MIN_HELD <= byte_size(self.hold_back) <= MAX_HELD:
            yield Broken(("holdBack",), f"must be {MIN_HELD} to {MAX_HELD} bytes")
            return
        guards: tuple[tuple[str, Sequence[PromptguardRequest | PromptguardResponse]], ...] = (
            ("request", self.request or ()),
            ("response", self.response or ()),
        )
        seen = 2 * (_BOUND if self.hold_back is None else byte_size(self.hold_back))
        for name, row in guards:
            for index, guard in enumerate(row):
                if guard.regex is not None:
                    yield from _broken_patterns(guard.regex, (name, index, "regex", "matches"), seen)


def _broken_patterns(guard: Regex, path: tuple[str | int, ...], seen: int) -> Iterator[Broken]:
    """`seen`: bytes of a text that one search looks at."""
    for index, pattern in enumerate(guard.matches or ()):
        yield from searched_regex_rule(pattern, (*path, index), seen)
