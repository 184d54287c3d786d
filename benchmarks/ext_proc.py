"""What an external processor costs: CPU per exchange beside Envoy's filter, and memory while a gibibyte passes it.

`python -m benchmarks.ext_proc [--requests N] [--rounds N] [--json FILE]`. A server of grpcio in a process of its own
agrees with everything; POSTs of 1 KiB on 16 connections, by modes of bodies, in interleaved rounds; the same server and
the same origin behind a real Envoy. Then 1 GiB in full duplex to an origin that reads slowly, and to such a client:
resident memory of the worker. Exit status 1 when that grows by more than 8 MiB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import grpc

from benchmarks import cpu
from benchmarks.machine import LOAD_CORE, OUT, PROXY_CORE, Process, alone, find, run_folder
from gatewright.wire.external import ext_proc_pb2 as pb
from tests.fakes.envoy import HTTP2, TYPE, bootstrap, cluster, listener, virtual_host
from tests.harness.ports import reserve
from tests.loopback.test_ext_proc_envoy import FILTER, agrees

GIBIBYTE: Final = 1 << 30
CHUNK: Final = b"x" * 65_536
CHUNKED: Final = b"%x\r\n%b\r\n" % (len(CHUNK), CHUNK)
MOST: Final = 8.0
"""MiB on top, while a gibibyte passes."""
CLIENTS: Final = 16
BODY: Final = b"b" * 1024
PAUSE_EVERY, PAUSE = 32 * 1024 * 1024, 0.1
"""Of a slow reader: bytes, seconds."""
MODES: Final = {
    "off": ("", ""),
    "heads": ("None", "NONE"),
    "heads and bodies, Buffered": ("Buffered", "BUFFERED"),
    "heads and bodies, FullDuplexStreamed": ("FullDuplexStreamed", "FULL_DUPLEX_STREAMED"),
}
"""By what the server is shown: modes of bodies, ours and Envoy's."""
PATHS: Final = {what: f"/m{number}" for number, what in enumerate(MODES)}


# --- the server


async def process(requests: AsyncIterator[pb.ProcessingRequest], _: Any) -> AsyncIterator[pb.ProcessingResponse]:
    mode = 0
    async for each in requests:
        phase = each.WhichOneof("request") or ""
        mode = each.protocol_config.request_body_mode or mode
        yield agrees(phase, each, mode)


async def serve(port: int) -> None:
    handler = grpc.stream_stream_rpc_method_handler(
        process,
        request_deserializer=pb.ProcessingRequest.FromString,
        response_serializer=pb.ProcessingResponse.SerializeToString,
    )
    server = grpc.aio.server()
    service = "envoy.service.ext_proc.v3.ExternalProcessor"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Process": handler}),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


# --- the proxies


def ours(stack: ExitStack, port: int, upstream: int, server: int) -> int:
    """The agent of a proxy."""
    routes = []
    for number, (what, (mode, _)) in enumerate(MODES.items()):
        options = {"requestBodyMode": mode, "responseBodyMode": mode}
        skipped = {"requestTrailerMode": "Skip", "responseTrailerMode": "Skip"} if mode == "None" else {}
        policy = {"extProc": {"host": f"127.0.0.1:{server}", "processingOptions": options | skipped}} if mode else {}
        routes.append({
            "name": f"m{number}",
            "matches": [{"path": {"value": PATHS[what]}}],
            "policies": policy,
            "backends": [{"host": f"127.0.0.1:{upstream}"}],
        })  # fmt: skip
    path = run_folder() / "ext_proc.json"
    path.write_text(json.dumps({"binds": [{"port": port, "listeners": [{"name": "http", "routes": routes}]}]}))
    pages = [f"--{page}=127.0.0.1:{reserve()}" for page in ("admin", "stats", "readiness")]
    environment = {"SESSION_KEY": "00" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "0"}
    command = [sys.executable, "-m", "dataplane", "-f", str(path), "--workers=1", *pages]
    return _started(stack, "ours", command, port, environment)


def theirs(stack: ExitStack, port: int, upstream: int, server: int) -> int:
    config = {
        "@type": f"{TYPE}.filters.http.ext_proc.v3.ExternalProcessor",
        "grpc_service": {"envoy_grpc": {"cluster_name": "server"}},
        "message_timeout": "10s",
    }
    host = virtual_host({"route": {"cluster": "origin"}})
    host["routes"] = [_route(what, mode) for what, (_, mode) in MODES.items()]
    configuration = bootstrap(
        [listener("all", port, host, {"name": FILTER, "typed_config": config})],
        [cluster("server", server, typed_extension_protocol_options=HTTP2), cluster("origin", upstream)],
    )
    path = run_folder() / "envoy.json"
    path.write_text(json.dumps(configuration))
    options = ("--use-dynamic-base-id", "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning")
    return _started(stack, "envoy", [find("envoy"), "--config-path", str(path), *options], port, {})


def _route(what: str, mode: str) -> dict[str, Any]:
    per_route: dict[str, Any] = {"@type": f"{TYPE}.filters.http.ext_proc.v3.ExtProcPerRoute"}
    if not mode:
        per_route["disabled"] = True
    else:
        modes = {"request_body_mode": mode, "response_body_mode": mode}
        if mode == "FULL_DUPLEX_STREAMED":  # it demands trailers there
            modes |= {"request_trailer_mode": "SEND", "response_trailer_mode": "SEND"}
        per_route["overrides"] = {"processing_mode": modes}
    action = {"route": {"cluster": "origin"}, "typed_per_filter_config": {FILTER: per_route}}
    return {"match": {"prefix": PATHS[what]}, **action}


