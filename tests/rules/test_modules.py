"""Every module says what it is; what runs in a worker process is light."""

from __future__ import annotations

import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gatewright", "controlplane", "dataplane")
HEAVY = (
    "pydantic",
    "yaml",
    "grpc",
    "prometheus_client",
    "inotify_simple",
    "aiohttp",
    "gatewright.api",
    "controlplane",
)


def modules() -> list[Path]:
    """Our own modules with something in them; generated ones aside."""
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sorted(path for path in paths if "wire" not in path.parts and path.stat().st_size)


BEFORE = frozenset((tokenize.ENCODING, tokenize.COMMENT, tokenize.NL))


def opens_with_text(path: Path) -> bool:
    """Whether the first statement is a text. Files are not parsed to their ends: there are hundreds."""
    with path.open("rb") as file:
        first = next(each for each in tokenize.tokenize(file.readline) if each.type not in BEFORE)
    return first.type == tokenize.STRING and bool(first.string.strip("rR\"' \n"))


def test_every_module_opens_with_what_it_is() -> None:
    assert [str(path) for path in modules() if not opens_with_text(path)] == []


def test_a_fork_server_is_begun_before_anything_is_loaded_that_takes_long() -> None:
    """What stands before it is waited for by everybody: `socket`, `subprocess` and `typing` take as long as Python."""
    late = ("socket", "subprocess", "typing", "collections", "enum", "re", "asyncio", "dataplane.agent.entry")
    code = f"import sys, dataplane.__main__; print(*(name for name in {late!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = [{str(ROOT)!r}]; {code}"],
        capture_output=True, text=True, check=True)  # fmt: skip
    assert run.stdout.split() == []


@pytest.mark.parametrize("module", ["dataplane.worker"])
def test_worker_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
