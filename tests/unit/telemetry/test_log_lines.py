"""Lines of the access log: both formats, hostile values, and what happens when nobody takes them."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from dataplane.exchange import Exchange
from dataplane.http.grpc import GRPC, Call
from dataplane.http.heads import Head
from dataplane.net.turns import SHARE, Turns
from dataplane.telemetry import access_log
from dataplane.telemetry.access_log import AccessLog
from dataplane.telemetry.lines import ATOMIC, file_writer
from dataplane.telemetry.log_plan import Added, LogPlan
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.plan import TelemetryPlan
from dataplane.telemetry.requests import Recorder
from tests.harness.patience import PATIENCE


def exchange(target: bytes = b"/", detail: str = "", reason: str = "") -> Exchange:
    x = Exchange(None, b"GET", target, Head(b"\r\n"), started=0.0)
    x.asked_host = b"a.test"
    x.peer, x.status, x.detail, x.reason = "192.0.2.1", 200, detail, reason
    x.listener = SimpleNamespace(
        name="l",
        gateway="default/g",
        log=" gateway=default/g listener=l",
        log_json=',"gateway":"default/g","listener":"l"',
        telemetry=None,
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


def test_an_exchange_of_which_nothing_is_known() -> None:
    """A message that is no request, say: what is not known is `-` or absent."""
    written: list[bytes] = []
    log = make(written)
    log.record(Exchange(None, b"GET", b"/", Head(b"\r\n"), started=0.0), 0.001)
    (line,) = lines(log, written)
    assert line.partition("\trequest\t")[2] == (
        "gateway=- listener=- src.addr=- http.method=GET http.host=- http.path=/ http.version=HTTP/1.1"
        " http.status=499 protocol=http request.bytes=0 response.bytes=0 duration=1.000ms"
    )


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
    assert (log.waiting, len(log.records)) == (access_log.BATCH - 1, access_log.ROUND - 1)
    log.record(exchange(), 0.001)
    assert log.waiting == 0
    log.close()
    assert b"".join(written).count(b"\n") == access_log.BATCH


class Loop:
    """A loop's timers: how long each was to wait, what it calls, whether it was taken back."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.cancelled = 0

    def call_later(self, seconds: float, call: Callable[[], None]) -> Loop:
        self.timers.append((seconds, call))
        return self

    def cancel(self) -> None:
        self.cancelled += 1


def test_a_line_waits_for_half_a_second_or_for_511_others() -> None:
    written: list[bytes] = []
    loop = Loop()
    log = AccessLog(written.append, loop.call_later)
    log.record(exchange(), 0.001)
    log.record(exchange(), 0.001)
    assert [seconds for seconds, _ in loop.timers] == [0.5] and log.waiting == 2
    loop.timers[0][1]()
    assert log.waiting == 0
    log.flush()  # nothing more
    for _ in range(511):
        log.record(exchange(), 0.001)
    assert len(loop.timers) == 2 and log.waiting == 511
    log.record(exchange(), 0.001)
    assert log.waiting == 0
    log.close()
    assert loop.cancelled == 1 and b"".join(written).count(b"\n") == 514


def test_bodies_that_lines_read_do_not_pile_up() -> None:
    """Those of a batch come to 8 MiB at most; where lines read none, none is kept."""
    written: list[bytes] = []
    log = AccessLog(written.append, Loop().call_later)
    half = b"x" * (4 * 1024 * 1024)
    for reads, kept in ((True, half), (False, None)):
        x = exchange()
        x.body, x.response_body = half, half
        x.listener.telemetry = TelemetryPlan(LogPlan(reads_bodies=reads, wants=lambda _x: False))
        log.record(x, 0.001)
        assert len(log.records) == 1 and (x.body, x.response_body) == (kept, kept)
        if reads:
            more = exchange()
            more.body, more.listener = b"y", x.listener
            log.record(more, 0.001)
            assert log.records == []
    log.close()


MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("bodies", "held"),
    [
        ([(8 * MIB, None)], 1),
        ([(None, 8 * MIB)], 1),
        ([(8 * MIB, 0)], 1),
        ([(0, 8 * MIB)], 1),
        ([(8 * MIB + 1, None)], 0),
        ([(None, 8 * MIB + 1)], 0),
        ([(4 * MIB, 1), (4 * MIB, None)], 0),
        ([(4 * MIB, 0), (None, None), (4 * MIB, None)], 3),
        ([(8 * MIB, 1), (8 * MIB, None)], 1),  # what was let go of counts no more
    ],
)
def test_bodies_of_either_side_count(bodies: list[tuple[int | None, int | None]], held: int) -> None:
    written: list[bytes] = []
    log = AccessLog(written.append, Loop().call_later)
    for request, response in bodies:
        x = exchange()
        x.body = None if request is None else bytes(request)
        x.response_body = None if response is None else bytes(response)
        x.listener.telemetry = TelemetryPlan(LogPlan(reads_bodies=True, wants=lambda _x: False))
        log.record(x, 0.001)
    assert len(log.records) == held
    log.close()


def test_a_body_without_a_listener_is_let_go_of() -> None:
    log = AccessLog([].append, Loop().call_later)
    x = exchange()
    x.listener, x.response_body = None, b"why"
    log.record(x, 0.001)
    assert x.response_body is None
    log.close()


def test_after_the_timer_rang_the_next_record_waits_for_a_new_one() -> None:
    loop = Loop()
    written: list[bytes] = []
    log = AccessLog(written.append, loop.call_later)
    for count in (1, 2, 3):
        log.record(exchange(), 0.001)
        assert len(loop.timers) == count and len(log.records) == 1
        loop.timers[-1][1]()
        assert log.records == []
    log.close()
    assert loop.cancelled == 0, "a timer that has rung is not taken back"
    assert b"".join(written).count(b"\n") == 3


def test_lines_of_four_mebibytes_wait_for_the_writer() -> None:
    release = threading.Event()
    written: list[bytes] = []
    dropped: list[int] = []

    def write(data: bytes) -> None:
        release.wait(PATIENCE)
        written.append(data)

    log = AccessLog(write, Loop().call_later, dropped=dropped.append)
    size = 8192
    for _ in range(800):
        log.record(exchange(b"/" + b"x" * (size - 1)), 0.001)
        log.flush()
    release.set()
    log.close(PATIENCE)
    assert dropped == [1] * sum(dropped)
    taken = len(b"".join(written))
    assert 4 * MIB < taken <= 4 * MIB + size + 500 and len(written) + sum(dropped) == 800


def test_the_beginning_and_the_end_of_a_loss_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "dataplane.telemetry"):
        access_log.report_loss("the disk is full", 0)
        access_log.report_loss("", 7)
    first, second = caplog.records
    assert (first.levelname, second.levelname) == ("ERROR", "INFO")
    assert "the disk is full" in first.message and "7 lines were dropped" in second.message


@pytest.mark.parametrize(
    ("status", "fields"), [(None, {}), (0, {"grpc.status": 0}), (14, {"grpc.status": 14})], ids=["none", "0", "14"]
)
def test_the_status_of_a_call(status: int | None, fields: dict[str, int]) -> None:
    for as_json in (False, True):
        written: list[bytes] = []
        log = make(written, as_json)
        x = exchange()
        x.grpc = Call(GRPC)
        x.grpc.status = status
        log.record(x, 0.001)
        (line,) = lines(log, written)
        if as_json:
            assert {name: value for name, value in json.loads(line).items() if "grpc" in name} == fields
        else:
            assert [word for word in line.split() if "grpc" in word] == [f"{k}={v}" for k, v in fields.items()]


def test_the_time_of_a_line_is_that_of_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.25)
    written: list[bytes] = []
    log = AccessLog(written.append, Loop().call_later, clock=lambda: 100.0)
    for started, took in ((98.0, 0.5), (98.0, 1.5), (99.5, 0.25)):
        x = exchange()
        x.started = started
        log.record(x, took)
    stamps = [line.partition("\t")[0] for line in lines(log, written)]
    assert stamps == ["2027-01-15T07:59:58.750Z", "2027-01-15T07:59:59.750Z", "2027-01-15T08:00:00.000Z"]


