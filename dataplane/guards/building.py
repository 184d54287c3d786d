"""Guards as a policy has them on the wire, made ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.filter import Refused
from dataplane.guards import builtins
from dataplane.guards.patterns import Pattern, of_user, whole_test
from dataplane.guards.plan import Guard, Guards
from dataplane.guards.values import BOUND, Scope
from gatewright.turns import paced
from gatewright.wire.v1 import ai_pb2, traffic_pb2

if TYPE_CHECKING:
    from dataplane.guards.servers import Server

MESSAGES: Final = {
    "request": "The request was rejected due to inappropriate content",
    "response": "The response was rejected due to inappropriate content",
}
STATUS: Final = 403
MAX_PROGRAM: Final = 200_000
"""Instructions of RE2 of all patterns of one guard: some forty megabytes at most, in each worker."""
_BUILTINS: Final = {
    ai_pb2.GUARD_BUILTIN_SSN: "Ssn",
    ai_pb2.GUARD_BUILTIN_CREDIT_CARD: "CreditCard",
    ai_pb2.GUARD_BUILTIN_PHONE_NUMBER: "PhoneNumber",
    ai_pb2.GUARD_BUILTIN_EMAIL: "Email",
    ai_pb2.GUARD_BUILTIN_CA_SIN: "CaSin",
}
_SCOPES: Final = {
    ai_pb2.GUARD_SCOPE_SYSTEM_PROMPT: Scope.SYSTEM_PROMPT,
    ai_pb2.GUARD_SCOPE_MESSAGES: Scope.MESSAGES,
    ai_pb2.GUARD_SCOPE_TOOL_INPUT: Scope.TOOL_INPUT,
    ai_pb2.GUARD_SCOPE_TOOL_OUTPUT: Scope.TOOL_OUTPUT,
}


def guards(config: ai_pb2.AiPromptGuard) -> Guards:
    """Raises `Refused` for what cannot work."""
    bound = config.hold_back or BOUND
    return Guards(
        tuple(_list("request", config.request, bound)), tuple(_list("response", config.response, bound)), bound
    )


def _list(name: str, items: Sequence[ai_pb2.Guard], bound: int) -> Iterator[Guard]:
    """`bound`: bytes of a match."""
    for index, each in enumerate(paced(items)):
        kind = each.WhichOneof("kind")
        where = f"{name}[{index}]"
        if kind is None:
            raise Refused(f"promptGuard.{where}: no kind of guard that is known to this proxy")
        where += f".{FIELDS[kind]}"
        try:
            scope = frozenset(_SCOPES[number] for number in each.scope) or None
            message = each.response.message if each.HasField("response") else MESSAGES[name]
            guard = Guard(where, message, each.response.status_code or STATUS, scope)
            yield _MAKERS[kind](getattr(each, kind), guard, bound)
        except KeyError as unknown:
            raise Refused(f"promptGuard.{where}: {unknown.args[0]} is not known to this proxy") from None
        except Refused as error:
            raise Refused(f"promptGuard.{where}.{error}") from None


_Make = Callable[[Any, Guard, int], Guard]  # Any: the message of the kind


def _regex(config: ai_pb2.RegexGuard, guard: Guard, bound: int) -> Guard:
    patterns = [builtins.builtin(_BUILTINS[number]) for number in dict.fromkeys(config.builtins)]
    total = 0
    for index, text in enumerate(paced(config.matches)):
        pattern = _pattern(index, text, bound)
        total += pattern.size
        if total > MAX_PROGRAM:
            raise Refused(f"matches[{index}]: this pattern and those before it are too large together")
        patterns.append(pattern)
    rejects = config.action == ai_pb2.GUARD_ACTION_REJECT
    return replace(guard, patterns=tuple(patterns), rejects=rejects)


def _pattern(index: int, text: str, bound: int) -> Pattern:
    try:
        return of_user(text, bound)
    except Refused as error:
        raise Refused(f"matches[{index}]: {error}") from None


def _server(make: Callable[[Any, bool], Server]) -> _Make:
    def made(config: Any, guard: Guard, _: int) -> Guard:
        if not config.backend:
            raise Refused("backend: must be set")
        fails_open = config.failure_mode == traffic_pb2.FAILURE_MODE_FAIL_OPEN
        return replace(guard, server=make(config, fails_open))

    return made


def _webhook(config: ai_pb2.WebhookGuard, fails_open: bool) -> Server:
    from dataplane.guards.servers.webhook import Webhook

    headers = tuple(
        (each.name.encode(), _test(each, index)) for index, each in enumerate(config.forward_header_matches)
    )
    return Webhook(config.backend, fails_open, headers)


def _test(match: ai_pb2.GuardHeaderMatch, index: int) -> Callable[[bytes], object]:
    if match.WhichOneof("value") != "regex":
        return match.exact.encode().__eq__
    try:
        return whole_test(match.regex)
    except Refused as error:
        raise Refused(f"forwardHeaderMatches[{index}].value: {error}") from None


def _moderation(config: ai_pb2.ModerationGuard, fails_open: bool) -> Server:
    from dataplane.guards.servers.moderation import Moderation

    return Moderation(config.backend, fails_open, config.model)


def _bedrock(config: ai_pb2.BedrockGuard, fails_open: bool) -> Server:
    from dataplane.guards.servers.bedrock import Bedrock

    return Bedrock(config.backend, fails_open, config.identifier, config.version)


def _model_armor(config: ai_pb2.ModelArmorGuard, fails_open: bool) -> Server:
    from dataplane.guards.servers.model_armor import ModelArmor

    return ModelArmor(config.backend, fails_open, config.project_id, config.location, config.template_id)


FIELDS: Final = {
    "regex": "regex",
    "webhook": "webhook",
    "openai_moderation": "openAIModeration",
    "bedrock_guardrails": "bedrockGuardrails",
    "google_model_armor": "googleModelArmor",
}
"""Kinds on the wire, and as users write them."""
_MAKERS: Final[dict[str, _Make]] = {
    "regex": _regex,
    "webhook": _server(_webhook),
    "openai_moderation": _server(_moderation),
    "bedrock_guardrails": _server(_bedrock),
    "google_model_armor": _server(_model_armor),
}
