"""What a proxy does before it serves is loading, and each module of it delays the first answer of a Gateway.

What is loaded may become more for a reason: then its number is raised here, by whoever has the reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from typing import Any, Final

import pytest

from dataplane.filters.registry import ROWS
from tests.conftest import ROOT

WORKER: Final = """
import gc, json, socket, sys
from dataplane import worker_entry
looks = []
gc.callbacks.append(lambda phase, info: looks.append(info["generation"]))
agent, server = socket.socketpair()
agent.close()  # who loads has nobody to fork for, and ends
sys.argv[1:] = ["--forks-fd", str(server.detach())]
worker_entry.main()
found = {"looks": [*looks], "enabled": gc.isenabled(), "frozen": gc.get_freeze_count()}
"""
AGENT: Final = """
import json, sys
import dataplane.__main__
from dataplane.agent import agent, entry, xds_client
from dataplane.bootstrap import parse
parse.parse(["--xds", "unix:/none", "--gateway", "a/b"], {})
found = {}
"""
ENDING: Final = """
found["modules"] = sorted(sys.modules)
print(json.dumps(found))
"""


@cache
def loaded(script: str) -> dict[str, Any]:
    """By a process of its own."""
    command = [sys.executable, "-P", "-c", script + ENDING]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, timeout=120)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def own(modules: list[str]) -> list[str]:
    return [each for each in modules if each.partition(".")[0] in ("dataplane", "gatewright")]


def packages(modules: list[str]) -> set[str]:
    """Those of others, beside what every interpreter of an environment loads."""
    bare = json.loads(
        subprocess.run(
            [sys.executable, "-P", "-c", "import json, sys; print(json.dumps([*sys.modules]))"],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout
    )
    tops = {each.partition(".")[0] for each in modules} - {each.partition(".")[0] for each in bare}
    return {each for each in tops - sys.stdlib_module_names - {"dataplane", "gatewright"} if "cython" not in each}


def test_a_worker_loads_what_a_plain_state_needs() -> None:
    modules = loaded(WORKER)["modules"]
    assert packages(modules) == {"google", "httptools", "jh2", "uvloop"}
    policies = {row.build.__module__ for row in ROWS}  # all of which the registry needs
    assert len({*own(modules)} - policies) <= 423, "what is only needed for some states is loaded by the first of them"


LATE_IN_WORKERS: Final = {
    "dataplane.backends.mcp.visit": "by the first MCP backend",
    "dataplane.tls.contexts": "by the first TLS",
    "email": "nobody's",
    "importlib.metadata": "nobody's",
    "tempfile": "nobody's",
}
LATE_IN_AGENTS: Final = {
    "dataplane.agent.exposition": "by the first question for metrics",
    "dataplane.agent.file_source": "with a file",
    "email": "nobody's",
    "importlib.metadata": "nobody's: it takes as long as an interpreter does",
    "prometheus_client": "by the first question for metrics",
}


@pytest.mark.parametrize("module", LATE_IN_WORKERS)
def test_a_worker_loads_late(module: str) -> None:
    assert module not in loaded(WORKER)["modules"], LATE_IN_WORKERS[module]


@pytest.mark.parametrize("module", LATE_IN_AGENTS)
def test_an_agent_loads_late(module: str) -> None:
    assert module not in loaded(AGENT)["modules"], LATE_IN_AGENTS[module]


def test_what_a_worker_has_loaded_is_never_looked_through() -> None:
    """It took a fifth of a start, twice; and in a fork each page that is looked at is copied."""
    found = loaded(WORKER)
    assert (found["looks"], found["enabled"]) == ([], True)
    assert found["frozen"] > 20_000
