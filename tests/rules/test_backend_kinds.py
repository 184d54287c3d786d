"""Every kind of backend is in each table that it has to be in, with a page and a test; what its row says is true."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from pydantic import BaseModel

from controlplane.translate.backend.found_services import PROTOCOLS
from dataplane.backends import registry as proxy
from dataplane.filters.registry import ROWS as POLICIES
from gatewright.api.backend.backend import BackendFull
from gatewright.api.checks.backend_kinds import KINDS, BackendKind
from gatewright.api.lower import to_wire
from gatewright.api.lower.kinds import registry as lowering
from gatewright.api.objects.gateway_backend import GatewayBackendSpec
from gatewright.api.schema import references
from gatewright.api.schema.label_selector import LabelSelector
from gatewright.api.schema.model import model_in
from gatewright.api.standalone.backends import FileBackend
from gatewright.wire.v1 import backend_pb2

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Tables:
    """Where a kind has to be, each by the kind's name there."""

    kinds: Mapping[str, BackendKind]
    objects: Collection[str]
    """Attributes of GatewayBackend's spec."""
    file: Collection[str]
    """Attributes of a backend in the standalone file."""
    lowerings: Collection[str]
    wire: Collection[str]
    """Fields of the wire's Backend."""
    proxy: Mapping[str, Any]
    """Kinds of the proxy: any with `policy`."""
    policies: Collection[str]
    """Fields of the wire's Policy that the proxy has a row for."""


OTHERS: Final = ("service", "inference_pool")
"""The kinds of the wire that are no GatewayBackends."""

TABLES: Final = Tables(
    KINDS,
    GatewayBackendSpec.model_fields.keys() - {"policies"},
    FileBackend.model_fields.keys() - {"name", "policies"},
    lowering.ROWS.keys(),
    [each.name for each in backend_pb2.Backend.DESCRIPTOR.oneofs_by_name["kind"].fields if each.name not in OTHERS],
    {name: row for name, row in proxy.KINDS.items() if name not in OTHERS},
    [row.name for row in POLICIES],
)


def lacking(tables: Tables) -> list[str]:
    """What is forgotten, by the file in which it belongs."""
    return [*_without_a_row(tables), *(text for row in tables.kinds.values() for text in _of(row, tables))]


def _without_a_row(tables: Tables) -> Iterator[str]:
    works = {row.name for row in tables.kinds.values() if row.works}
    of_file = {row.file_field for row in tables.kinds.values()}
    places = (
        ("gatewright/api/objects/gateway_backend.py", tables.objects, tables.kinds.keys()),
        ("gatewright/api/standalone/backends.py", tables.file, of_file),
        ("gatewright/api/lower/kinds/registry.py", tables.lowerings, works),
        ("proto/gatewright/wire/v1/backend.proto", tables.wire, works),
        ("dataplane/backends/registry.py", tables.proxy, works),
    )
    for file, there, rows in places:
        for name in sorted(set(there) - set(rows)):
            yield f"gatewright/api/checks/backend_kinds.py: no row with a page for {name}, which {file} has"


def _of(row: BackendKind, tables: Tables) -> Iterator[str]:
    places = [
        ("gatewright/api/objects/gateway_backend.py", tables.objects, row.name),
        ("gatewright/api/standalone/backends.py", tables.file, row.file_field),
    ]
    if row.works:
        places += [
            ("gatewright/api/lower/kinds/registry.py", tables.lowerings, row.name),
            ("proto/gatewright/wire/v1/backend.proto", tables.wire, row.name),
            ("dataplane/backends/registry.py", tables.proxy, row.name),
        ]
    for file, there, name in places:
        if name not in there:
            yield f"{file}: no {name}"
    if row.works and row.name in tables.proxy:
        yield from _policy(row, tables)
    if row.works and not (ROOT / "docs" / row.page).is_file():
        yield f"docs/{row.page}: no such page"
    if row.works and not (ROOT / f"tests/policies/test_{row.name}.py").is_file():
        yield f"tests/policies/test_{row.name}.py: no such test"


