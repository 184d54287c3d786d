"""Both spellings of spec 0-names mean the same, both at once are an error, and nothing else is touched."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.decode.documents import decode
from gatewright.api.schema.names import FIELDS, VALUES, BothSpellings, canonical
from gatewright.api.text.yaml_text import load

# The table of spec 0-names, as written there: where a name stands, in both spellings.
PAIRS: list[tuple[str, str]] = [
    ("ai: {provider: {providerA: {}}}", "ai: {provider: {openai: {}}}"),
    ("ai: {provider: {providerB: {}}}", "ai: {provider: {azureopenai: {}}}"),
    ("ai: {provider: {providerC: {resourceType: TypeA}}}", "ai: {provider: {azure: {resourceType: OpenAI}}}"),
    ("ai: {provider: {azure: {resourceType: TypeB}}}", "ai: {provider: {azure: {resourceType: Foundry}}}"),
    ("ai: {groups: [{providers: [{providerD: {}}]}]}", "ai: {groups: [{providers: [{anthropic: {}}]}]}"),
    ("ai: {provider: {providerE: {}}}", "ai: {provider: {gemini: {}}}"),
    ("ai: {provider: {providerF: {}}}", "ai: {provider: {vertexai: {}}}"),
    ("ai: {provider: {providerG: {}}}", "ai: {provider: {bedrock: {}}}"),
    (
        "ai: {provider: {custom: {formats: [{type: TokenCount}]}}}",
        "ai: {provider: {custom: {formats: [{type: AnthropicTokenCount}]}}}",
    ),
    ("cloudA: {agentCore: {}}", "aws: {agentRuntime: {}}"),
    ("policies: {auth: {cloudA: {}}}", "policies: {auth: {aws: {}}}"),
    ("policies: {auth: {cloudB: {}}}", "policies: {auth: {azure: {}}}"),
    ("policies: {auth: {cloudC: {}}}", "policies: {auth: {gcp: {}}}"),
    (
        "backend: {ai: {promptGuard: {request: [{providerAModeration: {}}, {cloudCModelFilter: {}}]}}}",
        "backend: {ai: {promptGuard: {request: [{openAIModeration: {}}, {googleModelArmor: {}}]}}}",
    ),
    (
        "backend: {ai: {promptGuard: {response: [{providerGGuardrails: {}}]}}}",
        "backend: {ai: {promptGuard: {response: [{bedrockGuardrails: {}}]}}}",
    ),
    (
        "backend: {ai: {routes: {/count: TokenCount, TokenCount: Messages}}}",
        "backend: {ai: {routes: {/count: AnthropicTokenCount, TokenCount: Messages}}}",
    ),
    ("traffic: {jwtAuthentication: {mcp: {provider: IdpA}}}", "traffic: {jwtAuthentication: {mcp: {provider: Auth0}}}"),
    (
        "backend: {mcp: {authentication: {provider: IdpB}}}",
        "backend: {mcp: {authentication: {provider: Keycloak}}}",
    ),
    ("traffic: {jwtAuthentication: {mcp: {provider: IdpC}}}", "traffic: {jwtAuthentication: {mcp: {provider: Okta}}}"),
    ("mesh: {enabled: true}", "istio: {enabled: true}"),
]


@pytest.mark.parametrize(("neutral", "expected"), PAIRS)
def test_spellings(neutral: str, expected: str) -> None:
    conflicts: list[BothSpellings] = []
    wanted = {"spec": load(expected)}
    assert canonical({"spec": load(neutral)}, conflicts) == wanted
    assert canonical(wanted, conflicts) == wanted
    assert conflicts == []


def test_every_row_of_the_table_is_tried() -> None:
    tried = " ".join(neutral for neutral, _ in PAIRS)
    names = [row.neutral for row in FIELDS] + [row.neutral for row in VALUES]
    assert [name for name in names if f"{name}:" not in tried and f": {name}" not in tried] == []


def test_both_at_once_are_named_with_both_paths() -> None:
    text = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: b}
spec:
  aws: {agentRuntime: {agentRuntimeArn: arn}}
  cloudA:
    agentCore: {agentRuntimeArn: arn}
"""
    (decoded,) = decode(text, "f")
    assert decoded.verdict == "invalid"
    assert [str(problem) for problem in decoded.problems] == [
        "f:6: GatewayBackend default/b: spec.cloudA: is the same as spec.aws: set only one of them"
    ]


def test_a_neutral_name_is_found_again_in_the_text() -> None:
    text = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: b}
spec:
  cloudA: {agentCore: {agentRuntimeArn: arn}}
"""
    (decoded,) = decode(text, "f")
    assert str(decoded.problems[0]).startswith(
        "f:5: GatewayBackend default/b: spec.aws.agentRuntime.agentRuntimeArn: is no arn:"
    )


@pytest.mark.parametrize(
    "document",
    [
        {"metadata": {"labels": {"mesh": "TokenCount", "cloudA": "x"}}},
        {"spec": {"targetSelectors": [{"matchLabels": {"mesh": "a", "providerA": "b"}}]}},
        {"spec": {"rawConfig": {"spec": {"mesh": {}}, "provider": {"providerA": {}}}}},
        {"spec": {"deployment": {"spec": {"mesh": 1}}}},
        {"spec": {"traffic": {"mesh": {}, "transformation": {"request": {"set": [{"name": "mesh"}]}}}}},
        {"spec": {"ai": {"provider": {"custom": {"model": "TokenCount"}}}}},
        {"spec": {"ai": {"provider": {"openai": {"model": "TypeA"}}}}},
    ],
)
def test_what_is_the_users_own_is_not_touched(document: dict[str, Any]) -> None:
    assert canonical(document, []) == document
