"""Processes that their parents left behind, as the process that the system gives them to."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gatewright import orphans
from gatewright.orphans import Ended
from tests.harness.patience import PATIENCE

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("stat", "found"),
    [
        (b"7 (sh) Z 1 5 6 0 -1", Ended(7, 6)),
        (b"7 (a) S 1 Z) 1) Z 1 5 6 0", Ended(7, 6)),
        (b"7 (sh) S 1 5 6 0 -1", None),
        (b"7 (sh) Z 2 5 6 0 -1", None),
    ],
)
def test_a_child_that_has_ended_is_read_from_its_row(stat: bytes, found: Ended | None) -> None:
    assert orphans.read(7, stat, 1) == found


SCRIPT = """
import asyncio, ctypes, subprocess, sys
from gatewright import orphans
ctypes.CDLL(None).prctl(36, int(sys.argv[1]), 0, 0, 0)
orphans.SECONDS = 0.05
left = "import os; os.fork() or os._exit(0); os.fork()"  # a child and a grandchild, which end when nobody is there
async def main():
    reaping = asyncio.create_task(orphans.reap(orphans.of_this_session, asyncio.sleep))
    own = [await asyncio.create_subprocess_exec("sh", "-c", f"exit {code}") for code in range(5)]
    theirs = await asyncio.create_subprocess_exec(sys.executable, "-c", left, start_new_session=True)
    codes = [await each.wait() for each in own]
    await theirs.wait()
    for _ in range(200):
        await asyncio.sleep(0.05)
        if not list(orphans.ended()):
            break
    print(codes, orphans.adopts(), reaping.done(), list(orphans.ended()))
asyncio.run(main())
"""


@pytest.mark.parametrize("adopts", [True, False])
def test_orphans_are_waited_for_and_own_children_are_not(adopts: bool) -> None:
    """A process that adopts orphans stands for process 1 (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    command = [sys.executable, "-c", SCRIPT, str(int(adopts))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == f"[0, 1, 2, 3, 4] {adopts} {not adopts} []\n" and not done.stderr


def test_who_adopts_nobody_looks_for_nothing() -> None:
    assert os.getpid() != 1 and not orphans.adopts()
