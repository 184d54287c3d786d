"""Lines of the access log: both formats, hostile values, and what happens when nobody takes them."""

from __future__ import annotations

import errno
import json
import os
import threading
from types import SimpleNamespace

import pytest

from dataplane.exchange import Exchange
from dataplane.http.heads import Head
from dataplane.telemetry import access_log
from dataplane.telemetry.access_log import AccessLog
from dataplane.telemetry.lines import ATOMIC, file_writer


def exchange(target: bytes = b"/", detail: str = "", reason: str = "") -> Exchange:
    x = Exchange(None, b"GET", target, Head(b"\r\n"), started=0.0)
    x.asked_host = b"a.test"
    x.peer, x.status, x.detail, x.reason = "192.0.2.1", 200, detail, reason
    x.listener = SimpleNamespace(
        name="l",
        gateway="default/g",
        log=" gateway=default/g listener=l",
        log_json=',"gateway":"default/g","listener":"l"',
        access_log=None,
    )
    return x


def lines(log: AccessLog, written: list[bytes]) -> list[str]:
    log.close()
    return b"".join(written).decode().splitlines()


def make(written: list[bytes], as_json: bool = False) -> AccessLog:
    return AccessLog(written.append, lambda _seconds, _call: SimpleNamespace(cancel=lambda: None), as_json)


@pytest.mark.parametrize(
    "hostile", ['/?q="', "/?\\", '/?a" http.status=500 x="'], ids=["quote", "backslash", "forged-field"]
)
def test_values_cannot_forge_fields(hostile: str) -> None:
    for as_json in (False, True):
        written: list[bytes] = []
        log = make(written, as_json)
        log.record(exchange(hostile.encode(), detail='it said "no"\nand more', reason="UpstreamFailed"), 0.001)
        (line,) = lines(log, written)
        if as_json:
            fields = json.loads(line)
            assert fields["http.path"] == hostile
            assert fields["http.status"] == 200
            assert fields["error"] == 'it said "no"\nand more'
        else:
            assert f" http.path={json.dumps(hostile)} " in line
            assert ' error="it said \\"no\\"\\nand more" reason=UpstreamFailed ' in line


def test_many_records_are_handed_over_at_once_and_few_after_a_while() -> None:
    written: list[bytes] = []
    timers: list[float] = []

    def call_later(seconds: float, _call: object) -> SimpleNamespace:
        timers.append(seconds)
        return SimpleNamespace(cancel=lambda: None)

    log = AccessLog(written.append, call_later)
    for _ in range(access_log.BATCH - 1):
        log.record(exchange(), 0.001)
    assert timers == [access_log.INTERVAL]
    assert log.records
    log.record(exchange(), 0.001)
    assert not log.records
    log.close()
    assert b"".join(written).count(b"\n") == access_log.BATCH


def test_what_nobody_takes_is_dropped_and_counted() -> None:
    release = threading.Event()
    dropped: list[int] = []
    log = AccessLog(
        lambda _data: release.wait() and None,
        lambda _s, _c: SimpleNamespace(cancel=lambda: None),
        dropped=dropped.append,
    )
    target = b"/" + b"x" * 8000
    for _ in range(2 * access_log.BATCH + 10):
        log.record(exchange(target), 0.001)
    log.flush()
    assert sum(dropped) > 0
    release.set()
    log.close()


def test_a_full_disk_costs_lines_and_nothing_else() -> None:
    dropped: list[int] = []

    def full(_data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    log = AccessLog(full, lambda _s, _c: SimpleNamespace(cancel=lambda: None), dropped=dropped.append)
    for _ in range(3):
        log.record(exchange(), 0.001)
        log.flush()
    log.close()
    assert sum(dropped) == 3


def test_a_pipe_gets_whole_lines_in_pieces_that_cannot_mix() -> None:
    reader, writer = os.pipe()
    sizes: list[int] = []
    received = b""
    thread_done = threading.Event()
    data = b"".join(b"%05d %b\n" % (number, b"x" * 300) for number in range(200))

    def read() -> None:
        nonlocal received
        while chunk := os.read(reader, 1 << 20):
            received += chunk
        thread_done.set()

    threading.Thread(target=read, daemon=True).start()
    write = file_writer(writer)
    original = os.write

    def counted(descriptor: int, piece: bytes) -> int:
        sizes.append(len(piece))
        assert piece.endswith(b"\n")
        return original(descriptor, piece)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", counted)
        write(data)
    os.close(writer)
    thread_done.wait(5)
    os.close(reader)
    assert received == data
    assert max(sizes) <= ATOMIC
