"""A program that is a fork of what is loaded already is what one of its own is, and ends with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.preloaded import Forked
from tests.harness.processes import Program, is_alive
from tests.harness.waiting import wait_until

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks are used on Linux alone"),
]

CONFIG = """\
binds:
- port: 8080
  listeners:
  - routes:
    - backends:
      - host: 127.0.0.1:9
"""
PAGES = ("--admin=127.0.0.1:0", "--stats=127.0.0.1:0", "--readiness=127.0.0.1:0", "--any-port")


def command(folder: Path, *flags: str) -> list[str]:
    (folder / "config.yaml").write_text(CONFIG)
    return [sys.executable, "-m", "dataplane", "-f", "config.yaml", *PAGES, *flags]


@pytest.mark.parametrize("is_preloaded", [True, False])
def test_it_is_what_a_program_of_its_own_is(tmp_path: Path, is_preloaded: bool) -> None:
    reading, writing = os.pipe()
    program = Program(
        tmp_path,
        "proxy",
        command(tmp_path, f"--parent-fd={reading}", "--workers=1"),
        environment={"SESSION_KEY": "ab" * 32},
        cwd=tmp_path,
        pass_fds=(reading,),
        preloaded=is_preloaded,
    )
    assert isinstance(program.process, Forked) is is_preloaded
    os.close(reading)
    program.await_ready()
    family: list[int] = []

    def is_settled() -> bool:
        """Agent, reader, fork server, worker; one more may just be ending."""
        family[:] = program.family()
        return len(family) == 4

    wait_until(is_settled, lambda: f"family of four: {family}")
    assert program.pid in family
    assert os.readlink(f"/proc/{program.pid}/cwd") == str(tmp_path)
    opened = [os.readlink(f"/proc/{program.pid}/fd/{number}") for number in (0, 1, 2)]
    assert opened == ["/dev/null", str(tmp_path / "proxy.out"), str(tmp_path / "proxy.log")]
    assert "SESSION_KEY is unset" not in program.log()
    os.close(writing)  # the parent that the flag names is gone
    assert program.wait() == 0
    assert "end of the parent process: draining" in program.log()
    program.stop()
    assert not any(map(is_alive, family))


def test_its_exit_status_is_its_own(tmp_path: Path) -> None:
    wrong = Program(tmp_path, "wrong", [sys.executable, "-m", "dataplane", "--no-such-flag"], cwd=tmp_path)
    killed = Program(tmp_path, "killed", command(tmp_path), cwd=tmp_path)
    assert isinstance(wrong.process, Forked) and isinstance(killed.process, Forked)
    assert wrong.wait() == 2 and "--no-such-flag" in wrong.log()
    with pytest.raises(subprocess.TimeoutExpired):
        killed.process.wait(0.01)
    killed.await_ready()
    killed.signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    for program in (wrong, killed):
        program.stop()


STARTS = """
import pathlib, sys, time
from tests.harness import preloaded
from tests.harness.processes import Program
preloaded.on_begin.append(print)
folder = pathlib.Path(sys.argv[1])
program = Program(folder, "proxy", [sys.executable, "-m", "dataplane", *sys.argv[2:]], cwd=folder)
program.await_ready()
print(*program.family(), flush=True)
time.sleep(1e6)
"""


def test_it_ends_with_whoever_started_it(root: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", STARTS, str(tmp_path), *command(tmp_path)[3:]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=root) as parent:
        assert parent.stdout is not None
        _, origin = map(int, parent.stdout.readline().split())
        family = [origin, *map(int, parent.stdout.readline().split())]
        assert len(family) > 3
        parent.kill()
        wait_until(lambda: not any(map(is_alive, family)), "the end of all that it started")
