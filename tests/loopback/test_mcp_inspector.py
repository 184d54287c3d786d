"""MCP Inspector's command line as the client and the reference server of MCP (`server-everything`) as the server: it
prints the same, and ends with the same status, direct and through the proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from signal import SIGKILL

import pytest

from tests.fakes.mcp_suites import run
from tests.fakes.proxy_process import running
from tests.harness.ports import reserve
from tests.harness.processes import started
from tests.harness.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.needs("mcp-inspector", "mcp-server-everything")]

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: one
      matches: [{{path: {{type: PathPrefix, value: /one}}}}]
      backends: [{{mcp: {{targets: [{{name: everything, static: {{host: 127.0.0.1, port: {port}}}}}]}}}}]
    - name: several
      matches: [{{path: {{type: PathPrefix, value: /several}}}}]
      backends:
      - mcp:
          targets:
          - {{name: first, static: {{host: 127.0.0.1, port: {port}}}}}
          - {{name: second, static: {{host: 127.0.0.1, port: {port}}}}}
"""


@asynccontextmanager
async def world(tool: Callable[[str], str], folder: Path) -> AsyncIterator[tuple[str, str]]:
    """URLs of the server itself and of the proxy, without paths."""
    async with AsyncExitStack() as stack:
        port = reserve()
        command = [tool("mcp-server-everything"), "streamableHttp"]
        server = await stack.enter_async_context(
            started(
                folder, "server", command, end=SIGKILL, environment={"PORT": str(port)}
            )  # asked, it waits for clients
        )
        await until(lambda: "listening on port" in server.log(), server.log)
        file = folder / "config.yaml"
        file.write_text(FILE.format(port=port))
        proxy = await stack.enter_async_context(running("-f", str(file)))
        await proxy.ready()
        yield f"http://127.0.0.1:{port}", f"http://127.0.0.1:{proxy.at(8080)}"


ASKED = (
    "--method tools/list",
    "--method tools/call --tool-name echo --tool-arg message=hello",
    "--method tools/call --tool-name get-sum --tool-arg a=1 --tool-arg b=2",
    "--method tools/call --tool-name echo",
    "--method tools/call --tool-name nothing",
    "--method resources/list",
    "--method resources/templates/list",
    "--method resources/read --uri demo://resource/static/document/features.md",
    "--method prompts/list",
    "--method prompts/get --prompt-name simple-prompt",
)


async def test_inspector_sees_the_same(tool: Callable[[str], str], tmp_path: Path) -> None:
    inspector = tool("mcp-inspector")

    async def asked(url: str, words: str) -> tuple[int, str]:
        status, output = await run([inspector, "--cli", url, "--transport", "http", *words.split()], tmp_path)
        return status, output.replace(url, "URL")

    async with world(tool, tmp_path) as (server, proxy):
        for words in ASKED:
            direct = await asked(f"{server}/mcp", words)
            assert await asked(f"{proxy}/one", words) == direct, words
        several = "--method tools/call --tool-name second_echo --tool-arg message=hello"
        status, output = await asked(f"{proxy}/several", several)
        assert status == 0 and "Echo: hello" in output, output
