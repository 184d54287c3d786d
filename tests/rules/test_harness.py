"""The harness of tests, faults and benchmarks keeps its own promises: ports, processes, readiness."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.ports import FIRST, LAST, reserve, reserve_offset
from tests.harness.processes import LeftBehind, Program, is_alive, started
from tests.harness.waiting import wait_until

needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="follows processes through /proc")

RESERVES = "from tests.harness.ports import reserve; print([reserve() for _ in range(300)]); input()"


def test_a_port_is_given_once_whoever_asks(root: Path) -> None:
    command = [sys.executable, "-c", RESERVES]
    others = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(2)
    ]
    try:
        ours = [reserve() for _ in range(100)]
        theirs = [eval(other.stdout.readline()) for other in others if other.stdout is not None]
    finally:
        for other in others:
            other.communicate("\n")
    ports = [*ours, *theirs[0], *theirs[1]]
    assert len(ports) == len(set(ports)) == 700
    assert all(FIRST <= port < LAST for port in ports)


def test_an_offset_moves_all_ports_to_free_ones() -> None:
    wanted = (8080, 15000, 15021)
    first, second = reserve_offset(wanted), reserve_offset(wanted)
    assert not {port + first for port in wanted} & {port + second for port in wanted}
    assert all(port + offset < LAST for port in wanted for offset in (first, second))


STARTS = """
import pathlib, sys, time
from tests.harness.processes import Program
program = Program(pathlib.Path(sys.argv[1]), "child", [sys.executable, "-S", "-c", "import time; time.sleep(1e6)"])
print(program.pid, flush=True)
time.sleep(1e6)
"""


@needs_proc
def test_a_program_ends_with_whoever_started_it(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
    wait_until(lambda: not is_alive(pid), "the end of the child")


ORPHANS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork():
    sys.exit(0)
os.setsid()
os.write(1, str(os.getpid()).encode())
time.sleep(1e6)
"""


@needs_proc
def test_what_a_program_left_is_killed_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.harness.processes.PATIENCE", 0.2)
    program = Program(tmp_path, "daemon", [sys.executable, "-S", "-c", ORPHANS])
    pid = int(wait_until(program.out))
    assert program.process.wait() == 0
    assert program.children() == {pid}
    with pytest.raises(LeftBehind, match=rf"daemon left processes.*{pid}"):
        program.stop()
    assert not is_alive(pid)
    program.stop()  # once is enough


SPEAKS = """
import os, socket, time
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
    to = os.environ["NOTIFY_SOCKET"]
    sock.sendto(b"STATUS=begins", to.replace("@", "\\0"))
    sock.sendto(b"READY=1\\nX_GATEWRIGHT_BIND_80=127.0.0.1:4001,127.0.0.2:4002", to.replace("@", "\\0"))
time.sleep(1e6)
"""


async def test_readiness_is_an_event_and_says_where(tmp_path: Path) -> None:
    async with started(tmp_path, "speaker", [sys.executable, "-S", "-c", SPEAKS]) as program:
        assert (await program.ready())["STATUS"] == "begins"
        assert program.port("BIND_80") == 4001
        with pytest.raises(AssertionError, match="did not say where ADMIN is"):
            program.port("ADMIN")
    assert program.returncode == -signal.SIGTERM


async def test_a_program_that_ends_before_it_is_ready_says_so(tmp_path: Path) -> None:
    async with started(tmp_path, "gone", [sys.executable, "-S", "-c", "raise SystemExit('no luck')"]) as program:
        with pytest.raises(AssertionError, match=r"is not ready; it ended with 1:\nno luck"):
            await program.ready()
        assert await program.ended() == 1
    assert "NOTIFY_SOCKET" not in os.environ
