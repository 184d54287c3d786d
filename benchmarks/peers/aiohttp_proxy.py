"""A reverse proxy as one writes it with aiohttp: `python aiohttp_proxy.py PORT BACKEND_PORT ROUTES.json LOG`.

Routes by host and longest prefix, appends x-forwarded-for, counts requests by status, writes an access line per request
to a buffered file, streams bodies. On uvloop, which serves it better than the standard loop.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TextIO

import aiohttp
import uvloop
from aiohttp import web

_HOP = frozenset(("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host"))
_HOP_RESPONSE = frozenset(("connection", "keep-alive", "trailer", "transfer-encoding", "upgrade"))


class Proxy:
    def __init__(self, backend_port: int, routes: dict[str, list[str]], log: TextIO) -> None:
        self.backend = f"http://127.0.0.1:{backend_port}"
        self.routes = {host: sorted(prefixes, key=len, reverse=True) for host, prefixes in routes.items()}
        self.log = log
        self.answered: Counter[int] = Counter()
        self.session: aiohttp.ClientSession | None = None

    async def start(self, _: web.Application) -> None:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=600)
        self.session = aiohttp.ClientSession(connector=connector, auto_decompress=False)

    async def stop(self, _: web.Application) -> None:
        if self.session is not None:
            await self.session.close()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        started = time.monotonic()
        prefixes = self.routes.get(request.host, ())
        if not any(request.path.startswith(prefix) for prefix in prefixes):
            return web.Response(status=404)
        headers = [(n, v) for n, v in request.headers.items() if n.lower() not in _HOP]
        headers += [("Host", request.host), ("X-Forwarded-For", request.remote or "")]
        data = request.content if request.body_exists else None
        assert self.session is not None
        url = self.backend + request.path_qs
        async with self.session.request(request.method, url, headers=headers, data=data, allow_redirects=False) as got:
            kept = [(n, v) for n, v in got.headers.items() if n.lower() not in _HOP_RESPONSE]
            response = web.StreamResponse(status=got.status, reason=got.reason)
            response.headers.extend(kept)
            await response.prepare(request)
            async for piece in got.content.iter_any():
                await response.write(piece)
            await response.write_eof()
        self.answered[got.status] += 1
        taken = time.monotonic() - started
        self.log.write(f'{request.remote} "{request.method} {request.path_qs}" {got.status} {taken:.6f}\n')
        return response


def main() -> None:
    port, backend_port, routes, log = sys.argv[1:5]
    with Path(log).open("w", buffering=65536) as lines:
        proxy = Proxy(int(backend_port), json.loads(Path(routes).read_text()), lines)
        application = web.Application()
        application.on_startup.append(proxy.start)
        application.on_cleanup.append(proxy.stop)
        application.router.add_route("*", "/{path:.*}", proxy.handle)
        loop = uvloop.new_event_loop()
        web.run_app(application, host="127.0.0.1", port=int(port), access_log=None, print=None, backlog=8192, loop=loop)


if __name__ == "__main__":
    main()
