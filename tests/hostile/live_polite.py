"""The polite client beside hostile ones (`live`).

It may be scheduled long after its answer came, while the worker computes for others. The kernel notes when that was,
and the worker cannot have computed for longer than from the question until then: the lesser of both is what was waited.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path
from typing import Final, Self

ADDRESS: Final = "127.200.0.9"
ASKS: Final = b"GET /polite HTTP/1.1\r\nHost: polite.test\r\n\r\n"
PAUSE: Final = 0.002
PATIENCE: Final = 30.0
STAMPS: Final = 35
"""SO_TIMESTAMPNS and SCM_TIMESTAMPNS (socket(7), Linux): when the kernel got what is received."""
_stamp = struct.Struct("@qq")


class Polite:
    """Asks again and again; `longest` is in seconds."""

    def __init__(self, port: int, worker: int) -> None:
        self._port = port
        self._cpu = Path(f"/proc/{worker}/task/{worker}/schedstat")
        self._is_over, self._served = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.longest = self._since = 0.0
        self.served = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._is_over.set()
        self._thread.join()

    def forget(self) -> None:
        """Of what was: what is asked from now on counts."""
        self._since = time.time()
        self._served.clear()
        self.longest, self.served = 0.0, 0

    def await_served(self) -> None:
        """Until it has an answer to what it asked after all that was sent so far: what comes now is waited for alone.
        Raises TimeoutError."""
        self.forget()
        if not self._served.wait(PATIENCE):
            raise TimeoutError(f"the polite client was not served within {PATIENCE:g} s")
        self.forget()

    def _seconds(self) -> float:
        return int(self._cpu.read_text().split()[0]) / 1e9

    def _run(self) -> None:
        with socket.socket() as connection:
            connection.settimeout(30)
            connection.bind((ADDRESS, 0))
            connection.connect(("127.0.0.1", self._port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, STAMPS, 1)
            while not self._is_over.is_set():
                began = self._seconds()
                asked = time.time()
                connection.sendall(ASKS)
                answer, notes, *_ = connection.recvmsg(65_536, 256)
                took = self._seconds() - began
                for _, kind, data in notes:
                    if kind == STAMPS:
                        seconds, rest = _stamp.unpack(data)
                        took = min(took, seconds + rest / 1e9 - asked)
                if not answer.startswith(b"HTTP/1.1 200 "):
                    raise RuntimeError(f"the polite client was answered {answer[:40]!r}")
                if asked >= self._since:
                    self.longest = max(self.longest, took)
                    self.served += 1
                    self._served.set()
                time.sleep(PAUSE)
