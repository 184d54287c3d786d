"""Demo upstreams: small HTTP services on loopback, so that an example answers without any other software.

`gatewright up` starts this module as one child process and writes the wanted servers to its standard input, one JSON
list a line; the newest line wins, so servers come and go with the EndpointSlices that ask for them. End of input means
that `up` is gone (however it died) and ends the process. Nothing here is meant for production traffic.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

from aiohttp import web

from controlplane.cli.local import demo_llm

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request that the demo server reads."""
SSE_EVENTS = 5
SSE_INTERVAL = 0.2
"""Events of a stream of the demo server, and seconds between them, where a request does not say."""
MAX_SSE_EVENTS = 100_000
MAX_SSE_INTERVAL = 60.0
"""The most that a request may say."""
SHUTDOWN_SECONDS = 0.2
"""Seconds that requests under way have when a demo server stops."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, order=True)
class Server:
    """One wanted demo server: what it is, whose Service it plays, where it listens."""

    kind: str
    service: str
    address: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.service} ({self.kind}) on {host}:{self.port}"


def echo(server: Server) -> Handler:
    """Answers with what arrived, as JSON: the quickest way to see what a route did to a request."""

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers: dict[str, str] = {}
        for name, value in request.headers.items():
            key = name.lower()
            headers[key] = f"{headers[key]}, {value}" if key in headers else value
        answer = {
            "service": server.service,
            "endpoint": f"{server.address}:{server.port}",
            "method": request.method,
            "path": request.raw_path,
            "headers": headers,
            "body": body.decode("utf-8", "replace"),
        }
        return web.json_response(answer, headers={"x-demo-service": server.service})

    return handle


def sse(server: Server) -> Handler:
    """Answers with a stream of server-sent events; `?events=N&interval=SECONDS` shapes it."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            events = min(int(request.query.get("events", SSE_EVENTS)), MAX_SSE_EVENTS)
            interval = min(float(request.query.get("interval", SSE_INTERVAL)), MAX_SSE_INTERVAL)
        except ValueError:
            return web.Response(status=400, text="events and interval are numbers: /sse?events=5&interval=0.2\n")
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream", "cache-control": "no-cache", "x-demo-service": server.service}
        )
        await response.prepare(request)
        with contextlib.suppress(ConnectionResetError):  # a client that leaves in the middle is no error of the server
            for number in range(events):
                if number:
                    await asyncio.sleep(interval)
                data = json.dumps({"service": server.service, "event": number})
                await response.write(f"id: {number}\nevent: tick\ndata: {data}\n\n".encode())
            await response.write_eof()
        return response

    return handle


# Kind (the value of the annotation gatewright.dev/demo) to its routes. `echo` also streams under /sse.
KINDS: dict[str, tuple[tuple[str, Callable[[Server], Handler]], ...]] = {
    "echo": (("/sse", sse), ("/{rest:.*}", echo)),
    "sse": (("/{rest:.*}", sse),),
    "llm": demo_llm.ROUTES,
}


def application(server: Server) -> web.Application:
    """The aiohttp application of one server; raises KeyError for a kind that is not in `KINDS`."""
    app = web.Application(client_max_size=MAX_BODY)
    for path, build in KINDS[server.kind]:
        app.router.add_route("*", path, build(server))
    return app


@contextlib.asynccontextmanager
async def _web(server: Server) -> AsyncIterator[str]:
    runner = web.AppRunner(application(server), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, server.address, server.port).start()
        yield ""
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def _rate_limit(server: Server) -> AsyncIterator[str]:
    """A rate limit server that counts in memory, limits that come with requests."""
    from controlplane.ratelimit import server as ratelimit  # here: gRPC takes long to load

    settings = ratelimit.Settings(None, (server.address, server.port), (server.address, 0), ratelimit.MEMORY)
    try:
        async with ratelimit.running(settings) as found:
            yield f"; gatewright budgets --admin {server.address}:{found.admin_port}"
    except ratelimit.Unbound as error:
        raise OSError(str(error)) from None


SERVES: dict[str, Callable[[Server], contextlib.AbstractAsyncContextManager[str]]] = {
    **dict.fromkeys(KINDS, _web),
    "ratelimit": _rate_limit,
}
"""All kinds, and what runs one: it gives what is to be said beside its address. Raises OSError when it cannot
listen."""


class Demos:
    """The running servers; `apply` moves them to what is wanted."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._running: dict[Server, contextlib.AsyncExitStack] = {}
        self._say = say

    async def apply(self, wanted: frozenset[Server]) -> None:
        """Stops what is no longer wanted, then starts what is new; a port in use is said, not fatal."""
        for server in sorted(self._running.keys() - wanted):
            await self._running.pop(server).aclose()
            self._say(f"stopped {server}")
        for server in sorted(wanted - self._running.keys()):
            await self._start(server)

    async def _start(self, server: Server) -> None:
        stack = contextlib.AsyncExitStack()
        try:
            more = await stack.enter_async_context(SERVES[server.kind](server))
        except OSError as error:
            self._say(f"cannot start {server}: {error.strerror or error}")
            return
        self._running[server] = stack
        self._say(f"serving {server}{more}")

    async def stop(self) -> None:
        """Stops all, without a word: the end is not news."""
        while self._running:
            _, stack = self._running.popitem()
            await stack.aclose()


def parse(line: bytes) -> frozenset[Server]:
    """One line of standard input to the wanted servers."""
    return frozenset(Server(**item) for item in json.loads(line))


def encode(servers: frozenset[Server]) -> bytes:
    """The inverse of `parse`, for the parent."""
    rows = [{"kind": s.kind, "service": s.service, "address": s.address, "port": s.port} for s in sorted(servers)]
    return json.dumps(rows).encode() + b"\n"


@contextlib.contextmanager
def _stops_on_sigterm(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.Event]:
    stopping = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    try:
        yield stopping
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def run() -> None:
    """Serves until end of input or SIGTERM."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_BODY)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    demos = Demos(lambda text: print(text, flush=True))
    with _stops_on_sigterm(loop) as stopping:
        stop = asyncio.create_task(stopping.wait())
        while not stopping.is_set():
            line = asyncio.create_task(reader.readline())
            await asyncio.wait({line, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not line.done():
                line.cancel()
                break
            if not line.result():
                break
            await demos.apply(parse(line.result()))
        stop.cancel()
    await demos.stop()


if __name__ == "__main__":
    asyncio.run(run())
