"""Load and what it cost: `wrk` against a proxy, the backend's own counts, CPU time of the proxy's process tree."""

from __future__ import annotations

import http.client
import re
import resource
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks import cpu
from benchmarks.machine import LOAD_CORE, Process, find, run_folder
from benchmarks.proxies import HOST
from tests.harness.ports import reserve

HEADERS = (
    f"Host: {HOST}",
    "User-Agent: bench-client/1.0 (linux; x86_64)",
    "Accept: */*",
    "Accept-Encoding: gzip, deflate",
    "Authorization: Bearer sk-0123456789abcdef0123456789abcdef",
    "X-Request-Id: 7f3e1c2a-9b1d-4e57-8a0f-2d3c4b5a6978",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
)
_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 6e7}


class LoadFailed(RuntimeError):
    """Requests failed: the figures would mean nothing."""


class Answers(NamedTuple):
    """What a load got: how many, and microseconds."""

    count: int
    p50: float
    p99: float


class Load(Protocol):
    """Requests of one kind."""

    def run(self, port: int, seconds: int) -> Answers:
        """Send them to a port, from the load's core. Raises LoadFailed when an answer was missing or not 2xx."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What `wrk` sends."""

    target: str
    connections: int
    body: int = 0
    """Bytes of a POST body, 0 for GET."""
    varied: bool = False
    """Every request has a request id and a trace id of its own."""
    headers: tuple[str, ...] = ()
    """In place of those of HEADERS with the same name, or beside them."""
    scheme: str = "http"
    script: Path | None = None
    """A program for `wrk`, in place of the one that `body` and `varied` make."""

    def run(self, port: int, seconds: int) -> Answers:
        output = wrk(port, self, seconds)
        found = re.search(r"(\d+) requests in", output)
        return Answers(int(found[1]) if found else 0, *(_microseconds(output, share) for share in ("50", "99")))


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one proxy. `microseconds`: CPU per unit (request or event)."""

    units: int
    microseconds: float
    per_second: float
    p50: float
    p99: float
    foreign: float
    """Cores that something else kept busy meanwhile: a noisy round."""

    def as_json(self) -> dict[str, float]:
        return asdict(self)


class Counting:
    """A backend that counts what it did."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        self.port = port
        self.process = Process("backend", command, LOAD_CORE)
        self.process.await_port(port)

    def counts(self) -> tuple[int, int]:
        """Requests answered and events sent since it started."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        client.request("GET", "/counts")
        requests, events = client.getresponse().read().split()
        client.close()
        return int(requests), int(events)


class Backend(Counting):
    """The C backend, compiled on first use."""

    def __init__(self) -> None:
        source = Path(__file__).with_name("backend.c")
        binary = run_folder() / "backend"
        subprocess.run([find("cc"), "-O2", "-o", str(binary), str(source)], check=True)
        port = reserve()
        super().__init__([str(binary), str(port)], port)


def measure(proxy: Process, port: int, backend: Counting, load: Load, seconds: int, events: bool = False) -> Sample:
    """Run load for `seconds` and read what it cost. Raises LoadFailed when requests failed."""
    counts, spent, busy = backend.counts(), cpu.nanoseconds(proxy.pid), cpu.busy()
    ours = cpu.nanoseconds(backend.process.pid)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    answers = load.run(port, seconds)
    elapsed = time.monotonic() - started
    spent = cpu.nanoseconds(proxy.pid) - spent
    ours = cpu.nanoseconds(backend.process.pid) - ours
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    loading = (after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime) * 1e9
    foreign = (cpu.busy() - busy - spent - ours - loading) / 1e9 / elapsed
    requests, sent = (now - then for now, then in zip(backend.counts(), counts, strict=True))
    if requests < max(answers.count, 1):
        raise LoadFailed(f"{proxy.name}: {answers.count} answers, {requests} of them by the backend")
    units = sent if events else requests
    return Sample(units, spent / units / 1e3, units / elapsed, answers.p50, answers.p99, max(foreign, 0.0))


def wrk(port: int, shape: Shape, seconds: int) -> str:
    """Run wrk on the load core. Raises LoadFailed when an answer was missing or not 2xx."""
    command = ["taskset", "-c", str(LOAD_CORE), find("wrk"), "-t1", f"-c{shape.connections}", f"-d{seconds}s"]
    command += ["--latency", "--timeout", "10s"]
    own = {header.partition(":")[0].lower() for header in shape.headers}
    for header in (*(each for each in HEADERS if each.partition(":")[0].lower() not in own), *shape.headers):
        command += ["-H", header]
    if shape.script or shape.body or shape.varied:
        command += ["-s", str(shape.script or _script(shape))]
    output = subprocess.run(
        [*command, f"{shape.scheme}://127.0.0.1:{port}{shape.target}"], capture_output=True, text=True
    ).stdout
    problems = re.findall(r"(Socket errors.*|Non-2xx.*)", output)
    if problems or "requests in" not in output:
        raise LoadFailed(f"port {port}: {'; '.join(problems) or output}")
    return output


_VARIED = """
local number = 0
request = function()
  number = number + 1
  wrk.headers["X-Request-Id"] = string.format("7f3e1c2a-9b1d-4e57-8a0f-%012x", number)
  wrk.headers["traceparent"] = string.format("00-0af7651916cd43dd8448eb21%08x-b7ad6b7169203331-01", number)
  return wrk.format()
end
"""


def _script(shape: Shape) -> Path:
    """wrk's program for what its command line cannot say."""
    post = f'wrk.method = "POST"\nwrk.body = string.rep("x", {shape.body})\n' if shape.body else ""
    path = run_folder() / f"load_{shape.body}_{shape.varied}.lua"
    path.write_text(post + (_VARIED if shape.varied else ""))
    return path


def _microseconds(output: str, share: str) -> float:
    found = re.search(rf"{share}%\s+([0-9.]+)(us|ms|s|m)", output)
    return float(found[1]) * _UNITS[found[2]] if found else 0.0


def idle_kib(proxy: Process, port: int, target: str, connections: int) -> float:
    """Resident KiB per idle keep-alive connection that has had one request."""
    request = f"GET {target} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    before = settled_kib(proxy)
    held = []
    for _ in range(connections):
        client = socket.create_connection(("127.0.0.1", port), 5)
        client.sendall(request)
        answer = client.recv(4096)
        if b" 200 " not in answer[:20]:
            raise LoadFailed(f"{proxy.name}: {answer[:60]!r}")
        held.append(client)
    time.sleep(0.2)
    grown = cpu.resident_kib(proxy.pid) - before
    for client in held:
        client.close()
    return grown / connections


def settled_kib(proxy: Process) -> int:
    """Resident memory once the start is over: half a second without a change."""
    last, since = 0, time.monotonic()
    while time.monotonic() - since < 0.5:
        now = cpu.resident_kib(proxy.pid)
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.05)
    return last