def test_a_log_that_goes_nowhere_keeps_nothing() -> None:
    loop = Loop()
    log = AccessLog(None, loop.call_later)
    log.record(exchange(), 0.001)
    log.flush()
    log.close()
    assert (log.records, loop.timers) == ([], [])


def test_a_bug_in_what_a_line_adds_costs_only_that(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_x: Exchange) -> bool:
        raise ZeroDivisionError("a bug")

    written: list[bytes] = []
    log = AccessLog(written.append, Loop().call_later)
    x = exchange(b"/broken")
    x.listener.telemetry = TelemetryPlan(LogPlan(wants=broken))
    log.record(x, 0.001)
    log.record(exchange(b"/whole"), 0.001)
    first, second = lines(log, written)
    assert "http.path=/broken" in first and "http.path=/whole" in second
    assert "attributes of the access log failed" in caplog.text and "a bug" in caplog.text


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
    thread_done.wait(PATIENCE)
    os.close(reader)
    assert received == data
    assert max(sizes) <= ATOMIC


def test_bytes_of_requests_and_responses_are_counted_by_listener() -> None:
    metrics = Metrics.in_memory()
    recorder = Recorder(metrics)
    for sent, answered in ((0, 7), (5, 0), (11, 13)):
        x = exchange()
        x.listener.key, x.body_bytes, x.response_bytes = "listener/default/g/l", sent, answered
        recorder.active += 1
        recorder.ended(x, 0.001)
    counted = {
        name: metrics.slots[metrics.counter(name, "default/g", "l")]
        for name in ("request_bytes_total", "response_bytes_total")
    }
    assert counted == {"request_bytes_total": 16, "response_bytes_total": 20} and recorder.active == 0


class TestFullTurns:
    """Lines whose expressions take long are made in as many turns of the loop as it takes."""

    def _log(self, written: list[bytes]) -> tuple[AccessLog, list[Callable[[], None]], list[float], Turns]:
        calls: list[Callable[[], None]] = []
        now = [0.0]
        turns = Turns(calls.append, lambda: now[0])
        return AccessLog(written.append, Loop().call_later, turns=turns), calls, now, turns

    def _costly(self, turns: Turns, now: list[float]) -> Exchange:
        """An exchange whose line takes as long as a share."""

        def wants(_x: Exchange) -> bool:
            turns.compute()
            now[0] += SHARE
            return True

        x = exchange()
        x.listener.telemetry = TelemetryPlan(LogPlan(wants=wants))
        return x

    def test_one_after_the_other(self) -> None:
        written: list[bytes] = []
        log, calls, now, turns = self._log(written)
        for _ in range(5):
            log.record(self._costly(turns, now), 0.001)
        log.flush()
        for left in (4, 3, 2, 1, 0):
            assert len(log.records) == left
            assert len(turns) == bool(left)
            while calls and len(log.records) == left:
                due, calls[:] = calls[:], []
                for call in due:
                    call()
        log.close()
        assert b"".join(written).count(b"\n") == 5

    def test_further_records_do_not_fill_the_same_turn(self) -> None:
        log, _, now, turns = self._log([])
        for _ in range(2):
            log.record(self._costly(turns, now), 0.001)
        log.flush()
        for _ in range(access_log.BATCH - 1):
            log.record(self._costly(turns, now), 0.001)
        assert len(log.records) == access_log.BATCH
        log.record(self._costly(turns, now), 0.001)
        assert len(log.records) == access_log.BATCH, "what is beyond that is made at once"
        log.close()
        assert log.records == []

    def test_what_may_not_wait_goes_without_what_expressions_add(self) -> None:
        written: list[bytes] = []
        evaluated: list[Exchange] = []
        log, _, now, turns = self._log(written)
        turns.begin()
        now[0] += SHARE
        for _ in range(access_log.BATCH + access_log.ROUND):
            x = exchange()
            x.listener.telemetry = TelemetryPlan(LogPlan(added=(Added.named("a", evaluated.append),)))
            log.record(x, 0.001)
        assert not evaluated
        log.close()
        made = len(b"".join(written).splitlines())
        assert made == access_log.BATCH + access_log.ROUND and 0 < len(evaluated) <= access_log.BATCH
