"""MCP's own suites: every verdict on the fixture server is the same direct and through the proxy, with one server, with
several, and without sessions. docs/mcp-conformance.md has the figures and lists what differs, with its reason."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.mcp_suites import REVISIONS, differing, fixture, judged, naming, passing
from tests.fakes.proxy_process import Proxy, running

pytestmark = [pytest.mark.slow, pytest.mark.needs("mcp-conformance")]

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: one
      matches: [{{path: {{type: PathPrefix, value: /one}}}}]
      backends: [{{mcp: {{targets: [{{name: first, static: {{host: 127.0.0.1, port: {whole}}}}}]}}}}]
    - name: several
      matches: [{{path: {{type: PathPrefix, value: /several}}}}]
      backends:
      - mcp:
          targets:
          - {{name: test, static: {{host: 127.0.0.1, port: {short}}}}}
          - {{name: json, static: {{host: 127.0.0.1, port: {schema}}}}}
          - {{name: other, static: {{host: 127.0.0.1, port: {whole}}}}}
    - name: stateless
      matches: [{{path: {{type: PathPrefix, value: /stateless}}}}]
      backends:
      - mcp: {{sessionRouting: Stateless, targets: [{{name: first, static: {{host: 127.0.0.1, port: {whole}}}}}]}}
"""


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[tuple[Proxy, int]]:
    """The proxy, and the port of the server for direct questions."""
    async with AsyncExitStack() as stack:
        whole = await stack.enter_async_context(fixture(folder, "whole"))
        short = await stack.enter_async_context(fixture(folder, "short", "test_"))
        schema = await stack.enter_async_context(fixture(folder, "schema", "json_"))
        file = folder / "config.yaml"
        file.write_text(FILE.format(whole=whole, short=short, schema=schema))
        proxy = await stack.enter_async_context(running("-f", str(file), workers=1))  # who ended a session knows it
        await proxy.ready()
        yield proxy, whole


BETTER = "the proxy takes the spaces of a header value away, which the server does not"
DIFFERS: dict[tuple[str, str], dict[str, str]] = {
    ("one", "2026-07-28"): {"http-header-validation": BETTER},
    ("several", "2025-11-25"): {
        "server-sse-multiple-streams": "merged lists are JSON, where the server sends events",
    },
    ("several", "2026-07-28"): {
        "http-header-validation": BETTER,
        "tasks-dispatch-and-envelope": "a task that names no server is not there; the server knows no tasks at all",
    },
    ("stateless", "2025-11-25"): {
        "server-initialize": "there is no session id to look at",
        "server-session-lifecycle": "there is no session",
        "server-sse-multiple-streams": "there is no session",
        "server-sse-polling": "there is no session",
    },
    ("stateless", "2026-07-28"): {"http-header-validation": BETTER},
}
"""By shape and revision: scenarios of which a check has another verdict through the proxy than direct, and why."""
SCENARIOS = {"2025-11-25": 33, "2026-07-28": 40}
"""That pass direct, on a quiet machine."""


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("shape", ["one", "several", "stateless"])
async def test_the_server_set(tool: Callable[[str], str], tmp_path: Path, shape: str, revision: str) -> None:
    program = tool("mcp-conformance")
    async with world(tmp_path) as (proxy, port), AsyncExitStack() as stack:
        direct = await judged(program, f"http://127.0.0.1:{port}/mcp", revision, tmp_path / "direct")
        url = f"http://127.0.0.1:{proxy.at(8080)}/{shape}"
        if shape == "several":
            url = await stack.enter_async_context(naming(url, "test"))
        through = await judged(program, url, revision, tmp_path / "through")
    assert len(passing(direct)) >= SCENARIOS[revision] - 2, "fewer would say little"
    different = differing(direct, through)
    assert {name.partition("/")[0] for name in different} == set(DIFFERS.get((shape, revision), {})), different
    assert passing(direct) <= passing(through)
