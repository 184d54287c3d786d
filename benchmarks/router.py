"""The table by itself, in this process: matching, loading, one-route changes, memory.

`python benchmarks/router.py [routes]`

Prints microseconds per match, milliseconds of CPU per load and change with the longest slice, and bytes per route (by
tracemalloc, with the received message and without).
"""

from __future__ import annotations

import gc
import random
import sys
import time
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dataplane.backends.registry import KINDS
from dataplane.chain.filter import Env
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from dataplane.http.heads import Head
from dataplane.table.applier import Applier
from dataplane.table.binds import choose
from dataplane.table.store import ENDPOINT_TYPE, RESOURCE_TYPE, Change
from gatewright.wire.v1 import backend_pb2, listener_pb2, resource_pb2

BIND, LISTENER, BACKEND = "bind/default/gw/8080", "listener/gateway/default/gw/http", "backend/service/default/shop/80"


def change(resource: resource_pb2.Resource) -> Change:
    return Change(RESOURCE_TYPE, resource.key, resource.SerializeToString())


def frame() -> list[Change]:
    bind = resource_pb2.Resource(key=BIND)
    bind.bind.gateway, bind.bind.port = "gateway/default/gw", 8080
    listener = resource_pb2.Resource(key=LISTENER)
    listener.listener.bind, listener.listener.name = BIND, "http"
    listener.listener.protocol = listener_pb2.PROTOCOL_HTTP
    listener.listener.source.kind, listener.listener.source.namespace, listener.listener.source.name = (
        "Gateway",
        "default",
        "gw",
    )
    listener.listener.admits.kinds.append("HTTPRoute")
    listener.listener.admits.all_namespaces = True
    backend = resource_pb2.Resource(key=BACKEND)
    service = backend.backend.service
    service.namespace, service.name, service.port = "default", "shop", 80
    endpoint = backend_pb2.Endpoint(key="default/shop/80/10.0.0.1:8080", backend=BACKEND, address="10.0.0.1", port=8080)
    return [
        Change(ENDPOINT_TYPE, endpoint.key, endpoint.SerializeToString()),
        *(change(each) for each in (bind, listener, backend)),
    ]


def route(index: int, per_host: int, value: str = "one", policies: bool = False) -> Change:
    resource = resource_pb2.Resource(key=f"route/httproute/default/route-{index}/0")
    message = resource.route
    message.source.kind, message.source.namespace, message.source.name = "HTTPRoute", "default", f"route-{index}"
    parent = message.parents.add().object
    parent.kind, parent.namespace, parent.name = "Gateway", "default", "gw"
    message.hostnames.append(f"host-{index // per_host}.example.com")
    message.matches.add().path.prefix = f"/path-{index % per_host}" if per_host > 1 else "/"
    message.order = f"2026-11-21T13:00:00Z/default/route-{index}"
    backend = message.backends.add()
    backend.weight, backend.backend = 1, BACKEND
    if policies:
        message.policies.add().header_modifiers.request.set.add(name="x-route", value=value)
        message.policies.add().timeouts.request_ms = 15000
    elif value != "one":
        message.policies.add().timeouts.request_ms = 1000 + hash(value) % 1000
    return change(resource)


def run(applier: Applier, changes: list[Change]) -> tuple[float, float]:
    """(seconds in all, longest slice), both of this process's CPU: a busy machine must not count."""
    changes.reverse()
    longest, began = 0.0, time.process_time()
    last = began
    for _ in applier.apply(changes.pop() for _ in range(len(changes))):
        now = time.process_time()
        longest, last = max(longest, now - last), now
    now = time.process_time()
    return now - began, max(longest, now - last)


def memory(routes: int, per_host: int, policies: bool, distinct: bool) -> None:
    applier = Applier(ROWS, Env(time.perf_counter, random.random), kinds=KINDS)
    run(applier, frame())
    tracemalloc.start()
    for _ in applier.apply(route(i, per_host, f"v{i}" if distinct else "one", policies) for i in range(routes)):
        pass
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    messages = sum(sys.getsizeof(record.raw) for record in applier.store.routes.values())
    print(f"  memory: {held / routes:.0f} bytes a route, {(held - messages) / routes:.0f} without its message")


def match_time(applier: Applier, routes: int, per_host: int) -> float:
    bind = applier.current.table.binds[BIND]
    exchange = Exchange(None, b"GET", b"/", Head(b"\r\n"), 0.0)
    pairs = [
        (f"host-{i // per_host}.example.com".encode(), f"/path-{i % per_host}/a/b".encode())
        for i in random.Random(1).sample(range(routes), min(routes, 5000))
    ]
    best = 1e9
    for _ in range(7):
        began = time.perf_counter()
        for host, path in pairs:
            choose(bind, host).router.match(host, path, exchange)  # type: ignore[union-attr]
        best = min(best, time.perf_counter() - began)
    loop = time.perf_counter()
    for _host, _path in pairs:
        pass
    return (best - (time.perf_counter() - loop)) / len(pairs) * 1e6


def measure(routes: int, per_host: int, policies: bool, distinct: bool) -> None:
    applier = Applier(ROWS, Env(time.perf_counter, random.random), kinds=KINDS)
    changes = frame() + [route(i, per_host, f"v{i}" if distinct else "one", policies) for i in range(routes)]
    message = sum(len(each.value or b"") for each in changes) / len(changes)
    took, longest = run(applier, changes)
    print(
        f"{routes} routes, {per_host} per host, {'policies' if policies else 'plain'}"
        f"{' distinct' if distinct else ''}: load {took * 1e3:.0f} ms, longest slice {longest * 1e3:.2f} ms,"
        f" match {match_time(applier, routes, per_host):.2f} us, message {message:.0f} bytes"
    )
    changed = []
    for number in range(50):
        index = random.randrange(routes)
        changed.append(run(applier, [route(index, per_host, f"w{number}", policies)]))
    totals = sorted(total for total, _ in changed)
    print(f"  one route changed: median {totals[25] * 1e3:.3f} ms, longest {totals[-1] * 1e3:.3f} ms in all")
    took, longest = run(applier, [route(i, per_host, "other", policies) for i in range(routes)])
    print(f"  all changed: {took * 1e3:.0f} ms, longest slice {longest * 1e3:.2f} ms")
    took, longest = run(applier, [Change(RESOURCE_TYPE, LISTENER, None)])
    print(f"  listener gone: {took * 1e3:.1f} ms, longest slice {longest * 1e3:.2f} ms")
    took, longest = run(applier, [each for each in frame() if each.name == LISTENER])
    print(f"  listener back: {took * 1e3:.0f} ms, longest slice {longest * 1e3:.2f} ms")
    memory(min(routes, 10_000), per_host, policies, distinct)


def main() -> None:
    gc.disable()
    routes = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for per_host, policies, distinct in ((1, False, False), (10, False, False), (10, True, False), (1, True, True)):
        measure(routes, per_host, policies, distinct)


if __name__ == "__main__":
    main()
