"""Limits of connections to a backend (`backend.limits`): how many, who waits for one, how long they are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dataplane.http.h2.settings import Settings
from dataplane.link.loads import Loads, initialise, sections
from dataplane.link.shared import Region
from dataplane.net.writes import Writes
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.requests import Recorder
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.gate import LOOK, WAIT, Gate
from dataplane.upstream.limits import Limits
from dataplane.upstream.settings import PLAIN_TCP, Transport
from tests.carriers import CARRIERS, OK, Carrier, Names, Request, Response, Run
from tests.carriers.contract import Conversation
from tests.fakes.h2_upstream import Endpoint2
from tests.fakes.memory_proxy import FakeConnector, MemoryProxy
from tests.fakes.policy_run import text_of

GET = Request()


def proxy_with(carrier: Carrier, limits: str, policies: str = "", host: str = "127.0.0.1:9000") -> Run:
    return carrier.proxy(text_of(f"policies: {{limits: {limits}{policies}}}\nbackends: [{{host: '{host}'}}]"))


def labelled(run: Run, metric: str) -> dict[tuple[str, ...], int]:
    """A metric of the backend, by its labels but that of the backend."""
    return {
        each.labels[1:]: values[0]
        for each, values in run.memory.metrics.series()
        if each.metric.name == metric and values[0]
    }


def load(run: Run) -> tuple[int, int]:
    """Connections, and requests that wait for one."""
    found = [labelled(run, name) for name in ("backend_connections_active", "backend_pending_requests")]
    return found[0].get((), 0), found[1].get((), 0)


def passes(run: Run, seconds: float) -> None:
    run.advance(seconds)
    run.memory.connector.advance(seconds)


# --- maxConnections


def test_requests_wait_in_order_where_no_further_connection_may_be_opened(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{maxConnections: 1}")
    asked = [run.client().send(Request("GET", f"/{number}")) for number in range(5)]
    seen = 0
    while seen < len(run.arrivals):
        arrival = run.arrivals[seen]
        assert arrival.received.target == f"/{seen}"
        arrival.answer(OK)
        seen += 1
    assert seen == 5 and run.connections == 1
    assert [each.answer.status for each in asked] == [200] * 5
    assert load(run) == (1, 0)


def test_a_second_connection_is_opened_where_it_may(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{maxConnections: 2}")
    asked = [run.client().send(GET) for _ in range(3)]
    if run.connections == 1:  # streams of one
        run.serve(OK)
    else:
        assert run.connections == 2 and len(run.arrivals) == 2 and load(run) == (2, 1)
        assert labelled(run, "backend_limits_exceeded_total") == {("maxConnections",): 1}
        run.arrivals[1].answer(OK)
        assert asked[1].answer.status == 200 and len(run.arrivals) == 3
        run.serve(OK)
    assert {each.answer.status for each in asked} == {200}


HTTP1_ENDPOINTS = [each for name, each in CARRIERS.items() if not name.endswith("-2")]


@pytest.fixture(params=HTTP1_ENDPOINTS, ids=["http1", "http2", "toy"])
def one_each(request: pytest.FixtureRequest) -> Carrier:
    """Carriers whose connections to endpoints take one request at a time."""
    made: Carrier = request.param
    return made


def waiting(carrier: Carrier, limits: str = "{maxConnections: 1}") -> tuple[Run, Conversation]:
    """A proxy with one request that has the only connection."""
    run = proxy_with(carrier, limits, ", http: {version: HTTP1}")
    return run, run.client().send(GET)


def test_a_client_that_leaves_does_not_wait_any_more(one_each: Carrier) -> None:
    run, first = waiting(one_each)
    second, third = run.client().send(GET), run.client().send(GET)
    second.cancel()
    run.arrival.answer(OK)
    assert len(run.arrivals) == 2
    run.arrival.answer(OK)
    assert (first.answer.status, third.answer.status) == (200, 200) and load(run) == (1, 0)


@pytest.mark.parametrize("end", ["reset", "cancel", "close"])
def test_a_connection_that_is_lost_makes_room_for_another_one(end: str, one_each: Carrier) -> None:
    run, first = waiting(one_each)
    second = run.client().send(GET)
    if end == "cancel":
        first.cancel()
    elif end == "reset":
        run.arrival.reset()
    else:
        run.arrival.answer(Response(200, last=True))
    assert len(run.arrivals) == 2 and run.connections == 2
    run.arrival.answer(OK)
    assert second.answer.status == 200 and load(run) == (1, 0)


def test_connections_that_cannot_be_opened_count_no_more(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{maxConnections: 1}")
    run.refuse_connections()
    assert [run.client().send(GET).answer.status for _ in range(3)] == [503] * 3
    assert load(run) == (0, 0)
    run.refuse_connections("")
    assert run.ask(GET, OK, run.client()).status == 200


def test_nobody_waits_for_longer_than_ten_seconds(one_each: Carrier) -> None:
    run, _ = waiting(one_each)
    second = run.client().send(GET)
    passes(run, WAIT - 0.1)
    assert not second.answer.ended
    passes(run, 0.2)
    assert (second.answer.status, second.answer.headers["retry-after"]) == (503, "1")
    line = run.new_lines()[-1]
    assert "BackendBusy" in line and "limits.maxConnections: no connection was free within 10 s" in line
    run.serve(OK)
    assert load(run) == (1, 0)


def test_an_unused_connection_of_another_endpoint_is_used_instead_of_waiting(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{maxConnections: 1}", host="two.test:9000")
    run.resolve(Names({"two.test": ["10.0.0.1"]}))
    assert run.ask(GET, OK, run.client()).status == 200
    run.memory.context.resolver.names["two.test"] = ["10.0.0.2", "10.0.0.1"]
    assert run.ask(GET, OK, run.client()).status == 200
    assert run.connections == 1 and run.arrival.endpoint.address == "10.0.0.1"
    assert {each.pending for each in run.memory.context.resolver.endpoints(b"two.test", 9000, lambda: None)} == {0}


def test_an_unused_connection_that_is_of_no_use_is_closed_for_another_one(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{maxConnections: 1}", host="two.test:9000")
    run.resolve(Names({"two.test": ["10.0.0.1"]}))
    assert run.ask(GET, OK, run.client()).status == 200
    run.memory.context.resolver.names["two.test"] = ["10.0.0.2"]
    asked = run.client().send(GET)
    passes(run, LOOK)
    run.arrival.answer(OK)
    assert asked.answer.status == 200 and run.arrival.endpoint.address == "10.0.0.2"
    assert load(run) == (1, 0)
    assert labelled(run, "backend_connections_closed_total") == {("maxConnections",): 1}


# --- maxPending


def test_more_may_not_wait_while_a_connection_is_opened(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{maxPending: 2}")
    run.hold_connections()
    first, second, third = [run.client().send(GET) for _ in range(3)]
    assert (third.answer.status, third.answer.headers["retry-after"]) == (503, "1")
    line = run.new_lines()[-1]
    assert "BackendBusy" in line and "limits.maxPending" in line
    assert labelled(run, "backend_limits_exceeded_total") == {("maxPending",): 1}
    assert load(run)[1] == 2
    run.release_connections()
    run.serve(OK)
    assert (first.answer.status, second.answer.status) == (200, 200) and load(run)[1] == 0


def test_more_may_not_wait_while_none_may_be_opened(one_each: Carrier) -> None:
    run, first = waiting(one_each, "{maxConnections: 1, maxPending: 1}")
    second, third = run.client().send(GET), run.client().send(GET)
    assert third.answer.status == 503 and "limits.maxPending" in run.new_lines()[-1]
    second.cancel()
    fourth = run.client().send(GET)
    assert not fourth.answer.ended, "who has left waits no more"
    run.serve(OK)
    run.serve(OK)
    assert (first.answer.status, fourth.answer.status) == (200, 200)


def test_of_those_who_may_wait_where_nobody_has_said_how_many_a_client_has_its_share(one_each: Carrier) -> None:
    run, first = waiting(one_each, "{maxConnections: 1}")
    asked = [run.client().send(GET) for _ in range(769)]  # of 1,024 three quarters are one client's
    refused = asked.pop()
    assert refused.answer.status == 503 and "its client has its share" in run.new_lines()[-1]
    assert run.counted("limits_exceeded_total") == {"maxPending": 1}
    other = run.client(("198.51.100.7", 1)).send(GET)
    assert not other.answer.ended
    for each in asked:
        each.cancel()
    run.serve(OK)
    run.serve(OK)
    assert (first.answer.status, other.answer.status) == (200, 200)


# --- how long connections are kept


@pytest.mark.parametrize("limits", ["{idleTimeout: 4s}", "{idleTimeout: 4s, maxConnections: 1}"])
def test_an_unused_connection_is_closed_after_its_time(limits: str, carrier: Carrier) -> None:
    run = proxy_with(carrier, limits)
    assert run.ask(GET, OK, run.client()).status == 200
    for _ in range(3):
        passes(run, 1)
    assert load(run) == (1, 0)
    for _ in range(4):  # it is looked at four times in its time
        passes(run, 1)
    assert load(run) == (0, 0)
    assert labelled(run, "backend_connections_closed_total") == {("idleTimeout",): 1}
    assert run.ask(GET, OK, run.client()).status == 200 and run.connections == 2


def test_a_connection_in_use_is_not_idle(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{idleTimeout: 1s}")
    asked = run.client().send(GET)
    for _ in range(12):
        passes(run, 0.25)
    run.arrival.answer(OK)
    assert asked.answer.status == 200 and run.connections == 1


def test_a_connection_takes_no_request_after_its_time(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{maxConnectionDuration: 10s}")
    for _ in range(3):
        assert run.ask(GET, OK, run.client()).status == 200
        run.advance(4)
    assert run.connections == 1
    assert run.ask(GET, OK, run.client()).status == 200
    assert run.connections == 2
    assert labelled(run, "backend_connections_closed_total") == {("maxConnectionDuration",): 1}


def test_the_request_under_way_ends_on_a_connection_that_is_too_old(carrier: Carrier) -> None:
    run = proxy_with(carrier, "{maxConnectionDuration: 4s}")
    asked = run.client().send(GET)
    for _ in range(6):
        passes(run, 1)
    run.arrival.answer(OK)
    assert asked.answer.status == 200
    passes(run, 1)
    assert load(run) == (0, 0) and run.connections == 1


def test_other_requests_use_other_connections(carrier: Carrier) -> None:
    """Those that no limit covers do not find what limits are about."""
    run = carrier.proxy(
        "binds:\n- port: 3000\n  listeners:\n  - routes:\n"
        "    - {matches: [{path: {type: PathPrefix, value: /limited}}], policies: {limits: {maxConnections: 1}}, "
        "backends: [{host: '127.0.0.1:9000'}]}\n"
        "    - {backends: [{host: '127.0.0.1:9000'}]}\n"
    )
    first = run.client().send(Request("GET", "/limited"))
    free = [run.client().send(GET) for _ in range(3)]
    assert len(run.arrivals) == 4
    run.serve(OK)
    assert {each.answer.status for each in (first, *free)} == {200} and load(run) == (1, 0)


def test_streams_of_the_connections_that_there_may_be_are_waited_for() -> None:
    file = """
