"""The wheel in an environment of its own: what `pip install gatewright` brings is enough, and all of it is inside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve, reserve_offset
from tests.harness.processes import Program
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow


def said(*command: str | Path, cwd: Path, seconds: float = 4 * PATIENCE) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    said(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (found,) = folder.glob("gatewright-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel, and of other packages what it asks for alone."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    uv = Path(sys.executable).parent / "uv"
    said(uv, "venv", "-q", "--python", sys.executable, folder, cwd=folder.parent)
    index = os.environ.get("PIP_INDEX_URL") or configured_index()
    options = ["--default-index", index] if index else []
    python = folder / "bin" / "python"
    constraints = ROOT / "requirements" / "run.txt"
    said(
        *(uv, "pip", "install", "-q", "--system-certs", "--python", python, *options, "-c", constraints, wheel),
        cwd=folder.parent,
    )
    return folder / "bin"


def configured_index() -> str:
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def test_what_is_inside(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    for folder, inside in (("examples", "controlplane/examples"), ("manifests", "controlplane/manifests")):
        wanted = {f"{inside}/{path.relative_to(ROOT / folder)}" for path in (ROOT / folder).rglob("*.yaml")}
        assert wanted
        assert wanted <= names
    assert {f"controlplane/schemas/{path.name}" for path in (ROOT / "schemas").iterdir()} <= names
    assert "controlplane/templates/jwt/jwt.yaml" in names
    assert not [name for name in names if name.startswith("tests/")]


def test_it_runs_from_the_wheel_alone(installed: Path, tmp_path: Path) -> None:
    assert "gatewright" in said(installed / "gatewright", "version", cwd=tmp_path)
    crds = said(installed / "gatewright", "crds", "crds", "base", cwd=tmp_path)
    assert crds.count("kind: CustomResourceDefinition") == 3
    said(installed / "gatewright", "init", "ratelimit", "start", cwd=tmp_path)
    said(installed / "gatewright", "lint", "--strict", "start", cwd=tmp_path)
    assert "usage" in said(installed / "gatewright-proxy", "--help", cwd=tmp_path)


def test_a_proxy_without_a_file_forwards(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("hello")
    origin_port, port = reserve(), reserve()
    origin = Program(
        tmp_path, "origin", [sys.executable, "-m", "http.server", str(origin_port), "--bind", "127.0.0.1"], cwd=tmp_path
    )
    command = [
        str(installed / "gatewright"),
        "proxy",
        "--from",
        f"127.0.0.1:{port}",
        "--to",
        f"127.0.0.1:{origin_port}",
    ]
    pages = [option for name in ("admin", "stats", "readiness") for option in (f"--{name}", "127.0.0.1:0")]
    proxy = Program(
        tmp_path, "proxy", [*command, *pages, "--workers", "1"], environment={"XDG_RUNTIME_DIR": str(tmp_path)}
    )
    try:
        proxy.await_ready()
        curl = ["curl", "-s", f"http://127.0.0.1:{port}/index.html"]
        wait_until(
            lambda: subprocess.run(curl, capture_output=True, text=True, check=False).stdout == "hello", proxy.log
        )
    finally:
        proxy.stop()
        origin.stop()


def test_up_from_the_wheel_alone(installed: Path, tmp_path: Path) -> None:
    said(installed / "gatewright", "init", "split", "start", cwd=tmp_path)
    offset = reserve_offset((8080, 15000, 15020, 15021))
    for file in (tmp_path / "start").iterdir():
        text = file.read_text()
        for demo in ("19001", "19002"):
            text = text.replace(demo, str(reserve()))
        file.write_text(text)
    options = ["--proxies", "1", "--port-offset", str(offset), "--socket", str(tmp_path / "x.sock")]
    options += ["--xds", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    up = Program(tmp_path, "up", [str(installed / "gatewright"), "up", "start", *options], cwd=tmp_path)
    try:
        up.await_ready()
        curl = ["curl", "-s", f"http://127.0.0.1:{8080 + offset}/"]
        answer = wait_until(lambda: subprocess.run(curl, capture_output=True, text=True, check=False).stdout, up.log)
        assert json.loads(answer)
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
    finally:
        up.stop()
