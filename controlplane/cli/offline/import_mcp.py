"""`gatewright import mcp.json`: the file of a desktop MCP client as a file of a proxy alone."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Final

import yaml

from controlplane.cli import exits
from controlplane.cli.offline import import_files
from gatewright.api.standalone.imported.mcp_clients import PORT, Imported, NotAClientsFile, imported

LITELLM: Final = "litellm"


def run(arguments: argparse.Namespace) -> int:
    """Raises Failure when there is nothing to read, nothing to carry, or a file in the way."""
    *kind, file = arguments.file
    if kind == [LITELLM]:
        from controlplane.cli.offline import import_litellm

        return import_litellm.run(arguments, Path(file))
    if kind:
        raise exits.Failure(exits.USAGE, f"{' '.join(kind)}: one file, or {LITELLM} and one file")
    text, file = import_files.read(Path(file)), Path(file)
    try:
        found = imported(text, arguments.port or PORT)
    except NotAClientsFile as error:
        raise exits.Failure(exits.CONFIG, f"{file}: {error}") from error
    if found.document:
        import_files.write(arguments.output, _text(found, file))
    print(_report(found, arguments.output), file=sys.stderr)
    return exits.CONFIG if found.left_out or not found.document else exits.OK


def _text(found: Imported, source: Path) -> str:
    """The file, with what its reader has to know before."""
    lines = [
        f"# Made of {source.name} by `gatewright import`. It serves this machine alone.",
        "# gatewright-proxy -f THIS-FILE",
    ]
    if found.variables:
        lines.append(f"# It reads these variables: {', '.join(found.variables)}")
    return "\n".join((*lines, yaml.safe_dump(found.document, sort_keys=False)))


def _report(found: Imported, output: Path | None) -> str:
    lines = [f"carried: {name} (target {target})" for name, target in found.carried.items()]
    lines += [f"left out: {name}: {reason}" for name, reason in found.left_out.items()]
    lines += [f"disabled: {name}" for name in found.disabled]
    lines += [
        f"not found here: {command} (target {target})"
        for target, command in found.commands.items()
        if shutil.which(command) is None
    ]
    if found.variables:
        lines.append(f"set for the proxy, where they are not yet: {', '.join(found.variables)}")
    if found.document and output is not None:
        lines.append(f"run it: gatewright-proxy -f {output}")
    return "\n".join(lines) or "it names no servers"
