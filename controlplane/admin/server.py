"""The operator's HTTP API on loopback (127.0.0.1:18001): read-only JSON, metrics and probes, no credentials, therefore
loopback only.

Started by the composition root. A browser page from elsewhere must not read it through DNS rebinding: the Host header
has to be an IP address, localhost, or a name that an option gives, and no CORS header is ever sent.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from controlplane.admin import facts as facts_
from controlplane.admin import pages
from controlplane.settings import is_address, is_loopback

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

OPEN = frozenset(("/metrics", "/stats/prometheus", "/healthz/ready", "/healthz/live"))
"""Paths that answer whatever the Host header says."""

REFUSED = "this API answers when addressed by IP address, as localhost, or by a name given with --admin-host"

INDEX = {
    "/metrics": "metrics of the controller, in the format that Prometheus reads",
    "/healthz/ready": "200 when the configuration was read and xDS listens",
    "/healthz/live": "200 while the controller answers; 500 when it has to be restarted",
    "/api/version": "version of the controller",
    "/api/status": "proxies, objects with their conditions, problems of files; ?object=KIND/NAMESPACE/NAME selects",
    "/api/trace": "the way of a change: ?object=KIND/NAMESPACE/NAME, its resources, who serves them, its conditions",
    "/api/objects": "the objects that the controller knows",
    "/api/objects/KIND/NAMESPACE/NAME": "one object as decoded (cluster-scoped: KIND/NAME)",
}


def host_of(authority: str) -> str:
    """The host part of a Host header (RFC 9110, 7.2), without its port."""
    if authority.startswith("["):
        return authority.partition("]")[0] + "]"
    return authority.partition(":")[0]


def application(facts: facts_.Facts, names: frozenset[str] = frozenset()) -> web.Application:
    """The API as an aiohttp application; nothing is cached, every answer is asked from `facts`."""

    async def index(_: web.Request) -> web.StreamResponse:
        return _json(INDEX)

    async def version(_: web.Request) -> web.StreamResponse:
        return _json(facts.about())

    async def status(request: web.Request) -> web.StreamResponse:
        try:
            selectors = [facts_.Selector.parse(text) for text in request.query.getall("object", [])]
        except ValueError as error:
            return _json({"error": str(error)}, 400)
        return _json(facts_.status(facts, selectors))

    async def trace(request: web.Request) -> web.StreamResponse:
        try:
            selectors = [facts_.Selector.parse(text) for text in request.query.getall("object", [])]
        except ValueError as error:
            return _json({"error": str(error)}, 400)
        if not selectors or not all(each.name for each in selectors):
            return _json({"error": "name what to trace: ?object=KIND/NAME or KIND/NAMESPACE/NAME"}, 400)
        return _json(facts_.traces(facts, selectors))

    async def objects(request: web.Request) -> web.StreamResponse:
        kind = request.match_info.get("kind", "").lower()
        rows = sorted(facts.objects(), key=lambda row: (row.kind, row.namespace, row.name))
        return _json([_listed(row) for row in rows if kind in ("", row.kind.lower())])

    async def one(request: web.Request) -> web.StreamResponse:
        parts = request.match_info
        content = facts.content(parts["kind"], parts.get("namespace", ""), parts["name"])
        if content is None:
            return _json({"error": "there is no such object; /api/objects lists them"}, 404)
        return _json(content)

    app = web.Application(middlewares=[_allow_named_hosts(names)])
    pages.add_stats(app, facts)
    pages.add_readiness(app, facts)
    app.router.add_get("/", index)
    app.router.add_get("/api", index)
    app.router.add_get("/api/version", version)
    app.router.add_get("/api/status", status)
    app.router.add_get("/api/trace", trace)
    app.router.add_get("/api/objects", objects)
    app.router.add_get("/api/objects/{kind}", objects)
    app.router.add_get("/api/objects/{kind}/{name}", one)
    app.router.add_get("/api/objects/{kind}/{namespace}/{name}", one)
    return app


def _allow_named_hosts(names: frozenset[str]) -> Middleware:
    """Answers only requests whose host is one of `names`. Metrics and probes answer all: they hold nothing
    but numbers and words of this product."""

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = host_of(request.headers.get("host", "")).lower()
        if request.path not in OPEN and not (is_loopback(host) or is_address(host) or host in names):
            return _json({"error": REFUSED}, 403)
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return _json({"error": f"there is nothing at {request.path}", "known": INDEX}, 404)
        except web.HTTPMethodNotAllowed:
            return _json({"error": "this API is read-only; use GET"}, 405)

    return checked


def _json(body: object, status: int = 200) -> web.Response:
    text = json.dumps(body, indent=2) + "\n"
    return web.Response(text=text, status=status, content_type="application/json", headers=HEADERS)


def _listed(row: facts_.ObjectRow) -> facts_.Json:
    return {"kind": row.kind, "namespace": row.namespace, "name": row.name, "generation": row.generation}


class Server(pages.Listening):
    """The listening admin API. `start` raises OSError when the address is taken."""

    def __init__(self, facts: facts_.Facts, host: str, port: int, names: frozenset[str] = frozenset()) -> None:
        """`names`: by which it may be addressed, beside IP addresses and localhost."""
        if not is_loopback(host):
            raise ValueError(
                f"the admin API has no credentials and listens on loopback only, not on {host};"
                " --stats and --readiness serve metrics and probes elsewhere"
            )
        super().__init__(application(facts, names), host, port)
