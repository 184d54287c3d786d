"""Gateway API's own YAML, as its Go modules carry it. None of it is in this repository: the tool `go` downloads the
modules into its cache (`scripts/tools` does so before a full run), and files are read out of the archives there."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.conftest import need_tool

VERSION = "v1.7.0"
EXAMPLES = f"sigs.k8s.io/gateway-api@{VERSION}"
CONFORMANCE = f"sigs.k8s.io/gateway-api/conformance@{VERSION}"

FOLDERS = {
    EXAMPLES: ("examples/", "hack/invalid-examples/"),
    CONFORMANCE: ("base/", "tests/"),
}
"""Module to the folders whose YAML somebody may bring; the rest of the modules is CRDs and reports."""


def files(module: str) -> Iterator[tuple[str, str]]:
    """Path below the module and text of each YAML file of `FOLDERS`, in the order of their paths."""
    with zipfile.ZipFile(archive(module)) as content:
        for name in sorted(content.namelist()):
            path = name.removeprefix(f"{module}/")
            if path.startswith(FOLDERS[module]) and path.endswith((".yaml", ".yml")):
                yield path, content.read(name).decode()


def definitions() -> Iterator[dict[str, Any]]:
    """The CRDs of the standard channel."""
    with zipfile.ZipFile(archive(EXAMPLES)) as content:
        for name in sorted(content.namelist()):
            if name.startswith(f"{EXAMPLES}/config/crd/standard/") and name.endswith(".yaml"):
                for document in yaml.load_all(content.read(name), yaml.CSafeLoader):
                    if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                        yield document


def archive(module: str) -> str:
    """The archive in the module cache. A Go older than the module asks for says so and downloads it all the same."""
    command = [need_tool("go"), "mod", "download", "-json", module]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    found: str | None = json.loads(done.stdout).get("Zip") if done.stdout else None
    if found is None:
        pytest.skip("needs the Go module proxy")
    return found
