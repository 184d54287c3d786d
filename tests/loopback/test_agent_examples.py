"""`examples/mcp` and `examples/a2a`: their one command, but for ports, and what their pages say that comes of it."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import Program, started
from tests.harness.waiting import until
from tests.rules.page_commands import commands

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MARK = "--- the next command"
MCP = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@asynccontextmanager
async def example(name: str, folder: Path) -> AsyncIterator[tuple[str, Program]]:
    """`run.py` of a copy in which its fixed ports are free ones: the address of the page's curl lines."""
    copy = folder / name
    shutil.copytree(EXAMPLES / name, copy)
    ports: dict[str, str] = {}
    for file in (copy / "run.py", copy / "config.yaml"):
        found = re.sub(r"\b(19\d\d\d)\b", lambda match: ports.setdefault(match[1], str(reserve())), file.read_text())
        file.write_text(found)
    flags = ["--any-port", "--workers=1", *(f"--{page}=127.0.0.1:0" for page in ("admin", "stats", "readiness"))]
    command = [sys.executable, str(copy / "run.py"), *flags]
    async with started(folder, name, command, end=signal.SIGINT) as program:

        def opened() -> str | None:
            match = re.search(r"bind opened bind=\S+/3000 address=\S+:(\d+) ", program.log())
            return match[1] if match else None

        port = await until(opened, program.log)
        yield f"http://127.0.0.1:{port}", program


async def answered(web: httpx2.AsyncClient, url: str, body: Any = None, **headers: str) -> httpx2.Response:
    """Asked again while the example's servers start."""

    async def ask() -> httpx2.Response | None:
        method = "GET" if body is None else "POST"
        found = await web.request(method, url, json=body, headers={**MCP, **headers})
        return None if found.status_code in (502, 503) else found

    return await until(ask, lambda: f"an answer of {url}")


def rpc(method: str, params: Any = None, number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}


async def curl_lines(name: str, base: str) -> list[str]:
    """What the page's curl lines print, in one shell. The session of the first one is `$S`, as the page has it."""
    texts = [each.text for each in commands(EXAMPLES / name / "README.md") if each.text.startswith("curl ")]
    lines = [
        text.replace("http://127.0.0.1:3000", base).replace("curl ", "curl -sS --noproxy '*' ", 1) for text in texts
    ]
    find = "S=$(printf %s \"$answer\" | tr -d '\\r' | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p')"
    script = "".join(
        f'answer=$({line})\n{find if not number else ":"}\necho "$answer{MARK}"\n' for number, line in enumerate(lines)
    )
    process = await asyncio.create_subprocess_exec("bash", "-c", script, stdout=asyncio.subprocess.PIPE)
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    return output.decode().split(f"{MARK}\n")[:-1]


@pytest.mark.needs("curl")
async def test_the_mcp_servers(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "curl", "version": "1"}}
    async with example("mcp", tmp_path) as (base, _), httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as web:

        async def whole() -> str | None:  # FailOpen: a server that starts late is lost at first
            begun = await answered(web, f"{base}/mcp", rpc("initialize", hello))
            found = begun.headers["mcp-session-id"]
            listed = await answered(web, f"{base}/mcp", rpc("tools/list"), **{"mcp-session-id": found})
            names = [tool["name"] for tool in listed.json()["result"]["tools"]]
            assert "files_drop" not in names
            return found if names == ["files_read", "search_find"] else None

        session = {"mcp-session-id": await until(whole, "both servers")}
        read = {"name": "files_read", "arguments": {"path": "/etc/motd"}}
        answer = await answered(web, f"{base}/mcp", rpc("tools/call", read), **session)
        assert answer.json()["result"]["content"][0]["text"] == "files: read /etc/motd"
        refused = await answered(web, f"{base}/mcp", rpc("tools/call", {"name": "files_drop"}), **session)
        assert refused.json()["error"]["message"] == "Unknown tool: files_drop"
        begun, listed, called = await curl_lines("mcp", base)
        assert re.search(r"^mcp-session-id: \S+", begun, re.MULTILINE | re.IGNORECASE)
        assert '"files_read"' in listed and '"search_find"' in listed and "files_drop" not in listed
        assert "files: read /etc/motd" in called


@pytest.mark.needs("curl")
async def test_the_agent(tmp_path: Path) -> None:
    async with (
        example("a2a", tmp_path) as (base, program),
        httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as web,
    ):
        agent = f"{base}/agents/greeter"
        card = await answered(web, f"{agent}/.well-known/agent-card.json")
        assert card.json()["url"] == f"{agent}/rpc"
        said = {"kind": "message", "messageId": "1", "role": "user", "parts": [{"kind": "text", "text": "ann"}]}
        done = await answered(web, f"{agent}/rpc", rpc("message/send", {"message": said}))
        assert done.json()["result"]["status"]["state"] == "completed"
        other = {"message": {"messageId": "2", "role": "user", "parts": [{"text": "ann"}]}}
        assert (await answered(web, f"{agent}/v1/message:send", other)).status_code == 200
        streamed = await answered(web, f"{agent}/rpc", rpc("message/stream", {"message": said}))
        events = [json.loads(line[5:]) for line in streamed.text.splitlines() if line.startswith("data:")]
        assert streamed.headers["content-type"].startswith("text/event-stream") and events
        refused = await answered(web, f"{agent}/v1/tasks/task-1:cancel", {})
        assert (refused.status_code, refused.text.strip()) == (403, "authorization failed")
        described, sent, by_rest, denied = await curl_lines("a2a", base)
        assert json.loads(described)["url"] == f"{agent}/rpc"
        assert json.loads(sent)["result"]["status"]["state"] == "completed" and json.loads(by_rest)
        assert denied.startswith("HTTP/1.1 403 ") and denied.endswith("authorization failed")
        for line in ("a2a.method=message/send a2a.task.id=task-1 a2a.task.state=completed", "a2a.method=tasks/cancel"):
            await until(lambda line=line: line in program.log() + program.out(), program.log)  # type: ignore[misc]
