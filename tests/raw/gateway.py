"""Start the real proxy from a standalone file, in front of given origins, and stop it again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_START = 20.0


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def forward_all(port: int, origin_port: int) -> dict[str, Any]:
    """A file that sends everything to the origin, but redirects paths under /away itself (`case.AWAY`)."""
    redirect = {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/"}}
    away = {
        "name": "away",
        "matches": [{"path": {"type": "PathPrefix", "value": "/away"}}],
        "policies": {"requestRedirect": redirect},
    }
    everything = {"name": "everything", "backends": [{"host": f"127.0.0.1:{origin_port}"}]}
    listener = {"name": "http", "protocol": "HTTP", "routes": [away, everything]}
    return {"binds": [{"port": port, "addresses": ["127.0.0.1"], "listeners": [listener]}]}


class Gateway:
    """`with Gateway(file) as gateway:` runs `python -m dataplane -f` until the block ends; `address` takes requests."""

    def __init__(self, file: Mapping[str, Any], workers: int = 1) -> None:
        self.file = file
        self.address = ("127.0.0.1", int(file["binds"][0]["port"]))
        self.stats_port, self.readiness_port = free_port(), free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="gateway")
        self.path = Path(self._folder.name) / "config.json"
        self.log = Path(self._folder.name) / "log"
        pages = {"--admin": "off", "--stats": self.stats_port, "--readiness": self.readiness_port}
        flags = [f"{flag}={page if page == 'off' else f'127.0.0.1:{page}'}" for flag, page in pages.items()]
        self.command = [sys.executable, "-m", "dataplane", "-f", str(self.path), f"--workers={workers}", *flags]

    def __enter__(self) -> Gateway:
        self.path.write_text(json.dumps(self.file))
        environment = {"SESSION_KEY": "00" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "0"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment, "TERMINATION_GRACE_PERIOD_SECONDS": "1"},
            )
        self._await_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._folder.cleanup()

    def _await_ready(self) -> None:
        deadline = time.monotonic() + _START
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the proxy ended:\n{self.log.read_text()}")
            try:
                with socket.create_connection(("127.0.0.1", self.readiness_port), 1) as probe:
                    probe.sendall(b"GET /healthz/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    if b" 200 " in probe.recv(64):
                        return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"the proxy did not become ready:\n{self.log.read_text()}")
