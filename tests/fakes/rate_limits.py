"""The rate limit server on the test's own loop, and proxies that ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from controlplane.ratelimit import server, service
from controlplane.ratelimit.resp import Address
from gatewright.wire.external.rate_limit_pb2 import RateLimitRequest, RateLimitResponse
from tests.fakes.socket_proxy import SocketProxy, serving

METHOD = f"/{service.NAME}/ShouldRateLimit"
FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies:
        rateLimit:
          global:
            host: 127.0.0.1:%d
            domain: d
            failureMode: %s
            descriptors: [%s]
        directResponse: {status: 200, body: ok}
"""
BY_USER = """{entries: [{name: user, expression: 'request.headers["x-user"]'}]}"""
ONE_OF_ALL = "{entries: [{name: all, expression: \"'all'\"}]}"
PAID = "{entries: [{name: all, expression: \"'all'\"}], unit: Tokens, cost: 'int(request.headers[\"x-cost\"])'}"


@dataclass(frozen=True)
class Server:
    port: int
    admin: str


@asynccontextmanager
async def counting(
    store: Path | Address, limits: Path | None = None, port: int = 0, certificate: tuple[bytes, bytes] | None = None
) -> AsyncIterator[Server]:
    settings = server.Settings(limits, ("127.0.0.1", port), ("127.0.0.1", 0), store, certificate=certificate)
    async with server.running(settings) as found:
        yield Server(found.port, f"127.0.0.1:{found.admin_port}")


@asynccontextmanager
async def asking(port: int, descriptors: str = ONE_OF_ALL, mode: str = "FailClosed") -> AsyncIterator[SocketProxy]:
    async with serving(FILE % (port, mode, descriptors)) as proxy:
        yield proxy


async def statuses(proxies: Iterable[SocketProxy], headers: str = "") -> list[int]:
    """Of one request to each, all at once."""
    answers = await asyncio.gather(*(proxy.ask("GET", "/", headers=headers) for proxy in proxies))
    return sorted(int(answer.split()[1]) for answer in answers)


async def asked(port: int, request: RateLimitRequest) -> RateLimitResponse:
    """As another client asks."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(METHOD, RateLimitRequest.SerializeToString, RateLimitResponse.FromString)
        answer: RateLimitResponse = await call(request, wait_for_ready=True)
        return answer