def _started(stack: ExitStack, name: str, command: list[str], port: int, environment: dict[str, str]) -> int:
    core = PROXY_CORE if name != "server" else LOAD_CORE
    started = Process(name, command, core, environment)
    stack.callback(started.stop)
    started.await_port(port)
    return started.pid


# --- the origin and the clients


async def _origin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each request when it is here; `/slow` is read slowly, `/give` answered with a gibibyte."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await _read(reader, head, slowly=b"slow" in head)
            if b"give" in head.partition(b"\r\n")[0]:
                writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                await _give(writer)
            else:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY))
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        writer.close()


async def _read(reader: asyncio.StreamReader, head: bytes, *, slowly: bool = False) -> int:
    """A message of either framing, to its end."""
    low, size = head.lower(), 0
    if b"content-length:" in low:
        size = int(low.partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(size)
    elif b"chunked" in low:
        paused = 0
        while length := int(await reader.readline(), 16):
            await reader.readexactly(length + 2)
            size += length
            if slowly and size - paused >= PAUSE_EVERY:
                paused = size
                await asyncio.sleep(PAUSE)
        await reader.readline()
    return size


async def _give(writer: asyncio.StreamWriter) -> None:
    for _ in range(GIBIBYTE // len(CHUNK)):
        writer.write(CHUNKED)
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def _ask(port: int, path: str, count: int) -> None:
    """Requests in a row on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = f"POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {len(BODY)}\r\n\r\n".encode() + BODY
    for _ in range(count):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        assert await _read(reader, head) == len(BODY) or b"chunked" not in head.lower()
    writer.close()


async def _spent(pid: int, port: int, path: str, requests: int) -> float:
    """Microseconds of CPU per exchange."""
    before = cpu.nanoseconds(pid)
    await asyncio.gather(*(_ask(port, path, requests // CLIENTS) for _ in range(CLIENTS)))
    return (cpu.nanoseconds(pid) - before) / 1000 / (requests // CLIENTS * CLIENTS)


async def _grown(pid: int, port: int, *, upload: bool) -> float:
    """MiB on top while a gibibyte passes."""
    path = PATHS["heads and bodies, FullDuplexStreamed"]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 18)
    before, most, done = cpu.own_kib(pid, "Rss:"), 0, asyncio.Event()

    async def watch() -> None:
        nonlocal most
        while not done.is_set():
            most = max(most, cpu.own_kib(pid, "Rss:"))
            await asyncio.sleep(0.05)

    watching = asyncio.ensure_future(watch())
    writer.write(f"POST {path}/{'slow' if upload else 'give'} HTTP/1.1\r\nhost: a\r\n".encode())
    if upload:
        writer.write(b"transfer-encoding: chunked\r\n\r\n")
        await _give(writer)
    else:
        writer.write(b"content-length: 0\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    size = await _read(reader, head, slowly=True)
    assert upload or size == GIBIBYTE, size
    done.set()
    await watching
    writer.close()
    return (most - before) / 1024


async def measured(options: argparse.Namespace, stack: ExitStack) -> dict[str, Any]:
    server, upstream = reserve(), reserve()
    _started(stack, "server", [sys.executable, "-m", "benchmarks.ext_proc", "--serve", str(server)], server, {})
    async with await asyncio.start_server(_origin, "127.0.0.1", upstream, limit=1 << 18):
        ports = {"Gatewright": reserve(), "Envoy": reserve()}
        pids = {
            "Gatewright": await asyncio.to_thread(ours, stack, ports["Gatewright"], upstream, server),
            "Envoy": await asyncio.to_thread(theirs, stack, ports["Envoy"], upstream, server),
        }
        spent: dict[str, dict[str, list[float]]] = {what: {name: [] for name in pids} for what in MODES}
        for number in range(options.rounds + 1):  # the first is not counted
            for what in MODES:
                for name, pid in pids.items():
                    found = await _spent(pid, ports[name], PATHS[what], options.requests)
                    spent[what][name] += [found] if number else []
        children = cpu.tree(pids["Gatewright"])[1:]
        worker = max(children, key=cpu.own_nanoseconds)
        grown = {
            "an origin that reads slowly": await _grown(worker, ports["Gatewright"], upload=True),
            "a client that reads slowly": await _grown(worker, ports["Gatewright"], upload=False),
        }
    medians = {what: {name: statistics.median(each) for name, each in by.items()} for what, by in spent.items()}
    return {"microseconds": medians, "mebibytes": grown}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ext_proc", description=__doc__)
    parser.add_argument("--requests", type=int, default=3200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=OUT / "ext_proc.json", metavar="FILE")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve))
        return 0
    with alone(), ExitStack() as stack:
        found = asyncio.run(measured(options, stack))
    options.json.write_text(json.dumps(found, indent=1))
    print("| the server is shown | Gatewright | Envoy |\n|---|---|---|")
    for what, by in found["microseconds"].items():
        print(f"| {what} | {by['Gatewright']:.0f} us | {by['Envoy']:.0f} us |")
    print("\n| 1 GiB in full duplex, with | memory on top | at most |\n|---|---|---|")
    for what, grown in found["mebibytes"].items():
        print(f"| {what} | {grown:.1f} MiB | {MOST:g} MiB |")
    return 0 if all(grown <= MOST for grown in found["mebibytes"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
