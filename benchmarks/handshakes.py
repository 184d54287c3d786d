"""Clients of TLS that begin a connection for each request: handshakes in full, or of resumed sessions.

`python -m benchmarks.handshakes PORT SECONDS resume|full` is the load: eight threads on one core, each of which opens
one connection after the other, so that the proxy has several at hand. It prints how many, and how many of them were
resumed. `Handshakes` runs it as a `load.Load`. The certificate is not checked: it is the proxy's work that is measured.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks.load import HEADERS, Answers, LoadFailed
from benchmarks.machine import LOAD_CORE, ROOT
from benchmarks.proxies import HOST, TARGET

CLIENTS = 8
REQUEST = "\r\n".join([f"GET {TARGET} HTTP/1.1", *HEADERS, "Connection: close", "", ""]).encode()


@dataclass(frozen=True, slots=True)
class Handshakes:
    """`resume`: each connection of a client but its first goes on with the session of the one before."""

    resume: bool

    def run(self, port: int, seconds: int) -> Answers:
        command = ["taskset", "-c", str(LOAD_CORE), sys.executable, "-m", "benchmarks.handshakes", str(port)]
        command += [str(seconds), "resume" if self.resume else "full"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LoadFailed(f"port {port}: {done.stderr[-500:]}")
        count, resumed, p50, p99 = (float(word) for word in done.stdout.split())
        if resumed != (count - CLIENTS if self.resume else 0):
            raise LoadFailed(f"port {port}: {resumed:.0f} of {count:.0f} sessions were resumed")
        return Answers(int(count), p50, p99)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def one(context: ssl.SSLContext, port: int, session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bool]:
    """A connection with one request: its session, and whether that was resumed. Raises OSError."""
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(plain, server_hostname=HOST, session=session) as tls:
            tls.sendall(REQUEST)
            answer = b""
            while piece := tls.recv(16_384):
                answer += piece
            if not answer.startswith(b"HTTP/1.1 200"):
                raise OSError(f"answered {answer[:60]!r}")
            return tls.session, bool(tls.session_reused)


def client(port: int, seconds: float, resume: bool) -> tuple[list[float], int]:
    """Microseconds of each connection, and how many went on with a session."""
    context, session, resumed, times = _context(), None, 0, []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        found, was_resumed = one(context, port, session)
        session = found if resume else None
        resumed += was_resumed
        times.append((time.monotonic() - began) * 1e6)
    return times, resumed


def run(port: int, seconds: float, resume: bool) -> str:
    with ThreadPoolExecutor(CLIENTS) as threads:
        found = list(threads.map(lambda _: client(port, seconds, resume), range(CLIENTS)))
    times = sorted(each for times, _ in found for each in times)
    resumed = sum(count for _, count in found)
    return f"{len(times)} {resumed} {times[len(times) // 2]} {times[len(times) * 99 // 100]}"


if __name__ == "__main__":
    print(run(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "resume"))
