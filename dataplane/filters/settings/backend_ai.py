"""What happens with requests to LLM providers (`backend.ai`): what they are, what becomes of their bodies, who may use
which model.

A value of plans: the kind of backend (`backends/llm`) acts on it. Of other backends it says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dataplane.chain import expressions, rules
from dataplane.chain.filter import Env, Refused
from gatewright.turns import paced
from gatewright.wire.v1 import ai_pb2

if TYPE_CHECKING:
    from dataplane.guards.plan import Guards
    from dataplane.llm.model_lists import Lists
    from dataplane.llm.policies import AiPolicies, AiPolicy
    from dataplane.llm.routes import RouteType
    from dataplane.llm.shape import Caching, Message

OWN: Final = "policies of the route or backend itself"
_PREFIX: Final = "AI_ROUTE_TYPE_"


def build(config: ai_pb2.BackendAi, env: Env) -> AiPolicy:
    """Raises `Refused` for an expression that cannot work."""
    from dataplane.llm.policies import AiPolicy  # by the first policy of this kind, as below
    from dataplane.llm.routes import ALL_COMPLETIONS, Routes
    from dataplane.llm.shape import Shape

    shape = Shape(
        overrides=_fields("overrides", config.overrides),
        defaults=_fields("defaults", config.defaults),
        aliases=MappingProxyType(dict(config.model_aliases)),
        prepend=_messages(config.prompt.prepend),
        append=_messages(config.prompt.append),
    )
    transformations = tuple(
        (each.field, expressions.compiled(each.expression, "request", f"transformations[{index}].expression"))
        for index, each in enumerate(paced(config.transformations))
    )
    routes = Routes((end, _route(end, number)) for end, number in config.routes.items()) if config.routes else None
    return AiPolicy(
        shape,
        transformations,
        routes or ALL_COMPLETIONS,
        _rules(config, env),
        _guards(config),
        tuple(sorted(config.model_aliases)),
        caching=_caching(config.prompt_caching) if config.HasField("prompt_caching") else None,
        drops=config.unsupported_fields == ai_pb2.AI_UNSUPPORTED_FIELDS_DROP,
        first_event_timeout=config.first_event_timeout_ms / 1000 if config.HasField("first_event_timeout_ms") else None,
        lists=_lists(env) if config.list_provider_models else None,
    )


def _lists(env: Env) -> Lists:
    """Of this policy alone, so that providers of other policies displace none of its entries."""
    from dataplane.llm.model_lists import Lists

    return env.kept(f"{env.origin.key}|lists of models", Lists)


def _caching(config: ai_pb2.AiPromptCaching) -> Caching:
    from dataplane.llm.shape import Caching

    return Caching(
        config.cache_system,
        config.cache_messages,
        config.cache_tools,
        config.min_tokens,
        config.cache_message_offset,
    )


def _guards(config: ai_pb2.BackendAi) -> Guards:
    from dataplane.guards.plan import NO_GUARDS

    if not config.HasField("prompt_guard"):
        return NO_GUARDS
    from dataplane.guards import building  # by the first policy with guards

    return building.guards(config.prompt_guard)


def _fields(where: str, fields: Sequence[ai_pb2.AiField]) -> tuple[tuple[str, bytes], ...]:
    for index, each in enumerate(fields):
        try:
            json.loads(each.value)
        except ValueError as error:
            raise Refused(f"{where}[{index}].value: {error}") from None
    return tuple((each.field, each.value.encode()) for each in fields)


def _messages(messages: Sequence[ai_pb2.AiMessage]) -> tuple[Message, ...]:
    from dataplane.llm.shape import Message

    return tuple(Message(each.role.lower(), each.content) for each in messages)


def _route(end: str, number: ai_pb2.AiRouteType) -> RouteType:
    from dataplane.llm.routes import ROUTE_TYPES

    found = {name.upper(): row for name, row in ROUTE_TYPES.items()}
    try:
        name = ai_pb2.AiRouteType.Name(number).removeprefix(_PREFIX)
    except ValueError:
        raise Refused(f"routes[{end}]: {number} is not known to this proxy") from None
    return found.get(name.removeprefix("ANTHROPIC_").replace("_", ""), found["COMPLETIONS"])


def _rules(config: ai_pb2.BackendAi, env: Env) -> tuple[rules.Rule, ...]:
    if not config.HasField("authorization"):
        return ()
    who = str(env.origin) if env.origin.policy else OWN
    try:
        return (rules.compiled(config.authorization, "request", env, who),)
    except Refused as error:
        raise Refused(f"authorization.{error}") from None


def merged(policies: Sequence[AiPolicy], best: AiPolicy) -> AiPolicies:
    """Rules of all of them, the rest of the one that wins."""
    from dataplane.llm.policies import AiPolicies

    return AiPolicies(best, tuple(chain.from_iterable(each.rules for each in policies)))


def closed(why: str) -> AiPolicies:
    """In place of one that cannot be built."""
    from dataplane.llm.policies import AiPolicies

    return AiPolicies(refused=why)
