"""Counting exchanges and connections: what `proxy` and `server` report, as increments of shared integers."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, cast

from dataplane.telemetry.connections import ConnectionRecorder
from dataplane.telemetry.measures import MOST_SETS, Measures
from dataplane.telemetry.metric import BUCKETS, COUNT, SUM
from dataplane.telemetry.metric_labels import grpc_label, method_label
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.plan import metrics_of
from dataplane.telemetry.series import overflowed
from dataplane.telemetry.troubles import Troubles

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.telemetry.measures import Count, Measured
    from dataplane.telemetry.metric import Extra
    from dataplane.telemetry.metrics_plan import MetricsPlan
    from dataplane.variables import ListenerFacts


class _Listener:
    """The slots of one listener, found once."""

    __slots__ = ("count", "duration", "extra", "outcomes", "request_bytes", "response_bytes", "seconds", "statuses")

    def __init__(self, metrics: Metrics, gateway: str, name: str, extra: Extra = ()) -> None:
        place = (gateway, name)
        self.extra = extra
        """Further labels of its Gateway."""
        self.duration = metrics.labelled("request_duration_seconds", place, extra)
        self.seconds, self.count = self.duration + SUM, self.duration + COUNT
        self.request_bytes = metrics.labelled("request_bytes_total", place, extra)
        self.response_bytes = metrics.labelled("response_bytes_total", place, extra)
        self.outcomes: dict[tuple[bytes, int, str], int] = {}
        self.statuses: dict[int | None, int] = {}
        """By status of gRPC. Slot 0 is no counter's of calls."""


