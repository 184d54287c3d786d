"""What clients see while one endpoint of three comes and goes: failed requests, without and with policies against it.

`python -m benchmarks.failover [--seconds N]`. A Service has three endpoints; one of them is closed, with all its
connections, for half a second of each. 16 clients ask one request after the other. A failed hit is an answer of 5xx, or
none. The rows differ in the policies of the route: none, `retry`, `health` with eviction, and both. No bar: the counts
are for knowing, and the share without any policy is what the endpoint's absence costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

from benchmarks import report
from benchmarks.load import LoadFailed
from benchmarks.machine import OUT, PROXY_CORE, Process, alone, run_folder
from tests.harness.ports import reserve

CLIENTS: Final = 16
PERIOD: Final = 1.0
"""Seconds from one end of the flapping endpoint to the next."""
ADDRESSES: Final = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
RETRY: Final[dict[str, Any]] = {"traffic": {"retry": {"attempts": 2, "codes": [502, 503]}}}
HEALTH: Final[dict[str, Any]] = {"backend": {"health": {"eviction": {"duration": "3s"}}}}
ROWS: Final[dict[str, dict[str, Any]]] = {
    "no policy": {},
    "retry": RETRY,
    "eviction": HEALTH,
    "retry and eviction": {**RETRY, **HEALTH},
}


class Connection(asyncio.Protocol):
    """Answers each request of a connection, and is among those that are open meanwhile. No task waits for it, so none
    has to be ended with it."""

    def __init__(self, opened: set[asyncio.Transport]) -> None:
        self._opened = opened
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._opened.add(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._opened.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        *requests, self._unread = (self._unread + data).split(b"\r\n\r\n")
        self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok" * len(requests))


class Endpoint:
    """A server on an address of its own; it can go, with its connections, and come back."""

    def __init__(self, address: str, port: int) -> None:
        self.address, self.port = address, port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Transport] = set()

    async def come(self) -> None:
        serve = partial(Connection, self._open)
        self._server = await asyncio.get_running_loop().create_server(
            serve, self.address, self.port, reuse_address=True
        )

    def go(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for transport in self._open:
            transport.abort()


async def flap(endpoint: Endpoint) -> None:
    while True:
        await asyncio.sleep(PERIOD / 2)
        endpoint.go()
        await asyncio.sleep(PERIOD / 2)
        await endpoint.come()


async def client(port: int, end: float) -> tuple[int, int]:
    """Requests, and failed ones, until `end`."""
    loop, count, failed = asyncio.get_running_loop(), 0, 0
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None
    while loop.time() < end:
        count += 1
        try:
            if reader is None or writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            size = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(size)
            failed += head[9:10] == b"5"
        except (OSError, asyncio.IncompleteReadError):
            failed += 1
            reader = writer = None
    if writer is not None:
        writer.close()
    return count, failed


def objects(port: int, backend_port: int, policies: dict[str, Any]) -> str:
    """A Gateway with a route to a Service that has an endpoint on each of three addresses."""

    def made(kind: str, name: str, api: str, **fields: Any) -> dict[str, Any]:
        return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}

    gateway_api = "gateway.networking.k8s.io/v1"
    listeners = [{"name": "http", "port": port, "protocol": "HTTP"}]
    rules = [{"backendRefs": [{"name": "shop", "port": 80}]}]
    slice_of = made("EndpointSlice", "shop", "discovery.k8s.io/v1", addressType="IPv4")
    slice_of["metadata"]["labels"] = {"kubernetes.io/service-name": "shop"}
    slice_of["ports"] = [{"name": "http", "port": backend_port}]
    slice_of["endpoints"] = [{"addresses": [address]} for address in ADDRESSES]
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "shop"}
    found = [
        made("GatewayClass", "gatewright", gateway_api, spec={"controllerName": "gatewright.dev/controller"}),
        made("Gateway", "web", gateway_api, spec={"gatewayClassName": "gatewright", "listeners": listeners}),
        made("Service", "shop", "v1", spec={"ports": [{"name": "http", "port": 80}]}),
        slice_of,
        made("HTTPRoute", "shop", gateway_api, spec={"parentRefs": [{"name": "web"}], "rules": rules}),
    ]
    if policies:
        spec = {"targetRefs": [target], **policies}
        found.append(made("GatewayPolicy", "shop", "gatewright.dev/v1alpha1", spec=spec))
    return "\n---\n".join(map(json.dumps, found))


@contextmanager
def proxied(name: str, backend_port: int, policies: dict[str, Any]) -> Iterator[int]:
    """The port of a proxy with these policies, and a controller."""
    port, folder = reserve(), run_folder() / name.replace(" ", "_")
    (folder / "objects").mkdir(parents=True)
    (folder / "objects" / "all.yaml").write_text(objects(port, backend_port, policies))
    socket = f"/tmp/failover-{port}.sock"  # a path of a socket is short
    command = [sys.executable, "-m", "controlplane", str(folder / "objects"), "--socket", socket]
    pages = [f"--{page}=127.0.0.1:{reserve()}" for page in ("admin", "stats", "readiness")]
    proxy = [sys.executable, "-m", "dataplane", "--xds", f"unix:{socket}", "--gateway", "default/web", "--workers=1"]
    with ExitStack() as stack:
        for which, line in (
            ("controller", [*command, "--xds", "127.0.0.1:0", "--admin", "127.0.0.1:0"]),
            ("proxy", [*proxy, *pages]),
        ):
            process = Process(f"{which}_{folder.name}", line, PROXY_CORE)
            stack.callback(process.stop)
            process.await_ready()
        process.await_port(port)
        yield port


async def row(port: int, endpoints: list[Endpoint], seconds: float) -> tuple[int, int]:
    """Requests, and failed ones."""
    for each in endpoints:
        await each.come()
    flapping = asyncio.create_task(flap(endpoints[0]))
    end = asyncio.get_running_loop().time() + seconds
    found = await asyncio.gather(*(client(port, end) for _ in range(CLIENTS)))
    flapping.cancel()
    for each in endpoints:
        each.go()
    return sum(count for count, _ in found), sum(failed for _, failed in found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of load for each row; default 20")
    options = parser.parse_args()
    lines, found = ["| policies of the route | requests | failed | of 10,000 |", "|---|---|---|---|"], {}
    with alone():
        for name, policies in ROWS.items():
            backend_port = reserve()
            endpoints = [Endpoint(address, backend_port) for address in ADDRESSES]
            with proxied(name, backend_port, policies) as port:
                count, failed = asyncio.run(row(port, endpoints, options.seconds))
            if not count:
                raise LoadFailed(f"{name}: no request")
            found[name] = {"requests": count, "failed": failed}
            lines.append(f"| {name} | {count:,} | {failed:,} | {failed / count * 10_000:.1f} |")
            print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    (OUT / "failover.json").write_text(json.dumps({"machine": report.machine(), "rows": found}, indent=1) + "\n")
    (OUT / "failover.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
