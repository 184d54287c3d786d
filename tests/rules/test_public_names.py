"""Tests use what packages offer: no private name of a module, and of a package that lists its names (`__all__`) those
that are on the list. What has to look behind the list has a row here, with its reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

PRODUCT: Final = ("gatewright", "controlplane", "dataplane")

PLANTING: Final = "tests/fuzz/test_fuzz_planted.py"
"""Plants faults in the product, where they would be: it names what it breaks."""

METHODS: Final = "names of methods, as a peer without the package writes them out"
BOUNDS: Final = "a bound of the module, which what is asked here must reach or be true to"

UNLISTED: Final[Mapping[str, str]] = {
    "tests/cluster/test_secrets_of_others.py": METHODS,
    "tests/fuzz/target_controller.py": "speaks both sides of the stream, part by part, against what it remembers",
    "tests/histories/test_histories_notice.py": "plants faults in the parts, which histories have to notice",
    "tests/loopback/test_controllers_among_themselves.py": "asks controllers as one of them would, name by name",
    "tests/loopback/test_grpcurl.py": METHODS,
    "tests/loopback/test_xds_server.py": "holds up one session of the server",
    "tests/loopback/test_xds_storms.py": BOUNDS,
    "tests/policies/test_ext_auth.py": "counts what is kept of verdicts",
    "tests/rules/test_reprs.py": "makes values whose text must have no secret",
    "tests/unit/app/test_documented_times.py": BOUNDS,
    "tests/unit/backends/test_terminator.py": BOUNDS,
    "tests/unit/chain/test_call_values.py": "makes values whose text must have no secret",
    "tests/unit/files/test_regular_files.py": "all that read files, wherever they are",
    "tests/unit/kube/test_cluster_side.py": "stands between the cluster and what is derived of it",
    "tests/unit/kube/test_one_copy.py": "looks for second copies of objects, in what is kept as well",
    "tests/unit/xds/test_claim.py": BOUNDS,
    "tests/unit/xds/test_delta_stream.py": BOUNDS,
}
"""Tests that import of a package with a list what is not on it."""


class Use(NamedTuple):
    """A name of the product, in a test."""

    test: str
    module: str
    name: str


@cache
def texts(folder: Path) -> Mapping[Path, str]:
    return {path: path.read_text() for path in sorted(folder.rglob("*.py")) if "_pb2" not in path.name}


IMPORT: Final = re.compile(rf"^[ \t]*from (?:{'|'.join(PRODUCT)})\b[\w.]* import (?:\([^)]*\)|[^\n]*)", re.MULTILINE)
LOOK: Final = re.compile(r"\b[a-z]\w*\._[a-z]", re.IGNORECASE)
"""Texts that may have what is looked for: to parse two thousand files takes a minute."""


def imports(text: str) -> Iterator[tuple[str, str, str]]:
    """Module, name of it, and what it is called here."""
    for found in IMPORT.finditer(text):
        (node,) = ast.parse(found[0].strip()).body
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.module, alias.name, alias.asname or alias.name


def uses(tests: Path) -> Iterator[Use]:
    for path, text in texts(tests).items():
        for module, name, _ in imports(text):
            yield Use(path.relative_to(tests.parent).as_posix(), module, name)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def looked_at(root: Path, tests: Path) -> Iterator[Use]:
    """Private names that a test reads of a module."""
    for path, text in texts(tests).items():
        if not LOOK.search(text):
            continue
        test = path.relative_to(tests.parent).as_posix()
        known = {called: f"{module}.{name}" for module, name, called in imports(text) if not name[0].isupper()}
        modules = {called: full for called, full in known.items() if is_module(root, full)}
        for node in ast.walk(ast.parse(text)) if modules else ():
            match node:
                case ast.Attribute(value=ast.Name(id=called), attr=name) if is_private(name) and called in modules:
                    yield Use(test, modules[called], name)


def is_module(root: Path, name: str) -> bool:
    path = root.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def lists(root: Path) -> dict[str, frozenset[str]]:
    """Packages with their `__all__`."""
    found = {}
    for package in PRODUCT:
        for path, text in texts(root / package).items():
            for node in ast.parse(text).body if path.name == "__init__.py" else ():
                match node:
                    case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names)):
                        listed = frozenset(each.value for each in names if isinstance(each, ast.Constant))
                        found[".".join(path.parent.relative_to(root).parts)] = listed
    return found


def seams(root: Path, packages: Mapping[str, frozenset[str]]) -> set[str]:
    """Modules of packages with lists that other packages of the product import all the same: they are offered, too."""
    found = set()
    for package in PRODUCT:
        for path, text in texts(root / package).items():
            here = ".".join(path.relative_to(root).with_suffix("").parts)
            for module, name, _ in imports(text):
                inside = [each for each in packages if within(each, module)]
                if inside and not any(within(each, here) for each in inside):
                    found |= {module, f"{module}.{name}"}
    return found - packages.keys()


def within(package: str, module: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def not_offered(root: Path, tests: Path) -> Iterator[Use]:
    packages = lists(root)
    offered = seams(root, packages)
    for use in uses(tests):
        inside = [each for each in packages if within(each, use.module)]
        if not inside or use.module in offered or f"{use.module}.{use.name}" in offered:
            continue
        package = max(inside, key=len)
        is_listed = use.module == package and use.name in packages[package]
        is_own = any(use.test.startswith(f"tests/unit/{part}/") for part in package.split("."))
        if not (is_listed or is_own):
            yield use


def test_no_test_imports_a_private_name(root: Path) -> None:
    assert [use for use in uses(root / "tests") if is_private(use.name)] == []


def test_no_test_looks_at_a_private_name_of_a_module(root: Path) -> None:
    assert [use for use in looked_at(root, root / "tests") if use.test != PLANTING] == [], "ask what is public"


def test_of_packages_that_list_their_names_tests_import_those(root: Path) -> None:
    """Outside of the package's own tests."""
    found = [use for use in not_offered(root, root / "tests") if use.test != PLANTING]
    assert [use for use in found if use.test not in UNLISTED] == [], "import what the package lists, or say why not"
    assert UNLISTED.keys() - {use.test for use in found} == set(), "it imports nothing unlisted any more"
