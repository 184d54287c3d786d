"""`docs/mcp`: a page for each capability, whose examples are valid, and mean the same as objects and as a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from gatewright.api.standalone import standalone
from gatewright.wire.v1 import resource_pb2
from tests.rules.test_examples import lint
from tests.unit.translate.test_agent_twins import plain, read

FOLDER = Path(__file__).resolve().parents[2] / "docs/mcp"
PAGES = sorted(FOLDER.glob("*.md"))
OVERVIEW = FOLDER / "README.md"
YAML = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)

AROUND = {
    # object that examples name -> what it is where a page does not show it
    "GatewayBackend": """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: tools}
spec: {mcp: {targets: [{name: files, static: {host: 127.0.0.1, port: 19501}}]}}
""",
    "HTTPRoute": """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: tools}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [%s]}]
""",
    "idp": """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: idp}
spec: {static: {host: idp.example, port: 443}, policies: {tls: {}}}
""",
}

PAIRS = {
    # page -> which of its examples of objects is which of a file
    "README": ((0, 0),),
    "authentication": ((0, 0), (1, 1)),
    "authorization": ((0, 0),),
    "errors": ((0, 0),),
    "file": ((0, 0),),
    "guardrails": ((0, 0),),
    "limits": ((0, 0),),
    "multiplexing": ((0, 0),),
    "protocol": ((0, 0),),
    "sessions": ((0, 0),),
    "sse": ((0, 0),),
    "stdio": (),  # a command is the file's alone
    "targets": ((0, 0), (3, 2)),
    "telemetry": ((0, 0),),
}


def examples(page: Path) -> tuple[list[str], list[str]]:
    """Its YAML: of objects, and of the standalone file."""
    found = YAML.findall(page.read_text())
    objects = [each for each in found if each.startswith("apiVersion:")]
    return objects, [each for each in found if each not in objects]


Meant = tuple[list[dict[str, Any]], list[tuple[str, Any]]]


def meant(resources: list[resource_pb2.Resource]) -> Meant:
    """What a proxy is sent: backends, and what policies say, wherever they stand."""
    found = {each.key: MessageToDict(each, preserving_proto_field_name=True) for each in resources}
    shown = {each.key: plain([each]) for each in resources if each.backend.WhichOneof("kind") in ("static", "service")}
    policies = sorted(
        ((name, named(value, shown)) for each in found.values() for name, value in policies_of(each)), key=str
    )
    return [each for each in plain(resources) if "mcp" in each], policies


META = frozenset({"source", "places", "phase", "order", "override", "strategy", "priority"})


def policies_of(value: Any) -> list[tuple[str, Any]]:
    """(setting, its value) of all policies below a message."""
    if isinstance(value, list):
        return [each for item in value for each in policies_of(item)]
    if not isinstance(value, dict):
        return []
    items = value.get("policies", []) if isinstance(value.get("policies"), list) else []
    items = [*items, *([value["policy"]] if isinstance(value.get("policy"), dict) else [])]
    own = [(name, each) for item in items for name, each in item.items() if name not in META]
    return own + [
        each for name, item in value.items() if name not in ("policies", "policy") for each in policies_of(item)
    ]


def named(value: Any, shown: dict[str, Any]) -> Any:
    """A setting with backends in place of their keys."""
    if isinstance(value, dict):
        return {name: named(each, shown) for name, each in value.items()}
    if isinstance(value, list):
        return [named(each, shown) for each in value]
    return shown.get(value, value) if isinstance(value, str) else value


def of_objects(text: str) -> Meant:
    """With what the example names and does not show, below the Gateway `gw`, which is `web` in the pages."""
    objects = [each.strip() + "\n" for each in text.replace("name: web}", "name: gw}").split("\n---\n")]
    backends = re.findall(r"kind: GatewayBackend\nmetadata: {name: ([\w-]+)", text) or ["tools"]
    if "\n  mcp:" not in text and "{mcp:" not in text:
        objects.append(AROUND["GatewayBackend"])
        backends = ["tools"]
    if "name: idp}" in text:
        objects.append(AROUND["idp"])
    if "kind: HTTPRoute\n" not in text:
        refs = ", ".join(f"{{group: gatewright.dev, kind: GatewayBackend, name: {name}}}" for name in backends)
        objects.append(AROUND["HTTPRoute"] % refs)
    return meant(read(*objects))


def of_file(text: str) -> Meant:
    made = standalone.load(text, "config.yaml")
    assert not made.problems, made.problems
    return meant(list(made.resources))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_is_valid(page: Path, tmp_path: Path) -> None:
    objects, files = examples(page)
    assert objects and files
    for each in (*objects, *files):
        (tmp_path / "example.yaml").write_text(each)
        run = lint(tmp_path / "example.yaml")
        assert run.returncode == 0, run.stdout + run.stderr


CASES = [(page, objects, files) for page, pairs in PAIRS.items() for objects, files in pairs]


@pytest.mark.parametrize(("page", "object_", "file"), CASES)
def test_both_forms_mean_the_same(page: str, object_: int, file: int) -> None:
    objects, files = examples(FOLDER / f"{page}.md")
    backends, policies = of_file(files[file])
    found = of_objects(objects[object_])
    assert found[1] == policies
    if "\n  mcp:" in objects[object_]:
        assert backends and found[0] == backends


def test_each_page_has_its_row() -> None:
    assert {page.stem for page in PAGES} == set(PAIRS)
    rows = re.findall(r"^\| \[.*?\]\(([\w-]+)\.md\)", OVERVIEW.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(page.stem for page in PAGES if page != OVERVIEW)
    for page in PAGES:
        assert page == OVERVIEW or "(README.md)" in page.read_text(), page
        assert "| Default |" in page.read_text() or page.stem in NO_SETTINGS, page


NO_SETTINGS = frozenset({"protocol", "errors", "telemetry", "sse", "file"})
"""Pages about what cannot be set, and one whose settings are those of others."""


def test_defaults_are_those_of_the_models() -> None:
    from gatewright.api.backend.mcp_targets import MCPBackend

    rows = dict(re.findall(r"^\| `mcp\.(\w+)` \| `(\w+)` \|", OVERVIEW.read_text(), re.MULTILINE))
    fields = {field.alias or name: field.default for name, field in MCPBackend.model_fields.items()}
    assert rows == {name: default for name, default in fields.items() if isinstance(default, str)}
