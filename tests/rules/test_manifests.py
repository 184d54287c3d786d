"""Units, image and compose file start commands that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from controlplane.cli import parser
from dataplane import bootstrap
from tests.conftest import ROOT

MANIFESTS = ROOT / "manifests"


def accepted(words: list[str]) -> bool:
    """Whether the program takes these arguments; it ends with a usage message otherwise."""
    program, *rest = words
    if program.endswith("gatewright-proxy"):
        bootstrap.parse(rest, {})
    elif rest[0] == "proxy":
        bootstrap.parse(rest[1:], {})
    else:
        parser.build().parse_args(rest)
    return True


@pytest.mark.parametrize("unit", sorted(MANIFESTS.glob("systemd/*.service")), ids=lambda path: str(path.name))
def test_units_start_what_exists(unit: Path) -> None:
    text = unit.read_text()
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert accepted(shlex.split(line))
    assert "Type=notify" in text  # both programs say when they are ready
    assert re.findall(r"^\[(\w+)\]$", text, re.MULTILINE) == ["Unit", "Service", "Install"]


def test_the_compose_file_starts_a_proxy() -> None:
    (service,) = yaml.load((MANIFESTS / "compose.yaml").read_text(), yaml.CSafeLoader)["services"].values()
    assert accepted(["gatewright", *service["command"]])
    assert (MANIFESTS / service["build"]["context"] / service["build"]["dockerfile"]).resolve().is_file()


def test_the_image_runs_as_no_user_in_particular_and_what_is_in_it_is_locked() -> None:
    text = (MANIFESTS / "Containerfile").read_text()
    assert re.search(r"^USER ([1-9][0-9]*):\1$", text, re.MULTILINE)
    assert "--require-hashes" in text
    for name in re.findall(r"-r (\S+\.txt)", text):
        assert (ROOT / name).is_file()
