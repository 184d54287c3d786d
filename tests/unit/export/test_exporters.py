"""Records on their way to a collector: bounded, counted, sent again, and what one bad record may cost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest
from dataplane.export import batches, outcomes
from dataplane.export.batches import Batches
from dataplane.export.exporters import Exporters
from dataplane.export.otlp import Traces
from dataplane.http.heads import Head
from dataplane.telemetry.collector import Collector
from dataplane.tracing.context import root
from dataplane.tracing.spans import SERVER, Span, Traced
from gatewright.cel.values import Uint

COLLECTOR = Collector("backend/c", b"/v1/traces")
Outcome = CallAnswer | CallFailed


def traced(*attributes: tuple[str, Any]) -> Traced:
    return Traced([("service.name", "a")], [Span(root(1, 2), "", "GET", SERVER, 1, 2, list(attributes))])


def answered(status: int = 200, **headers: str) -> CallAnswer:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return CallAnswer(status, Head(b"\r\n" + lines.encode()), b"")


class Network:
    """Answers in their order, then 200; what was sent."""

    def __init__(self, *answers: Outcome) -> None:
        self.answers = list(answers)
        self.sent: list[bytes] = []
        self.counted: Counter[str] = Counter()
        self.tasks: set[asyncio.Task[None]] = set()
        self.exporters = Exporters(self, self.spawn, self.count)  # type: ignore[arg-type]  # one method of it is asked

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def count(self, signal: str, outcome: str, records: int) -> None:
        assert signal == "traces"
        self.counted[outcome] += records

    async def http(self, backend: str, request: CallRequest, seconds: float, max_body: int) -> CallAnswer:
        assert (backend, request.target) == ("backend/c", b"/v1/traces")
        self.sent.append(request.body)
        answer = self.answers.pop(0) if self.answers else answered()
        if isinstance(answer, CallFailed):
            raise answer
        return answer

    def add(self, *records: object, make: Callable[[], Any] = Traces) -> None:
        for record in records:
            self.exporters.add("traces", COLLECTOR, make, record)

    def spans(self) -> list[Any]:
        messages = map(trace_service_pb2.ExportTraceServiceRequest.FromString, self.sent)
        return [span for each in messages for of in each.resource_spans for span in of.scope_spans[0].spans]


async def test_what_waits_is_sent_when_the_worker_ends() -> None:
    network = Network()
    network.add(traced(), traced(), traced())
    await network.exporters.close()
    assert len(network.spans()) == 3 and len(network.sent) == 1 and network.counted == {"sent": 3}


async def test_a_collector_that_is_away_then_is_given_up() -> None:
    network = Network(CallFailed("connect", "refused"))
    network.add(traced())
    await network.exporters.close()
    assert network.counted == {"undelivered": 1}


async def test_a_partial_success_counts_both() -> None:
    answer = trace_service_pb2.ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 1
    network = Network(CallAnswer(200, Head(b"\r\n"), answer.SerializeToString()))
    network.add(traced(), traced())
    await network.exporters.close()
    assert network.counted == {"sent": 1, "rejected": 1}


async def test_values_of_clients_never_cost_the_message() -> None:
    network = Network()
    values: list[tuple[str, Any]] = [
        ("half", "\ud800"),
        ("long", "x" * 10_000),
        ("large", 2**70),
        ("uint", Uint(7)),
        ("list", [1, "a"]),
        ("none", None),
        ("\udfff", float("nan")),
        ("bytes", b"\xff"),
    ]
    network.add(traced(*values), traced())
    await network.exporters.close()
    first, _ = network.spans()
    found = {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in first.attributes}
    assert found["half"] == "\\ud800" and found["large"] == str(2**70) and found["uint"] == 7
    assert found["list"] == '[1,"a"]' and len(found["long"]) < 9_000 and "none" not in found
    assert found["\\udfff"] == '"nan"' and network.counted == {"sent": 2}


async def test_a_bug_costs_one_message_and_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Traces):
        def encode(self, records: Sequence[Traced]) -> bytes:
            raise RuntimeError("a bug")

    network = Network()
    network.add(traced(), make=Broken)
    await network.exporters.close()
    assert network.counted == {"undelivered": 1} and "a bug" in caplog.text


async def test_what_is_dropped_is_counted_and_reported_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the collector does, and before anybody has looked at what waits."""
    network, more = Network(), 100
    network.add(*[traced()] * (batches.MOST_HELD + more))
    assert network.counted == {"dropped": more}
    assert not network.exporters.admits("traces", COLLECTOR) and network.counted == {"dropped": more + 1}
    assert [record.getMessage() for record in caplog.records] == [
        "collector backend/c (traces): records are dropped: too many wait"
    ]
    await network.exporters.close()
    assert network.counted == {"dropped": more + 1, "sent": batches.MOST_HELD}
    assert network.exporters.admits("traces", COLLECTOR), "there is room again"


def test_records_and_their_bytes_are_bounded() -> None:
    held: Batches[int] = Batches(most_held=3, most_sent=2)
    assert [held.add(number, 1) for number in range(4)] == [True, True, True, False]
    assert held.take() == [0, 1] and held.take() == [2] and held.take() == []
    assert held.add(0, batches.MOST_BYTES) and not held.add(1, 1)
    assert held.take() == [0] and held.add(2, 1)


@pytest.mark.parametrize(
    ("status", "after", "kind", "seconds"),
    [
        (429, b"7", outcomes.AGAIN, 7.0),
        (503, b"", outcomes.AGAIN, 0.0),
        (503, b"Wed, 21 Oct 2026 07:28:00 GMT", outcomes.AGAIN, 0.0),
        (503, b"99999999999999999999", outcomes.AGAIN, 0.0),
        (400, b"7", outcomes.REFUSED, 0.0),
        (404, b"", outcomes.REFUSED, 0.0),
    ],
)
def test_what_an_answer_means(status: int, after: bytes, kind: str, seconds: float) -> None:
    found = outcomes.of_http(status, after)
    assert (found.kind, found.after) == (kind, seconds)


def test_pauses_grow_and_are_bounded() -> None:
    assert [outcomes.pause(tries, 0.0, 1.0) for tries in (1, 2, 3)] == [1.0, 2.0, 4.0]
    assert outcomes.pause(50, 1e9, 1.0) == outcomes.LONGEST_PAUSE