backends: [{name: far, host: '127.0.0.1:9000', policies: {http: {version: HTTP2}, limits: {maxConnections: 2}}}]
binds: [{port: 8080, listeners: [{routes: [{backends: [{backend: far}]}]}]}]
"""
    proxy = MemoryProxy(file)
    clients = [proxy.connect() for _ in range(6)]
    fars: list[Endpoint2] = []
    for each in clients:
        each.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        while len(fars) < len(proxy.connector.upstreams):
            fars.append(Endpoint2(proxy.connector.upstreams[len(fars)], Settings(max_streams=1)))
    for at in range(3):
        for far in fars:
            far.turn()
            far.answer(far.requests[at])
    assert len(fars) == 2 and all(each.received.startswith(b"HTTP/1.1 200 ") for each in clients)


def raw(limits: str) -> MemoryProxy:
    return MemoryProxy(
        f"backends: [{{name: db, host: '127.0.0.1:9001', policies: {{limits: {limits}}}}}]\n"
        "binds: [{port: 9000, listeners: [{name: db, protocol: TCP, tcpRoutes: [{backends: [{backend: db}]}]}]}]\n"
    )


def test_connections_whose_bytes_pass_count_and_wait_as_well() -> None:
    proxy = raw("{maxConnections: 1, maxPending: 1}")
    first, second, third = proxy.connect(), proxy.connect(), proxy.connect()
    assert len(proxy.connector.upstreams) == 1 and second.open and third.aborted
    assert "reason=BackendBusy" in proxy.log_lines()[-1] and "limits.maxPending" in proxy.log_lines()[-1]
    first.lose()
    assert len(proxy.connector.upstreams) == 2
    second.send(b"hello")
    assert proxy.upstream.take() == b"hello"
    second.lose()
    assert len(proxy.connector.upstreams) == 2


def test_a_raw_client_that_leaves_while_it_waits_takes_no_connection() -> None:
    proxy = raw("{maxConnections: 1}")
    first, second, third = proxy.connect(), proxy.connect(), proxy.connect()
    second.lose()
    first.lose()
    assert len(proxy.connector.upstreams) == 2
    third.send(b"hello")
    assert proxy.upstream.take() == b"hello"


# --- workers


class Worker:
    """The connections of one worker to a backend."""

    def __init__(self, loads: Loads, connections: int) -> None:
        recorder = Recorder(Metrics.in_memory())
        self.connector = FakeConnector(Writes(lambda flush: flush()), recorder)
        quota = Limits(connections=connections).quota("backend/a")
        assert quota is not None
        self.gate = Gate(quota, loads, self.connector, self.connector.clock, recorder)
        self.pool = Endpoint("10.0.0.1", 80).pool(Transport(PLAIN_TCP, None, "", quota))
        self.got: list[Asks] = []

    def ask(self) -> Asks:
        asks = Asks(self)
        self.gate.admit(asks)
        return asks


class Asks:
    """One that wants a connection, and gives it back when it is told."""

    is_wanted, since, is_counted, source = True, 0.0, False, None

    def __init__(self, worker: Worker) -> None:
        self.worker, self.up = worker, None

    def serve(self, gate: Gate) -> bool:
        pool = self.worker.pool
        gate.adopt(pool)
        self.up = gate.lend_idle(pool)
        if self.up is None and gate.has_capacity:
            gate.connect(pool, lambda up, cause: setattr(self, "up", up))
        return self.up is not None

    def refuse(self, detail: str) -> None:
        raise AssertionError(detail)

    def done(self) -> None:
        assert self.up is not None
        self.up.park()


@pytest.fixture
def two() -> Iterator[list[Worker]]:
    region = Region.create("test", sections(2))
    initialise(region)
    try:
        yield [Worker(Loads.of(region, index), 1) for index in (0, 1)]
    finally:
        region.close()


def test_workers_count_connections_together(two: list[Worker]) -> None:
    one, other = two
    first, second = one.ask(), other.ask()
    assert first.up is not None and second.up is None
    first.up.close()
    other.connector.advance(LOOK)
    assert second.up is not None and one.ask().up is None


def test_a_connection_that_one_worker_keeps_unused_is_closed_for_another_one(two: list[Worker]) -> None:
    one, other = two
    first = one.ask()
    first.done()
    second = other.ask()
    assert second.up is None
    one.connector.advance(LOOK)
    other.connector.advance(LOOK)
    assert second.up is not None


def test_a_worker_with_requests_of_its_own_gives_way_as_well(two: list[Worker]) -> None:
    one, other = two
    first = one.ask()
    waits = [one.ask() for _ in range(3)]
    far = other.ask()
    first.done()
    other.connector.advance(LOOK)
    assert far.up is not None and waits[0].up is None
    far.done()  # it sees that others wait
    one.connector.advance(2 * LOOK)
    assert waits[0].up is not None


def test_of_an_endpoint_that_is_gone_nothing_is_kept(two: list[Worker]) -> None:
    """Endpoints come and go as long as a proxy lives."""
    one, _ = two
    first = one.ask()
    first.done()
    assert one.gate.pools == {one.pool}
    for _step in one.pool.retire():
        pass
    assert one.gate.pools == set() and not one.gate.free_idle()
