"""Clients that others wrote take what is compressed: curl, httpx, aiohttp, and Chromium where there is one."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Final

import aiohttp
import httpx
import pytest
from aiohttp import web

from tests.fakes.proxy_process import running
from tests.harness.patience import PATIENCE

CONFIG: Final = """
binds:
- port: 8080
  addresses: [127.0.0.1]
  listeners:
  - routes:
    - policies: {{compression: {{encodings: [{codings}], contentTypes: ["text/*"]}}}}
      backends: [{{host: "127.0.0.1:{port}"}}]
"""
PAGE: Final = "<!doctype html><title>{}</title>" + "<p>some text of a page</p>" * 500
EVENTS: Final = 3
LISTENS: Final = """<!doctype html><p id=seen></p><img src=/all><script>
const events = new EventSource("/events"), seen = []
events.onmessage = event => {
  seen.push(event.data)
  document.getElementById("seen").textContent = seen.join(" ")
  if (seen.length == 3) events.close()
  fetch("/saw", {method: "POST"})
}
</script>"""
CHROMIUM: Final = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom")
CODINGS: Final = {"gzip": "zlib/", "br": "brotli/", "zstd": "zstd/"}
"""To how curl names what it was built with for it."""
ACCEPTED: Final[list[str]] = []
"""What clients said that they take."""


async def origin() -> web.AppRunner:
    """A page, and events of which each waits until the one before was seen."""

    async def page(request: web.Request) -> web.Response:
        ACCEPTED.append(request.headers["accept-encoding"])
        return web.Response(text=PAGE, content_type="text/html")

    async def events(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for number in range(EVENTS):
            await response.write(b"data: %d\n\n" % number)
            await asyncio.wait_for(seen.acquire(), PATIENCE)
        all_seen.set()
        return response

    async def saw(_: web.Request) -> web.Response:
        seen.release()
        return web.Response()

    async def listens(_: web.Request) -> web.Response:
        all_seen.clear()
        return web.Response(text=LISTENS, content_type="text/html")

    async def when_all_seen(_: web.Request) -> web.Response:
        await asyncio.wait_for(all_seen.wait(), PATIENCE)
        return web.Response()

    seen, all_seen = asyncio.Semaphore(0), asyncio.Event()
    app = web.Application()
    app.add_routes([web.get("/page", page), web.get("/events", events), web.post("/saw", saw)])
    app.add_routes([web.get("/listens", listens), web.get("/all", when_all_seen)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner


async def printed(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    return output.decode()


async def _curl(url: str, coding: str) -> None:
    output = await printed("curl", "-s", "-D", "-", "--compressed", "-H", f"accept-encoding: {coding}", url)
    head, _, body = output.replace("\r\n", "\n").partition("\n\n")
    assert f"content-encoding: {coding}" in head.lower() and body == PAGE


async def _httpx(url: str, coding: str) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.get(url, headers={"accept-encoding": coding})
    assert answer.headers["content-encoding"] == coding and answer.text == PAGE


async def _aiohttp(url: str, coding: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers={"accept-encoding": coding}) as answer,
    ):
        assert answer.headers["content-encoding"] == coding and await answer.text() == PAGE


async def _chromium(url: str, coding: str) -> None:
    ACCEPTED.clear()
    assert PAGE[-200:] in await printed(*CHROMIUM, url)
    assert coding in ACCEPTED[0]


CLIENTS: Final = {"curl": _curl, "httpx": _httpx, "aiohttp": _aiohttp} | (
    {"chromium": _chromium} if shutil.which("chromium") else {}
)


WITHOUT: Final = {("httpx", "zstd")}
"""What a client decodes with a further package alone."""


async def takers(coding: str) -> list[str]:
    """The clients that are here and take it."""
    has_it = CODINGS[coding] in await printed("curl", "--version")
    without = WITHOUT if has_it else WITHOUT | {("curl", coding)}
    return [name for name in CLIENTS if (name, coding) not in without]


@pytest.mark.parametrize("coding", CODINGS)
async def test_clients_take_each_coding(coding: str, tmp_path: Path) -> None:
    runner = await origin()
    try:
        file = tmp_path / "config.yaml"
        file.write_text(CONFIG.format(codings=coding, port=runner.addresses[0][1]))
        async with running("-f", str(file)) as proxy:
            await proxy.ready()
            for name in await takers(coding):
                await CLIENTS[name](f"http://127.0.0.1:{proxy.at(8080)}/page", coding)
    finally:
        await runner.cleanup()


async def _events_curl(at: str, coding: str) -> None:
    command = ("curl", "-s", "-N", "--compressed", "-H", f"accept-encoding: {coding}", f"{at}/events")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    async with httpx.AsyncClient() as beside:
        for number in range(EVENTS):
            event = await asyncio.wait_for(process.stdout.readuntil(b"\n\n"), PATIENCE)
            assert event == b"data: %d\n\n" % number
            await beside.post(f"{at}/saw")
    assert await process.wait() == 0


async def _events_httpx(at: str, coding: str) -> None:
    async with (
        httpx.AsyncClient(timeout=PATIENCE) as client,
        client.stream("GET", f"{at}/events", headers={"accept-encoding": coding}) as answer,
    ):
        assert answer.headers["content-encoding"] == coding
        lines = answer.aiter_lines()
        for number in range(EVENTS):
            assert await anext(lines) == f"data: {number}" and not await anext(lines)
            await client.post(f"{at}/saw")


async def _events_aiohttp(at: str, coding: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{at}/events", headers={"accept-encoding": coding}) as answer,
    ):
        assert answer.headers["content-encoding"] == coding
        for number in range(EVENTS):
            event = await asyncio.wait_for(answer.content.readuntil(b"\n\n"), PATIENCE)
            assert event == b"data: %d\n\n" % number
            await session.post(f"{at}/saw")


async def _events_chromium(at: str, coding: str) -> None:
    """The page is loaded when each of its events has said that it was seen."""
    assert ">0 1 2<" in await printed(*CHROMIUM, f"{at}/listens")


LISTENERS: Final = {"curl": _events_curl, "httpx": _events_httpx, "aiohttp": _events_aiohttp} | (
    {"chromium": _events_chromium} if "chromium" in CLIENTS else {}
)


@pytest.mark.parametrize("coding", CODINGS)
async def test_events_arrive_one_by_one(coding: str, tmp_path: Path) -> None:
    """The origin sends the next one when the client has seen the one before."""
    runner = await origin()
    try:
        file = tmp_path / "config.yaml"
        file.write_text(CONFIG.format(codings=coding, port=runner.addresses[0][1]))
        async with running("-f", str(file)) as proxy:
            await proxy.ready()
            for name in await takers(coding):
                await LISTENERS[name](f"http://127.0.0.1:{proxy.at(8080)}", coding)
    finally:
        await runner.cleanup()
