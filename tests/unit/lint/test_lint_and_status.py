"""Lint and status are one program: whatever status would show as not well of a folder, lint has a problem for."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.cli.asking import verdicts
from controlplane.lint.lint import lint_paths
from tests.harness import yamls
from tests.unit.translate.golden import FOLDER, World, read

CASES = sorted(FOLDER.glob("*.in.yaml"))
OF_CLUSTERS = frozenset({"Programmed", "SupportedVersion"})
"""Conditions that only a cluster knows."""


def bad(path: Path) -> dict[str, list[str]]:
    """Object -> conditions that are not well, without what only a cluster knows."""
    case, world = read(path), World()
    world.apply(case.objects)
    found: dict[str, list[str]] = {}
    generations = {(kind, *key): model.metadata.generation for kind, key, model in case.objects if model is not None}
    for (kind, namespace, name), body in world.program.statuses().items():
        row = {"kind": kind, "generation": generations[kind, namespace, name], "status": body}
        for each in verdicts.conditions(row):
            if not each.is_well and each.reason != "Pending" and each.type not in OF_CLUSTERS:
                found.setdefault(f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}", []).append(str(each))
    return found


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.removesuffix(".in.yaml"))
def test_what_status_shows_lint_tells(path: Path, tmp_path: Path) -> None:
    objects = [each for each in yamls.load_all(path.read_text()) if each and each["kind"] != "Fleet"]
    (tmp_path / "folder.yaml").write_text(yamls.dump_all(objects))
    report = lint_paths([tmp_path])
    told = {problem.object for problem in report.problems if problem.severity != "info"}
    assert {name: texts for name, texts in bad(path).items() if name not in told} == {}
    assert all(problem.line for problem in report.problems), "every problem has a place"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.removesuffix(".in.yaml"))
def test_what_lint_calls_a_bad_condition_status_shows(path: Path, tmp_path: Path) -> None:
    objects = [each for each in yamls.load_all(path.read_text()) if each and each["kind"] != "Fleet"]
    (tmp_path / "folder.yaml").write_text(yamls.dump_all(objects))
    told = {problem.object for problem in lint_paths([tmp_path]).problems if problem.code == "bad-condition"}
    assert told - bad(path).keys() == set()
