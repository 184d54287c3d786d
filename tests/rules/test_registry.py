"""Every policy that the wire can carry has a filter in the registry, a page for users, and a test of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dataplane.chain.filter import FRONTEND, OF_KIND, SETTING, STEP
from dataplane.filters.registry import ROWS
from gatewright.attach.policies import BACKEND, BY_NAME
from gatewright.wire.v1 import policy_pb2

POLICIES = [field.name for field in policy_pb2.Policy.DESCRIPTOR.oneofs_by_name["field"].fields]


def test_wire_has_policies() -> None:
    assert "header_modifiers" in POLICIES


def test_registry_has_a_row_for_each_policy_with_a_reason_for_its_place() -> None:
    assert sorted(row.name for row in ROWS) == sorted(POLICIES)
    assert all(row.reason for row in ROWS)


FOLDERS = {STEP: "steps", SETTING: "settings", OF_KIND: "settings", FRONTEND: "frontend"}


def test_filters_are_in_the_folder_of_their_kind(root: Path) -> None:
    """A folder of each kind of row, and in it a module or package by the name of each policy. A step of backends is
    built where the same step of requests is, where there is one."""
    wrong = [
        row.name
        for row in ROWS
        if not row.build.__module__.startswith("dataplane.filters." + ".".join(_place(row.kind, row.name)))
    ]
    assert wrong == []
    places = [path for folder in FOLDERS.values() for path in (root / "dataplane/filters" / folder).glob("[a-z]*")]
    assert {(path.parent.name, path.stem) for path in places} == {_place(row.kind, row.name) for row in ROWS}


def _place(kind: str, name: str) -> tuple[str, str]:
    policy = BY_NAME[name]
    if not policy.is_step:
        return FOLDERS[kind], name
    return FOLDERS[STEP], policy.attribute if policy.part == BACKEND else name


def test_a_filter_has_the_name_of_its_policy() -> None:
    """Where its module says one. Frontend policies and settings make no filter."""
    found = {row.name: getattr(sys.modules[row.build.__module__], "NAME", row.name) for row in ROWS if row.kind == STEP}
    wrong = [f"{policy} has NAME = {name!r}" for policy, name in found.items() if name != policy]
    assert not wrong, "; ".join(wrong)


@pytest.mark.parametrize("policy", POLICIES)
def test_policy_has_a_page(root: Path, policy: str) -> None:
    page = root / f"docs/policies/{policy}.md"
    assert page.is_file(), f"{page} is missing"
    assert page.read_text().startswith("# ")


@pytest.mark.parametrize("policy", POLICIES)
def test_policy_has_a_test(root: Path, policy: str) -> None:
    file = root / f"tests/policies/test_{policy}.py"
    assert file.is_file() and "def test_" in file.read_text(), f"{file} is missing"


def test_every_page_is_of_a_policy(root: Path) -> None:
    assert {path.stem for path in (root / "docs/policies").glob("*.md")} <= set(POLICIES)
