"""Start the real proxy from a standalone file, in front of given origins, and stop it again."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes.proxy_process import PAGES, TIMES
from tests.harness.processes import Program

_PORT = 8080


def forward_all(origin_port: int) -> dict[str, Any]:
    """A file that sends everything to the origin, but redirects paths under /away itself (`case.AWAY`)."""
    redirect = {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/"}}
    away = {
        "name": "away",
        "matches": [{"path": {"type": "PathPrefix", "value": "/away"}}],
        "policies": {"requestRedirect": redirect},
    }
    everything = {"name": "everything", "backends": [{"host": f"127.0.0.1:{origin_port}"}]}
    listener = {"name": "http", "protocol": "HTTP", "routes": [away, everything]}
    return {"binds": [{"port": _PORT, "addresses": ["127.0.0.1"], "listeners": [listener]}]}


class Gateway:
    """`with Gateway(file) as gateway:` runs `python -m dataplane -f` until the block ends; `address` takes requests."""

    address: tuple[str, int]
    process: Program

    def __init__(self, file: Mapping[str, Any], workers: int = 1) -> None:
        self._file, self._workers = file, workers
        self._folder = tempfile.TemporaryDirectory(prefix="gateway")

    def __enter__(self) -> Gateway:
        path = Path(self._folder.name) / "config.json"
        path.write_text(json.dumps(self._file))
        pages = [f"--{name}=127.0.0.1:0" for name in PAGES]
        command = [sys.executable, "-m", "dataplane", "-f", str(path), f"--workers={self._workers}", "--any-port"]
        self.process = Program(Path(self._folder.name), "gateway", [*command, *pages], environment=TIMES)
        try:
            self.process.await_ready()
            self.address = ("127.0.0.1", self.process.port(f"BIND_{_PORT}"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.process.stop()
        finally:
            self._folder.cleanup()
