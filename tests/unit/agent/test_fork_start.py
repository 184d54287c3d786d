"""The agent's view of the process that it starts first: ended when it is told to, and no other in its place."""

from __future__ import annotations

import os

import pytest

from dataplane.agent.fork_start import Process
from tests.harness.patience import PATIENCE

pytestmark = pytest.mark.process


def test_a_process_is_ended_once_and_then_its_number_may_be_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(os.posix_spawn("/bin/sleep", ["sleep", "600"], {}))
    assert not process.wait(0.0)
    process.kill()
    assert process.wait(PATIENCE)

    def kill(pid: int, signal: int) -> None:
        raise AssertionError("somebody else may have this number now")

    monkeypatch.setattr(os, "kill", kill)
    process.kill()
    assert process.wait(0.0)
