"""Clients that ask a controller the same small question again and again, and remember how long it let them wait.

Used by `startup`. Each client is a thread with a channel of its own: health every 20 ms, reflection and client status
less often. `Watcher` is a proxy that only watches: it accepts every state and remembers when it came.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from gatewright.wire.external import client_status_pb2, discovery_pb2
from tests.harness.patience import PATIENCE

RESOURCE_TYPE: Final = "type.googleapis.com/gatewright.wire.v1.Resource"
ENDPOINT_TYPE: Final = "type.googleapis.com/gatewright.wire.v1.Endpoint"
_BACKOFF: Final = [("grpc.initial_reconnect_backoff_ms", 20), ("grpc.max_reconnect_backoff_ms", 20)]


@dataclass(frozen=True, slots=True)
class Question:
    """One unary question: how often it is asked, and how a channel asks it."""

    name: str
    every: float
    ask: Callable[[grpc.Channel], Callable[[], object]]


def _health(channel: grpc.Channel) -> Callable[[], object]:
    request = health_pb2.HealthCheckRequest()
    call = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    return lambda: call(request, timeout=PATIENCE)


def _client_status(channel: grpc.Channel) -> Callable[[], object]:
    request = client_status_pb2.ClientStatusRequest(exclude_resource_contents=True)
    # A matcher that matches nobody: what is measured is the wait for the server's turn, not the size of an answer.
    request.node_matchers.add().node_id.exact = "nobody"
    call = channel.unary_unary(
        "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus",
        request_serializer=client_status_pb2.ClientStatusRequest.SerializeToString,
        response_deserializer=client_status_pb2.ClientStatusResponse.FromString,
    )
    return lambda: call(request, timeout=PATIENCE)


def _reflection(channel: grpc.Channel) -> Callable[[], object]:
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    call = channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    return lambda: list(call(iter([request]), timeout=PATIENCE))


QUESTIONS: Final = (
    Question("health", 0.020, _health),
    Question("reflection", 0.200, _reflection),
    Question("client status", 0.200, _client_status),
)


class Asker:
    """Asks one question until `stop`. A wait counts from the first answer on: before it nobody listens yet."""

    def __init__(self, question: Question, port: int) -> None:
        self.question = question
        self.first: float | None = None  # when the first answer came (monotonic)
        self._port = port
        self._waits: list[tuple[float, float]] = []  # asked at, seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def waits(self, since: float = 0.0) -> list[float]:
        """Seconds of each answer that came after `since`."""
        return [seconds for asked, seconds in list(self._waits) if asked + seconds >= since]

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        with grpc.insecure_channel(f"127.0.0.1:{self._port}", _BACKOFF) as channel:
            call = self.question.ask(channel)
            while not self._stopping.is_set():
                asked = time.monotonic()
                try:
                    call()
                except grpc.RpcError:
                    if self.first is not None and not self._stopping.is_set():
                        raise
                else:
                    now = time.monotonic()
                    if self.first is not None:
                        self._waits.append((asked, now - asked))
                    self.first = self.first or now
                self._stopping.wait(max(0.0, asked + self.question.every - time.monotonic()))


def summary(waits: list[float]) -> dict[str, float]:
    """How many answers, and milliseconds that they took."""
    ordered = sorted(waits) or [0.0]
    return {
        "answers": len(waits),
        "typical ms": round(ordered[len(ordered) // 2] * 1000, 1),
        "p99 ms": round(ordered[int(len(ordered) * 0.99)] * 1000, 1),
        "longest ms": round(ordered[-1] * 1000, 1),
    }


class Watcher:
    """A proxy that accepts everything; `states` has the moment (monotonic) and the version of each complete state."""

    def __init__(self, socket: Path, node_id: str) -> None:
        self.states: list[tuple[float, str]] = []
        self.resources = 0
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._channel = grpc.insecure_channel(f"unix:{socket}", [*_BACKOFF, ("grpc.max_receive_message_length", -1)])
        self._node_id = node_id
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._requests.put(None)
        self._channel.close()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        call = self._channel.stream_stream(
            "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
            request_serializer=discovery_pb2.DeltaDiscoveryRequest.SerializeToString,
            response_deserializer=discovery_pb2.DeltaDiscoveryResponse.FromString,
        )
        for type_url in (ENDPOINT_TYPE, RESOURCE_TYPE):
            request = discovery_pb2.DeltaDiscoveryRequest(type_url=type_url, resource_names_subscribe=["*"])
            request.node.id = self._node_id
            self._requests.put(request)
        try:
            for response in call(iter(self._requests.get, None), wait_for_ready=True):
                self._take(response)
        except grpc.RpcError:
            if not self._stopping:
                raise

    def _take(self, response: discovery_pb2.DeltaDiscoveryResponse) -> None:
        self.resources += len(response.resources)
        ack = discovery_pb2.DeltaDiscoveryRequest(type_url=response.type_url, response_nonce=response.nonce)
        self._requests.put(ack)
        if response.system_version_info:
            self.states.append((time.monotonic(), response.system_version_info))


def series(askers: list[Asker], since: float) -> Iterator[tuple[str, dict[str, float]]]:
    """Each question with its waits since a moment."""
    for asker in askers:
        yield asker.question.name, summary(asker.waits(since))
