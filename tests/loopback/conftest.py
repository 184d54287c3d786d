"""What several scenarios start once for a module."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from tests.fakes.conformance import Suite
from tests.harness.patience import PATIENCE

Run = Callable[..., Awaitable[str]]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """A controller for the replays of Gateway API's conformance tests."""
    made = Suite(tmp_path_factory.mktemp("suite"))
    yield made
    made.close()


@pytest.fixture
def run(tool: Callable[[str], str]) -> Run:
    """Run a program; gives what it printed. It has to end with `code`."""

    async def run(name: str, *arguments: str, code: int = 0) -> str:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            tool(name), *arguments, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
        text = output.replace(b"\0", b"").decode()
        assert process.returncode == code, text
        return text

    return run