class Recorder:
    """One per worker; every method is a few list operations."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: monotonic seconds, the same for all processes of the proxy."""
        self.metrics = metrics
        self.slots = metrics.slots
        self.raw = ConnectionRecorder(metrics)
        """Of connections whose bytes pass as they are."""
        self.troubles = Troubles(clock)
        """Of endpoints."""
        self._listeners: dict[str, _Listener] = {}
        self._labelled: dict[tuple[str, Extra], _Listener] = {}
        self._label_sets: set[Extra] = set()
        self._calls: dict[tuple[str, str], tuple[int, int]] = {}
        self._binds: dict[str, tuple[int, int]] = {}
        self.active = 0
        """Exchanges begun and not ended. The code that begins one adds to it."""
        self._ended = 0
        """Exchanges that had ended when `publish` looked last."""
        self._active = metrics.counter("requests_active")
        self._held = metrics.gauge("held_body_bytes")
        self.held: Callable[[], int] = lambda: 0
        """Bytes of bodies that are held now."""
        self._dropped = metrics.counter("request_headers_dropped_total")
        self._stale = metrics.counter("upstream_stale_retries_total")
        self._upstream_active = metrics.counter("upstream_connections_active")

    def publish(self) -> bool:
        """Put the gauges that are kept as plain integers where the agent reads them; answers whether there was an
        exchange since the last call. Called by a coarse timer."""
        self.slots[self._active] = self.active
        self.slots[self._held] = self.held()
        if self.active:
            return True
        before, self._ended = self._ended, self._requests()
        return self._ended != before

    def _requests(self) -> int:
        listeners = chain(self._listeners.values(), self._labelled.values())
        return sum(self.slots[listener.count] for listener in listeners)

    def ended(self, x: Exchange, seconds: float) -> None:
        """An exchange is over, `seconds` after its head was read."""
        slots = self.slots
        self.active -= 1
        plan = x.listener
        wanted = None if plan is None or plan.telemetry is None else metrics_of(x)
        if plan is not None and wanted is not None and wanted.labels:
            x.took = seconds  # for their expressions
            listener = self._of_labels(x, plan, wanted)
        else:
            known = self._listeners.get(plan.key if plan is not None else "")
            listener = self._new_listener(x) if known is None else known
        outcome = (x.method, x.status, x.reason)
        slot = listener.outcomes.get(outcome)
        if slot is None:
            slot = self._new_outcome(x, listener)
        slots[slot] += 1
        slots[listener.duration + bisect_left(BUCKETS, seconds)] += 1
        slots[listener.seconds] += int(seconds * 1e6)
        slots[listener.count] += 1
        if x.body_bytes:
            slots[listener.request_bytes] += x.body_bytes
        slots[listener.response_bytes] += x.response_bytes
        if x.trace is not None and x.trace.is_recorded:
            self.metrics.exemplar(listener.duration, seconds, x.trace.context.trace_id, int(time.time() * 1000))
        if x.grpc is not None:
            slots[listener.statuses.get(x.grpc.status) or self._new_status(x, listener, x.grpc.status)] += 1

    def connected(self, bind: str) -> None:
        total, active = self._bind(bind)
        self.slots[total] += 1
        self.slots[active] += 1

    def disconnected(self, bind: str) -> None:
        self.slots[self._bind(bind)[1]] -= 1

    def handshake(self, resumed: bool) -> None:
        """A client's handshake of TLS is done."""
        self.slots[self.metrics.counter("tls_handshakes_total", "resumed" if resumed else "full")] += 1

    def handshake_failed(self, reason: str) -> None:
        """One ended without a connection."""
        self.slots[self.metrics.counter("tls_handshakes_total", "failed")] += 1
        self.slots[self.metrics.counter("tls_handshake_failures_total", reason)] += 1

    def refused(self, cause: str) -> None:
        self.slots[self.metrics.counter("http_rejected_total", cause)] += 1

    def limited(self, limit: str) -> None:
        """Something was turned away by a limit, named as its setting is."""
        self.slots[self.metrics.counter("limits_exceeded_total", limit)] += 1

    def connection_refused(self, reason: str) -> None:
        """A connection was closed before anything of its protocol was read."""
        self.slots[self.metrics.counter("connections_refused_total", reason)] += 1

    def idle_closed(self, limit: str) -> None:
        """An idle connection was closed for the sake of another."""
        self.slots[self.metrics.counter("idle_connections_closed_total", limit)] += 1

    def headers_dropped(self, count: int) -> None:
        """Headers of a request were left out for their names."""
        self.slots[self._dropped] += count

    def stale_retry(self) -> None:
        self.slots[self._stale] += 1

    def retry(self, cause: str) -> None:
        """Another try begins, by policy."""
        self.slots[self.metrics.counter("upstream_retries_total", cause)] += 1

    def retried(self, x: Measured, outcome: str) -> None:
        """A request that needed another try is over."""
        self.add_for(x, "retried_requests_total", 1, outcome)

    def decided(self, x: Exchange, policy: str) -> None:
        """A policy answered a request that is over now."""
        self.count_for(x, "policy_decisions_total", _place(x)[0], policy, x.reason or "Answered")

    def called(self, backend: str, outcome: str, seconds: float) -> None:
        """A call of a policy, or of a kind of backend, has ended."""
        slots = self._calls.get((backend, outcome))
        if slots is None:
            metrics = self.metrics
            slots = (
                metrics.counter("calls_total", backend, outcome),
                metrics.histogram("call_duration_seconds", backend),
            )
            if len(self._calls) < 1024:  # backends come and go
                self._calls[backend, outcome] = slots
        self.slots[slots[0]] += 1
        self.metrics.observe(slots[1], seconds)

    def mirrored(self, outcome: str) -> None:
        self.slots[self.metrics.counter("mirrors_total", outcome)] += 1

    def count(self, metric: str, *labels: str) -> None:
        """Add 1 to a counter: of kinds of backends, whose metrics are in `metric_rows`."""
        self.add(metric, 1, *labels)

    def add(self, metric: str, amount: int, *labels: str) -> None:
        """The same of more than one."""
        self.slots[self.metrics.counter(metric, *labels)] += amount

    def observe(self, metric: str, seconds: float, *labels: str) -> None:
        """Count a duration in a histogram: of kinds of backends, as above."""
        self.metrics.observe(self.metrics.histogram(metric, *labels), seconds)

    def count_for(self, x: Measured, metric: str, *labels: str) -> None:
        """As `count`, of a metric about requests (`Metric.per_request`): with the labels of the Gateway too, as soon as
        they are known."""
        self.add_for(x, metric, 1, *labels)

    def add_for(self, x: Measured, metric: str, amount: int, *labels: str) -> None:
        """The same of more than one."""

        def add(extra: Extra) -> None:
            self.slots[self.metrics.labelled(metric, labels, extra)] += amount

        self.measure(x, add)

    def observe_for(self, x: Measured, metric: str, seconds: float, *labels: str) -> None:
        """The same of a duration."""

        def observe(extra: Extra) -> None:
            self.metrics.observe(self.metrics.labelled(metric, labels, extra), seconds)

        self.measure(x, observe)

    def measure(self, x: Measured, count: Count) -> None:
        """Call `count` with the labels of the Gateway for what is about this request, as soon as they are known."""
        if x.measures is None:
            plan = metrics_of(x)
            if plan is None or not plan.labels:
                count(())
                return
            x.measures = Measures()
        cast("Measures", x.measures).add(count)

    def exported(self, signal: str, outcome: str, records: int) -> None:
        """Records for a collector were sent, or not."""
        self.slots[self.metrics.counter("telemetry_records_total", signal, outcome)] += records

    def upstream_open(self) -> int:
        """How many connections to upstreams are open now."""
        return int(self.slots[self._upstream_active])

    def upstream_opened(self, outcome: str) -> None:
        self.slots[self.metrics.counter("upstream_connections_total", outcome)] += 1
        if outcome == "opened":
            self.slots[self._upstream_active] += 1

    def upstream_failed(self, endpoint: str, server_name: str, reason: str) -> None:
        """A connection did not come. `server_name`: that of TLS, or ""."""
        self.slots[self.metrics.counter("upstream_connection_failures_total", endpoint, server_name, reason)] += 1
        self.troubles.connection_failed(endpoint, server_name, reason)

    def upstream_connected(self, endpoint: str, server_name: str) -> None:
        """As `upstream_failed`: one came."""
        self.troubles.connected(endpoint, server_name)

    def upstream_closed(self) -> None:
        self.slots[self._upstream_active] -= 1

    def upstream_fault(self, reason: str) -> None:
        self.slots[self.metrics.counter("upstream_http2_faults_total", reason)] += 1

    def endpoint_failed(self, backend: str, endpoint: str) -> None:
        """A try brought no response."""
        self.slots[self.metrics.counter("endpoint_failures_total", backend, endpoint)] += 1
        self.troubles.try_failed(backend, endpoint)

    def endpoint_unhealthy(self, backend: str, endpoint: str) -> None:
        self.slots[self.metrics.counter("endpoint_unhealthy_total", backend, endpoint)] += 1

    def backend_limited(self, backend: str, limit: str) -> None:
        self.slots[self.metrics.counter("backend_limits_exceeded_total", backend, limit)] += 1

    def backend_load(self, backend: str, connections: int, pending: int) -> None:
        """So many more connections, and requests that wait for one."""
        self.slots[self.metrics.gauge("backend_connections_active", backend)] += connections
        self.slots[self.metrics.gauge("backend_pending_requests", backend)] += pending

    def backend_connection_closed(self, backend: str, limit: str) -> None:
        self.slots[self.metrics.counter("backend_connections_closed_total", backend, limit)] += 1

    def endpoint_evicted(self, backend: str, endpoint: str, seconds: float) -> None:
        self.slots[self.metrics.counter("endpoint_evictions_total", backend, endpoint)] += 1
        self.troubles.evicted(backend, endpoint, seconds)

    def endpoint_health(self, backend: str, endpoint: str, unhealthy: int | None) -> None:
        """`unhealthy`: in percent; None: it is gone, or no policy watches it any more."""
        self.slots[self.metrics.gauge("endpoint_unhealthy_percent", backend, endpoint)] = unhealthy or 0
        if unhealthy is None:
            self.troubles.unwatched(backend, endpoint)
        else:
            self.troubles.health(backend, endpoint, unhealthy)

    def _bind(self, bind: str) -> tuple[int, int]:
        slots = self._binds.get(bind)
        if slots is None:
            counter = self.metrics.counter
            slots = counter("downstream_connections_total", bind), counter("downstream_connections_active", bind)
            self._binds[bind] = slots
        return slots

    def _new_listener(self, x: Exchange) -> _Listener:
        plan = x.listener
        key, gateway, name = (plan.key, plan.gateway, plan.name) if plan is not None else ("", "unknown", "unknown")
        listener = self._listeners[key] = _Listener(self.metrics, gateway, name)
        return listener

    def _of_labels(self, x: Exchange, listener: ListenerFacts, wanted: MetricsPlan) -> _Listener:
        """With the labels that its Gateway adds, which are evaluated here."""
        extra = self._bounded(wanted.extra(x), listener.gateway)
        if x.measures is None:
            x.measures = Measures()
        cast("Measures", x.measures).record(extra)
        found = self._labelled.get((listener.key, extra))
        if found is None:
            found = _Listener(self.metrics, listener.gateway, listener.name, extra)
            self._labelled[listener.key, extra] = found
        return found

    def _bounded(self, extra: Extra, gateway: str) -> Extra:
        """Clients choose values: beyond a bound they are counted together."""
        if extra not in self._label_sets:
            if len(self._label_sets) >= MOST_SETS:
                self.count("metric_labels_overflowed_total", gateway)
                return overflowed(extra)
            self._label_sets.add(extra)
        return extra

    def _new_outcome(self, x: Exchange, listener: _Listener) -> int:
        gateway, name = _place(x)
        method, status = method_label(x.method), str(x.status)
        labels = (gateway, name, method, status, x.reason or "Upstream")
        slot = self.metrics.labelled("requests_total", labels, listener.extra)
        if len(listener.outcomes) < (64 if listener.extra else 1024):  # statuses are an upstream's to choose
            listener.outcomes[x.method, x.status, x.reason] = slot
        return slot

    def _new_status(self, x: Exchange, listener: _Listener, status: int | None) -> int:
        slot = self.metrics.labelled("grpc_requests_total", (*_place(x), grpc_label(status)), listener.extra)
        if len(listener.statuses) < 64:  # an endpoint may make more of them up
            listener.statuses[status] = slot
        return slot


def _place(x: Exchange) -> tuple[str, str]:
    """Gateway and listener of an exchange, as label values."""
    plan = x.listener
    return (plan.gateway, plan.name) if plan is not None else ("unknown", "unknown")
