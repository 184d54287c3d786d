"""Bytes that pass as they are, beside HAProxy: CPU for 1 GiB through a TCP listener, in each direction.

`python -m benchmarks.passthrough [--mib N] [--rounds N]`. Rounds are interleaved as those of `benchmarks/run`; each
moves one stream. HAProxy has one thread and its defaults, and once more `option splice-auto`, with which bytes stay in
the kernel where they can. No bar: the ratio is for knowing.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from benchmarks import cpu, report
from benchmarks.load import LoadFailed
from benchmarks.machine import OUT, PROXY_CORE, Process, alone, find, run_folder
from tests.harness.ports import reserve

MIB: Final = 1 << 20
PIECE: Final = bytes(262_144)

HAPROXY: Final = """
global
  nbthread 1
  maxconn 1000
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  {option}
listen all
  bind 127.0.0.1:{port}
  server backend 127.0.0.1:{backend}
"""


def haproxy(port: int, backend: int, option: str = "") -> list[str]:
    path = run_folder() / f"haproxy_{port}.cfg"
    path.write_text(HAPROXY.format(port=port, backend=backend, option=option))
    return [find("haproxy"), "-db", "-f", str(path)]


def splicing(port: int, backend: int) -> list[str]:
    return haproxy(port, backend, "option splice-auto")


def gatewright(port: int, backend: int) -> list[str]:
    listener = {"protocol": "TCP", "tcpRoutes": [{"backends": [{"host": f"127.0.0.1:{backend}"}]}]}
    path = run_folder() / "gatewright_tcp.json"
    path.write_text(json.dumps({"binds": [{"port": port, "listeners": [listener]}]}))
    pages = [f"--{page}=127.0.0.1:{reserve()}" for page in ("admin", "stats", "readiness")]
    return [sys.executable, "-m", "dataplane", "-f", str(path), "--workers=1", *pages]


STARTERS: Final = {"gatewright": gatewright, "haproxy": haproxy, "haproxy splice": splicing}


@contextmanager
def far_end() -> Iterator[int]:
    """A server that sends as much as its client asks for (`DOWN size`), or counts what comes (`UP size`)."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        with client:
            way, _, size = client.recv(64).partition(b" ")
            if way == b"DOWN":
                give(client, int(size))
            elif way:  # else somebody looked whether the port is open
                client.sendall(b".")
                client.sendall(b"%d" % take(client, int(size)))

    def accept() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()


def give(peer: socket.socket, size: int) -> None:
    while size:
        size -= peer.send(PIECE[:size])


def take(peer: socket.socket, size: int) -> int:
    count, piece = 0, bytearray(262_144)
    while count < size:
        came = peer.recv_into(piece)
        if not came:
            break
        count += came
    return count


def move(port: int, size: int, upload: bool) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(b"%s %d" % (b"UP" if upload else b"DOWN", size))
        if upload:
            client.recv(1)  # it reads
            give(client, size)
            moved = int(client.recv(64))
        else:
            moved = take(client, size)
    if moved != size:
        raise LoadFailed(f"{moved} of {size} bytes arrived")


def measure(process: Process, port: int, size: int, upload: bool) -> float:
    """Milliseconds of CPU."""
    before = cpu.nanoseconds(process.pid)
    move(port, size, upload)
    return (cpu.nanoseconds(process.pid) - before) / 1e6


def run(mib: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {way: {name: [] for name in STARTERS} for way in ("download", "upload")}
    with ExitStack() as stack:
        stack.enter_context(alone())
        backend = stack.enter_context(far_end())
        running = {}
        for name, starter in STARTERS.items():
            port = reserve()
            process = Process(name.replace(" ", "_"), starter(port, backend), PROXY_CORE)
            stack.callback(process.stop)
            process.await_port(port)
            running[name] = process, port
            move(port, 16 * MIB, False)
        for number in range(rounds):
            shift = number % len(STARTERS)
            for name in (*list(STARTERS)[shift:], *list(STARTERS)[:shift]):
                for way, each in found.items():
                    each[name].append(measure(*running[name], mib * MIB, way == "upload"))
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passthrough", description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="of one stream; default 1024")
    parser.add_argument("--rounds", type=int, default=5, help="default 5")
    options = parser.parse_args()
    found = run(options.mib, options.rounds)
    lines = [
        f"| {options.mib:,} MiB through a TCP listener | ms of CPU | peer / gatewright (least to most) |",
        "|---|---|---|",
    ]
    for way, each in found.items():
        for name, spent in each.items():
            ratios = [p / q for p, q in zip(spent, each["gatewright"], strict=True)]
            ratio = (
                ""
                if name == "gatewright"
                else f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            )
            lines.append(f"| {way}, {name} | {statistics.median(spent):,.0f} | {ratio} |")
    text = "\n".join(lines) + "\n"
    print(text)
    (OUT / "passthrough.json").write_text(json.dumps({"machine": report.machine(), "ms": found}, indent=1) + "\n")
    (OUT / "passthrough.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
