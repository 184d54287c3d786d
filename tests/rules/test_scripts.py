"""The scripts can be run, and their shell is sound."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(path for path in (*ROOT.glob("scripts/*"), ROOT / ".ci/run") if path.is_file())
SHELL = [path for path in SCRIPTS if path.read_text().startswith("#!/usr/bin/env bash\n")]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_is_executable_and_says_what_it_does(script: Path) -> None:
    shebang, first = script.read_text().splitlines()[:2]
    assert shebang.startswith("#!/usr/bin/env ")
    assert first.startswith(("# ", '"""'))
    assert os.access(script, os.X_OK)


@pytest.mark.parametrize(
    "name", ["apiserver", "conformance", "inference", "kind", "mesh", "quickstart-rig", "rig", "telemetry", "tools"]
)
def test_help_builds_nothing(name: str) -> None:
    """Without a PATH that leads to Go or Python."""
    command = [str(ROOT / "scripts" / name), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, check=False)
    _, first = (ROOT / "scripts" / name).read_text().splitlines()[:2]
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(first.removeprefix("# "))


def test_another_help_text_of_the_api_server_builds_nothing(tmp_path: Path) -> None:
    """With a go that writes the files it is asked for, and then without one."""
    scripts, programs = tmp_path / "scripts", tmp_path / "bin"
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "cluster").symlink_to(ROOT / "tests" / "cluster")
    scripts.mkdir()
    programs.mkdir()
    script, go = scripts / "apiserver", programs / "go"
    script.write_text((ROOT / "scripts" / "apiserver").read_text())
    go.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ntouch "$2"\nchmod +x "$2"\n')
    go.chmod(0o755)

    def run() -> str:
        environment = {"PATH": f"{programs}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return subprocess.run(["bash", str(script)], capture_output=True, text=True, env=environment, check=True).stdout

    built = run()
    assert {each.name for each in Path(built.strip()).iterdir()} == {"etcd", "kube-apiserver"}
    script.write_text(script.read_text().replace("# --built: print", "# Another line.\n# --built: prints"))
    go.write_text("#!/bin/sh\nexit 1\n")
    assert run() == built
    script.write_text(script.read_text().replace('"-s -w"', '"-s"'))
    with pytest.raises(subprocess.CalledProcessError):
        run()


def test_an_old_go_is_named_before_anything_is_built(tmp_path: Path) -> None:
    """In a checkout without .tools, whose go would be newer."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "cluster").symlink_to(ROOT / "tests" / "cluster")
    check = tmp_path / "scripts" / "go-check"
    check.write_text((ROOT / "scripts" / "go-check").read_text())
    go = tmp_path / "go"
    for version, code, what in (("1.22.1", 1, f"{go} is 1.22.1: upgrade it"), ("1.99", 0, "")):
        go.write_text(f"#!/bin/sh\necho go{version}\n")
        go.chmod(0o755)
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        done = subprocess.run(["bash", str(check)], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == code and what in done.stderr


@pytest.mark.parametrize("script", SHELL, ids=lambda path: path.name)
def test_shell_parses(script: Path) -> None:
    assert subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False).stderr == ""
