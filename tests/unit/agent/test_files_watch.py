"""No descriptors left: one line, and one when there are again, for the agent and for the controller."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
from types import ModuleType
from typing import Any

import pytest

from controlplane.cli.serving import files as of_the_controller
from dataplane.agent import files as of_the_agent
from tests.fakes.moved_loop import moved


@pytest.mark.parametrize("files", [of_the_agent, of_the_controller], ids=["agent", "controller"])
@moved
async def test_exhaustion_is_told_once_until_it_is_over(files: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    loop, watch = asyncio.get_running_loop(), files.FilesWatch()
    exhausted: dict[str, Any] = {
        "exception": OSError(errno.EMFILE, "Too many open files"),
        "socket": None,
        "message": "",
    }
    await asyncio.sleep(0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        for _ in range(3):
            watch.heard(loop, exhausted)
        await asyncio.sleep(10)
        assert caplog.text.count("no file descriptors left") == 1 and "free again" not in caplog.text
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    await asyncio.sleep(files.PAUSE + 0.1)
    assert caplog.text.count("file descriptors are free again") == 1
    watch.heard(loop, exhausted)
    assert caplog.text.count("no file descriptors left") == 2
    await asyncio.sleep(files.PAUSE + 0.1)


@pytest.mark.parametrize("files", [of_the_agent, of_the_controller], ids=["agent", "controller"])
@pytest.mark.parametrize(
    "context",
    [
        {"exception": OSError(errno.EMFILE, "Too many open files"), "message": "without a socket"},
        {"exception": OSError(errno.ECONNRESET, "reset"), "socket": None, "message": "another error"},
        {"exception": ValueError("a bug"), "socket": None, "message": "a bug"},
    ],
    ids=lambda context: context["message"],
)
@moved
async def test_everything_else_is_the_loops_to_log(
    files: ModuleType, context: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    files.FilesWatch().heard(asyncio.get_running_loop(), context)
    (record,) = caplog.records
    assert record.name == "asyncio" and context["message"] in record.getMessage()
