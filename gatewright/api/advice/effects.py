"""Warnings about settings that have no effect beside others, or another one than their name says.

Rows of `advice`. What they say does not depend on other objects, nor on whether a setting works yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import BaseModel

from gatewright.api.backend.ai import BackendAI
from gatewright.api.backend.mcp import MCPAuthorization
from gatewright.api.backend.prompt_guard import AIPromptGuard
from gatewright.api.backend.providers import LLMProvider, ProviderFormatConfig
from gatewright.api.backend.tls import BackendTLS
from gatewright.api.checks.expressions import is_constant
from gatewright.api.checks.parts import parts
from gatewright.api.frontend.telemetry import OtlpAccessLog, OtlpMetrics, Tracing
from gatewright.api.objects.gateway_policy import GatewayPolicySpec
from gatewright.api.schema.camel import to_camel
from gatewright.api.text.problem import Advice, path_text
from gatewright.api.traffic.authorization import Authorization
from gatewright.api.traffic.buffer import Buffer
from gatewright.api.traffic.rate_limit import LocalRateLimit, RateLimits
from gatewright.api.traffic.timeouts import Timeouts
from gatewright.api.traffic.traffic import Traffic
from gatewright.attach.policies import BACKEND, TCP, UDP, of


def _authorities_that_verify_nothing(tls: BackendTLS) -> Iterator[Advice]:
    if tls.insecure_skip_verify == "All" and tls.ca_certificate_refs:
        yield Advice(("insecureSkipVerify",), "All verifies nothing, so caCertificateRefs has no effect: leave one out")


_UNJUDGED: Final = ("Passthrough", "Detect", "AnthropicTokenCount")
"""Route types whose bodies pass as they are."""


def _routes_without_guards(ai: BackendAI) -> Iterator[Advice]:
    guards = [] if ai.prompt_guard is None else [*_guards(ai.prompt_guard)]
    for end, kind in (ai.routes or {}).items():
        if guards and kind in _UNJUDGED:
            message = f"{kind} passes as it is: not judged by {', '.join(guards)}"
            yield Advice(("routes", end), message)


def unjudged(value: BaseModel) -> list[str]:
    """Which routes of LLMs of an object its guards leave as they are, for its status."""
    return [
        f"{path_text((*path, *each.path))}: {each.message}"
        for path, part in parts(value)
        if isinstance(part, BackendAI)
        for each in _routes_without_guards(part)
    ]


def _guards(prompt_guard: AIPromptGuard) -> Iterator[str]:
    for name in ("request", "response"):
        for index, guard in enumerate(getattr(prompt_guard, name) or ()):
            fields = type(guard).model_fields
            kind = next(each for each in fields if getattr(guard, each) is not None)
            yield f"promptGuard.{name}[{index}].{fields[kind].alias or kind}"


def _path_without_http(telemetry: OtlpAccessLog | OtlpMetrics | Tracing) -> Iterator[Advice]:
    if telemetry.protocol == "GRPC" and "path" in telemetry.model_fields_set:
        yield Advice(("path",), "is ignored with GRPC, which is the default: set protocol: HTTP, or leave it out")


def _path_without_slash(part: LLMProvider | ProviderFormatConfig) -> Iterator[Advice]:
    for name, attribute in (("path", "path"), ("pathPrefix", "path_prefix")):
        text = getattr(part, attribute, None)
        if text is not None and not text.startswith("/"):
            yield Advice((name,), 'does not begin with "/": one is put before it')


def _strategy_without_traffic(spec: GatewayPolicySpec) -> Iterator[Advice]:
    if spec.strategy is None or spec.strategy.inheritance is None:
        return
    if spec.traffic is None:
        yield Advice(("strategy",), "has no effect: it is about traffic, which is not set")
        return
    others = [name for name in ("frontend", "backend") if getattr(spec, name) is not None]
    if others:
        yield Advice(("strategy",), f"acts on traffic alone, not on {' and '.join(others)}")


def _without_requests(spec: GatewayPolicySpec) -> Iterator[Advice]:
    """What acts on requests and is attached to a route of connections or datagrams (`policies.Policy.carries`)."""
    kinds = {getattr(each, "kind", "") for each in (*(spec.target_refs or ()), *(spec.target_selectors or ()))}
    for kind in sorted(kinds & CARRIED_BY.keys()):
        carried, why = CARRIED_BY[kind]
        for row in of(BACKEND):
            if getattr(spec.backend, row.attribute, None) is not None and carried not in row.carries:
                yield Advice((BACKEND, to_camel(row.attribute)), f"has no effect on a {kind}, which carries {why}")


def _nothing_is_set(part: RateLimits | Buffer | Timeouts) -> Iterator[Advice]:
    if all(value is None for value in vars(part).values()):
        yield Advice((), "is empty, and takes the place of what a less specific policy sets: it switches that off")


def _key_that_separates_no_clients(limit: LocalRateLimit) -> Iterator[Advice]:
    if limit.key is None:
        return
    if _OF_CHANCE(_TEXTS("''", limit.key)):
        yield Advice(("key",), "differs from request to request: each has a bucket of its own, so nothing is limited")
    elif is_constant(limit.key, "request"):
        yield Advice(("key",), "reads nothing of the request: all requests share one bucket, as they do without a key")


def _rule_without_values(rule: Authorization) -> Iterator[Advice]:
    """What agents do is not known to expressions before backends of these kinds have read it."""
    if rule.action == "Allow":
        return
    effect = "never matches" if rule.action == "Deny" else "refuses every request"
    for index, text in enumerate(rule.policy.match_expressions):
        found = _OF_AGENTS(_TEXTS("''", text))
        if found is not None and not (found[1] == "mcp" and isinstance(rule, MCPAuthorization)):
            why = _ELSEWHERE.get(found[1], "which has no value yet")
            message = f"reads {found[1]}, {why}: this {rule.action} {effect}"
            yield Advice(("policy", "matchExpressions", index), message)


def _agents_before_routing(traffic: Traffic) -> Iterator[Advice]:
    """Which backend a request goes to is not known before a route is chosen, so `a2a` has no value there."""
    rule = traffic.authorization
    if traffic.phase != "PreRouting" or rule is None or rule.action == "Allow":
        return
    effect = "never matches" if rule.action == "Deny" else "refuses every request"
    for index, text in enumerate(rule.policy.match_expressions):
        if _OF_A2A(_TEXTS("''", text)):
            message = f"reads a2a, which has no value in the phase PreRouting: this {rule.action} {effect}"
            yield Advice(("authorization", "policy", "matchExpressions", index), message)


CARRIED_BY: Final = {
    "TCPRoute": (TCP, "connections, not requests"),
    "TLSRoute": (TCP, "connections, not requests"),
    "UDPRoute": (UDP, "datagrams"),
}
"""Kinds of routes that send no requests: what they carry."""
_ELSEWHERE: Final = {
    "mcp": "which has a value in `backend.mcp.authorization`, when the backend has read the message, and none before",
}
"""Of what rules of another policy may read."""

_TEXTS: Final = re.compile(r"""[rRbB]*('''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")""", re.DOTALL).sub
_OF_CHANCE: Final = re.compile(r"(?<![\w.])(random|uuid)\s*\(").search
_OF_AGENTS: Final = re.compile(r"(?<![\w.])(mcp|llm)\b(?!\s*\()").search
_OF_A2A: Final = re.compile(r"(?<![\w.])a2a\b(?!\s*\()").search

EFFECTS: Final[tuple[tuple[type[BaseModel], Callable[[Any], Iterator[Advice]]], ...]] = (
    (BackendAI, _routes_without_guards),
    (BackendTLS, _authorities_that_verify_nothing),
    (OtlpAccessLog, _path_without_http),
    (OtlpMetrics, _path_without_http),
    (Tracing, _path_without_http),
    (LLMProvider, _path_without_slash),
    (ProviderFormatConfig, _path_without_slash),
    (GatewayPolicySpec, _strategy_without_traffic),
    (GatewayPolicySpec, _without_requests),
    (RateLimits, _nothing_is_set),
    (LocalRateLimit, _key_that_separates_no_clients),
    (Buffer, _nothing_is_set),
    (Timeouts, _nothing_is_set),
    (Authorization, _rule_without_values),
    (Traffic, _agents_before_routing),
)
"""As the rows of `advice`."""
