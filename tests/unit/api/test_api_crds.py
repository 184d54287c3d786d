"""The models against the CRDs of Gateway API v1.7.0, as its Go module carries them: fields, enums, bounds, defaults.

The experimental channel is the wider one, so it is what the models are compared with. Where they differ on purpose,
DIFFERENT says why.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.names import GATEWAY_API_GROUP

MODULE = "sigs.k8s.io/gateway-api@v1.7.0"
KINDS_OF_CRDS = [kind for kind, info in KINDS.items() if info.group == GATEWAY_API_GROUP]
BOUNDS = ("enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties", "pattern")
INT32 = 2**31 - 1

# Path to what the model says on purpose, and why.
DIFFERENT = {
    "spec.listeners[].filters": "experimental, read as free JSON and refused as not supported yet",
    "spec.addresses[].routability": "experimental, read as free JSON and refused as not supported yet",
}
# Bounds that the models add or leave to rules of their own.
ADDED = {
    "pattern": "header values, path texts: no control characters (one setting must not write another line)",
    "maximum": "int32 said aloud",
}


@pytest.fixture(scope="module")
def crds(tool: Callable[[str], str]) -> Path:
    """The folder of the experimental CRDs, downloaded once into the module cache."""
    run = subprocess.run(
        [tool("go"), "mod", "download", "-json", MODULE], capture_output=True, text=True, check=False, cwd="/"
    )
    folder = json.loads(run.stdout).get("Dir") if run.stdout else None
    if folder is None:  # an older Go unpacks it all the same, but does not say so
        cache = subprocess.run([tool("go"), "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
        folder = f"{cache.stdout.strip()}/{MODULE}"
    path = Path(folder, "config/crd/experimental")
    if not path.is_dir():
        pytest.skip("needs the Go module proxy")
    return path


def schema_of_crd(folder: Path, kind: str) -> dict[str, Any]:
    text = (folder / f"gateway.networking.k8s.io_{KINDS[kind].plural}.yaml").read_text()
    crd = yaml.load(text, yaml.CSafeLoader)
    (version,) = (version for version in crd["spec"]["versions"] if version["name"] == "v1")
    return {"spec": version["schema"]["openAPIV3Schema"]["properties"]["spec"]}


def schema_of_model(kind: str) -> dict[str, Any]:
    schema = KINDS[kind].model.model_json_schema(by_alias=True)
    return {"spec": resolved(schema["properties"]["spec"], schema["$defs"])}


def resolved(node: Any, definitions: dict[str, Any]) -> Any:
    """A schema node without references, `anyOf [X, null]` as X, `const` as enum."""
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        rest = {name: value for name, value in node.items() if name != "$ref"}
        return resolved({**definitions[node["$ref"].rpartition("/")[2]], **rest}, definitions)
    if "anyOf" in node:
        (option,) = (option for option in node["anyOf"] if option != {"type": "null"})
        return {**resolved(option, definitions), "default": node.get("default")}
    return {
        name: {key: resolved(part, definitions) for key, part in value.items()}
        if name == "properties"
        else resolved(value, definitions)
        for name, value in node.items()
    }


def walk(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """Every field: path, schema, required names."""
    yield path, node, sorted(node.get("required", []))
    for name, part in node.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        if below not in DIFFERENT:
            yield from walk(part, below)
    if isinstance(node.get("items"), dict):
        yield from walk(node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from walk(node["additionalProperties"], f"{path}{{}}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_CRDS)
def test_fields_and_bounds_are_those_of_the_crd(crds: Path, kind: str) -> None:
    theirs = {path: (node, required) for path, node, required in walk(schema_of_crd(crds, kind)["spec"], "spec")}
    ours = {path: (node, required) for path, node, required in walk(schema_of_model(kind)["spec"], "spec")}
    assert sorted(ours) == sorted(theirs)
    for path, (crd, required) in theirs.items():
        model, needed = ours[path]
        assert needed == required, path
        for bound in BOUNDS:
            assert_bound(path, bound, normal(crd.get(bound)), normal(model.get(bound)))


def normal(value: Any) -> Any:
    """Orders of enums do not matter; a least length of 0 is none."""
    if isinstance(value, list):
        return sorted(value, key=str)
    return None if value == 0 else value


def assert_bound(path: str, bound: str, crd: Any, model: Any) -> None:
    if crd is None and bound in ADDED and (model == INT32 or bound == "pattern"):
        return
    if bound == "enum" and path.endswith(".operator"):
        return  # the CRD leaves it to Kubernetes' own check of selectors
    if bound == "pattern" and crd == r"^[!-~]+([\t ]?[!-~]+)*$":
        return  # experimental; ours refuses control characters and allows what RFC 9110 calls obs-text
    if bound == "maxItems" and path.endswith(".retry.codes"):
        assert (crd, model) == (None, 600 - 400)  # each code once, of which there are no more
        return
    assert model == crd, f"{path}: {bound}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_CRDS)
def test_defaults_are_those_of_the_crd(crds: Path, kind: str) -> None:
    theirs = {path: node for path, node, _ in walk(schema_of_crd(crds, kind)["spec"], "spec")}
    ours = {path: node for path, node, _ in walk(schema_of_model(kind)["spec"], "spec")}
    for path, crd in theirs.items():
        if isinstance(crd.get("default"), str | int):
            assert ours[path].get("default") == crd["default"], path
