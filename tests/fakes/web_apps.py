"""Applications of aiohttp as servers of a test: on a port of their own, gone with the test."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def served(app: web.Application, security: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Its port."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=security).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def answering(handle: Callable[[web.Request], Awaitable[web.StreamResponse]], most: int = 1 << 20) -> web.Application:
    """Requests of all methods and paths go to `handle`. `most`: bytes of a body."""
    app = web.Application(client_max_size=most)
    app.router.add_route("*", "/{rest:.*}", handle)
    return app


async def serve_until_left(app: web.Application) -> None:
    """The main of a program: prints its port, and serves until standard input ends with whoever started it."""
    async with served(app) as port:
        print(json.dumps({"port": port}), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
