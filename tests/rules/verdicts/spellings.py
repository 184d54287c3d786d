"""Verdicts on the two spellings of 0-names: each neutral one is accepted, both at once are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.rules.verdicts.common import N
from tests.rules.verdicts.policy import target
from tests.rules.verdicts.table import Row, Verdict

BOTH: Final = N + "both at once is a validation error"
_PROVIDERS: Final[tuple[tuple[str, str, Any, str], ...]] = (
    ("providerA", "openai", {}, "| providerA | `openai` | OpenAI API |"),
    ("providerB", "azureopenai", {"endpoint": "e"}, "| providerB | `azureopenai` |"),
    (
        "providerC",
        "azure",
        {"resourceName": "r", "resourceType": "TypeA"},
        "| providerC | `azure` | Azure resource-based;",
    ),
    ("providerD", "anthropic", {}, "| providerD | `anthropic` | Anthropic API |"),
    ("providerE", "gemini", {}, "| providerE | `gemini` | Google Gemini API |"),
    ("providerF", "vertexai", {"projectId": "p"}, "| providerF | `vertexai` | Google Vertex AI |"),
    ("providerG", "bedrock", {}, "| providerG | `bedrock` | Amazon Bedrock"),
)
_CLOUDS: Final = (("cloudA", "aws"), ("cloudB", "azure"), ("cloudC", "gcp"))
_GUARDS: Final[tuple[tuple[str, str, Any, tuple[str, ...]], ...]] = (
    ("providerAModeration", "openAIModeration", {}, ("request",)),
    (
        "providerGGuardrails",
        "bedrockGuardrails",
        {"identifier": "i", "version": "1", "region": "r"},
        ("request", "response"),
    ),
    ("cloudCModelFilter", "googleModelArmor", {"templateId": "t", "projectId": "p"}, ("request", "response")),
)


def rows() -> Iterator[Row]:
    """All of them."""
    yield from _providers()
    yield from _other_backends()
    yield from _policies()
    yield _row("GatewayParameters", "spec.mesh", {}, "valid", "| mesh (`GatewayParameters.spec.mesh`) | `istio` |")
    yield _row("GatewayParameters", "spec", {"mesh": {}, "istio": {}}, "invalid", "")


def _providers() -> Iterator[Row]:
    for neutral, canonical, value, spec in _PROVIDERS:
        yield _row("GatewayBackend", "spec", {"ai": {"provider": {neutral: value}}}, "valid", spec)
        named = {"name": "p", neutral: value}
        yield _row("GatewayBackend", "spec", {"ai": {"groups": [{"providers": [named]}]}}, "valid", spec)
        both = {"ai": {"provider": {neutral: value, canonical: value}}}
        yield _row("GatewayBackend", "spec", both, "invalid", "")
    azure = {"resourceName": "r", "resourceType": "TypeB"}
    needed = "TypeB = `Foundry`"
    yield _row("GatewayBackend", "spec", {"ai": {"provider": {"azure": azure}}}, "invalid", needed)
    azure = {**azure, "projectName": "p"}
    yield _row("GatewayBackend", "spec", {"ai": {"provider": {"azure": azure}}}, "valid", needed)
    custom = {"host": "h", "port": 1, "custom": {"formats": [{"type": "TokenCount"}]}}
    count = "| ProviderFormat / RouteType `TokenCount` | `AnthropicTokenCount` |"
    yield _row("GatewayBackend", "spec", {"ai": {"provider": custom}}, "valid", count)


def _other_backends() -> Iterator[Row]:
    spec = "| cloudA (in `GatewayBackend.spec`) | `aws` | one variant `agentRuntime`, also accepted as `agentCore`"
    runtime = {"agentRuntimeArn": "arn"}
    for cloud in ("cloudA", "aws"):
        for variant in ("agentCore", "agentRuntime"):
            yield _row("GatewayBackend", "spec", {cloud: {variant: runtime}}, "valid", spec)
    yield _row("GatewayBackend", "spec", {"aws": {"agentCore": runtime, "agentRuntime": runtime}}, "invalid", spec)
    yield _row(
        "GatewayBackend", "spec", {"aws": {"agentRuntime": runtime}, "cloudA": {"agentCore": runtime}}, "invalid", ""
    )


def _policies() -> Iterator[Row]:
    for neutral, canonical in _CLOUDS:
        spec = "| cloudA / cloudB / cloudC (in `auth`) | `aws` / `azure` / `gcp` |"
        yield _backend({"auth": {neutral: {}}}, "valid", spec)
        yield _backend({"auth": {neutral: {}, canonical: {}}}, "invalid", "")
    for neutral, canonical, value, sides in _GUARDS:
        spec = f"| {neutral} | `{canonical}` |"
        for side in sides:
            yield _backend({"ai": {"promptGuard": {side: [{neutral: value}]}}}, "valid", spec)
            yield _backend({"ai": {"promptGuard": {side: [{neutral: value, canonical: value}]}}}, "invalid", "")
    count = "| ProviderFormat / RouteType `TokenCount` | `AnthropicTokenCount` |"
    yield _backend({"ai": {"routes": {"/count": "TokenCount"}}}, "valid", count)
    keys = {"jwksPath": "a", "backendRef": {"name": "s", "port": 1}}
    for name in ("IdpA", "IdpB", "IdpC"):
        spec = "| IdpA / IdpB / IdpC | `Auth0` / `Keycloak` / `Okta` | `mcp.provider` |"
        yield _backend({"mcp": {"authentication": {"jwks": keys, "provider": name}}}, "valid", spec)
        jwt = {"providers": [{"issuer": "i", "jwks": {"inline": "{}"}}], "mcp": {"provider": name}}
        traffic = {"targetRefs": [target("Gateway")], "traffic": {"jwtAuthentication": jwt}}
        yield _row("GatewayPolicy", "spec", traffic, "valid", spec)


def _backend(policies: dict[str, Any], verdict: Verdict, spec: str) -> Row:
    return _row("GatewayPolicy", "spec", {"targetRefs": [target("Gateway")], "backend": policies}, verdict, spec)


def _row(kind: str, path: str, value: Any, verdict: Verdict, spec: str) -> Row:
    return Row(kind, path, value, verdict, N + spec if spec else BOTH, known="mesh" not in path)
