"""What one external authorization costs the worker: HTTP over TCP, over a Unix socket, from the cache, and over gRPC.

The rooms of the request path run in this process on a real event loop; the authorization server is a child process on a
real socket. Clients are transports in memory and every route ends in a redirect, so that what remains, when the same
route without the policy is subtracted, is the policy: its steps, its call, two system calls, their share of a turn of
the loop. CPU time of the one thread; rounds are short and interleaved. The median of their differences counts; the
difference of the cheapest rounds says what it comes to when nothing else wants the cores.

With `--clients 1` the loop sleeps before each answer, and everything, the route itself too, runs on cold caches and for
several turns of the loop that nobody shares: it is twice as much and more.

`python -m benchmarks.callouts [--requests N] [--rounds N] [--clients N] [--profile KIND]`; `measure` for others.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from dataplane.backends.registry import KINDS as KINDS_OF_BACKENDS
from dataplane.backends.registry import ROWS as backends
from dataplane.chain.filter import Env
from dataplane.filters.registry import ROWS
from dataplane.link.evictions import Evictions
from dataplane.link.loads import Loads
from dataplane.net.writes import Writes
from dataplane.proxy.context import Context
from dataplane.proxy.deadlines import Deadlines
from dataplane.proxy.steps.waiting import StepFuture
from dataplane.server.protocols import plan_of
from dataplane.table.applier import Applier
from dataplane.table.store import RESOURCE_TYPE, Change
from dataplane.telemetry.access_log import AccessLog
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.requests import Recorder
from dataplane.upstream.backend_rules import RuleStates
from dataplane.upstream.calls import HttpCalls
from dataplane.upstream.connector import Connector
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.lease import Leases
from dataplane.upstream.look_ups import of_system
from dataplane.upstream.resolver import Resolver
from gatewright.api.standalone import standalone
from gatewright.wire.external import ext_authz_pb2

BARS = {"tcp": 45.0, "unix": 45.0, "cached": 45.0, "grpc": 60.0}
"""Microseconds that a call may cost."""

KINDS = tuple(BARS)
REQUEST = (
    b"GET /shop/item?id=7 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench/1\r\nAccept: */*\r\n"
    b"Authorization: Bearer abcdefghijklmnop\r\nX-Request-Id: 0123456789\r\n\r\n"
)
ANSWER = b"HTTP/1.1 200 OK\r\nx-user: ann\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok"

_FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies:
        requestRedirect: {{hostname: other.example}}
{policy}
"""
_POLICY = """        extAuthz:
          host: {host}
          protocol:
            http:
              path: '"/check?addr=" + source.address'
              allowedResponseHeaders: [x-user]
"""
_GRPC = """        extAuthz:
          host: {host}
          protocol: {{grpc: {{}}}}
"""
_CACHE = """          cache:
            key: ['request.headers["authorization"]']
            ttl: 1h
"""


class _Server(asyncio.Protocol):
    """Answers whatever ends in an empty line."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(ANSWER * data.count(b"\r\n\r\n"))


_SERVERS: list[Any] = []
"""Of grpcio, which end when nothing holds them."""


def _serve(folder: str, ready: Any) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        tcp = await loop.create_server(_Server, "127.0.0.1", 0)
        unix = await loop.create_unix_server(_Server, f"{folder}/s")
        ready.send((tcp.sockets[0].getsockname()[1], await _serve_grpc()))
        await asyncio.gather(tcp.serve_forever(), unix.serve_forever())

    uvloop.run(run())


async def _serve_grpc() -> int:
    """The port of a server with grpcio's code, which answers the same."""
    import grpc  # after the fork: its threads do not outlive one

    option = ext_authz_pb2.HeaderValueOption(header={"key": "x-user", "value": "ann"})
    allowed = ext_authz_pb2.CheckResponse(ok_response={"headers": [option]}).SerializeToString()

    async def check(_: bytes, __: Any) -> bytes:
        return allowed

    handler = grpc.unary_unary_rpc_method_handler(check)  # type: ignore[arg-type]  # bytes both ways
    _SERVERS.append(server := grpc.aio.server())
    service = "envoy.service.auth.v3.Authorization"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Check": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return int(port)


