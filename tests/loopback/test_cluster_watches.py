"""How a watch of an API server ends: in silence, so that it is begun anew, or in the middle of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from controlplane.kube import access
from controlplane.kube.access import Access

Serve = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(serve: Serve) -> AsyncIterator[Access]:
    """Reached by a client as the library has it."""
    app = web.Application()
    app.router.add_get("/watch", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    async with aiohttp.ClientSession() as session:

        async def request(method: str, url: str, **options: Any) -> aiohttp.ClientResponse:
            return await session.request(method, url, timeout=options["_request_timeout"])

        async def authenticate(*_: object) -> None:
            return None

        client = SimpleNamespace(
            configuration=SimpleNamespace(host=f"http://{host}:{port}"),
            rest_client=SimpleNamespace(request=request),
            update_params_for_auth=authenticate,
        )
        yield Access(client, "", nowhere)
    await runner.cleanup()


async def nowhere() -> access.Found:
    raise access.NoCluster("nowhere to look")


async def began(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    await answer.write(b"one\ntwo\nthr")
    return answer


async def test_a_watch_that_falls_silent_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "SILENCE", 0.2)
    over = asyncio.Event()

    async def serve(request: web.Request) -> web.StreamResponse:
        answer = await began(request)
        await over.wait()
        return answer

    async with server(serve) as reached:
        lines = [line async for several in reached.lines("/watch") for line in several]
        over.set()
    assert lines == [b"one", b"two"]


async def test_a_server_that_ends_in_the_middle_of_an_answer_is_trouble_outside() -> None:
    """As one that is killed: whoever reads tries again."""

    async def serve(request: web.Request) -> web.StreamResponse:
        answer = await began(request)
        assert request.transport is not None
        request.transport.abort()
        return answer

    async with server(serve) as reached:
        with pytest.raises(OSError):
            async for _ in reached.lines("/watch"):
                pass
        with pytest.raises(OSError):
            await reached.read("/watch")
