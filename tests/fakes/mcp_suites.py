"""The suites of MCP for tests: the fixture server as a program, the suite's verdicts as values, and a client of an
endpoint of several servers that knows whose resources are whose."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import socket
import sys
import traceback
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.harness.patience import PATIENCE
from tests.harness.processes import started
from tests.harness.waiting import until

REVISIONS = ("2025-11-25", "2026-07-28")

SCENARIO_MS = 20_000
"""Milliseconds after which a scenario has failed."""

Verdicts = dict[str, dict[str, str]]
"""By scenario, by check: SUCCESS, FAILURE, WARNING, SKIPPED, INFO; of one that is made several times, the worst."""

_RUN = re.compile(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$")
"""What the suite adds to the name of a scenario."""
_WORST = ("FAILURE", "WARNING", "SKIPPED", "INFO", "SUCCESS")
_TELLING = ("FAILURE", "WARNING", "SUCCESS", "SKIPPED", "INFO")
"""A scenario's server makes some checks for each kind of request, and no client makes all of them."""


@asynccontextmanager
async def fixture(folder: Path, name: str, stem: str = "") -> AsyncIterator[int]:
    """The fixture server (`mcp_fixture`) and its port."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.fakes.mcp_fixture", *([stem] if stem else [])]
    async with started(folder, name, command) as program:
        yield int(await until(program.out, lambda: f"the port of {name}: {program.log()}"))


async def run(command: Sequence[str], cwd: Path | None = None) -> tuple[int, str]:
    """Exit status and output of a program."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=cwd
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 3 * PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output.decode()


async def judged(program: str, url: str, revision: str, folder: Path) -> Verdicts:
    """What the suite says of a server."""
    folder.mkdir()
    options = ["--requirements", revision, "--timeout", str(SCENARIO_MS), "-o", str(folder)]
    _, output = await run([program, "server", "--url", url, *options])
    return _verdicts(folder, output)


async def judged_as_client(
    program: str, scenario: str, revision: str, folder: Path, client: Callable[[str], Awaitable[None]]
) -> dict[str, str]:
    """What a scenario's server says of a client, by check. `client`: asks the server at a URL."""
    folder.mkdir(parents=True)
    async with _command(client) as command:
        asked = ["--scenario", scenario, "--spec-version", revision, "--timeout", str(2 * SCENARIO_MS)]
        _, output = await run([program, "client", "--command", command, *asked, "-o", str(folder)])
    (checks,) = _verdicts(folder, output, _TELLING).values()
    return checks


_ELSEWHERE = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as end:
    end.sendall(sys.argv[-1].encode() + b"\\n")
    sys.exit(end.recv(1) != b"0")
"""


@asynccontextmanager
async def _command(client: Callable[[str], Awaitable[None]]) -> AsyncIterator[str]:
    """The client as a program that the suite starts with a URL: it asks from here, where all it needs is loaded."""

    async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await client((await reader.readline()).decode().strip())
            writer.write(b"0")
        except Exception:  # as a program would: the suite judges
            traceback.print_exc()
        finally:
            writer.close()

    async with await asyncio.start_server(asked, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield shlex.join([sys.executable, "-I", "-S", "-c", _ELSEWHERE.strip(), str(port)])


def _verdicts(folder: Path, output: str, order: Sequence[str] = _WORST) -> Verdicts:
    found: Verdicts = {}
    for file in folder.rglob("checks.json"):
        scenario = _RUN.sub("", file.parent.name)
        checks = found.setdefault(scenario, {})
        for check in json.loads(file.read_text()):
            before = checks.get(check["id"], "SUCCESS")
            checks[check["id"]] = min(before, check["status"], key=order.index)
    assert found, output
    return found


def passing(verdicts: Verdicts) -> set[str]:
    """Scenarios without a failure."""
    return {scenario for scenario, checks in verdicts.items() if "FAILURE" not in checks.values()}


def differing(direct: Verdicts, through: Verdicts) -> dict[str, tuple[str, str]]:
    """Checks that have another verdict through the proxy, as `SCENARIO/CHECK`."""
    found = {}
    for scenario in direct.keys() | through.keys():
        here, there = direct.get(scenario, {}), through.get(scenario, {})
        for check in here.keys() | there.keys():
            verdicts = here.get(check, "none"), there.get(check, "none")
            if verdicts[0] != verdicts[1]:
                found[f"{scenario}/{check}"] = verdicts
    return found


@asynccontextmanager
async def naming(url: str, target: str) -> AsyncIterator[str]:
    """A client's own view of an endpoint of several servers: resources `test://...` are those of `target`. What it asks
    is written so, and what it gets is written back."""
    plain, named = b'"test://', f'"{target}+test://'.encode()

    async def passed(request: Request) -> StreamingResponse:
        headers = [(key, value) for key, value in request.headers.raw if key not in (b"content-length", b"connection")]
        headers = [
            (key, named[1:-7] + value if value.startswith(b"test://") else value.strip(b" \t"))
            for key, value in headers
        ]
        body = (await request.body()).replace(plain, named)
        asked = web.build_request(request.method, url, headers=headers, content=body)
        answer = await web.send(asked, stream=True)

        async def content() -> AsyncIterator[bytes]:
            try:
                async for data in answer.aiter_bytes():  # an event of the fixture is one piece
                    yield data.replace(named, plain)
            finally:
                await answer.aclose()

        made = StreamingResponse(content(), answer.status_code)
        dropped = (b"content-length", b"transfer-encoding", b"connection")
        made.raw_headers = [(key.lower(), value) for key, value in answer.headers.raw if key.lower() not in dropped]
        return made

    listening = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/mcp", passed, methods=["GET", "POST", "DELETE"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as web:
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await task
            listening.close()
