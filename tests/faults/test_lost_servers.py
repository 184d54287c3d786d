"""Servers that policies ask are lost: of authorization, and of keys of tokens. Two workers, one line for both."""

from __future__ import annotations

import asyncio
import os
import signal
import textwrap
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes.proxy_process import get
from tests.fakes.tokens import ISSUER, Issuer
from tests.faults import page
from tests.faults.page import fault
from tests.faults.world import PORT, Client, Proxy, proxy, until, upstream
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve

CROWD = 16
"""Requests at the same time, each on a connection of its own: the system spreads them over the workers."""

FAILED = 'gatewright_upstream_connections_total{outcome="failed"}'


@asynccontextmanager
async def server(port: int, body: str = "", is_silent: bool = False) -> AsyncIterator[None]:
    """Answers 200 to every request, or nothing; its connections end with it."""
    writers: set[asyncio.StreamWriter] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                if not is_silent:
                    writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", port)
    try:
        yield
    finally:
        listening.close()
        for writer in writers:
            writer.transport.abort()
        await listening.wait_closed()


@asynccontextmanager
async def guarded(folder: Path, routes: str) -> AsyncIterator[Proxy]:
    """A proxy of two workers whose routes, by the first segment of the path, have these policies."""
    async with upstream() as behind:
        text = f"binds:\n- port: {{port}}\n  listeners:\n  - name: http\n    routes:\n{textwrap.indent(routes, '    ')}"
        file = folder / "proxy.yaml"
        file.write_text(text.format(port=PORT, backend=f'[{{host: "127.0.0.1:{behind.port}"}}]'))
        async with proxy(folder, "-f", str(file)) as made:
            await made.ready()
            yield made


async def crowd(made: Proxy, path: str, token: str = "") -> dict[int, int]:
    """How many of `CROWD` requests are answered with each status."""

    async def one() -> int:
        client = await Client.connect(made.port)
        try:
            client.send(path, f"Authorization: Bearer {token}\r\n" if token else "")
            async with asyncio.timeout(PATIENCE):
                return await client.answer()
        finally:
            client.writer.close()

    return Counter(await asyncio.gather(*(one() for _ in range(CROWD))))


AUTHORIZATION = """\
- name: {name}
  matches: [{{{{path: {{{{value: /{name}}}}}}}}}]
  backends: {{backend}}
  policies:
    extAuthz:
      host: 127.0.0.1:{server}
      protocol: {{{{http: {{{{}}}}}}}}
      {more}
"""
OPEN = "- name: open\n  matches: [{{path: {{value: /open}}}}]\n  backends: {backend}\n"


@fault("An authorization server is lost")
async def test_without_its_authorization_server_a_proxy_decides_as_each_policy_wants(tmp_path: Path) -> None:
    asked = reserve()
    modes = {
        "closed": "",
        "forgiving": "failureMode: FailOpen",
        "remembered": 'cache: {{key: ["request.path"], ttl: 1h}}',
    }
    routes = OPEN + "".join(AUTHORIZATION.format(name=name, server=asked, more=more) for name, more in modes.items())
    async with guarded(tmp_path, routes) as made:
        agent = made.agent
        async with server(asked):
            for name in ("open", *modes):
                for _ in range(4):  # until both workers remember
                    assert await crowd(made, f"/{name}") == {200: CROWD}
        for _ in range(2):
            assert await crowd(made, "/closed") == {403: CROWD}
            for name in ("open", "forgiving", "remembered"):
                assert await crowd(made, f"/{name}") == {200: CROWD}
        await agent.says("the authorization server gives no answer")
        await until(lambda: agent.out().count(" reason=ExtAuthFailed ") == 2 * CROWD, agent.out)
        assert "failed: Connection refused" in agent.out()
        _, samples = await get(made.page_port("stats"), "/metrics")
        (counted,) = [row for row in samples.splitlines() if 'reason="ExtAuthFailed",status="403"' in row]
        assert counted.endswith(f" {2 * CROWD:.1f}")
        assert await made.metric(FAILED) == 4 * CROWD  # nothing was asked for what is remembered
        async with server(asked):
            assert await crowd(made, "/closed") == {200: CROWD}
            await agent.says("the authorization server answers again")
        async with server(asked, is_silent=True):
            began = time.monotonic()
            assert await crowd(made, "/closed") == {403: CROWD}
            assert time.monotonic() - began >= 2
            await until(lambda: agent.out().count("gave no answer within 2 s") == CROWD, agent.out)
        assert page.count("the authorization server gives no answer", agent.log()) == 2
        assert page.count("the authorization server answers again", agent.log()) == 1


KEYS = """\
- name: all
  backends: {{backend}}
  policies:
    jwtAuthentication:
      mode: Strict
      providers:
      - issuer: {issuer}
        jwks: {{{{remote: {{{{host: "127.0.0.1:{server}", jwksPath: keys.json, cacheDuration: 1s}}}}}}}}
"""


@fault("A key server is lost")
async def test_keys_stay_in_force_while_their_server_is_lost(tmp_path: Path) -> None:
    asked, ann = reserve(), Issuer()
    token = ann.token(exp=int(time.time()) + 86_400)
    good = {200: CROWD}

    async def is_good() -> bool:
        return await crowd(made, "/", token) == good

    async with guarded(tmp_path, KEYS.format(issuer=ISSUER, server=asked)) as made:
        agent = made.agent
        await agent.says("none are known yet")
        assert await crowd(made, "/", token) == {401: CROWD}
        await until(lambda: agent.out().count(" reason=JwtKeysUnavailable ") == CROWD, agent.out)
        async with server(asked, ann.key_set()):
            await until(is_good, agent.log)
            await agent.says("fetched again")
        tried = await made.metric(FAILED)

        async def is_tried() -> bool:  # more often than once by each of the workers
            assert await is_good()
            return await made.metric(FAILED) >= tried + 4

        await until(is_tried, agent.log)
        await agent.says("those known stay in force")
        for pid in await made.workers():
            os.kill(pid, signal.SIGKILL)
        await until(lambda: agent.log().count("worker serves") == 4, agent.log)
        assert await crowd(made, "/", token) == {401: CROWD}

        async with server(asked, ann.key_set()):
            await until(is_good, agent.log)
        assert page.count("fetched again", agent.log()) == 2
        assert page.count("none are known yet", agent.log()) == 1
        assert page.count("those known stay in force", agent.log()) == 1