def _policy(row: BackendKind, tables: Tables) -> Iterator[str]:
    """The policy for one kind alone is the same one in the API, on the wire and in the proxy."""
    field = tables.proxy[row.name].policy
    if field not in (*tables.policies, ""):
        yield f"dataplane/filters/registry.py: no {field}"
    written = to_wire.backend_name(field) or "" if field else ""
    if written != (f"backend.{row.policy}" if row.policy else ""):
        yield f"gatewright/api/lower/to_wire.py: {field or 'nothing'} is {written or 'nothing'}, not {row.policy}"


def test_nothing_is_forgotten() -> None:
    assert lacking(TABLES) == []


def test_the_architecture_lists_these_files(root: Path) -> None:
    """`<kind>` and `<policy>` stand for names; what is in parentheses is not for every kind."""
    _, _, text = (root / "docs/architecture.md").read_text().partition("\n## Adding a kind\n")
    listed = re.findall(r"^\d\. .*?`([\w/<>.]+)`", text.partition("\n## ")[0], re.MULTILINE)
    assert [name.replace("<kind>", "mcp") for name in listed] == [
        "gatewright/api/checks/backend_kinds.py",
        "gatewright/api/objects/gateway_backend.py",
        "gatewright/api/standalone/backends.py",
        "proto/gatewright/wire/v1/backend.proto",
        "gatewright/api/lower/kinds/mcp.py",
        "gatewright/api/lower/kinds/registry.py",
        "dataplane/backends/mcp/",
        "dataplane/backends/registry.py",
        "tests/policies/test_mcp.py",
    ]


OWN: Final = {
    "gatewright/api/checks/backend_kinds.py": "the table",
    "gatewright/api/objects/gateway_backend.py": "the fields of the object: step 2 of adding a kind",
    "gatewright/api/standalone/backends.py": "the fields of the file: step 3",
    "gatewright/api/lower/kinds/registry.py": "the table of lowerings: step 6",
    "gatewright/attach/policies.py": "policies for one kind alone are rows as all policies are",
    "controlplane/translate/backend/found_services.py": "how a port of a Service says that it is a server",
}
"""Files that name kinds, and why."""
OF_A_KIND: Final = re.compile(r"(^|/)(static|mcp|ai|a2a|aws|llm|dynamic)(_[a-z]+)*(/|\.py$)")
"""Files of one kind, as their path says: its models, its policy, its lowering."""
ALLOWED: Final[Mapping[str, tuple[Collection[str], str]]] = {
    "controlplane/app.py": (["mcp"], "a setting of the controller, `mcp.selectorsNeedGrants`"),
    "controlplane/cli/local/of_file.py": (["ai", "mcp"], "what a client of each asks for first"),
    "controlplane/cli/offline/import_mcp.py": (["mcp"], "the file of a desktop client"),
    "controlplane/translate/backend/service_selection.py": (["mcp"], "the type of a selector"),
    "gatewright/api/advice/addresses.py": (["mcp"], "one of the models that have a host of their own"),
    "gatewright/api/advice/advice.py": (
        ["mcp"],
        "the table of advice about models, one of them the policy of the kind",
    ),
    "gatewright/api/advice/backend_auth.py": (["aws", "static"], "what AWS signs for is read from a host"),
    "gatewright/api/advice/effects.py": (
        ["ai", "mcp"],
        "the variable `mcp` of expressions, and guards that ask servers",
    ),
    "gatewright/api/backend/auth.py": (["aws"], "credentials of AWS, for backends of any kind"),
    "gatewright/api/backend/backend.py": (["ai", "mcp"], "the fields of policies for one kind alone"),
    "gatewright/api/checks/honoured.py": (
        ["dynamic_forward_proxy", "static"],
        "which kinds serve what is no request",
    ),
    "gatewright/api/lint/links.py": (["dynamic_forward_proxy"], "advice about who may reach anything"),
    "gatewright/api/lint/metadata.py": (["mcp"], "`jwtAuthentication.mcp`"),
    "gatewright/api/lower/guard_servers.py": (["ai"], "servers of the guards of `backend.ai`"),
    "gatewright/api/lower/references.py": (["aws"], "credentials of AWS"),
    "gatewright/api/schema/names.py": (["ai", "aws", "mcp"], "other spellings of fields"),
    "gatewright/api/standalone/contents.py": (["aws"], "credentials of AWS"),
    "gatewright/api/standalone/imported/litellm.py": (["ai"], "what LiteLLM routes is models"),
    "gatewright/api/standalone/parts.py": (["mcp", "static"], "the file's form of each model"),
    "gatewright/api/traffic/jwt_authentication.py": (["mcp"], "`jwtAuthentication.mcp`"),
}
"""Kinds that a file names all the same, and why."""


