"""The commands of `docs/mcp`, typed as they stand there: each page's file behind a proxy, the servers of `examples/mcp`
as upstreams, and what its commands print."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.mcp_suites import run
from tests.fakes.proxy_process import running
from tests.harness import ports
from tests.harness.processes import started
from tests.harness.waiting import until

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/mcp").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SERVERS = {"19501": ("files", "read,drop"), "19502": ("search", "find")}
NOBODY = "19503"
"""The port of a page's server that is not there."""


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text()) if found == language]


def transcript(page: Path) -> list[tuple[str, str]]:
    """(command, what it prints) in the order of the page."""
    found: list[tuple[str, str]] = []
    for line in "".join(blocks(page, "sh")).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, output = found[-1]
            found[-1] = command, f"{output}{line}\n"
    return found


def dense(text: str) -> str:
    """Without the spaces that writers of JSON like, or not."""
    return re.sub(r'(?<=[:,]) (?=["{\[\d-])', "", text)


def pattern(output: str) -> str:
    """`…` stands for what a page leaves out."""
    return r"\n?".join(".*".join(map(re.escape, line.split("…"))) for line in output.splitlines())


@asynccontextmanager
async def servers(folder: Path) -> AsyncIterator[dict[str, str]]:
    """Both servers of the example: the ports that stand for those of the pages."""
    taken = {port: str(ports.reserve()) for port in (*SERVERS, NOBODY)}
    commands = [
        [sys.executable, str(ROOT / "examples/mcp/server.py"), taken[port], *about] for port, about in SERVERS.items()
    ]
    async with started(folder, "files", commands[0]) as files, started(folder, "search", commands[1]) as search:
        await until(lambda: "MCP server" in files.out() and "MCP server" in search.out(), files.log)
        yield taken


def renumbered(text: str, taken: dict[str, str]) -> str:
    return re.sub(r"\b(" + "|".join(taken) + r")\b", lambda match: taken[match[1]], text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
async def test_what_a_page_says_comes_of_its_commands(page: Path, tmp_path: Path) -> None:
    typed = transcript(page)
    assert typed
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for text in blocks(page, "json"):
        (tmp_path / "mcp.json").write_text(text)
    async with servers(tmp_path) as taken:
        first = next(text for text in blocks(page, "yaml") if not text.startswith("apiVersion:"))
        (tmp_path / "tools.yaml").write_text(renumbered(first, taken))
        async with running("-f", str(tmp_path / "tools.yaml"), workers=2) as proxy:
            await proxy.ready()
            taken = {**taken, "3000": str(proxy.at(3000)), "15020": str(await proxy.page("stats"))}
            printed = await outputs([renumbered(command, taken) for command, _ in typed], tmp_path, taken)
            for (command, expected), found in zip(typed, printed, strict=True):
                wanted = pattern(dense(renumbered(expected, taken)))
                assert re.fullmatch(wanted, dense(found).strip("\n"), re.DOTALL), f"{command}\n{found}\n{expected}"
            await goodbye(taken["3000"], tmp_path)


MARK = "--- the next command"


async def outputs(commands: list[str], folder: Path, taken: dict[str, str]) -> list[str]:
    """What each prints, in one shell."""
    script = "\n".join(f"{command}\necho '{MARK}'" for command in commands)
    status, output = await shell(f'. examples/mcp/curl.sh\n{script}\necho "$S" > session', folder, taken)
    assert status == 0, output
    return output.split(f"{MARK}\n")[:-1]


async def goodbye(port: str, folder: Path) -> None:
    """The session's end, so that nothing is left of it."""
    session = (folder / "session").read_text().strip()
    await shell(f"curl -sS -X DELETE http://127.0.0.1:{port}/mcp -H 'Mcp-Session-Id: {session}'", folder, {})


async def shell(script: str, folder: Path, taken: dict[str, str]) -> tuple[int, str]:
    environment = {
        **os.environ,
        "MCP": f"http://127.0.0.1:{taken.get('3000', '')}/mcp",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        script,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


@pytest.mark.slow
@pytest.mark.needs("mcp-inspector")
async def test_the_inspector_of_the_overview(tmp_path: Path, tool: object) -> None:
    assert callable(tool)
    (line,) = re.findall(
        r"^    npx @modelcontextprotocol/inspector (.*)$", (PAGES[0].parent / "README.md").read_text(), re.M
    )
    async with servers(tmp_path) as taken:
        first = next(text for text in blocks(PAGES[0].parent / "README.md", "yaml") if text.startswith("binds:"))
        (tmp_path / "tools.yaml").write_text(renumbered(first, taken))
        async with running("-f", str(tmp_path / "tools.yaml"), workers=1) as proxy:
            await proxy.ready()
            words = line.replace("127.0.0.1:3000", f"127.0.0.1:{proxy.at(3000)}").split()
            status, output = await run([tool("mcp-inspector"), *words])
            assert status == 0 and "files_read" in output and "search_find" in output, output
