"""Lines of the access log as messages of OTLP: pure, and loaded as `otlp`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.logs.v1 import logs_pb2

from dataplane.export.otlp import SCOPE, attributes_into
from dataplane.telemetry.log_record import LogRecord
from dataplane.telemetry.log_values import cut
from dataplane.telemetry.resource import SERVICE
from gatewright import version

_SAMPLED: Final = 1


class Logs:
    """`ExportLogsServiceRequest` (`export/exporter.Signal`)."""

    name = "logs"
    method = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"

    def weight(self, record: LogRecord) -> int:
        return record.weight

    def encode(self, records: Sequence[LogRecord]) -> bytes:
        message = logs_service_pb2.ExportLogsServiceRequest()
        of_resource = message.resource_logs.add()
        attributes_into(of_resource.resource.attributes, SERVICE)
        scope = of_resource.scope_logs.add()
        scope.scope.name, scope.scope.version = SCOPE, version.VERSION
        for record in records:
            _record_into(scope.log_records.add(), record)
        return message.SerializeToString()

    def rejected(self, answer: bytes) -> tuple[int, str]:
        try:
            partial = logs_service_pb2.ExportLogsServiceResponse.FromString(answer).partial_success
        except DecodeError as error:
            raise ValueError(str(error)) from None
        return max(0, partial.rejected_log_records), cut(partial.error_message)


def _record_into(target: logs_pb2.LogRecord, record: LogRecord) -> None:
    target.time_unix_nano = target.observed_time_unix_nano = record.at
    target.severity_number, target.severity_text = logs_pb2.SEVERITY_NUMBER_INFO, "INFO"
    target.event_name = f"gatewright.{record.event}"
    target.body.string_value = record.event
    attributes_into(target.attributes, record.attributes)
    if record.trace_id:
        target.trace_id, target.span_id = bytes.fromhex(record.trace_id), bytes.fromhex(record.span_id)
        target.flags = _SAMPLED if record.is_sampled else 0
