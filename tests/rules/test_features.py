"""What a GatewayClass says it supports is what tests show, and every name of Gateway API is decided about."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from controlplane.translate.status.features import FEATURES, supported_features
from tests.outside.gateway_api.modules import EXAMPLES, archive
from tests.rules.features import LEFT_OUT, SHOWN

NAMES = re.compile(r'^\s*Support\w+\s+(?:FeatureName\s+)?=\s*"(\w+)"', re.MULTILINE)


def test_the_names_that_are_claimed_are_those_that_tests_show() -> None:
    assert set(FEATURES) == set(SHOWN)
    assert [each["name"] for each in supported_features()] == sorted(SHOWN)


def test_no_name_is_claimed_and_left_out() -> None:
    assert set(SHOWN) & set(LEFT_OUT) == set()


def test_every_name_of_gateway_api_is_decided_about() -> None:
    with zipfile.ZipFile(archive(EXAMPLES)) as module:
        files = [name for name in module.namelist() if name.startswith(f"{EXAMPLES}/pkg/features/")]
        known = {found for name in files for found in NAMES.findall(module.read(name).decode())}
    assert len(known) > 60
    assert set(SHOWN) | set(LEFT_OUT) == known


@pytest.mark.parametrize("test", sorted({test for tests in SHOWN.values() for test in tests}))
def test_a_test_that_shows_a_feature_is_there_and_runs(test: str, root: Path) -> None:
    """In every run: not marked as slow or as one to skip. In the memory lane or, where clients speak TLS, with
    processes."""
    path, _, name = test.partition("::")
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [each for each in ast.parse((root / path).read_text()).body if isinstance(each, kinds)]
    (found,) = (each for each in functions if each.name == name)
    marks = {ast.unparse(each).partition("(")[0] for each in found.decorator_list}
    assert marks <= {"pytest.mark.parametrize"}
    assert any(isinstance(each, ast.Assert) or _is_wait(each) for each in ast.walk(found)), "it claims nothing"


def _is_wait(node: ast.AST) -> bool:
    """For a condition in a replay of a conformance test, which fails when it does not come."""
    return isinstance(node, ast.Await) and "replay" in ast.unparse(node)


def test_pytest_finds_them_all(root: Path) -> None:
    tests = sorted({test for tests in SHOWN.values() for test in tests})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, "-m", "not slow", *tests], cwd=root, capture_output=True, text=True, check=False)
    collected = {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    assert collected == set(tests), done.stdout[-2000:]
