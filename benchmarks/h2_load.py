"""Load of HTTP/2: `h2load` of nghttp2 with prior knowledge, one thread on the load's core."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import HEADERS, Answers, LoadFailed
from benchmarks.machine import LOAD_CORE, find, run_folder
from benchmarks.proxies import HOST

_GRPC = ("content-type: application/grpc", "te: trailers", "user-agent: grpc-c/46.0.0 (linux; chttp2)")
_IN_ORDER = re.compile(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded, 0 failed, 0 errored, 0 timeout")


@dataclass(frozen=True, slots=True)
class Streams:
    """What `h2load` sends: the same header fields as `load.HEADERS`, the host as `:authority`."""

    target: str
    connections: int
    streams: int
    """Requests that each connection has under way."""
    targets: int = 1
    """So many different targets in turn, by a number behind `target`."""
    message: int | None = None
    """Bytes of a message of gRPC; its calls are unary. None: GET."""
    scheme: str = "http"

    def run(self, port: int, seconds: int) -> Answers:
        log = run_folder() / "h2load.log"
        log.unlink(missing_ok=True)
        command = ["taskset", "-c", str(LOAD_CORE), find("h2load"), "-t1", f"-D{seconds}", f"--log-file={log}"]
        command += [f"-c{self.connections}", f"-m{self.streams}", *self._fields(), *self._body()]
        command += self._urls(f"{self.scheme}://127.0.0.1:{port}{self.target}")
        output = subprocess.run(command, capture_output=True, text=True).stdout
        found = _IN_ORDER.search(output)
        if found is None or found[1] == "0" or found[1] != found[2] or "2xx, 0 3xx, 0 4xx, 0 5xx" not in output:
            raise LoadFailed(f"port {port}: {output}")
        times = sorted(int(line.rsplit("\t", 1)[1]) for line in log.read_text().splitlines())
        return Answers(int(found[1]), *(float(times[len(times) * share // 100]) for share in (50, 99)))

    def _fields(self) -> list[str]:
        fields = [f":authority: {HOST}"]
        for line in HEADERS[1:]:  # behind Host
            name, _, value = line.partition(": ")
            fields.append(f"{name.lower()}: {value}")
        if self.message is not None:
            own = {field.partition(":")[0] for field in _GRPC}
            fields = [field for field in fields if field.startswith(":") or field.partition(":")[0] not in own]
            fields += _GRPC
        return [part for field in fields for part in ("-H", field)]

    def _body(self) -> list[str]:
        if self.message is None:
            return []
        path = run_folder() / f"message_{self.message}"
        path.write_bytes(b"\0" + self.message.to_bytes(4, "big") + b"m" * self.message)
        return ["-d", str(path)]

    def _urls(self, url: str) -> list[str]:
        if self.targets == 1:
            return [url]
        path: Path = run_folder() / f"targets_{self.targets}"
        path.write_text("".join(f"{url}{number}\n" for number in range(self.targets)))
        return ["-i", str(path)]
