"""`gatewright import litellm config.yaml`: the configuration of LiteLLM's proxy as a file of a proxy alone."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from controlplane.cli import exits
from controlplane.cli.offline import import_files

if TYPE_CHECKING:
    from gatewright.api.standalone.imported.litellm import Imported


def run(arguments: argparse.Namespace, file: Path) -> int:
    """Raises Failure when there is nothing to read, nothing to carry, or a file in the way."""
    from gatewright.api.standalone.imported.litellm import PORT, NotLitellms, imported

    text = import_files.read(file)
    try:
        found = imported(text, arguments.port or PORT)
    except NotLitellms as error:
        raise exits.Failure(exits.CONFIG, f"{file}: {error}") from error
    if found.document:
        import_files.write(arguments.output, _text(found, file))
    print(_report(found, arguments.output), file=sys.stderr)
    return exits.CONFIG if found.left_out or not found.document else exits.OK


def _text(found: Imported, source: Path) -> str:
    lines = [f"# Made of {source.name} by `gatewright import litellm`.", "# gatewright-proxy -f THIS-FILE"]
    if found.variables:
        lines.append(f"# It reads these variables: {', '.join(found.variables)}")
    dumper = yaml.SafeDumper
    dumper.ignore_aliases = lambda self, data: True  # type: ignore[method-assign]  # nothing in it names another part
    return "\n".join((*lines, yaml.dump(found.document, Dumper=dumper, sort_keys=False)))


def _report(found: Imported, output: Path | None) -> str:
    lines = [f"carried: {name}" for name in found.models]
    lines += [f"not carried: {path}: {why}" for path, why in found.left_out.items()]
    if found.variables:
        lines.append(f"set for the proxy, where they are not yet: {', '.join(found.variables)}")
    if found.document and output is not None:
        lines.append(f"run it: gatewright-proxy -f {output}")
    return "\n".join(lines) or "it names no models"
