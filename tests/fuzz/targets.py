"""All targets by name. Each is a module with `check(data)`, which raises when a promise does not hold, `SEEDS`, and
the size above which it looks at nothing (`LONGEST`).

Atheris calls `check` with what it invents, hypothesis with what its strategies draw, the replay with the corpus.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

PACKAGES = {
    "heads": ("dataplane",),
    "chunks": ("dataplane",),
    "responses": ("dataplane",),
    "agent": ("dataplane",),
    "controller": ("controlplane",),
    "h2_frames": ("dataplane",),
    "link": ("dataplane",),
    "uri": ("dataplane",),
    "credentials": ("dataplane",),
    "documents": ("gatewright",),
    "tunnel": ("dataplane",),
    "retries": ("dataplane",),
    "rate_limits": ("dataplane",),
    "log_lines": ("dataplane",),
    "files": ("controlplane",),
    "cel_text": ("gatewright.cel",),
    "cel_programs": ("gatewright.cel",),
}
"""Targets, with the packages whose branches guide the search."""
CORPUS = Path(__file__).parent / "corpus"


def load(name: str) -> ModuleType:
    """The module of a target."""
    return import_module(f"tests.fuzz.target_{name}")


def corpus(name: str) -> list[Path]:
    """The committed inputs of a target, sorted."""
    return sorted(path for path in (CORPUS / name).glob("*") if path.is_file())
