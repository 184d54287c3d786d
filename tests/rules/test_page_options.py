"""Every option that a page names belongs to a program: one of ours, as its parser has it, or one of others."""

from __future__ import annotations

import argparse
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from controlplane.cli import forward, parser
from dataplane.bootstrap import options
from tests.conftest import ROOT

PAGES: Final = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z0-9]*(?:-[a-z0-9]+)*")

RIG: Final = "tests/cluster/rig/conformance.py"
OTHERS: Final[dict[str, str]] = {
    "--changes": "benchmarks/cluster.py",
    "--all": "kubectl",
    "--all-namespaces": "kubectl",
    "--cacert": "curl",
    "--cert": "curl",
    "--check": "scripts/gen-api",
    "--cli": "the inspector of MCP",
    "--create-namespace": "helm",
    "--config": "the collector of OpenTelemetry",
    "--data-binary": "curl",
    "--enable-feature": "prometheus",
    "--from-file": "kubectl",
    "--gateways": "benchmarks/gateways.py",
    "--hold": RIG,
    "--init": "docker",
    "--interface": "curl",
    "--key": "curl",
    "--large": "benchmarks/cluster.py",
    "--method": "the inspector of MCP",
    "--namespace": "kubectl",
    "--only": "benchmarks/llm.py",
    "--prefix": "kubectl",
    "--profiles": RIG,
    "--proxy-image": "the beginning of several options of `gatewright controller`",
    "--quick": "benchmarks/mcp.py",
    "--requests": "benchmarks/instructions.py",
    "--rounds": "benchmarks/ext_proc.py",
    "--routes": "benchmarks/propagation.py",
    "--seconds": "benchmarks/idle.py",
    "--selector": "kubectl",
    "--server-side": "kubectl",
    "--set": "helm",
    "--skip": RIG,
    "--suite": RIG,
    "--tail": "kubectl",
    "--target": "nsenter",
    "--test": "scripts/kind",
    "--transport": "the inspector of MCP",
    "--type": "kubectl",
}
"""The program of each option that is none of the product's, or its file where it is of this repository."""


def _of(given: argparse.ArgumentParser) -> set[str]:
    found: set[str] = set()
    for action in given._actions:
        found.update(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            found.update(*(_of(each) for each in action.choices.values()))
    return found


@cache
def known() -> frozenset[str]:
    """The options of `gatewright`, with all its commands, and of `gatewright-proxy`."""
    return frozenset(_of(parser.build()) | _of(options.parser()) | {*forward.OPTIONS})


def unknown(text: str) -> list[str]:
    return sorted(set(OPTION.findall(text)) - known() - OTHERS.keys())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_of_a_page_exist(page: Path) -> None:
    assert unknown(page.read_text()) == []


def test_options_of_our_own_scripts_are_theirs() -> None:
    wrong = {
        option: owner
        for option, owner in OTHERS.items()
        if (ROOT / owner).is_file() and option not in (ROOT / owner).read_text()
    }
    assert wrong == {}
