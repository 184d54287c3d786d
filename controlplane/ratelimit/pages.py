"""HTTP beside the service: metrics, probes, and who has used what (`gatewright budgets`)."""

from __future__ import annotations

import json
from typing import Any, Final

from aiohttp import web

from controlplane.admin.server import HEADERS, host_of
from controlplane.ratelimit.numbers import CONTENT_TYPE, Numbers
from controlplane.ratelimit.store import Budget, Store, StoreFailed
from controlplane.ratelimit.windows import Unit
from controlplane.settings import is_address

MOST: Final = 10_000
"""Budgets of one answer."""
OPEN: Final = frozenset(("/metrics", "/healthz/ready", "/healthz/live"))
REFUSED: Final = "this API answers when addressed by IP address or as localhost"


def open_pages(numbers: Numbers) -> web.Application:
    """Metrics and probes."""

    async def metrics(_: web.Request) -> web.StreamResponse:
        return web.Response(body=numbers.page(), headers={"content-type": CONTENT_TYPE})

    async def healthy(_: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n")

    app = web.Application(middlewares=[_only_by_address])
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/healthz/ready", healthy)
    app.router.add_get("/healthz/live", healthy)
    return app


def all_pages(store: Store, numbers: Numbers) -> web.Application:
    """These, and budgets."""

    async def budgets(request: web.Request) -> web.StreamResponse:
        domain = request.query.get("domain")
        try:
            found = await store.budgets(MOST + 1)
        except StoreFailed as error:
            return _json({"error": str(error)}, 503)
        rows = [shown(each) for each in found[:MOST] if domain in (None, each.key.domain)]
        return _json({"budgets": rows, "isComplete": len(found) <= MOST})

    app = open_pages(numbers)
    app.router.add_get("/api/budgets", budgets)
    return app


def shown(budget: Budget) -> dict[str, Any]:
    key, window = budget.key, budget.window
    return {
        "domain": key.domain,
        "entries": [{"name": name, "value": value} for name, value in json.loads(key.entries)],
        "unit": Unit.Name(key.unit).lower(),
        "start": window.start,
        "end": window.end,
        "used": budget.used,
        "limit": budget.limit,
    }


@web.middleware
async def _only_by_address(request: web.Request, handler: Any) -> web.StreamResponse:  # handler: aiohttp's
    """A page of a browser must not read budgets through a name of its own (DNS rebinding)."""
    host = host_of(request.headers.get("host", ""))
    if request.path not in OPEN and not (is_address(host) or host == "localhost"):
        return _json({"error": REFUSED}, 403)
    answer: web.StreamResponse = await handler(request)
    return answer


def _json(body: object, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, headers=HEADERS)
