"""A collector of OTLP for tests: over HTTP and gRPC, with the published messages and stubs.

It keeps what it gets and misbehaves on command. In the process of the test, on threads of its own.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

TRACES, LOGS, METRICS = "traces", "logs", "metrics"
REQUESTS: dict[str, Any] = {
    TRACES: trace_service_pb2.ExportTraceServiceRequest,
    LOGS: logs_service_pb2.ExportLogsServiceRequest,
    METRICS: metrics_service_pb2.ExportMetricsServiceRequest,
}
"""By signal, which is also how a path of HTTP ends."""
ANSWERS: dict[str, Any] = {
    TRACES: trace_service_pb2.ExportTraceServiceResponse,
    LOGS: logs_service_pb2.ExportLogsServiceResponse,
    METRICS: metrics_service_pb2.ExportMetricsServiceResponse,
}
REJECTED = {TRACES: "rejected_spans", LOGS: "rejected_log_records", METRICS: "rejected_data_points"}


class Collector:
    """What came, and how it answers. `statuses`: of the next answers, 200 (0 for gRPC) when there are none left."""

    def __init__(self) -> None:
        self.requests: dict[str, list[Any]] = {signal: [] for signal in REQUESTS}
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.statuses: list[int] = []
        self.rejected = 0
        self.http_port = self.grpc_port = 0
        self._lock = threading.Lock()

    def file(self, folder: Path, text: str, protocol: str, origin: int) -> str:
        """A proxy's file, by `text` as a format, that sends to this collector. `protocol`: HTTP or GRPC."""
        port = self.http_port if protocol == "HTTP" else self.grpc_port
        made = folder / "config.yaml"
        made.write_text(text.format(port=port, protocol=protocol, origin=origin))
        return str(made)

    def take(self, signal: str, request: Any, path: str, headers: dict[str, str]) -> int:
        """Keep a message (Any: of that signal), and say how to answer."""
        with self._lock:
            self.paths.append(path)
            self.headers.append(headers)
            status = self.statuses.pop(0) if self.statuses else 0
            if not status:
                self.requests[signal].append(request)
            return status

    def answer(self, signal: str) -> Any:
        answer = ANSWERS[signal]()
        setattr(answer.partial_success, REJECTED[signal], self.rejected)
        return answer

    def spans(self) -> list[trace_pb2.Span]:
        """All spans, in the order in which they came."""
        with self._lock:
            return [
                span
                for request in self.requests[TRACES]
                for resource in request.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            ]

    def logs(self) -> list[logs_pb2.LogRecord]:
        """All records of logs, likewise."""
        with self._lock:
            return [
                record
                for request in self.requests[LOGS]
                for resource in request.resource_logs
                for scope in resource.scope_logs
                for record in scope.log_records
            ]

    def metrics(self) -> dict[str, metrics_pb2.Metric]:
        """The metrics of the last message of all, by name."""
        with self._lock:
            return {
                metric.name: metric
                for request in self.requests[METRICS]
                for resource in request.resource_metrics
                for scope in resource.scope_metrics
                for metric in scope.metrics
            }

    def resources(self) -> list[dict[str, Any]]:
        with self._lock:
            return [attributes(each.resource) for request in self.requests[TRACES] for each in request.resource_spans]


def attributes(of: Any) -> dict[str, Any]:
    """Attributes of a span or resource (Any: either) as a mapping; only plain values are told apart."""
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in of.attributes}


@contextmanager
def collecting(http_port: int = 0) -> Iterator[Collector]:
    """A collector on two free ports, or with that one for HTTP."""
    collector = Collector()

    connections: list[socket.socket] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.append(self.connection)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.headers["content-type"] == "application/x-protobuf"
            signal = self.path.rpartition("/")[2]
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = collector.take(signal, REQUESTS[signal].FromString(body), self.path, headers)
            answer = collector.answer(signal).SerializeToString()
            self.send_response(status or 200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Not in the output of tests."""

    def exported(signal: str, request: Any, context: grpc.ServicerContext) -> Any:
        metadata = {str(key): str(value) for key, value in context.invocation_metadata()}
        status = collector.take(signal, request, "Export", metadata)
        if status:
            context.set_code(next(code for code in grpc.StatusCode if code.value[0] == status))
        return collector.answer(signal)

    class TraceService(trace_service_pb2_grpc.TraceServiceServicer):
        def Export(self, request: Any, context: grpc.ServicerContext) -> Any:
            return exported(TRACES, request, context)

    class LogsService(logs_service_pb2_grpc.LogsServiceServicer):
        def Export(self, request: Any, context: grpc.ServicerContext) -> Any:
            return exported(LOGS, request, context)

    class MetricsService(metrics_service_pb2_grpc.MetricsServiceServicer):
        def Export(self, request: Any, context: grpc.ServicerContext) -> Any:
            return exported(METRICS, request, context)

    web = ThreadingHTTPServer(("127.0.0.1", http_port), Handler)
    web.daemon_threads = True
    collector.http_port = web.server_address[1]
    server = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(TraceService(), server)
    logs_service_pb2_grpc.add_LogsServiceServicer_to_server(LogsService(), server)
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(MetricsService(), server)
    collector.grpc_port = server.add_insecure_port("127.0.0.1:0")
    thread = threading.Thread(target=web.serve_forever, daemon=True)
    thread.start()
    server.start()
    try:
        yield collector
    finally:
        web.shutdown()
        web.server_close()
        for connection in connections:  # their threads would go on answering
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        server.stop(None).wait()
        thread.join()
