"""Editor schemas and reference pages, what they start from (shapes, descriptions), and how stale files are found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
from annotated_types import MultipleOf
from pydantic import AfterValidator

from gatewright.api.generate import __main__ as generate
from gatewright.api.generate import crds, descriptions, editor, reference, shapes
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.model import Model
from gatewright.api.schema.names import OUR_KINDS
from gatewright.api.standalone.file import StandaloneFile
from gatewright.api.traffic.conditional import OrConditional
from gatewright.api.traffic.ext_auth import ExtAuth, ExtAuthOrConditional

SCHEMAS = {name: json.loads(text) for name, text in editor.all_schemas().items()}
NAMES = [*(f"{kind.lower()}.md" for kind in OUR_KINDS), "standalone.md", "README.md"]


@cache
def pages() -> dict[str, str]:
    """When the first test needs them: they take a second."""
    return reference.all_pages()


def test_each_kind_and_the_file_have_a_page() -> None:
    assert sorted(pages()) == sorted(NAMES)


# Currency.


def test_what_is_changed_missing_or_left_over_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "FOLDERS", {"made": dict})
    files = {Path("made/same"): "1", Path("made/changed"): "2", Path("made/missing"): "3"}
    (tmp_path / "made").mkdir()
    for name, text in (("same", "1"), ("changed", "x"), ("left-over", "4")):
        (tmp_path / "made" / name).write_text(text)
    assert [path.name for path in generate.stale(tmp_path, files)] == ["changed", "left-over", "missing"]


def test_writing_makes_all_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generate, "FOLDERS", {"made": lambda: {"a.json": "{}\n"}})
    monkeypatch.setattr(generate, "PAGES", {})
    assert generate.main(["--check"]) == 1
    assert generate.main([]) == 0
    assert "3 bytes  made/a.json" in capsys.readouterr().out
    (tmp_path / "made" / "b.json").write_text("")
    assert generate.main([]) == 0
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["a.json"]
    assert generate.main(["--check"]) == 0


# Descriptions and shapes.


def test_a_field_declared_anew_keeps_its_description() -> None:
    assert "backend_ref" in ExtAuth.__annotations__
    assert descriptions.of_field(ExtAuth, "backend_ref") == "The authorization server: a Service or GatewayBackend."
    assert descriptions.of_field(ExtAuthOrConditional, "conditional").endswith("Excludes all other fields.")
    assert descriptions.of_class(ExtAuthOrConditional) == "`traffic.extAuth`."
    assert (
        descriptions.of_field(OrConditional, "fills_in_defaults")
        == "Whether API servers fill in defaults of fields, which counts as setting them."
    )


def test_bounds_that_no_generator_knows_are_refused() -> None:
    class Stepped(Model):
        number: Annotated[int, MultipleOf(5)]

    class Checked(Model):
        text: Annotated[str, AfterValidator(str.strip)]

    class Mixed(Model):
        either: int | bool

    with pytest.raises(TypeError, match="MultipleOf"):
        shapes.fields_of(Stepped)
    with pytest.raises(KeyError):
        shapes.fields_of(Checked)
    with pytest.raises(TypeError, match="union"):
        shapes.fields_of(Mixed)


def test_shapes_carry_bounds_of_lists_and_of_their_items() -> None:
    fields = {
        field.name: field
        for field in shapes.fields_of(KINDS["GatewayParameters"].model.model_fields["spec"].annotation)
    }  # type: ignore[arg-type]
    env = fields["env"].shape
    assert isinstance(env, shapes.Items)
    assert env.unique == "name"


# Editor schemas.


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for part in node.values():
            yield from nodes(part)
    if isinstance(node, list):
        for part in node:
            yield from nodes(part)


@pytest.mark.parametrize("name", SCHEMAS)
def test_references_lead_to_definitions(name: str) -> None:
    schema = SCHEMAS[name]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    wanted = {node["$ref"] for node in nodes(schema) if isinstance(node.get("$ref"), str)}
    assert wanted == {f"#/$defs/{key}" for key in schema["$defs"]}


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_is_described(name: str) -> None:
    schema = SCHEMAS[name]
    bare = [
        f"{key}.{field}"
        for key, part in [("", schema), *schema["$defs"].items()]
        for field, node in part["properties"].items()
        if not node.get("description", "").strip()
    ]
    assert bare == []


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_a_document_of_another_kind_is_refused(kind: str) -> None:
    schema = SCHEMAS[editor.file_name(kind)]
    assert schema["properties"]["kind"]["const"] == kind
    assert schema["properties"]["apiVersion"]["const"] == "gatewright.dev/v1alpha1"
    assert schema["additionalProperties"] is False


def test_one_of_and_both_spellings() -> None:
    definitions = SCHEMAS["gatewaybackend_v1alpha1.json"]["$defs"]
    spec = definitions["GatewayBackendSpec"]
    (one_of,) = (rule["oneOf"] for rule in spec["allOf"] if "oneOf" in rule)
    assert {"required": ["aws"]} in one_of
    assert {"required": ["cloudA"]} in one_of
    assert {"not": {"required": ["aws", "cloudA"]}} in spec["allOf"]
    assert definitions["AzureConfig"]["properties"]["resourceType"]["enum"] == ["OpenAI", "Foundry", "TypeA", "TypeB"]
    assert definitions["BackendMCP"]["properties"]["authentication"]["deprecated"] is True


# Reference pages.


def paths(kind: str) -> set[str]:
    """Every path of a page's tables."""
    rows = (line for line in pages()[f"{kind.lower()}.md"].splitlines() if line.startswith("| `"))
    return {row.split("`")[1] for row in rows}


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_every_field_of_every_part_is_on_the_page(kind: str) -> None:
    last = {path.rpartition(".")[2] for path in paths(kind)}
    model = KINDS[kind].model
    names = {field.name for part in shapes.models_below(model) for field in shapes.fields_of(part)}
    known = {"creationTimestamp", "deletionTimestamp", "uid", "resourceVersion", "generation", "annotations", "labels"}
    assert names - last <= known | {"name", "namespace", "finalizers"}


