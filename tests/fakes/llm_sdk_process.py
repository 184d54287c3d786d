"""Programs of the environment of the SDKs (`llm-python`, made by `scripts/tools`), asked line by line."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.conftest import need_tool
from tests.harness.patience import PATIENCE
from tests.harness.processes import tied

FAKES: Final = Path(__file__).parent
PROVIDER, CLIENTS, LLAMA = (FAKES / f"llm_{name}.py" for name in ("sdk_provider", "sdk_clients", "llama"))


class Running:
    """A program of the environment of the SDKs, that is asked line by line. It ends when nobody can ask any more."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def said(self) -> Any:
        assert self._process.stdout is not None
        async with asyncio.timeout(2 * PATIENCE):
            line = await self._process.stdout.readline()
        assert line, "it has ended"
        return json.loads(line)

    async def ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        return await self.said()

    async def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await asyncio.wait_for(self._process.wait(), PATIENCE)


@asynccontextmanager
async def sdk(script: Path, *arguments: str) -> AsyncIterator[Running]:
    command = tied([need_tool("llm-python"), str(script), *arguments])
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=1 << 20)
    made = Running(process)
    try:
        yield made
    finally:
        await made.end()
