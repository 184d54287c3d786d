"""A collector of OTLP for tests: over HTTP and gRPC, with the published messages and stubs.

It keeps what it gets and misbehaves on command. In the process of the test, on threads of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2

Export = trace_service_pb2.ExportTraceServiceRequest
Answer = trace_service_pb2.ExportTraceServiceResponse


class Collector:
    """What came, and how it answers. `statuses`: of the next answers, 200 (0 for gRPC) when there are none left."""

    def __init__(self) -> None:
        self.requests: list[Export] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.statuses: list[int] = []
        self.rejected = 0
        self.http_port = self.grpc_port = 0
        self._lock = threading.Lock()

    def take(self, request: Export, path: str, headers: dict[str, str]) -> int:
        """Keep a message, and say how to answer."""
        with self._lock:
            self.paths.append(path)
            self.headers.append(headers)
            status = self.statuses.pop(0) if self.statuses else 0
            if not status:
                self.requests.append(request)
            return status

    def answer(self) -> Answer:
        answer = Answer()
        answer.partial_success.rejected_spans = self.rejected
        return answer

    def spans(self) -> list[trace_pb2.Span]:
        """All spans, in the order in which they came."""
        with self._lock:
            return [
                span
                for request in self.requests
                for resource in request.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            ]

    def resources(self) -> list[dict[str, Any]]:
        with self._lock:
            return [attributes(each.resource) for request in self.requests for each in request.resource_spans]


def attributes(of: Any) -> dict[str, Any]:
    """Attributes of a span or resource (Any: either) as a mapping; only plain values are told apart."""
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in of.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on two free ports."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.headers["content-type"] == "application/x-protobuf"
            status = collector.take(Export.FromString(body), self.path, {k.lower(): v for k, v in self.headers.items()})
            answer = collector.answer().SerializeToString()
            self.send_response(status or 200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Not in the output of tests."""

    class Service(trace_service_pb2_grpc.TraceServiceServicer):
        def Export(self, request: Export, context: grpc.ServicerContext) -> Answer:
            metadata = {str(key): str(value) for key, value in context.invocation_metadata()}
            status = collector.take(request, "Export", metadata)
            if status:
                context.set_code(next(code for code in grpc.StatusCode if code.value[0] == status))
            return collector.answer()

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.daemon_threads = True
    collector.http_port = web.server_address[1]
    server = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Service(), server)
    collector.grpc_port = server.add_insecure_port("127.0.0.1:0")
    thread = threading.Thread(target=web.serve_forever, daemon=True)
    thread.start()
    server.start()
    try:
        yield collector
    finally:
        web.shutdown()
        web.server_close()
        server.stop(None).wait()
        thread.join()
