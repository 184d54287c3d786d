"""Lint over files and directories: what is read, what is counted, how it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatewright.api.lint import Document, lint, lint_paths

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n"
POLICY = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
  traffic: {cors: {}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b.yaml").write_text(SERVICE.replace("80", "0"))
    (tmp_path / "a.yml").write_text(f"{SERVICE.replace('name: a', 'name: b')}---\napiVersion: apps/v1\nkind: Pod\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c.json").write_text('{"binds": [{"port": 1}]}')
    (tmp_path / "deep" / "p.yaml").write_text(POLICY)
    (tmp_path / "notes.txt").write_text("a: [")
    (tmp_path / ".hidden.yaml").write_text("a: [")
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "x.yaml").write_text("a: [")
    return tmp_path


def test_a_folder_of_both_kinds_of_files(folder: Path) -> None:
    report = lint_paths([folder])
    assert [line.replace(f"{folder}/", "") for line in report.text().splitlines()] == [
        "a.yml:6: info: apps/v1 Pod is not ours: skipped",
        "b.yaml:4: Service default/a: spec.ports[0].port: must be between 1 and 65535, got 0",
        "deep/c.json:1: binds[0].listeners: is required",
        "deep/p.yaml:6: GatewayPolicy default/p: spec.traffic: not supported yet: remove traffic to have the rest"
        " accepted",
        "5 objects in 4 files, 3 errors, 1 not supported yet",
    ]
    assert len(report.errors) == 3


def test_json_has_the_same(folder: Path) -> None:
    report = lint_paths([str(folder / "b.yaml"), folder / "deep"])
    content = json.loads(report.json())
    assert {name: content[name] for name in ("files", "objects", "errors", "warnings", "unsupported")} == {
        "files": 3,
        "objects": 3,
        "errors": 3,
        "warnings": 0,
        "unsupported": 1,
    }
    assert content["problems"][0] == {
        "file": str(folder / "b.yaml"),
        "line": 4,
        "column": 17,
        "object": "Service default/a",
        "path": "spec.ports[0].port",
        "message": "must be between 1 and 65535, got 0",
        "severity": "error",
        "unsupported": False,
    }


def test_good_files_give_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SERVICE)
    report = lint_paths([tmp_path])
    assert (report.errors, report.text()) == ((), "1 object in 1 file, 0 errors")


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe4")
    report = lint_paths([tmp_path / "nowhere", tmp_path / "latin.yaml"])
    assert [problem.message for problem in report.errors] == ["does not exist", "cannot be read: is not UTF-8 text"]


def test_an_object_may_stand_in_one_place_only() -> None:
    problems = lint([Document("a.yaml", f"# first\n{SERVICE}"), Document("b.yaml", f"---\n{SERVICE}")])
    assert [str(problem) for problem in problems] == [
        "b.yaml:2: Service default/a: is defined twice; the other is at a.yaml:2"
    ]


def test_a_broken_standalone_file_is_told_as_one() -> None:
    (problem,) = lint([Document("gw.yaml", "binds:\n  - port: [\n")])
    assert (problem.file, problem.line, problem.severity) == ("gw.yaml", 3, "error")


def test_log_modules_of_the_caller() -> None:
    text = 'config: {logging: {level: "info,nobody=debug"}}'
    assert lint([Document("f", text)]) == []
    assert "unknown module" in lint([Document("f", text)], ("xds",))[0].message
