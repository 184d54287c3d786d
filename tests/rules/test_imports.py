"""The import contracts hold, and each of them can break."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("gatewright", "controlplane", "dataplane")

FORBIDDEN = {
    "planes": ("controlplane/cli/__init__.py", "import dataplane.agent"),
    "shared": ("gatewright/cel/__init__.py", "import dataplane.link"),
    "gatewright": ("gatewright/attach/__init__.py", "import gatewright.api"),
    "api": ("gatewright/api/checks/__init__.py", "import gatewright.api.objects.kinds"),
    "worker": ("dataplane/table/__init__.py", "import dataplane.filters"),
    "agent": ("dataplane/link/__init__.py", "import dataplane.agent"),
    "stdio": ("dataplane/mcp/__init__.py", "import dataplane.stdio"),
    "stdio-apart": ("dataplane/stdio/__init__.py", "import dataplane.table"),
    "agent-and-worker": ("dataplane/agent/__init__.py", "import dataplane.table"),
    "worker-and-agent": ("dataplane/server/__init__.py", "import dataplane.agent"),
    "light-worker": ("dataplane/telemetry/__init__.py", "import pydantic"),
    "light-agent": ("dataplane/agent/__init__.py", "import gatewright.api.standalone.standalone"),
    "controller": ("controlplane/derive/__init__.py", "import controlplane.translate"),
    "translate": ("controlplane/translate/gateway/__init__.py", "import controlplane.translate.policy.policies"),
    "commands": ("controlplane/cli/serving/__init__.py", "import controlplane.cli.offline.lint"),
    "kube": ("controlplane/kube/reading/__init__.py", "import controlplane.kube.writing.statuses"),
    "xds": ("controlplane/xds/protocol/__init__.py", "import controlplane.xds.session"),
    "thinking": ("controlplane/snapshot/__init__.py", "import asyncio"),
    "h1": ("dataplane/proxy/__init__.py", "import dataplane.http.h1.chunked"),
    "h2": ("dataplane/server/h1/__init__.py", "import dataplane.http.h2.connection"),
    "backends": ("dataplane/backends/__init__.py", "import dataplane.upstream.h1"),
    "filters": ("dataplane/filters/steps/one.py", "import dataplane.filters.settings.other"),
}
"""One import for each contract that breaks it: the file that gets the line, the line."""


def verdicts(folder: Path) -> dict[str, str]:
    """KEPT or BROKEN by contract name, as lint-imports says of the packages in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    run = subprocess.run(
        [*command, "--no-cache", "--no-logo"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    found = dict(re.findall(r"^(\S.*) (KEPT|BROKEN)(?: \(.*\))?$", run.stdout, re.MULTILINE))
    assert len(found) == len(contracts(folder)), run.stdout + run.stderr
    return found


def contracts(folder: Path) -> dict[str, str]:
    """Name by identifier of each contract."""
    parser = configparser.ConfigParser()
    parser.read(folder / ".importlinter")
    sections = [section for section in parser.sections() if section.startswith("importlinter:contract:")]
    return {section.rsplit(":", 1)[1]: parser[section]["name"] for section in sections}


def test_contracts_hold(root: Path) -> None:
    broken = [name for name, verdict in verdicts(root).items() if verdict != "KEPT"]
    assert not broken, f"{broken}: run lint-imports"


def test_each_contract_can_break(root: Path, tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(root / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / ".importlinter", tmp_path)
    (tmp_path / "dataplane/filters/settings/other.py").touch()
    for file, line in FORBIDDEN.values():
        with (tmp_path / file).open("a") as module:
            module.write(f"\n{line}\n")
    names = contracts(tmp_path)
    assert set(FORBIDDEN) == set(names)
    found = verdicts(tmp_path)
    assert [identifier for identifier, name in names.items() if found[name] != "BROKEN"] == []