def generic() -> Iterator[str]:
    """Every module of the control plane and of what both planes share, but for those that may name a kind."""
    for folder in ("controlplane", "gatewright/api", "gatewright/attach"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            file = str(path.relative_to(ROOT))
            if file not in OWN and not OF_A_KIND.search(file):
                yield file


def test_what_handles_all_kinds_names_none() -> None:
    """Neither a field of one, nor its name as a text, nor a module of it."""
    found = {file: named(ast.parse((ROOT / file).read_text())) for file in generic()}
    assert {file: names for file, names in found.items() if names} == {
        file: set(names) for file, (names, _) in ALLOWED.items()
    }


def named(tree: ast.AST) -> set[str]:
    nodes = [*ast.walk(tree)]
    fields = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    words = {word for module in modules for word in re.split(r"[._]", module)}
    return (fields | texts | words) & KINDS.keys()


def test_ports_of_services_say_what_servers_of_mcp_speak() -> None:
    assert tuple(PROTOCOLS) == KINDS["mcp"].app_protocols


# --- what a row says of models


def at(model: type[BaseModel], path: str) -> type[BaseModel]:
    for name in path.replace("[]", "").split("."):
        field = next(each for attribute, each in model.model_fields.items() if name in (attribute, each.alias))
        found = model_in(field.annotation)
        assert found is not None, path
        model = found
    return model


@pytest.mark.parametrize("row", [row for row in KINDS.values() if row.parts is not None], ids=lambda row: row.name)
def test_a_row_says_where_its_parts_are_and_what_policies_they_take(row: BackendKind) -> None:
    assert row.parts is not None
    model = at(GatewayBackendSpec, row.name)
    assert row.parts.path in {field.alias or name for name, field in model.model_fields.items()}
    assert at(at(model, row.parts.holder), "policies").__name__ == row.parts.policies


def below(annotation: Any, seen: set[Any]) -> Iterator[Any]:
    """All models that a type has in it."""
    for each in get_args(annotation):
        yield from below(each, seen)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
        seen.add(annotation)
        yield annotation
        for field in annotation.model_fields.values():
            yield from below(field.annotation, seen)


NAMES: Final[Mapping[type[BaseModel], Collection[str]]] = {
    references.LocalServiceReference: ["Service"],
    references.LocalBackendObjectReference: ["Service", "InferencePool"],
    references.LocalSecretObjectRef: ["Secret"],
    references.ConfigMapReference: ["ConfigMap"],
    LabelSelector: ["Service"],
    # A GatewayBackend cannot name another one, nor a Service that its policies call: a GatewayPolicy does.
    references.PolicyBackendReference: [],
}


@pytest.mark.parametrize("row", KINDS.values(), ids=KINDS)
def test_a_row_says_what_its_models_may_name(row: BackendKind) -> None:
    seen: set[Any] = set()
    models = [*below(at(GatewayBackendSpec, row.name), seen), *below(BackendFull, seen)]
    refer = [each for each in models if each is LabelSelector or each.__name__.endswith(("Reference", "Ref"))]
    assert [each for each in refer if each not in NAMES] == []
    assert {name for each in refer for name in NAMES[each]} == row.refers_to


@pytest.mark.parametrize("row", [row for row in KINDS.values() if row.policy], ids=lambda row: row.name)
def test_security_is_settings_of_the_policy_of_the_kind(row: BackendKind) -> None:
    assert row.security and set(row.security) <= at(BackendFull, row.policy).model_fields.keys()
