"""What the wheel and the sdist carry: the files of the repository that belong there, no others, and a description whose
links work on an index page.

Both are built here by the build backend; what is installed from a wheel runs in tests/loopback/test_wheel.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGES = ("gatewright", "controlplane", "dataplane")
DATA = {"examples": "controlplane/examples", "manifests": "controlplane/manifests", "schemas": "controlplane/schemas"}
"""Folders that commands of an installed package read, and where the wheel has them."""

OF_THE_SDIST = ("proto", "hatch_build.py", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore")
BUILD = """import sys; from hatchling import build; getattr(build, sys.argv[1])(sys.argv[2])"""
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


class Built(NamedTuple):
    names: frozenset[str]
    description: str


def build(what: str, source: Path, folder: Path) -> Path:
    """`what`: a function of PEP 517. It needs neither network nor another environment: hatchling is installed."""
    run = subprocess.run([sys.executable, "-c", BUILD, what, str(folder)], cwd=source, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    (made,) = folder.iterdir()
    return made


def wheel_of(source: Path, folder: Path) -> Built:
    with zipfile.ZipFile(build("build_wheel", source, folder)) as content:
        names = content.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        return Built(frozenset(names), content.read(metadata).decode().split("\n\n", 1)[1])


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return wheel_of(root, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the sdist unpacks to."""
    made = build("build_sdist", root, tmp_path_factory.mktemp("sdist"))
    folder = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["tar", "-xzf", made, "-C", folder], check=True)
    (inside,) = folder.iterdir()
    return inside


def known(root: Path, *places: str) -> set[str]:
    """Files of these places that git tracks, or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *places]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    return {name for name in names if name and (root / name).is_file()}


def test_the_wheel_has_the_packages_and_what_their_commands_read(root: Path, wheel: Built) -> None:
    wanted = known(root, *PACKAGES)
    for folder, inside in DATA.items():
        wanted |= {name.replace(folder, inside, 1) for name in known(root, folder)}
    made = {name for name in wheel.names if ".dist-info/" in name}
    assert sorted(wheel.names - made) == sorted(wanted)
    assert {name.partition(".dist-info/")[2] for name in made} == {
        *("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    }


def test_the_sdist_has_what_the_wheel_is_made_of(root: Path, unpacked: Path) -> None:
    names = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    assert sorted(names - {"PKG-INFO"}) == sorted(known(root, *PACKAGES, *DATA, *OF_THE_SDIST))


def test_the_sdist_makes_the_same_wheel(unpacked: Path, wheel: Built, tmp_path: Path) -> None:
    assert wheel_of(unpacked, tmp_path) == wheel


def test_links_of_the_description_work_on_an_index_page(root: Path, wheel: Built) -> None:
    links = LINK.findall(wheel.description)
    assert [link for link in links if not link.startswith("https://")] == []
    named = [link for link in LINK.findall((root / "README.md").read_text()) if not link.startswith("https://")]
    assert named
    assert [name for name in named if f"(`{name}`)" not in wheel.description] == []


def test_the_readme_names_folders_to_start_from_that_the_wheel_has(root: Path, wheel: Built) -> None:
    """`gatewright init NAME` of the README and of its parentheses."""
    (first, others) = re.findall(
        r"`gatewright init (\w+)`\s+\(or ((?:`\w+`(?:, )?)+)\)", (root / "README.md").read_text()
    )[0]
    for name in (first, *re.findall(r"`(\w+)`", others)):
        folders = (f"controlplane/templates/{name}/", f"controlplane/examples/{name}/")
        assert [each for each in wheel.names if each.startswith(folders)], name


def test_what_the_summary_promises_is_what_the_readme_shows(root: Path) -> None:
    summary = tomllib.loads((root / "pyproject.toml").read_text())["project"]["description"]
    readme = (root / "README.md").read_text()
    promised = re.findall(r"MCP servers|LLM providers|A2A agents|HTTP|gRPC|TCP|Gateway API|one file", summary)
    assert len(promised) == 8
    assert [words for words in promised if words not in readme] == []
