"""Metrics and probes over HTTP, and a listening server for pages: on the admin address, or on addresses of their own.

Probes and scrapers come from other machines, so these pages hold nothing but numbers and words of this product. Called
by `server` and the composition root.
"""

from __future__ import annotations

import socket
from http import HTTPStatus

from aiohttp import web

from controlplane.admin import facts as facts_
from controlplane.admin import metrics

SHUTDOWN_SECONDS = 0.5
ANY_IPV6 = "::"
"""Every address of the machine, as for a proxy's pages."""

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def add_stats(app: web.Application, facts: facts_.Facts) -> None:
    """`/metrics`, as a proxy's page of the same name."""

    async def numbers(_: web.Request) -> web.StreamResponse:
        headers = {**HEADERS, "content-type": metrics.CONTENT_TYPE}
        return web.Response(body=metrics.render(facts.numbers()), headers=headers)

    app.router.add_get("/metrics", numbers)
    app.router.add_get("/stats/prometheus", numbers)


def add_readiness(app: web.Application, facts: facts_.Facts) -> None:
    """`/healthz/ready`: 200, or 500 naming what is pending, as a proxy answers; `/healthz/live`: 200, or 500 when
    only another process can go on."""

    async def ready(_: web.Request) -> web.StreamResponse:
        pending = facts.pending()
        if pending:
            text = f"not ready, pending: {', '.join(pending)}\n"
            return web.Response(text=text, status=HTTPStatus.INTERNAL_SERVER_ERROR, headers=HEADERS)
        return web.Response(text="ready\n", headers=HEADERS)

    async def live(_: web.Request) -> web.StreamResponse:
        if facts.is_broken():
            return web.Response(text="restart it\n", status=HTTPStatus.INTERNAL_SERVER_ERROR, headers=HEADERS)
        return web.Response(text="live\n", headers=HEADERS)

    app.router.add_get("/healthz/ready", ready)
    app.router.add_get("/healthz/live", live)


def stats(facts: facts_.Facts) -> web.Application:
    """The page of metrics alone."""
    app = web.Application()
    add_stats(app, facts)
    return app


def readiness(facts: facts_.Facts) -> web.Application:
    """The pages for probes alone."""
    app = web.Application()
    add_readiness(app, facts)
    return app


class Listening:
    """An application that is served on an address. `start` raises OSError when it is taken."""

    def __init__(self, application: web.Application, host: str, port: int) -> None:
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        self._host, self._port = host.strip("[]"), port

    async def start(self) -> int:
        """Listens, and gives the port (of use when 0 was asked for)."""
        await self._runner.setup()
        try:
            await self._site().start()
        except OSError:
            await self._runner.cleanup()
            raise
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        await self._runner.cleanup()

    def _site(self) -> web.BaseSite:
        if self._host != ANY_IPV6 or not socket.has_dualstack_ipv6():
            return web.TCPSite(self._runner, "0.0.0.0" if self._host == ANY_IPV6 else self._host, self._port)
        both = socket.create_server((self._host, self._port), family=socket.AF_INET6, dualstack_ipv6=True)
        return web.SockSite(self._runner, both)
