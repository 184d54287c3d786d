"""`gatewright crds`: definitions of our kinds, and what a cluster needs beside them, as text for `kubectl apply`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from controlplane import settings
from controlplane.cli import exits


def run(arguments: argparse.Namespace) -> int:
    """Raises Failure when the installation lacks them."""
    folders = [_folder(part) for part in arguments.parts or ("crds",)]
    texts = [file.read_text().strip("\n") for folder in folders for file in _files(folder)]
    sys.stdout.write("\n---\n".join(texts) + "\n")
    return exits.OK


def _folder(part: str) -> Path:
    package = Path(settings.__file__).parent
    for root in (package, package.parent):  # in the wheel below this package, in a source tree beside it
        if (root / "manifests" / part).is_dir():
            return root / "manifests" / part
    raise exits.Failure(exits.DEPENDENCY, f"manifests/{part} is not part of this installation")


def _files(folder: Path) -> Iterator[Path]:
    """The namespace first: others are in it."""
    yield from sorted(folder.glob("*.yaml"), key=lambda file: (file.name != "namespace.yaml", file.name))
