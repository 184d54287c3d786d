"""Memory where TLS could take much of it: connections that rest, and large bodies.

`python -m benchmarks.tls_memory [--mib N] [--connections N] [--only idle|bodies]`. Idle: what each of 5,000 connections
takes that had one request each, of agent and worker, beside nginx with the same certificate; what the kernel takes for
sockets is not in it, on either side. Bodies: 1 GiB in each direction between a client of TLS and a backend; the growth
is the most of the resident memory meanwhile, less what there was behind a warm-up of 16 MiB. Exit status 1 when a bar
does not hold.
"""

from __future__ import annotations

import argparse
import json
import socket
import ssl
import sys
import threading
from contextlib import ExitStack
from typing import Any, Final

from benchmarks import cpu, proxies, report
from benchmarks.h2_memory import origin, running
from benchmarks.load import LoadFailed, settled_kib
from benchmarks.machine import OUT, alone
from benchmarks.proxies import HOST, TARGET, Starter

MIB: Final = 1 << 20
WARM: Final = 16 * MIB
PIECE: Final = bytes(262_144)
MOST_IDLE: Final = 40.0
"""KiB of the proxy for an idle connection."""
MOST_GROWTH: Final = 8 * 1024
"""KiB, during a body."""


def context() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.set_alpn_protocols(["http/1.1"])
    return made


def connected(port: int) -> ssl.SSLSocket:
    return context().wrap_socket(socket.create_connection(("127.0.0.1", port), 30), server_hostname=HOST)


def resting(port: int) -> socket.socket:
    """A connection that had one request. What this end knows of TLS is given away: only its socket is held."""
    tls = connected(port)
    tls.sendall(f"GET {TARGET} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    answer = tls.recv(4096)
    if b" 200 " not in answer[:20]:
        raise LoadFailed(f"port {port}: {answer[:60]!r}")
    return socket.socket(fileno=tls.detach())


def idle(starter: Starter, backend_port: int, connections: int) -> float:
    """KiB for each connection."""
    with running(starter, backend_port) as (process, port):
        first = resting(port)  # what is made with the first one is not in it
        before = settled_kib(process)
        held = [resting(port) for _ in range(connections)]
        grown = settled_kib(process) - before
        for each in (*held, first):
            each.close()
    return grown / connections


def move(port: int, size: int, upload: bool) -> None:
    """One body, by blocking sockets: the interpreter of the client is free while OpenSSL works."""
    tls = connected(port)
    field = f"Content-Length: {size}" if upload else f"x-size: {size}"
    tls.sendall(f"{'POST' if upload else 'GET'} {TARGET} HTTP/1.1\r\nHost: {HOST}\r\n{field}\r\n\r\n".encode())
    left = size
    while upload and left:
        left -= tls.send(PIECE[:left])
    head = b""
    while b"\r\n\r\n" not in head:
        piece = tls.recv(262_144)
        if not piece:
            raise LoadFailed(f"port {port}: closed behind {head[:60]!r}")
        head += piece
    body = head.partition(b"\r\n\r\n")[2]
    count = len(body)
    while not upload and count < size:
        piece = tls.recv(262_144)
        if not piece:
            raise LoadFailed(f"{count} of {size} bytes arrived")
        count += len(piece)
    if upload and not body.startswith(str(size)[:1].encode()):
        body += tls.recv(4096)
    if upload and int(body) != size:
        raise LoadFailed(f"{body!r} of {size} bytes arrived")
    tls.close()


def growth(pid: int, port: int, size: int, upload: bool) -> int:
    """KiB that the proxy took more while the body passed."""
    move(port, WARM, upload)
    before = most = cpu.resident_kib(pid)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            move(port, size, upload)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
        most = max(most, cpu.resident_kib(pid))
    if failures:
        raise failures[0]
    return most - before


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tls_memory", description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="size of a body; default 1024")
    parser.add_argument("--connections", type=int, default=5000, help="that rest; default 5000")
    parser.add_argument("--only", choices=["idle", "bodies"], help="only this part")
    options = parser.parse_args()
    lines, held, found = [], [], dict[str, Any](machine=report.machine())
    with ExitStack() as stack:
        stack.enter_context(alone())
        backend_port = stack.enter_context(origin())
        if options.only != "bodies":
            for name, starter in (("gatewright", proxies.gatewright_tls), ("nginx", proxies.nginx_tls)):
                found[name] = each = idle(starter, backend_port, options.connections)
                verdict = ""
                if name == "gatewright":
                    held.append(each <= MOST_IDLE)
                    verdict = f", at most {MOST_IDLE:.0f}: {'holds' if held[-1] else 'DOES NOT HOLD'}"
                lines.append(f"- {name}: {each:.1f} KiB for each of {options.connections:,} idle connections{verdict}")
        if options.only != "idle":
            with running(proxies.gatewright_tls, backend_port) as (process, port):
                for upload in (False, True):
                    way = "upload" if upload else "download"
                    found[way] = grown = growth(process.pid, port, options.mib * MIB, upload)
                    held.append(grown <= MOST_GROWTH)
                    verdict = f"at most {MOST_GROWTH:,}: {'holds' if held[-1] else 'DOES NOT HOLD'}"
                    lines.append(f"- {way} of {options.mib:,} MiB: {grown:,} KiB more, {verdict}")
    text = "\n".join(lines) + "\n"
    print(text)
    (OUT / "tls_memory.json").write_text(json.dumps(found, indent=1) + "\n")
    (OUT / "tls_memory.md").write_text(text)
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
