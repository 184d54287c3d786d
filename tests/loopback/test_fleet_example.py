"""`examples/fleet`: the commands of its README, run as they stand but for ports and folders."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fakes.proxy_process import TIMES
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import running
from tests.harness.waiting import wait_until
from tests.loopback.test_xds_over_tcp import get, streams

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "examples" / "fleet" / "README.md"
PROGRAMS = {
    "python": [sys.executable],
    "gatewright": [sys.executable, "-m", "controlplane.cli"],
    "gatewright-proxy": [sys.executable, "-m", "dataplane"],
}
PAGES = {
    "gatewright": ["--admin", "127.0.0.1:0"],
    "gatewright-proxy": ["--any-port", "--workers", "1", "--admin", "off", "--stats", "off", "--readiness", "off"],
}


def commands(program: str) -> list[str]:
    """The lines of the page that run this program."""
    return re.findall(rf"^    ({re.escape(program)} .*)$", README.read_text(), re.MULTILINE)


def command(line: str, folder: Path, port: int) -> Sequence[str]:
    """A line of the page, with this folder for /tmp/fleet and this port for 18000."""
    program, *words = shlex.split(line)
    words = [word.replace("/tmp/fleet", str(folder / "fleet")).replace(":18000", f":{port}") for word in words]
    if words[0] == "controller":
        words += ["--socket", str(folder / "xds.sock")]
    return [*PROGRAMS[program], *words, *PAGES.get(program, ())]


def make_credentials(folder: Path) -> None:
    (line,) = commands("python")
    subprocess.run(command(line, folder, 0), cwd=ROOT, check=True, timeout=PATIENCE)


@pytest.mark.parametrize("way", [0, 1], ids=["tokens", "certificates"])
def test_the_readme(way: int, tmp_path: Path) -> None:
    make_credentials(tmp_path)
    port = reserve()
    with running(
        tmp_path, "controller", command(commands("gatewright controller")[way], tmp_path, port), cwd=ROOT
    ) as control:
        control.await_ready()
        line = commands("gatewright-proxy")[way]
        with running(tmp_path, "proxy", command(line, tmp_path, port), cwd=ROOT, environment=TIMES) as proxy:
            proxy.await_ready()
            assert get(proxy.port("BIND_8080")) == (200, "hello from the fleet\n")
            wait_until(lambda: '"state": "Synced"' in get(control.port("ADMIN"), "/api/status")[1], control.log)
            assert streams(control)["accepted"] == 1


def test_without_either_it_does_not_start(tmp_path: Path) -> None:
    line = commands("gatewright controller")[-1]
    with running(tmp_path, "controller", command(line, tmp_path, reserve()), cwd=ROOT) as control:
        assert control.wait() == 2
        assert "--xds-tls-cert FILE and --xds-tls-key FILE" in control.log()


def test_keys_and_tokens_are_for_their_owner_and_nothing_is_overwritten(tmp_path: Path) -> None:
    make_credentials(tmp_path)
    made = list((tmp_path / "fleet").iterdir())
    names = {"ca.crt", "controller.crt", "controller.key", "proxy.crt", "proxy.key", "token", "tokens"}
    assert {path.name for path in made} == names
    assert all(path.stat().st_mode & 0o077 == 0 for path in (*made, tmp_path / "fleet"))
    with pytest.raises(subprocess.CalledProcessError):
        make_credentials(tmp_path)
