"""Lint within limits: much is read by a process of its own; what is over a limit names the file and the limit."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.lint import bounded
from controlplane.lint.bounded import NAME_OF_INPUT, Request, answer
from gatewright.api.text.problem import Problem
from tests.harness import yardstick

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {{name: s{}}}\nspec: {{ports: [{{port: {}}}]}}\n"
GATEWAY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright}
spec: {controllerName: gatewright.dev/controller}
"""
ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: r{0}}}
spec:
  parentRefs: [{{name: edge}}]
  hostnames: [h{0}.example.com]
  rules:
  - matches: [{{path: {{type: PathPrefix, value: /p{0}}}}}]
    backendRefs: [{{name: s1, port: 80}}]
"""


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", "-c", text)


def request(*paths: Path, piped: str | None = None) -> Request:
    return Request(tuple(map(str, paths)), frozenset(), piped)


@pytest.fixture
def much(tmp_path: Path) -> Request:
    (tmp_path / "a.yaml").write_text(SERVICE.format(1, 0))
    (tmp_path / "b.yaml").write_text(SERVICE.format(2, 80) + "#" * bounded.IN_PLACE)
    return request(tmp_path)


def test_little_is_linted_without_a_process(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SERVICE.format(1, 0))
    report = bounded.lint(request(tmp_path, piped=SERVICE.format(1, 0)), command=("/no/such/program",))
    assert [problem.file for problem in report.errors] == [str(tmp_path / "a.yaml"), NAME_OF_INPUT]


@pytest.mark.parametrize(
    ("of_input", "of_file", "is_little"),
    [
        (bounded.IN_PLACE, None, True),
        (bounded.IN_PLACE + 1, None, False),
        (None, bounded.IN_PLACE, True),
        (None, bounded.IN_PLACE + 1, False),
        (1000, bounded.IN_PLACE - 1000, True),
        (1000, bounded.IN_PLACE - 999, False),
    ],
)
@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
def test_how_much_is_little(
    of_input: int | None, of_file: int | None, is_little: bool, is_folder: bool, tmp_path: Path
) -> None:
    """All bytes together, of files and of input."""
    paths = [tmp_path / "absent.yaml"]
    if of_file is not None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.yaml").write_text("#" * of_file)
        paths.append(tmp_path / "in" if is_folder else tmp_path / "in" / "a.yaml")
    asked = request(*paths, piped=None if of_input is None else "#" * of_input)
    if is_little:
        assert bounded.lint(asked, command=("/no/such/program",)).objects == 0
    else:
        with pytest.raises(FileNotFoundError):
            bounded.lint(asked, command=("/no/such/program",))


@pytest.mark.process
def test_a_process_gives_the_same_report(much: Request) -> None:
    assert bounded.lint(much) == answer(much, lambda _: None)
    piped = Request((), frozenset(), SERVICE.format(1, 0) + "#" * bounded.IN_PLACE)
    assert bounded.lint(piped) == answer(piped, lambda _: None)


def test_names_come_before_what_is_read(much: Request) -> None:
    answers = io.BytesIO()
    bounded.answer_to(io.BytesIO(pickle.dumps(much)), answers)
    answers.seek(0)
    told = []
    while isinstance(name := pickle.load(answers), str):
        told.append(name.rpartition("/")[2])
    assert told == ["a.yaml", "b.yaml", "a.yaml", "b.yaml", "all objects together"]
    assert name == answer(much, lambda _: None)


NAMED = "import pickle, sys; pickle.dump('deep/a.yaml', sys.stdout.buffer); sys.stdout.flush(); "


@pytest.mark.process
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{NAMED}import time; time.sleep(3600)", "linting takes more than 0.5 s"),
        (f"{NAMED}sys.exit(71)", "linting takes more than 1500000000 bytes of memory"),
        (f"{NAMED}import os; os.abort()", "linting takes more than 1500000000 bytes of memory"),
        (f"{NAMED}sys.exit(1)", "the process that lints ended (exit code 1)"),
    ],
    ids=["time", "memory", "abort", "mistake"],
)
def test_a_limit_is_an_error_of_the_file_that_was_being_read(
    text: str, why: str, much: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadline = 0.5 if "sleep" in text else 60.0
    monkeypatch.setattr(bounded, "LAST_WORDS", 60.0)
    report = bounded.lint(much, script(text), deadline)
    message = f"{why}; it ended here: lint this by itself, or fewer files"
    assert report.problems == (Problem("deep/a.yaml", 0, "", "", message, code="unreadable"),)


@pytest.mark.process
def test_what_looks_like_a_module_in_the_current_folder_is_not_run(
    much: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "yaml.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert bounded.lint(much).objects == 2


MEASURED = """
import resource, sys
from controlplane.cli import __main__
__main__.main(["lint", sys.argv[1], "-o", "json"])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("routes", "seconds", "most"), [(10_000, 10, 300), (60_000, 90, 1500)])
def test_many_objects_are_linted_within_bounds(routes: int, seconds: int, most: int, tmp_path: Path) -> None:
    """CPU seconds and MB of the process: every object is read, or an error names the limit. On a quiet machine it is
    8 s and 50 s; one that is busy needs more of them for the same."""
    (tmp_path / "edge.yaml").write_text(f"{GATEWAY}---\n{SERVICE.format(1, 80)}")
    for first in range(0, routes, 1000):
        text = "---\n".join(ROUTE.format(number) for number in range(first, first + 1000))
        (tmp_path / f"{first}.yaml").write_text(text)
    with yardstick.Watch() as watch:
        ran = subprocess.run(
            [sys.executable, "-c", MEASURED, str(tmp_path)], capture_output=True, text=True, check=True
        )
    report, cpu, peak = json.loads(ran.stdout), *map(float, ran.stderr.split())
    if routes == 10_000 or not report["errors"]:
        assert (report["objects"], report["errors"]) == (routes + 3, 0)
    else:
        assert report["problems"][0]["message"].startswith("linting takes more than ")
    print(f"{routes} routes: {cpu:.1f} s of CPU, {peak / 1e6:.0f} MB")
    assert cpu < seconds * watch.pace()
    assert peak < most * 1_000_000
