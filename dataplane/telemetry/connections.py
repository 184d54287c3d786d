"""A line of the access log, and the metrics, of a connection whose bytes pass as they are, or of a UDP session.

Made once, when it is over. Fields that a client chooses are quoted as those of requests are (`log_fields`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dataplane.telemetry.log_values import bare, cut, quoted

if TYPE_CHECKING:
    from dataplane.telemetry.metrics import Metrics


@dataclass(slots=True, eq=False)
class ConnectionRecord:
    """What is known of one of them. `Any`: the plans of `table`, which is above this package."""

    protocol: str
    """"tcp", "tls" or "udp"."""
    peer: str
    """Address of the client."""
    started: float
    """Monotonic seconds."""
    listener: Any = None
    """Its ListenerPlan; None: there was none."""
    route: Any = None
    """Its RoutePlan; None: none was found."""
    endpoint: str = ""
    """Where it went."""
    server_name: str = ""
    """That the client asked for, of TLS."""
    received: int = 0
    """Bytes from the client."""
    sent: int = 0
    """Bytes to the client."""
    reason: str = ""
    """Why it ended otherwise than by an orderly end of both sides (docs/operations.md)."""
    detail: str = ""


def text_line(record: ConnectionRecord, seconds: float, now: float) -> str:
    """`now`: when it ended, in seconds since 1970."""
    listener, route = record.listener, record.route
    name = f" tls.sni={bare(cut(record.server_name))}" if record.server_name else ""
    error = f" error={quoted(cut(record.detail))}" if record.detail else ""
    reason = f" reason={record.reason}" if record.reason else ""
    return (
        f"{_stamp(now)}\tinfo\tconnection\t{listener.log[1:] if listener else 'gateway=- listener=-'}"
        f"{route.log if route else ''}{f' endpoint={record.endpoint}' if record.endpoint else ''}"
        f" src.addr={record.peer or '-'}{name} protocol={record.protocol} received.bytes={record.received}"
        f" sent.bytes={record.sent}{error}{reason} duration={seconds * 1e3:.3f}ms\n"
    )


def json_line(record: ConnectionRecord, seconds: float, now: float) -> str:
    """As `text_line`."""
    listener, route = record.listener, record.route
    place = f"{listener.log_json if listener else ''}{route.log_json if route else ''}"
    place += f',"endpoint":{quoted(record.endpoint)}' if record.endpoint else ""
    name = f',"tls.sni":{quoted(cut(record.server_name))}' if record.server_name else ""
    error = f',"error":{quoted(cut(record.detail))}' if record.detail else ""
    reason = f',"reason":"{record.reason}"' if record.reason else ""
    return (
        f'{{"level":"info","time":"{_stamp(now)}","scope":"connection"{place},"src.addr":"{record.peer}"{name}'
        f',"protocol":"{record.protocol}","received.bytes":{record.received},"sent.bytes":{record.sent}{error}{reason}'
        f',"duration":"{seconds * 1e3:.3f}ms"}}\n'
    )


def attributes_of(record: ConnectionRecord, seconds: float) -> list[tuple[str, str | int | float]]:
    """As attributes of OTLP."""
    listener, route = record.listener, record.route
    found: list[tuple[str, str | int | float | None]] = [
        ("gatewright.gateway", listener.gateway if listener else None),
        ("gatewright.listener", listener.name if listener else None),
        ("gatewright.route", "/".join(route.key.split("/")[2:4]) if route else None),
        ("gatewright.endpoint", record.endpoint or None),
        ("client.address", record.peer or None),
        ("tls.client.server_name", cut(record.server_name) if record.server_name else None),
        ("gatewright.protocol", record.protocol),
        ("gatewright.received.bytes", record.received),
        ("gatewright.sent.bytes", record.sent),
        ("gatewright.error", cut(record.detail) if record.detail else None),
        ("gatewright.reason", record.reason or None),
        ("gatewright.duration", round(seconds, 6)),
    ]
    return [(name, value) for name, value in found if value is not None]


def _stamp(now: float) -> str:
    millis = int(now * 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(millis // 1000))}.{millis % 1000:03d}Z"


class ConnectionRecorder:
    """Counts them. One per worker."""

    __slots__ = ("_metrics",)

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def began(self, protocol: str) -> None:
        self._metrics.slots[self._metrics.counter("raw_connections_active", protocol)] += 1

    def ended(self, record: ConnectionRecord) -> None:
        slots, counter = self._metrics.slots, self._metrics.counter
        slots[counter("raw_connections_active", record.protocol)] -= 1
        plan = record.listener
        gateway, name = (plan.gateway, plan.name) if plan is not None else ("unknown", "unknown")
        slots[counter("raw_connections_total", gateway, name, record.protocol, record.reason or "Ended")] += 1
        slots[counter("raw_received_bytes_total", gateway, name)] += record.received
        slots[counter("raw_sent_bytes_total", gateway, name)] += record.sent

    def dropped(self, reason: str, datagrams: int = 1) -> None:
        """Datagrams of UDP went nowhere."""
        self._metrics.slots[self._metrics.counter("udp_datagrams_dropped_total", reason)] += datagrams
