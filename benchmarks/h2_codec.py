"""The HTTP/2 codec beside others: `python -m benchmarks.h2_codec [--quick] [--rounds N] [--json FILE]`.

In memory: one server connection of each library takes the same requests, as bytes that were made beforehand, and writes
an answer of five fields and 63 bytes; or takes, or sends, DATA frames of 16 KiB. Rounds are interleaved; a ratio is of
two figures of the same round, and CPU time of the thread. Over sockets, where h2load and nghttpd are: CPU time of a
server process for each request, our codec under uvloop without anything behind it, and nghttp2's own server with a file
of the same size; there both sides pay for the kernel, too. Exit status 1 when a bar does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from time import thread_time_ns
from typing import Any

import uvloop
from hpack import Encoder, HeaderTuple, NeverIndexedHeaderTuple

from benchmarks.cpu import nanoseconds
from dataplane.http.h2 import frames
from dataplane.http.h2.connection import Connection
from dataplane.http.h2.settings import Settings
from tests.fakes.h2_peer import EchoServer

BARS = {"same head": 8.0, "other path": 4.0, "every head new": 2.5, "DATA in": 3.0, "DATA out": 2.0}
"""At least so many times faster than `h2`, by case."""

HEAD = (
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":authority", b"api.example.com"),
    (b":path", b"/api/v1/users/42"),
    (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    (b"accept", b"application/json"),
    (b"accept-encoding", b"gzip, deflate, br"),
    (b"accept-language", b"en-GB,en;q=0.8"),
    (b"authorization", b"Bearer eyJhbGciOi.J9.x"),
    (b"cookie", b"session=abc; theme=dark"),
)
ANSWER = (
    (b"content-type", b"application/json"),
    (b"date", b"Sun, 22 Nov 2026 20:33:37 GMT"),
    (b"server", b"example"),
    (b"content-length", b"63"),
    (b"cache-control", b"no-cache"),
)
BODY = b"x" * 63
PIECE = b"x" * 16_384
OPENING = frames.settings(b"\0\4\x7f\xff\xff\xff") + frames.window_update(0, frames.MAX_WINDOW - 65_535)
WIDE = Settings(stream_window=1 << 30, connection_window=1 << 30)
COUNT = 80
"""Exchanges of one connection and round; below every limit on open streams."""


def requests(case: str, count: int) -> list[bytes]:
    """HEADERS frames of one connection, as a browser or nghttp2 makes them: paths and credentials in no table."""
    encoder, found = Encoder(), []
    for number in range(count):
        fields = list(HEAD)
        if case != "same head":
            fields[3] = (b":path", b"/api/v1/users/%d" % number)
        if case == "every head new":
            fields += ((b"x-request-id", b"%032d" % number), (b"traceparent", b"00-%032d-01" % number))
        volatile = (b":path", b"authorization", b"x-request-id") if case != "same head" else ()
        tuples = [(NeverIndexedHeaderTuple if name in volatile else HeaderTuple)(name, value) for name, value in fields]
        found.append(frames.headers(2 * number + 1, encoder.encode(tuples), True, frames.MIN_FRAME_SIZE))
    return found


class Ours:
    def __init__(self) -> None:
        self.codec = Connection(WIDE, True, time.monotonic)
        self.codec.receive(frames.PREFACE + OPENING)
        self.codec.take()
        self.block = b"\r\n" + b"".join([b"%b: %b\r\n" % pair for pair in ANSWER])
        self.stream: Any = None

    def exchange(self, octets: bytes, number: int) -> None:
        codec = self.codec
        (event,) = codec.receive(octets)
        codec.send_response(event.stream, 200, self.block, False)  # type: ignore[union-attr]
        codec.send_content(event.stream, BODY, True)  # type: ignore[union-attr]
        codec.take()

    def open(self, octets: bytes) -> None:
        (event,) = self.codec.receive(octets)
        self.stream = event.stream  # type: ignore[union-attr]
        self.codec.send_response(self.stream, 200, b"\r\n", False)
        self.codec.take()

    def take(self, octets: bytes) -> None:
        (event,) = self.codec.receive(octets)
        self.codec.acknowledge(self.stream, len(event.data))  # type: ignore[union-attr]
        self.codec.take()

    def send(self) -> None:
        self.codec.send_content(self.stream, PIECE, False)
        self.codec.take()


class Theirs:
    """`h2`, or `jh2`, which has its interface."""

    def __init__(self, name: str) -> None:
        config = import_module(f"{name}.config").H2Configuration(client_side=False, header_encoding=None)
        self.connection = import_module(f"{name}.connection").H2Connection(config)
        settings = import_module(f"{name}.settings")
        self.connection.local_settings = settings.Settings(
            client=False, initial_values={settings.SettingCodes.INITIAL_WINDOW_SIZE: 1 << 30}
        )
        self.connection.initiate_connection()
        self.connection.increment_flow_control_window((1 << 30) - 65_535)
        self.connection.receive_data(frames.PREFACE + OPENING + frames.SETTINGS_ACK)
        self.connection.data_to_send()

    def exchange(self, octets: bytes, number: int) -> None:
        connection = self.connection
        event = connection.receive_data(octets)[0]
        connection.send_headers(event.stream_id, [(b":status", b"200"), *ANSWER])
        connection.send_data(event.stream_id, BODY, True)
        connection.data_to_send()

    def open(self, octets: bytes) -> None:
        self.connection.receive_data(octets)
        self.connection.send_headers(1, [(b":status", b"200")])
        self.connection.data_to_send()

    def take(self, octets: bytes) -> None:
        (event,) = self.connection.receive_data(octets)
        self.connection.acknowledge_received_data(event.flow_controlled_length, 1)
        self.connection.data_to_send()

    def send(self) -> None:
        self.connection.send_data(1, PIECE)
        self.connection.data_to_send()


SIDES: dict[str, Callable[[], Ours | Theirs]] = {
    "gatewright": Ours,
    "jh2": lambda: Theirs("jh2"),
    "h2": lambda: Theirs("h2"),
}


def timed(case: str, made: Ours | Theirs) -> float:
    """Microseconds of CPU for each exchange, or each frame; the first few warm a connection up."""
    if case.startswith("DATA"):
        head = Encoder().encode([(b":method", b"POST"), *HEAD[1:]])
        made.open(frames.headers(1, head, False, frames.MIN_FRAME_SIZE))
        piece = frames.header(frames.DATA, 0, 1, len(PIECE)) + PIECE
        calls = [(lambda: made.take(piece)) if case == "DATA in" else made.send] * COUNT
    else:
        sent = requests(case, COUNT + 10)
        for number in range(10):
            made.exchange(sent[number], number)
        calls = [lambda octets=octets: made.exchange(octets, 0) for octets in sent[10:]]  # type: ignore[misc]
    start = thread_time_ns()
    for call in calls:
        call()
    return (thread_time_ns() - start) / len(calls) / 1000


def measure(rounds: int, repeats: int) -> list[dict[str, Any]]:
    """A dict for each case: microseconds by library, and ratios to ours. A figure is the least of `repeats`: another
    process that takes the core away makes figures larger, never smaller."""
    found: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds):
        names = list(SIDES)
        for case in BARS:
            for name in names[number % len(names) :] + names[: number % len(names)]:
                figure = min(timed(case, SIDES[name]()) for _ in range(repeats))
                found.setdefault((case, name), []).append(figure)
    return [result(case, found) for case in BARS]


def result(case: str, found: dict[tuple[str, str], list[float]]) -> dict[str, Any]:
    own = found[case, "gatewright"]
    ratios = {
        name: [peer / our for peer, our in zip(found[case, name], own, strict=True)]
        for name in SIDES
        if name != "gatewright"
    }
    return {
        "case": case,
        "microseconds": {name: statistics.median(found[case, name]) for name in SIDES},
        "ratios": {
            name: {"median": statistics.median(values), "least": min(values), "greatest": max(values)}
            for name, values in ratios.items()
        },
        "wanted": BARS[case],
        "holds": statistics.median(ratios["h2"]) >= BARS[case],
    }


# over sockets


def serve() -> None:
    """Our codec as a server of 63 bytes, until its parent ends it; prints its port."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: EchoServer(Settings(), [], []), "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    uvloop.run(run())


