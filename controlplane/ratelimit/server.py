"""Runs the rate limit server: gRPC, pages, and the file of limits that is followed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from aiohttp import web
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from controlplane.ratelimit import pages, resp
from controlplane.ratelimit.numbers import Numbers
from controlplane.ratelimit.service import NAME, Service
from controlplane.ratelimit.source import Source
from controlplane.ratelimit.sqlite import SqliteStore
from controlplane.ratelimit.store import Store
from controlplane.ratelimit.valkey import ValkeyStore
from controlplane.xds.services import reflection_of

MEMORY: Final = Path(":memory:")
"""A store that ends with the server."""
MOST_RECEIVED: Final = 1 << 20
GRACE: Final = 5.0
"""Seconds that calls under way have when the server ends."""


@dataclass(frozen=True, slots=True)
class Settings:
    limits: Path | None
    """A file or a folder."""
    listen: tuple[str, int]
    admin: tuple[str, int]
    store: resp.Address | Path
    stats: tuple[str, int] | None = None
    """Metrics and probes on an address of their own."""
    certificate: tuple[bytes, bytes] | None = None
    """Of TLS: chain and key, PEM."""


class Unbound(Exception):
    """An address that cannot be listened on."""


@dataclass(frozen=True, slots=True)
class Running:
    """The ports that were bound."""

    port: int
    admin_port: int


def where_of(text: str) -> resp.Address | Path:
    """What `--store` names. Raises ValueError for a URL that is none."""
    return resp.address(text) if text.partition(":")[0] in resp.SCHEMES else Path(text)


def store_of(where: resp.Address | Path) -> Store:
    """Raises `StoreFailed` for a file that cannot be opened."""
    return SqliteStore(where) if isinstance(where, Path) else ValkeyStore(where)


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Running]:
    """Raises `StoreFailed`, `Unbound`, and as `Source` does."""
    numbers = Numbers()
    source = Source(settings.limits, numbers)
    store = store_of(settings.store)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        service = Service(lambda: source.limits, store, numbers)
        admin_port = await stack.enter_async_context(_pages(settings.admin, pages.all_pages(store, numbers)))
        if settings.stats is not None:
            await stack.enter_async_context(_pages(settings.stats, pages.open_pages(numbers)))
        port = await stack.enter_async_context(_served(settings, service))
        following = asyncio.create_task(source.follow())
        stack.callback(following.cancel)
        yield Running(port, admin_port)


@asynccontextmanager
async def _served(settings: Settings, service: Service) -> AsyncIterator[int]:
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", MOST_RECEIVED), ("grpc.so_reuseport", 0)])
    servicer = health.aio.HealthServicer()
    for name in ("", NAME):
        await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_generic_rpc_handlers((service.handler(), *reflection_of((NAME, health.SERVICE_NAME))))
    where = _shown(settings.listen)
    try:
        if settings.certificate is None:
            port = server.add_insecure_port(where)
        else:
            chain, key = settings.certificate
            port = server.add_secure_port(where, grpc.ssl_server_credentials([(key, chain)]))
    except RuntimeError as error:
        raise Unbound(f"{where} cannot be listened on: {error}") from None
    await server.start()
    try:
        yield port
    finally:
        await server.stop(GRACE)


@asynccontextmanager
async def _pages(where: tuple[str, int], application: web.Application) -> AsyncIterator[int]:
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, *where)
        try:
            await site.start()
        except OSError as error:
            raise Unbound(f"{_shown(where)} cannot be listened on: {error.strerror}") from None
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _shown(where: tuple[str, int]) -> str:
    host, port = where
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
