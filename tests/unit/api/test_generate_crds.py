"""The generated CRDs: structure, descriptions and warnings, spellings, defaults, names, sizes; patterns of ByteSize."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gatewright.api.generate import crds, sizes
from gatewright.api.schema.byte_size import is_byte_size
from gatewright.api.schema.names import FIELDS, OUR_KINDS

KINDS = pytest.mark.parametrize("kind", OUR_KINDS)
SCHEMAS = {kind: crds.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for kind in OUR_KINDS}
LARGEST = 240_000
"""Bytes of a CRD. A client-side apply keeps a copy in an annotation, and annotations end at 262,144 (Kubernetes)."""


def nodes(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every node of a schema with its path."""
    yield path, node
    for name, part in node.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}".removeprefix("."))
    for keyword, sign in (("items", "[]"), ("additionalProperties", "{}")):
        if keyword in node:
            yield from nodes(node[keyword], path + sign)


def at(kind: str, path: str) -> dict[str, Any]:
    (found,) = (node for where, node in nodes(SCHEMAS[kind]) if where == path)
    return found


# Structure.

KEYWORDS = {
    "object": {"required", "properties", "additionalProperties", "minProperties", "maxProperties"},
    "array": {"items", "minItems", "maxItems", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"},
    "string": {"minLength", "maxLength", "pattern", "enum"},
    "integer": {"format", "minimum", "maximum", "enum"},
    "boolean": set[str](),
}
EVERYWHERE = {"type", "description", "default", "x-kubernetes-validations", "x-kubernetes-preserve-unknown-fields"}


@KINDS
def test_schemas_are_structural(kind: str) -> None:
    for path, node in nodes(SCHEMAS[kind]):
        if "type" in node:
            assert node.keys() <= KEYWORDS[node["type"]] | EVERYWHERE, path
        else:
            free = {"x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"}
            assert len(free & node.keys()) == 1, path


@KINDS
def test_everything_is_described(kind: str) -> None:
    """Here, or at the part that is alike and that the description names."""
    found = dict(nodes(SCHEMAS[kind]))
    order = {path: (path.count(".") + path.count("[") + path.count("{"), place) for place, path in enumerate(found)}
    told = {path: match[1] for path, node in found.items() if (match := _ELSEWHERE(node.get("description", "")))}
    for path in found:
        described = path
        while not found[described].get("description", "").strip() and described != "metadata":  # refused there
            part = max((part for part in told if described.startswith((f"{part}.", f"{part}["))), key=len)
            alike = told[part] + described.removeprefix(part)
            assert found[alike].keys() - {"description"} == found[described].keys() - {"description"}, path
            assert order[alike] < order[described], path
            described = alike


_ELSEWHERE = re.compile(r" Fields as in `([^`]+)`\.$").search


@KINDS
def test_list_map_keys_are_required(kind: str) -> None:
    for path, node in nodes(SCHEMAS[kind]):
        for key in node.get("x-kubernetes-list-map-keys", ()):
            assert key in node["items"]["required"], path


@KINDS
def test_defaults_are_valid(kind: str) -> None:
    for path, node in nodes(SCHEMAS[kind]):
        value = node.get("default")
        if isinstance(value, int) and not isinstance(value, bool):
            assert node.get("minimum", value) <= value <= node.get("maximum", value), path
        if isinstance(value, str):
            assert value in node.get("enum", [value]), path
            assert re.search(node.get("pattern", ""), value), path


@KINDS
def test_crds_are_small_enough_for_a_client_side_apply(kind: str) -> None:
    assert crds.stored_size(kind) <= LARGEST


@KINDS
def test_files_are_the_crds(kind: str) -> None:
    text = crds.crd_text(kind)
    assert yaml.load(text, yaml.CSafeLoader) == crds.crd(kind)
    assert "&id" not in text


# The specification's warnings.

WARNINGS = [
    ("GatewayBackend", "spec.dynamicForwardProxy", "can reach anything"),
    ("GatewayBackend", "spec.dynamicForwardProxy", "authorization policy"),
    ("GatewayBackend", "spec.policies.auth.key", "the least secure way"),
    ("GatewayBackend", "spec.policies.auth.passthrough", "Without such a policy it does nothing"),
    ("GatewayBackend", "spec.policies.tls.insecureSkipVerify", "`All` verifies nothing"),
    ("GatewayBackend", "spec.policies.mcp.authentication", "Deprecated"),
    ("GatewayBackend", "spec.policies.health.eviction.duration", "requests go to them all the same"),
    (
        "GatewayParameters",
        "spec.env[].value",
        "`$(NAME)` is expanded to the value of that variable, which is discouraged",
    ),
    ("GatewayParameters", "spec.env", "`$patch: delete`"),
    ("GatewayParameters", "spec.deployment.spec", "only when this object is applied server-side"),
    ("GatewayPolicy", "spec.targetRefs", "Prefer this to selectors"),
    ("GatewayPolicy", "spec.backend.mcp.authentication", "Deprecated"),
    ("GatewayPolicy", "spec.frontend.metrics.attributes.add", "labels with many values cost much"),
    ("GatewayPolicy", "spec.frontend.http.http1HeaderCase", "may lose the original case"),
    ("GatewayPolicy", "spec.traffic.extAuth.cache.key", "must cover everything"),
    ("GatewayPolicy", "spec.traffic.extProc.processingOptions.requestBodyMode", "fails over 8KB"),
    ("GatewayPolicy", "spec.traffic.basicAuthentication.users", "no plain passwords"),
    ("GatewayPolicy", "spec.traffic.apiKeyAuthentication.secretSelector.matchLabels", "undefined"),
    ("GatewayPolicy", "spec.traffic.timeouts", "How long a request may take. They apply to HTTPRoutes only."),
    ("GatewayPolicy", "spec.traffic.hostRewrite", "Ignored where an HTTPRoute's URLRewrite filter sets the host"),
    ("GatewayPolicy", "spec.traffic.csrf", "neither Sec-Fetch-Site nor Origin"),
    ("GatewayPolicy", "spec.traffic.authorization", "a matching Deny denies"),
    ("GatewayPolicy", "spec.traffic.jwtAuthentication", "A valid one is removed from the request"),
    ("GatewayPolicy", "spec.frontend.connect", "405"),
    ("GatewayPolicy", "spec.backend.ai.prompt", "Only for providers with a chat route"),
    ("GatewayBackend", "spec.policies.tls", "the system's trusted authorities validate the server"),
    ("GatewayPolicy", "spec.traffic.authorization.policy.matchExpressions", "One that fails does not match"),
]


@pytest.mark.parametrize(("kind", "path", "words"), WARNINGS)
def test_warnings_are_told(kind: str, path: str, words: str) -> None:
    assert words in at(kind, path)["description"]


def test_expressions_say_when_they_are_evaluated() -> None:
    told = at("GatewayPolicy", "spec.frontend.networkAuthorization.policy.matchExpressions[]")["description"]
    assert told.endswith("A CEL expression, evaluated on a new connection.")


# Spellings.


def test_every_other_spelling_of_a_field_takes_any_object_but_not_beside_the_canonical_one() -> None:
    found = set()
    for schema in SCHEMAS.values():
        for path, node in nodes(schema):
            for row in FIELDS:
                both = [node.get("properties", {}).get(name) for name in (row.canonical, row.neutral)]
                if None not in both and path.rpartition(".")[2].removesuffix("[]") in row.within:
                    canonical, neutral = both
                    assert canonical["type"] == neutral["type"] == "object"
                    assert neutral["x-kubernetes-preserve-unknown-fields"] is True
                    assert neutral.keys() <= {"type", "description", "x-kubernetes-preserve-unknown-fields"}
                    assert row.canonical in neutral.get("description", row.canonical)
                    stated = [rule["rule"] for rule in node["x-kubernetes-validations"]]
                    assert any(f"!(has(self.{row.canonical}) && has(self.{row.neutral}))" in rule for rule in stated)
                    found.add((row.neutral, row.canonical))
    # agentCore stands below aws, whose own other spelling is cloudA.
    assert found == {(row.neutral, row.canonical) for row in FIELDS}


@pytest.mark.parametrize(
    ("kind", "path", "values"),
    [
        ("GatewayBackend", "spec.ai.provider.azure.resourceType", {"OpenAI", "Foundry", "TypeA", "TypeB"}),
        ("GatewayBackend", "spec.ai.provider.custom.formats[].type", {"AnthropicTokenCount", "TokenCount"}),
        ("GatewayPolicy", "spec.backend.ai.routes{}", {"AnthropicTokenCount", "TokenCount"}),
        ("GatewayPolicy", "spec.traffic.jwtAuthentication.mcp.provider", {"Auth0", "IdpA", "Okta", "IdpC"}),
    ],
)
def test_enums_have_both_spellings(kind: str, path: str, values: set[str]) -> None:
    assert values <= set(at(kind, path)["enum"])


def test_one_of_counts_either_spelling() -> None:
    (rule,) = (
        rule["rule"]
        for rule in at("GatewayBackend", "spec.ai.provider")["x-kubernetes-validations"]
        if rule["message"].startswith("exactly one of openai")
    )
    assert "(has(self.openai) || has(self.providerA))" in rule


# Defaults.


def test_defaults_of_the_models_are_filled_in() -> None:
    assert at("GatewayPolicy", "spec.traffic.phase")["default"] == "PostRouting"
    assert at("GatewayPolicy", "spec.frontend.tls.alpnProtocols")["default"] == ["h2", "http/1.1"]
    assert at("GatewayBackend", "spec.ai.provider.bedrock.region")["default"] == "us-east-1"
    assert at("GatewayPolicy", "spec.traffic.extAuth.conditional[].policy.failureMode")["default"] == "FailClosed"


@KINDS
def test_nothing_is_filled_in_beside_conditional(kind: str) -> None:
    for path, node in nodes(SCHEMAS[kind]):
        if "conditional" in node.get("properties", {}):
            assert not [name for name, part in node["properties"].items() if "default" in part], path


def test_nothing_is_filled_in_where_levels_are_merged() -> None:
    assert not [path for path, node in nodes(SCHEMAS["GatewayParameters"]) if "default" in node]
    assert at("GatewayParameters", "spec.logging.level")["description"].endswith("Default is info.")
    assert at("GatewayPolicy", "spec.traffic.extAuth.failureMode")["description"].endswith("Default is FailClosed.")


# Names.


@KINDS
def test_names_are_those_of_the_specification(kind: str) -> None:
    spec = crds.crd(kind)["spec"]
    short = {"GatewayBackend": "gwb", "GatewayParameters": "gwparams", "GatewayPolicy": "gwpol"}[kind]
    assert (spec["group"], spec["scope"], spec["names"]["shortNames"]) == ("gatewright.dev", "Namespaced", [short])
    assert spec["names"]["categories"] == ["gatewright"]
    (version,) = spec["versions"]
    assert (version["name"], version["subresources"]) == ("v1alpha1", {"status": {}})


def test_columns_show_conditions_and_age() -> None:
    columns = {
        kind: [column["name"] for column in crds.crd(kind)["spec"]["versions"][0]["additionalPrinterColumns"]]
        for kind in OUR_KINDS
    }
    assert columns["GatewayPolicy"] == ["Accepted", "Attached", "Programmed", "Age"]
    assert columns["GatewayBackend"] == ["Accepted", "Programmed", "Age"]
    assert columns["GatewayParameters"] == ["Accepted", "Age"]


# ByteSize.

SIZES = [
    *(
        "0",
        "1",
        "+1",
        "1n",
        "1u",
        "1m",
        "1k",
        "1Ki",
        "1M",
        "1Mi",
        "1G",
        "1Gi",
        "4G",
        "0.004T",
        "5.",
        ".5",
        "1e3",
        "1E3",
    ),
    *("1b", "1B", "16kb", "16KB", "2mb", "2Mb", "3gb", "3.9gb", ".5mb", "0.003tb", "0tb", "4294967295b", "007kb"),
    *("4194303kb", "4095mb", "00004095mb", "0.000000004294967295E"),
]
NO_SIZES = [
    *("", "-1", "x", "1K", "1ki", "1KI", "1i", "1bb", "b", "kb", "tb", "1 Mi", "1,5M", "1.2.3", "1e", "1Eb", "0x10"),
    *("4294967296b", "4194304kb", "4096mb", "4gb", "1tb", "9tb", "99999999999b", "1e12345", "."),
]


@pytest.mark.parametrize("text", SIZES)
def test_sizes_pass_the_pattern(text: str) -> None:
    assert is_byte_size(text)
    assert re.search(sizes.PATTERN, text)


@pytest.mark.parametrize("text", NO_SIZES)
def test_other_texts_do_not(text: str) -> None:
    assert not is_byte_size(text)
    assert not re.search(sizes.PATTERN, text)


@pytest.mark.parametrize("number", [0, 3, 9, 10, 99, 100, 255, 4095, 4194303, 4294967295])
def test_patterns_end_at_a_number(number: int) -> None:
    whole = re.compile(sizes.up_to(number)).fullmatch
    for other in range(max(0, number - 120), number + 120):
        assert bool(whole(str(other))) == (other <= number), other
    assert whole(f"00{number}")