def over_sockets(rounds: int, count: int) -> dict[str, float] | None:
    """Microseconds of a server process for each request, by server; None without nghttp2's programs."""
    nghttpd, h2load = shutil.which("nghttpd", path="/usr/sbin:/usr/bin"), shutil.which("h2load")
    if nghttpd is None or h2load is None:
        return None
    found: dict[str, list[float]] = {"gatewright": [], "nghttpd": []}
    for _ in range(rounds):
        for name, figures in found.items():
            for process, port, path in started(name, nghttpd):
                url = f"http://127.0.0.1:{port}{path}"
                subprocess.run([h2load, "-n", "500", "-c8", "-m16", url], check=True, capture_output=True)
                before = nanoseconds(process.pid)
                run = subprocess.run(
                    [h2load, "-n", str(count), "-c8", "-m16", url], check=True, capture_output=True, text=True
                )
                if f"{count} succeeded" not in run.stdout:
                    raise RuntimeError(run.stdout)
                figures.append((nanoseconds(process.pid) - before) / count / 1000)
    return {name: min(figures) for name, figures in found.items()}


def started(name: str, nghttpd: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """A server process, its port, and the path of 63 bytes; ended afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        if name == "gatewright":
            command, port, path = [sys.executable, "-m", "benchmarks.h2_codec", "--serve"], 0, "/bytes/63"
        else:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port, path = probe.getsockname()[1], "/63"
            Path(folder, "63").write_bytes(BODY)
            command = [nghttpd, "--no-tls", "-a", "127.0.0.1", "-d", folder, str(port)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            if not port:
                assert process.stdout is not None
                port = int(process.stdout.readline())
            while not listens(port):
                time.sleep(0.01)
            yield process, port, path
        finally:
            process.kill()
            process.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def table(results: list[dict[str, Any]], sockets: dict[str, float] | None) -> str:
    head = ["case", *(f"{name} us" for name in SIDES), "h2 / ours (least to most)", "jh2 / ours", "bar"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in results:
        one, two = row["ratios"]["h2"], row["ratios"]["jh2"]
        figures = [f"{row['microseconds'][name]:.1f}" for name in SIDES]
        figures.append(f"{one['median']:.1f} ({one['least']:.1f} to {one['greatest']:.1f})")
        figures += [f"{two['median']:.1f}", f"{row['wanted']:.1f} {'holds' if row['holds'] else 'DOES NOT HOLD'}"]
        lines.append(f"| {row['case']} | " + " | ".join(figures) + " |")
    if sockets is not None:
        figures = [f"{name} {figure:.1f} us" for name, figure in sockets.items()]
        lines.append(f"\nServer process for each request, h2load -c8 -m16: {', '.join(figures)}.")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.h2_codec", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="3 rounds, and no sockets")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    results = measure(3 if options.quick else options.rounds, 5 if options.quick else 15)
    sockets = None if options.quick else over_sockets(3, 20_000)
    print(table(results, sockets))
    if options.json is not None:
        options.json.write_text(json.dumps({"cases": results, "sockets": sockets}, indent=1))
    return 0 if all(row["holds"] for row in results) else 1


if __name__ == "__main__":
    sys.exit(main())
