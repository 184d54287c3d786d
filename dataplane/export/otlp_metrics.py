"""What a worker counted as messages of OTLP: pure, and loaded as `otlp`. Numbers are cumulative, as in the region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2

from dataplane.export.otlp import SCOPE, attributes_into
from dataplane.export.snapshot import Snapshot
from dataplane.telemetry.log_values import cut
from dataplane.telemetry.metric import SUM, Metric
from dataplane.telemetry.metric_table import PREFIX
from dataplane.telemetry.series import Series, exemplar_of
from gatewright import version

_UNITS: Final = (("_seconds", "s"), ("_bytes", "By"))
_OF_A_SERIES: Final = 512


class Metrics:
    """`ExportMetricsServiceRequest` (`export/exporter.Signal`)."""

    name = "metrics"
    method = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"

    def weight(self, record: Snapshot) -> int:
        return _OF_A_SERIES * len(record.series)

    def encode(self, records: Sequence[Snapshot]) -> bytes:
        message = metrics_service_pb2.ExportMetricsServiceRequest()
        for record in records:
            of_resource = message.resource_metrics.add()
            attributes_into(of_resource.resource.attributes, record.resource)
            scope = of_resource.scope_metrics.add()
            scope.scope.name, scope.scope.version = SCOPE, version.VERSION
            known: dict[str, metrics_pb2.Metric] = {}
            for series, numbers in record.series:
                row = series.metric
                target = known.get(row.name)
                if target is None:
                    target = known[row.name] = scope.metrics.add(
                        name=PREFIX + row.name, description=row.help, unit=_unit(row.name)
                    )
                _POINTS[row.kind](target, record, series, numbers)
        return message.SerializeToString()

    def rejected(self, answer: bytes) -> tuple[int, str]:
        try:
            partial = metrics_service_pb2.ExportMetricsServiceResponse.FromString(answer).partial_success
        except DecodeError as error:
            raise ValueError(str(error)) from None
        return max(0, partial.rejected_data_points), cut(partial.error_message)


def _unit(name: str) -> str:
    plain = name.removesuffix("_total")
    return next((unit for suffix, unit in _UNITS if plain.endswith(suffix)), "1")


def _labels(row: Metric, series: Series) -> list[common_pb2.KeyValue]:
    made: list[common_pb2.KeyValue] = []
    attributes_into(made, (*zip(row.labels, series.labels, strict=True), *series.extra))
    return made


def _sum(target: metrics_pb2.Metric, record: Snapshot, series: Series, numbers: list[int]) -> None:
    target.sum.is_monotonic = True
    target.sum.aggregation_temporality = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
    point = target.sum.data_points.add(
        attributes=_labels(series.metric, series), start_time_unix_nano=record.start, time_unix_nano=record.at
    )
    _set(point, series.metric.reported(numbers[0]))


def _gauge(target: metrics_pb2.Metric, record: Snapshot, series: Series, numbers: list[int]) -> None:
    point = target.gauge.data_points.add(attributes=_labels(series.metric, series), time_unix_nano=record.at)
    _set(point, series.metric.reported(numbers[0]))


def _set(point: metrics_pb2.NumberDataPoint, value: float) -> None:
    if isinstance(value, int):
        point.as_int = value
    else:
        point.as_double = value


def _histogram(target: metrics_pb2.Metric, record: Snapshot, series: Series, numbers: list[int]) -> None:
    counts = numbers[:SUM]
    target.histogram.aggregation_temporality = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
    target.histogram.data_points.add(
        attributes=_labels(series.metric, series),
        start_time_unix_nano=record.start,
        time_unix_nano=record.at,
        count=sum(counts),
        sum=numbers[SUM] / series.metric.parts,
        bucket_counts=counts,
        explicit_bounds=series.metric.bounds,
        exemplars=_exemplars(numbers),
    )


def _exemplars(numbers: list[int]) -> list[metrics_pb2.Exemplar]:
    found = (exemplar_of(numbers, bucket) for bucket in range(SUM))
    return [
        metrics_pb2.Exemplar(
            time_unix_nano=int(each.at * 1e9), as_double=each.seconds, trace_id=bytes.fromhex(each.trace_id)
        )
        for each in found
        if each is not None
    ]


_POINTS: Final[dict[str, Callable[[metrics_pb2.Metric, Snapshot, Series, list[int]], None]]] = {
    "counter": _sum,
    "gauge": _gauge,
    "histogram": _histogram,
}