def test_rows_tell_type_default_bounds_and_meaning() -> None:
    page = pages()["gatewaypolicy.md"]
    assert (
        "| `spec.frontend.tcp.keepalive.retries` | integer | `9` | 1 to 64 | How many probes may stay unanswered. |"
        in page
    )
    assert "| `spec.traffic.transformation.request.body` | expression, with the request |" in page
    assert "list of [TargetReference](#targetreference)" in page
    assert "- exactly one of targetRefs, targetSelectors must be set" in page
    assert "Also spelled `providerA`." in pages()["gatewaybackend.md"]


@pytest.mark.usefixtures("a_setting_waits")
def test_what_does_not_work_yet_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "all_waiting", cache(reference.all_waiting.__wrapped__))
    page = reference.all_pages()["gatewaypolicy.md"]
    (row,) = (line for line in page.splitlines() if line.startswith("| `spec.backend.ai.promptCaching`"))
    assert "*Not supported yet.*" in row
    (row,) = (line for line in page.splitlines() if line.startswith("| `spec.backend.ai.prompt`"))
    assert "*Not supported yet.*" not in row
    assert "*Not supported yet:* `spec.backend.ai.promptCaching`." in page


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_sections(name: str) -> None:
    titles = [line[3:].lower() for line in pages()[name].splitlines() if line.startswith("## ")]
    assert len(titles) == len(set(titles))
    for line in pages()[name].splitlines():
        for link in line.split("](#")[1:]:
            assert link.partition(")")[0] in titles, link


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_five_cells(name: str) -> None:
    for line in pages()[name].splitlines():
        if line.startswith("| `") and name != "README.md":
            assert line.replace("\\|", "").count("|") == 6, line


def test_the_index_names_files_that_exist() -> None:
    index = pages()["README.md"]
    for kind in OUR_KINDS:
        assert f"]({kind.lower()}.md)" in index
        assert crds.file_name(kind) in index
        assert editor.file_name(kind) in index
    assert "kubectl apply -f manifests/crds" in index
    assert descriptions.of_class(StandaloneFile) in index
