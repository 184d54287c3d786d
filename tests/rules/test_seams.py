"""What stands apart in the data plane stays apart: names of kinds of backends, protocols that few files know, imports
in circles. Read from the syntax trees; prose (comments, docstrings, texts with spaces) may name what it likes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from dataplane.backends.registry import KINDS

PACKAGE: Final = "dataplane"
PACKAGES: Final = (PACKAGE, "controlplane", "gatewright")
"""Those whose imports are followed."""

REGISTRIES: Final = {
    "dataplane/*/registry.py": "rows: that is where names are written",
    "dataplane/chain/replies.py": "reason codes of all kinds, in one table",
}


class Home(NamedTuple):
    """Of a protocol. `packages`: where it lives; `most`: files outside of them that name it: only ever less."""

    pattern: re.Pattern[str]
    packages: tuple[str, ...]
    most: int


HOMES: Final = {
    "mcp": Home(
        re.compile("mcp", re.IGNORECASE),
        (
            "dataplane/mcp/*",
            "dataplane/backends/mcp/*",
            "dataplane/stdio/*",
            "dataplane/filters/settings/backend_mcp.py",
            "dataplane/credentials/mcp_*.py",
            "dataplane/telemetry/*_rows/mcp.py",
        ),
        8,
    ),
    "llm": Home(
        re.compile("(?<![A-Za-z])llm|backend_ai", re.IGNORECASE),
        (
            "dataplane/llm/*",
            "dataplane/backends/llm/*",
            "dataplane/table/prices.py",
            "dataplane/filters/settings/backend_ai.py",
            "dataplane/telemetry/*_rows/llm.py",
        ),
        7,
    ),
    "dynamic": Home(
        re.compile("dynamic_forward|backends.dynamic", re.IGNORECASE),
        ("dataplane/backends/dynamic/*", "dataplane/telemetry/*_rows/dynamic.py"),
        3,
    ),
    "a2a": Home(
        re.compile("a2a", re.IGNORECASE),
        (
            "dataplane/a2a/*",
            "dataplane/proxy/layers/a2a.py",
            "dataplane/telemetry/*_rows/a2a.py",
            "dataplane/variables/agent.py",
        ),
        7,
    ),
    "grpc": Home(
        re.compile("grpc", re.IGNORECASE),
        (
            "dataplane/agent/*",
            "dataplane/chain/ext_proc/*",
            "dataplane/chain/grpc*",
            "dataplane/export/*",
            "dataplane/filters/steps/ext_auth/grpc*",
            "dataplane/filters/steps/ext_proc/*",
            "dataplane/filters/steps/rate_limit/*",
            "dataplane/http/grpc*.py",
            "dataplane/proxy/*grpc_calls.py",
            "dataplane/proxy/layers/grpc_web.py",
        ),
        48,
    ),
}
"""Of gRPC the agent's files are those of its client, which is a library."""

OTHER_MEANINGS: Final = {
    ("dataplane/chain/expressions.py", "a2a"): "root of variables",
    ("dataplane/filters/settings/backend_auth/clouds.py", "aws"): "credentials of AWS",
    ("dataplane/filters/settings/backend_auth/policy.py", "aws"): "field of the wire's BackendAuth",
    ("dataplane/filters/steps/jwt_authentication.py", "mcp"): "field of the wire's JwtAuthentication",
    ("dataplane/variables/agent.py", "a2a"): "root of variables",
}
"""Texts outside registries that look like the name of a kind, and what they are."""


@cache
def trees() -> dict[str, ast.Module]:
    """Of the data plane, by path below the repository."""
    root = Path(__file__).resolve().parents[2]
    paths = sorted((root / PACKAGE).rglob("*.py"))
    return {str(path.relative_to(root)): ast.parse(path.read_text()) for path in paths}


def is_in(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


@cache
def texts(path: str) -> frozenset[str]:
    """Constants that are no prose."""
    nodes = list(ast.walk(trees()[path]))
    prose = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}
    values = [each.value for each in nodes if isinstance(each, ast.Constant) and id(each) not in prose]
    found = [each.decode("latin-1") if isinstance(each, bytes) else each for each in values]
    return frozenset(each for each in found if isinstance(each, str) and " " not in each)


def names(path: str) -> set[str]:
    """What code names, texts that are no prose among it."""
    return {*texts(path), *(name for each in ast.walk(trees()[path]) for name in _named(each))}


def _named(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.ImportFrom(module=module, names=imported):
            return (module or "", *(alias.name for alias in imported))
        case ast.Import(names=imported):
            return [alias.name for alias in imported]
    return ()


def test_no_code_outside_registries_has_the_name_of_a_kind_of_backends_or_of_its_policy() -> None:
    kinds = {*KINDS, *(kind.policy for kind in KINDS.values() if kind.policy)}
    homes = [pattern for home in HOMES.values() for pattern in home.packages]
    found = {
        (path, text)
        for path in trees()
        if not is_in(path, REGISTRIES) and not is_in(path, homes)
        for text in texts(path) & kinds
    }
    assert found == {key for key in OTHER_MEANINGS if not is_in(key[0], homes)}


@pytest.mark.parametrize("protocol", HOMES)
def test_few_files_outside_of_its_packages_name_a_protocol(protocol: str) -> None:
    home = HOMES[protocol]
    found = [path for path in trees() if not is_in(path, home.packages) and any(map(home.pattern.search, names(path)))]
    assert len(found) <= home.most, found


# --- circles of imports


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


_OURS: Final = rf"(?:{'|'.join(PACKAGES)})\b"
STATEMENT: Final = re.compile(
    rf"^[ \t]*(from {_OURS}[\w.]* import (?:\([^)]*\)|[^\n]*)|import {_OURS}[^\n]*)", re.MULTILINE
)
"""An import of ours: to parse two thousand files for them takes half a minute."""


@cache
def imports() -> dict[str, set[str]]:
    """Modules of ours that each one imports, wherever in it: in functions and for types alone as well."""
    root = Path(__file__).resolve().parents[2]
    paths = [path for package in PACKAGES for path in (root / package).rglob("*.py")]
    modules = {module_of(str(path.relative_to(root))): path for path in paths}
    statements = {module: ast.parse("\n".join(STATEMENT.findall(path.read_text()))) for module, path in modules.items()}
    return {module: set(_imported(tree, statements)) - {module} for module, tree in statements.items()}


def _imported(tree: ast.AST, modules: dict[str, ast.Module]) -> Iterator[str]:
    for each in ast.walk(tree):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names if alias.name in modules)
        elif isinstance(each, ast.ImportFrom) and each.module:
            for alias in each.names:
                whole = f"{each.module}.{alias.name}"
                if whole in modules:
                    yield whole
                elif each.module in modules:
                    yield each.module


def circles(edges: Mapping[str, set[str]]) -> list[set[str]]:
    """Modules that reach each other."""
    edges = _trimmed(edges)
    reached = {module: _reached(edges, module) for module in edges}
    found: dict[str, set[str]] = {}
    for module in edges:
        circle = {other for other in reached[module] if module in reached[other]}
        if circle:
            found.setdefault(min(circle), circle)
    return list(found.values())


def _trimmed(edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Without modules that import none, or that none imports, as long as there are such: they are in no circle."""
    left = dict(edges)
    while True:
        imported = set().union(*left.values())
        fewer = {module: others & left.keys() for module, others in left.items() if others and module in imported}
        if fewer == left:
            return left
        left = fewer


def _reached(edges: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting.extend(edges[module])
    return seen


def test_imports_never_go_round() -> None:
    """Neither do those that are for types alone."""
    assert [sorted(circle) for circle in circles(imports())] == []
