"""The finished settings of LLM providers behind one backend: what a request meets. Made when a table is built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from dataplane.chain.filter import Refused
from dataplane.http.heads import is_value
from dataplane.http.uri import is_target
from dataplane.llm.paths import Settings
from dataplane.llm.policies import NO_POLICIES, AiPolicies
from dataplane.llm.providers import PROVIDERS, Provider, provider
from dataplane.llm.routes import Format
from dataplane.upstream.parts import Part
from gatewright.wire.v1 import ai_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gatewright.wire.v1 import ai_pb2 as wire

MAX_GROUPS: Final = 8
MAX_PROVIDERS: Final = 16
"""Of one group (PriorityGroup)."""

ROWS: Final = {
    ai_pb2.AI_PROVIDER_KIND_OPENAI: "openai",
    ai_pb2.AI_PROVIDER_KIND_ANTHROPIC: "anthropic",
    ai_pb2.AI_PROVIDER_KIND_GEMINI: "gemini",
    ai_pb2.AI_PROVIDER_KIND_AZURE_OPENAI: "azure-openai",
    ai_pb2.AI_PROVIDER_KIND_AZURE_FOUNDRY: "azure-foundry",
    ai_pb2.AI_PROVIDER_KIND_CUSTOM: "custom",
    ai_pb2.AI_PROVIDER_KIND_BEDROCK: "bedrock",
    ai_pb2.AI_PROVIDER_KIND_VERTEX_AI: "vertexai",
}
"""Row of `providers.PROVIDERS` by kind."""
FORMATS: Final = {
    ai_pb2.AI_FORMAT_COMPLETIONS: Format.COMPLETIONS,
    ai_pb2.AI_FORMAT_MESSAGES: Format.MESSAGES,
    ai_pb2.AI_FORMAT_RESPONSES: Format.RESPONSES,
    ai_pb2.AI_FORMAT_EMBEDDINGS: Format.EMBEDDINGS,
    ai_pb2.AI_FORMAT_ANTHROPIC_TOKEN_COUNT: Format.TOKEN_COUNT,
    ai_pb2.AI_FORMAT_REALTIME: Format.REALTIME,
    ai_pb2.AI_FORMAT_RERANK: Format.RERANK,
}


NO_PROVIDER: Final = Provider(PROVIDERS["custom"], "", {})


@dataclass(frozen=True, slots=True)
class ProviderPlan(Part):
    """One provider. `group`: its place in the order of priority."""

    group: int = 0
    provider: Provider = NO_PROVIDER
    policies: AiPolicies = NO_POLICIES
    """What the policies of the backend and of the provider come to; a route's are less specific."""


@dataclass(frozen=True, slots=True)
class AiPlan:
    """`providers` by group, in the order in which they are written. `groups`: the same, each for itself."""

    providers: tuple[ProviderPlan, ...]
    groups: tuple[tuple[ProviderPlan, ...], ...]


def plan(providers: Sequence[ProviderPlan]) -> AiPlan:
    """Of providers in the order of their groups."""
    groups = groupby(providers, attrgetter("group"))
    return AiPlan(tuple(providers), tuple(tuple(members) for _, members in groups))


def check(message: wire.AiBackend) -> None:
    """Raises `Refused`."""
    if not 0 < len(message.groups) <= MAX_GROUPS:
        raise Refused(f"ai.groups: 1 to {MAX_GROUPS} are possible")
    names = [each.name for group in message.groups for each in group.providers]
    for index, group in enumerate(message.groups):
        if not 0 < len(group.providers) <= MAX_PROVIDERS:
            raise Refused(f"ai.groups[{index}].providers: 1 to {MAX_PROVIDERS} are possible")
        for number, each in enumerate(group.providers):
            for problem in _problems(each, names):
                raise Refused(f"ai.groups[{index}].providers[{number}].{problem}")


def _problems(message: wire.AiProvider, names: Sequence[str]) -> Iterator[str]:
    if not message.name or names.count(message.name) > 1:
        yield "name: must be set, and unique over all groups"
    if not message.backend:
        yield "backend: must be set"
    if message.kind not in ROWS:
        yield f"kind: {message.kind} is not known to this proxy"
    paths = (message.path, message.path_prefix, *(each.path for each in message.formats))
    if not all(map(is_target, filter(None, paths))):
        yield "path: must begin with / and be printable ASCII without spaces and #"
    if message.kind == ai_pb2.AI_PROVIDER_KIND_CUSTOM and not message.formats:
        yield "formats: a custom provider needs one"
    if not all(map(is_value, (message.guardrail.identifier.encode(), message.guardrail.version.encode()))):
        yield "guardrail: identifier and version must fit in a header"
    for each in message.formats:
        if each.type not in FORMATS:
            yield f"formats: {each.type} is not known to this proxy"


def providers(message: wire.AiBackend) -> tuple[ProviderPlan, ...]:
    """Of a message that `check` has seen."""
    return tuple(_plan(each, index) for index, group in enumerate(message.groups) for each in group.providers)


def _plan(message: wire.AiProvider, group: int) -> ProviderPlan:
    settings = Settings(
        model=message.model,
        path=message.path,
        path_prefix=message.path_prefix,
        api_version=message.api_version,
        project=message.project,
        formats=tuple((FORMATS[each.type], each.path) for each in message.formats),
        region=message.region,
        guardrail=_guardrail(message.guardrail) if message.HasField("guardrail") else None,
    )
    return ProviderPlan(message.name, message.backend, group=group, provider=provider(ROWS[message.kind], settings))


def _guardrail(message: wire.AiProviderGuardrail) -> tuple[str, str]:
    return message.identifier, message.version


def with_policies(parts: Sequence[Part]) -> Iterator[ProviderPlan]:
    """Those of `providers`, with what policies say of what happens in each."""
    for part in parts:
        assert isinstance(part, ProviderPlan)  # `providers` has made them
        found = part.of_kind
        yield replace(part, policies=found) if isinstance(found, AiPolicies) else part
