"""`gatewright up` as users run it, for tests: a real one, with its ports moved to where they are free."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve, reserve_offset
from tests.harness.processes import Program
from tests.harness.waiting import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
LISTENER, SECOND = 8080, 8081
PAGES = (15000, 15020, 15021)
GATEWRIGHT_UP = (sys.executable, "-m", "controlplane.cli", "up")


def copy_example(folder: Path, name: str = "quickstart") -> Path:
    """An example with demo servers on free ports."""
    shutil.copytree(EXAMPLES / name, folder)
    ports: dict[str, str] = {}
    for file in folder.glob("*.yaml"):
        text = re.sub(r"\b19\d\d\d\b", lambda port: ports.setdefault(port[0], str(reserve())), file.read_text())
        file.write_text(text)
    return folder


def offset(listeners: Collection[int] = (LISTENER, SECOND)) -> int:
    """At which the listeners and all pages of the proxies of two Gateways are ours."""
    return reserve_offset(port + 1000 * number for number in range(4) for port in (*listeners, *PAGES))


class Up:
    """One `gatewright up` and questions about it. `program`: what is typed for it. `listeners`: ports of the folder."""

    def __init__(
        self,
        folder: Path,
        scratch: Path,
        *options: str,
        program: Sequence[str] = GATEWRIGHT_UP,
        listeners: Collection[int] = (LISTENER, SECOND),
    ) -> None:
        self.folder = folder
        self.offset = offset(listeners)
        self._options = [str(folder), "--socket", str(scratch / "xds.sock"), "--xds", "127.0.0.1:0"]
        self._options += ["--port-offset", str(self.offset), *options]
        command = [*program, *self._options, "--admin", "127.0.0.1:0"]
        self.process = Program(scratch, "up", command)

    @property
    def output(self) -> str:
        return self.process.out() + self.process.log()

    @property
    def admin(self) -> str:
        return f"127.0.0.1:{self.process.port('ADMIN')}"

    @property
    def arguments(self) -> list[str]:
        """Of its command line, with the admin address that it got."""
        return [*self._options, "--admin", self.admin]

    def wait_ready(self) -> None:
        self.process.await_ready()
        wait_until(lambda: "Ctrl-C stops everything." in self.output, lambda: self.output)

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "controlplane.cli", *arguments, "--admin", self.admin]
        # Longer than a command that is told to wait itself, so that its own words are seen.
        return subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.cli("status", "-o", "json").stdout)
        return body

    def get(self, path: str, headers: dict[str, str] | None = None, proxy: int = 0) -> tuple[int, dict[str, str], str]:
        return fetch(f"http://127.0.0.1:{LISTENER + self.offset + 1000 * proxy}{path}", headers or {})

    def end(self, number: int) -> int:
        """The exit status. What it started is gone then, or the test fails."""
        self.process.signal(number)
        code = self.process.wait()
        self.process.stop()
        return code

    def close(self) -> None:
        """End what is left."""
        self.process.stop()


def opens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def fetch(url: str, headers: dict[str, str]) -> tuple[int, dict[str, str], str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode()
    finally:
        connection.close()


@contextlib.contextmanager
def running(
    folder: Path,
    scratch: Path,
    *options: str,
    program: Sequence[str] = GATEWRIGHT_UP,
    listeners: Collection[int] = (LISTENER, SECOND),
) -> Iterator[Up]:
    up = Up(folder, scratch, *options, program=program, listeners=listeners)
    try:
        yield up
    finally:
        up.close()