class _Client:
    """A client's transport in memory: sends the next request when an answer is written."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: Any) -> None:
        self.loop = loop
        self.connection = connection
        self.left = 0
        self.done: Callable[[], None] = lambda: None
        connection.connection_made(self)

    def ask(self) -> None:
        self.connection.data_received(REQUEST)

    def write(self, data: bytes) -> None:
        assert data.startswith(b"HTTP/1.1 302 "), data
        self.left -= 1
        if self.left > 0:
            self.loop.call_soon(self.ask)
        else:
            self.done()

    def set_write_buffer_limits(self, high: int) -> None:
        """Nothing is buffered."""

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> Any:
        return ("192.0.2.7", 40000)


class _Proxy:
    """The parts of a worker, with one route."""

    def __init__(self, loop: asyncio.AbstractEventLoop, policy: str, clients: int) -> None:
        recorder, writes = Recorder(Metrics.in_memory()), Writes(loop.call_soon)
        deadlines = Deadlines(time.monotonic, loop.call_at)
        self.connector, resolver = Connector(loop, writes, recorder), Resolver(loop, Endpoint, partial(of_system, loop))
        rule_states = RuleStates(Evictions.local(), Loads.local(), time.monotonic, recorder)
        leases = Leases(backends, self.connector, resolver, random.random, rule_states=rule_states)
        calls = HttpCalls(
            lambda: self.applier.current.table,
            leases,
            deadlines.wake_at,
            partial(StepFuture, loop=loop),
            time.monotonic,
        )
        self.tasks: set[asyncio.Task[None]] = set()
        self.spawned = 0
        env = Env(time.monotonic, random.random, calls, make_future=partial(StepFuture, loop=loop))
        self.applier = Applier(ROWS, env, kinds=KINDS_OF_BACKENDS)
        loaded = standalone.load(_FILE.format(policy=policy), "bench.yaml")
        assert not loaded.problems, loaded.problems
        for _ in self.applier.apply([Change(RESOURCE_TYPE, r.key, r.SerializeToString()) for r in loaded.resources]):
            continue
        self.loop = loop
        context = Context(
            current=self.applier.current,
            deadlines=deadlines,
            leases=leases,
            access_log=AccessLog(lambda data: None, loop.call_later),
            recorder=recorder,
            writes=writes,
            spawn=self._spawn,
            make_future=partial(StepFuture, loop=loop),
            call_soon=loop.call_soon,
        )
        (bind,) = self.applier.current.table.binds
        self.clients = [_Client(loop, plan_of(context, bind).open()) for _ in range(clients)]

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self.loop.create_task(work)
        self.spawned += 1
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def run(self, requests: int) -> float:
        """CPU microseconds of this thread for each request."""
        finished = asyncio.Event()
        waiting = len(self.clients)

        def done() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                finished.set()

        before = time.thread_time_ns()
        for client in self.clients:
            client.left, client.done = requests // len(self.clients), done
            client.ask()
        await finished.wait()
        return (time.thread_time_ns() - before) / 1000 / requests


@dataclass(frozen=True)
class Cost:
    """Microseconds of CPU for each request beside those of the same route without the policy, and Tasks."""

    kind: str
    median: float
    lower: float
    """A quarter of the rounds cost less."""
    upper: float
    undisturbed: float
    """The cheapest round with the policy, less the cheapest one without it."""
    tasks: float


def measure(kind: str, requests: int = 1600, rounds: int = 60, clients: int = 16, profile: str = "") -> Cost:
    """What external authorization of this kind (`KINDS`) costs a request. `profile`: a file for cProfile's data."""
    with tempfile.TemporaryDirectory(prefix="callouts") as folder:
        ready, child = multiprocessing.Pipe()
        server = multiprocessing.get_context("fork").Process(target=_serve, args=(folder, child), daemon=True)
        server.start()
        try:
            http, grpc = ready.recv()
            port = grpc if kind == "grpc" else http
            return uvloop.run(_measure(kind, f"{folder}/s", port, requests, rounds, clients, profile))
        finally:
            server.terminate()
            server.join()


async def _measure(kind: str, path: str, port: int, requests: int, rounds: int, clients: int, profile: str) -> Cost:
    loop = asyncio.get_running_loop()
    host = f"unix:{path}" if kind == "unix" else f"127.0.0.1:{port}"
    policy = (_GRPC if kind == "grpc" else _POLICY).format(host=host) + (_CACHE if kind == "cached" else "")
    bare, asking = _Proxy(loop, "", clients), _Proxy(loop, policy, clients)
    for proxy in (bare, asking):
        await proxy.run(clients * 100)
    asking.spawned = 0
    without, with_it = [], []
    for _ in range(rounds):
        without.append(await bare.run(requests))
        with_it.append(await asking.run(requests))
    costs = [b - a for a, b in zip(without, with_it, strict=True)]
    tasks = asking.spawned / (rounds * requests)
    if profile:
        profiler = cProfile.Profile()
        profiler.enable()
        await asking.run(requests)
        profiler.disable()
        profiler.dump_stats(profile)
    for proxy in (bare, asking):
        await proxy.connector.close()
    lower, median, upper = statistics.quantiles(costs, n=4)
    return Cost(kind, median, lower, upper, min(with_it) - min(without), tasks)


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU of one external authorization")
    parser.add_argument("--requests", type=int, default=1600)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--profile", type=Path, default=None, help="folder for cProfile data")
    options = parser.parse_args()
    print(f"{options.clients} clients, {options.rounds} rounds of {options.requests} requests, {os.cpu_count()} cores")
    for kind in options.kinds:
        profile = str(options.profile / f"{kind}.prof") if options.profile else ""
        cost = measure(kind, options.requests, options.rounds, options.clients, profile)
        spread = f"quartiles {cost.lower:.1f} to {cost.upper:.1f}, undisturbed {cost.undisturbed:.1f}"
        found = f"{cost.median:6.1f} us ({spread}), {cost.tasks:.2f} Tasks for each request"
        print(f"{kind:8} {found}; bar {BARS[kind]:g} us")


if __name__ == "__main__":
    main()
