"""The leak oracle notices each kind of leak, blames the test that left it, and leaves everybody else alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process  # it runs pytest

SETTINGS = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""

SUITE = """
import asyncio
import os
import subprocess
import sys
import threading
import time

import pytest

from dataplane.upstream.endpoint import Endpoint
from tests.fakes.memory_proxy import MemoryProxy

KEPT = []
GET = b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n"


def opened():
    fd = os.open(os.devnull, os.O_RDONLY)
    KEPT.append(fd)
    return fd


def test_leaves_a_descriptor():
    opened()


def test_leaves_a_child():
    KEPT.append(subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(1e6)"]))


def test_leaves_a_thread():
    KEPT.append(threading.Event())
    threading.Thread(target=KEPT[-1].wait, name="log lines", daemon=True).start()


def test_ends_its_thread():
    KEPT.pop().set()
    thread = threading.Thread(target=time.sleep, args=(0.05,), daemon=True)
    thread.start()  # it ends a moment later


def test_closes_its_descriptor_and_child():
    os.close(opened())
    child = KEPT.pop(1)
    child.kill()
    child.wait()


async def test_leaves_a_task():
    KEPT.append(asyncio.create_task(asyncio.Event().wait()))


async def test_ends_its_task():
    task = asyncio.create_task(asyncio.sleep(0))
    await asyncio.sleep(0)
    KEPT.append(task)  # done a turn later


def test_leaves_an_exchange():
    MemoryProxy().context.recorder.active += 1


def test_leaves_buffered_bytes():
    assert MemoryProxy().context.body_memory.take(5, "192.0.2.1")


def test_leaves_a_pending_request():
    proxy = MemoryProxy()
    proxy.connector.endpoints.add(Endpoint("192.0.2.1", 1))
    next(iter(proxy.connector.endpoints)).pending += 1


def test_leaves_an_upstream_connection_in_use():
    MemoryProxy().context.recorder.upstream_opened("opened")


def test_leaves_a_deadline():
    proxy = MemoryProxy()
    client = proxy.connect()
    client.lose()
    client.protocol.due = proxy.now + 1


def test_leaves_a_connection():
    proxy = MemoryProxy()
    proxy.context.connections.add(object(), "192.0.2.7")


def test_under_way_is_ended_by_the_oracle():
    proxy = MemoryProxy()
    proxy.connect().send(GET)
    proxy.connect()
    proxy.connector.hold = True
    proxy.connect().send(GET)


@pytest.fixture(scope="module")
def wide():
    fd = opened()
    proxy = MemoryProxy()
    client = proxy.connect()
    yield client
    os.close(fd)


def test_may_use_a_wider_fixture(wide):
    wide.send(GET)


def test_may_use_it_again(wide):
    assert wide.open


@pytest.mark.leaves("to show that it may")
def test_says_that_it_leaves_something():
    opened()


def test_fails_for_its_own_reason():
    opened()
    assert False
"""

EXPECTED = {
    "a_descriptor": r"descriptor \d+ \(/dev/null\)",
    "a_child": r"child process \d+",
    "a_thread": "thread log lines",
    "a_task": r"task <coroutine object Event\.wait",
    "an_exchange": "exchanges: 1",
    "buffered_bytes": "buffered_bytes: 5",
    "a_pending_request": "pending: 1",
    "an_upstream_connection_in_use": "upstream_in_use: 1",
    "a_deadline": "the deadline of an ended connection",
    "a_connection": "connections: 1",
}


@pytest.fixture(scope="module")
def output(root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of SUITE under the oracle."""
    folder = tmp_path_factory.mktemp("oracle")
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "pytest.ini").write_text(SETTINGS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.harness.oracle", "-v"]
    done = subprocess.run(
        [*command, "--rootdir", folder, "-c", folder / "pytest.ini", folder],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("leak", EXPECTED)
def test_each_kind_of_leak_is_noticed_and_named(leak: str, output: str) -> None:
    (message,) = re.findall(rf"ERROR at teardown of test_leaves_{leak} _+\n(.*?)\n(?:_|=)", output, re.DOTALL)
    assert re.match(rf"the test left something behind:\n +{EXPECTED[leak]}", message), message
    assert len(message.splitlines()) == 2, message


def test_nobody_else_is_blamed(output: str) -> None:
    assert sorted(re.findall(r"ERROR at teardown of test_(\w+)", output)) == sorted(
        f"leaves_{name}" for name in EXPECTED
    )
    assert re.findall(r"^FAILED .*::(\w+)", output, re.MULTILINE) == ["test_fails_for_its_own_reason"]
