"""Two other implementations of HTTP/2, `h2` and `jh2`, by name: parts of the same names that mean the same."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Final


def library(name: str) -> SimpleNamespace:
    """The modules of one of them."""

    def part(of: str) -> ModuleType:
        return import_module(f"{name}.{of}")

    return SimpleNamespace(
        **{of: part(of) for of in ("connection", "config", "events", "exceptions", "errors", "settings")}
    )


LIBRARIES: Final = {name: library(name) for name in ("h2", "jh2")}
