"""Every metric of the proxy, a row each. Those of kinds of backends come from `metric_rows`."""

from __future__ import annotations

from collections.abc import Mapping

from dataplane.telemetry.metric import Metric
from dataplane.telemetry.metric_rows import registry as metric_rows

PREFIX = "gatewright_"

METRICS = (
    # Requests. Never per route: 10,000 routes would be 10,000 series for each method and status.
    Metric(
        "requests_total",
        "counter",
        "Requests ended, by outcome",
        ("gateway", "listener", "method", "status", "reason"),
        2048,
        per_request=True,
    ),
    Metric(
        "request_duration_seconds",
        "histogram",
        "Time from the end of the request head to the last byte of the response",
        ("gateway", "listener"),
        128,
        per_request=True,
        exemplars=True,
    ),
    Metric(
        "request_bytes_total",
        "counter",
        "Request body bytes received",
        ("gateway", "listener"),
        128,
        per_request=True,
    ),
    Metric(
        "response_bytes_total", "counter", "Response body bytes sent", ("gateway", "listener"), 128, per_request=True
    ),
    Metric(
        "grpc_requests_total",
        "counter",
        "gRPC calls ended, by gRPC's status; none: it did not come",
        ("gateway", "listener", "status"),
        1024,
        per_request=True,
    ),
    Metric(
        "metric_labels_overflowed_total",
        "counter",
        "Requests counted with label values that are overflow: the labels of frontend.metrics have too many values",
        ("gateway",),
        128,
    ),
    Metric(
        "policy_decisions_total",
        "counter",
        "Requests that a policy answered, in place of a backend or of its answer, by policy and reason",
        ("gateway", "policy", "reason"),
        512,
        per_request=True,
    ),
    Metric("requests_active", "gauge", "Requests begun and not ended"),
    Metric("http_rejected_total", "counter", "Messages refused as malformed or over a limit", ("cause",), 64),
    Metric(
        "request_headers_dropped_total",
        "counter",
        "Headers of requests left out because their names have other characters than letters, digits and hyphens",
    ),
    # Connections.
    Metric("downstream_connections_total", "counter", "Connections accepted", ("bind",), 256),
    Metric("downstream_connections_active", "gauge", "Connections open to clients", ("bind",), 256),
    Metric(
        "tls_handshakes_total",
        "counter",
        "Handshakes of TLS with clients, by outcome: full, resumed, failed",
        ("outcome",),
        4,
    ),
    Metric("tls_handshake_failures_total", "counter", "Handshakes of TLS that failed, by reason", ("reason",), 64),
    Metric(
        "connections_refused_total",
        "counter",
        "Connections of clients refused before anything of their protocol was read, by reason",
        ("reason",),
        16,
    ),
    Metric(
        "tls_ocsp_staple_expiry_timestamp_seconds",
        "gauge",
        "When the first OCSP response that a listener presents ends, in seconds since the epoch; 0: it presents none",
        ("gateway", "listener"),
        128,
        "max",
    ),
    Metric(
        "tls_certificate_expiry_timestamp_seconds",
        "gauge",
        "When the first certificate of a listener expires, in seconds since the epoch; 0: it has none any more",
        ("gateway", "listener"),
        128,
        "max",
    ),
    # Bytes that pass as they are (docs/tcp-udp.md).
    Metric(
        "raw_connections_total",
        "counter",
        "TCP and TLS connections and UDP sessions that ended, whose bytes pass as they are, by reason",
        ("gateway", "listener", "protocol", "reason"),
        512,
    ),
    Metric("raw_connections_active", "gauge", "Those that did not end yet", ("protocol",), 8),
    Metric("raw_received_bytes_total", "counter", "Their bytes from clients", ("gateway", "listener"), 128),
    Metric("raw_sent_bytes_total", "counter", "Their bytes to clients", ("gateway", "listener"), 128),
    Metric("udp_datagrams_dropped_total", "counter", "Datagrams that were not passed on, by reason", ("reason",), 16),
    # Limits (docs/limits.md).
    Metric(
        "limits_exceeded_total",
        "counter",
        "What a limit, or a share of a pool, turned away, by limit: connections, requests, bodies, streams",
        ("limit",),
        24,
    ),
    Metric(
        "idle_connections_closed_total",
        "counter",
        "Idle connections of clients closed so that others can be accepted, by limit",
        ("limit",),
        8,
    ),
    Metric("held_body_bytes", "gauge", "Bytes of bodies held, for policies and for other tries"),
    Metric(
        "telemetry_records_total",
        "counter",
        "Records for collectors, by signal and outcome; dropped: too many waited, undelivered: no collector took them",
        ("signal", "outcome"),
        16,
    ),
    Metric("upstream_connections_total", "counter", "Connections tried to upstreams, by outcome", ("outcome",), 16),
    Metric(
        "upstream_connection_failures_total",
        "counter",
        "Connections to upstreams that failed, by endpoint, name sent in TLS, and the system's or OpenSSL's reason",
        ("endpoint", "server_name", "reason"),
        512,
    ),
    Metric("upstream_connections_active", "gauge", "Connections open to upstreams"),
    Metric(
        "upstream_http2_faults_total",
        "counter",
        "Connections of HTTP/2 that an upstream broke, by reason; GoAway: it reported an error",
        ("reason",),
        64,
    ),
    Metric("upstream_stale_retries_total", "counter", "Requests sent again after a kept connection had closed"),
    Metric("upstream_retries_total", "counter", "Tries after the first, by what called for them", ("cause",), 8),
    Metric(
        "retried_requests_total",
        "counter",
        "Requests that needed another try, by outcome",
        ("outcome",),
        8,
        per_request=True,
    ),
    # Endpoints: those that fail alone, so that thousands of others make no series.
    Metric(
        "endpoint_failures_total",
        "counter",
        "Tries that brought no response: connections that failed or broke, timeouts, what was no HTTP",
        ("backend", "endpoint"),
        512,
    ),
    Metric(
        "endpoint_unhealthy_total",
        "counter",
        "Tries that ended unhealthy, as backend.health has it",
        ("backend", "endpoint"),
        512,
    ),
    Metric("endpoint_evictions_total", "counter", "Evictions, by backend.health", ("backend", "endpoint"), 512),
    Metric(
        "endpoint_unhealthy_percent",
        "gauge",
        "How unhealthy an endpoint is, as the worker with the worst view of it has it; 0: healthy, or gone",
        ("backend", "endpoint"),
        512,
        "max",
    ),
    Metric(
        "backend_limits_exceeded_total",
        "counter",
        "Requests refused, tries not made and requests that had to wait (maxConnections), by a limit of backend.limits",
        ("backend", "limit"),
        256,
    ),
    Metric(
        "backend_connections_active",
        "gauge",
        "Connections to backends with limits of connections, those that are being opened among them",
        ("backend",),
        256,
    ),
    Metric(
        "backend_pending_requests",
        "gauge",
        "Requests that wait for a connection to a backend with limits of connections",
        ("backend",),
        256,
    ),
    Metric(
        "backend_connections_closed_total",
        "counter",
        "Connections closed by idleTimeout or maxConnectionDuration of backend.limits, or for others (maxConnections)",
        ("backend", "limit"),
        256,
    ),
    # Calls: of policies, of MCP targets, of whatever is asked besides the backend of a request.
    Metric(
        "calls_total",
        "counter",
        "Calls of policies and of kinds of backends, by target and outcome: the class of the status, or why none came",
        ("backend", "outcome"),
        512,
    ),
    Metric("call_duration_seconds", "histogram", "From the begin of a call to its end", ("backend",), 128),
    Metric("mirrors_total", "counter", "Copies for mirrors, by outcome", ("outcome",), 16),
    # Of kinds of backends.
    *metric_rows.ROWS,
    # The process.
    Metric(
        "access_log_dropped_total",
        "counter",
        "Access log lines dropped: too many waited, or they were not read fast enough",
    ),
    Metric("workers_out_of_files", "gauge", "Workers that have no file descriptor left"),
    Metric("event_loop_lag_seconds", "histogram", "How late the worker's coarse timer fired"),
    Metric("swaps_total", "counter", "Configuration states that took effect"),
    Metric("swap_duration_seconds", "histogram", "From the end of a configuration state to its use by a worker"),
    Metric(
        "swap_stall_max_seconds",
        "gauge",
        "Longest hold of the event loop by a swap, of CPU time",
        combine="max",
        per_unit=1_000_000,
    ),
    # Counted by the agent.
    Metric("build_info", "gauge", "1, with the version of this proxy", ("version", "python"), 1),
    Metric("workers", "gauge", "Workers that serve"),
    Metric("workers_restarted_total", "counter", "Workers that ended unexpectedly and were replaced", ("cause",), 8),
    Metric("binds_open", "gauge", "Binds that listen"),
    Metric("resources", "gauge", "Resources known, by source", ("source",), 4),
    Metric("mesh_certificate_expiry_timestamp_seconds", "gauge", "End of the certificate in a mesh; 0: there is none"),
    Metric("mesh_certificate_requests_total", "counter", "Certificates asked for in a mesh", ("outcome",), 4),
    Metric("xds_connected", "gauge", "1 while the stream from the control plane is open"),
    Metric("xds_connection_terminations_total", "counter", "Ends of the stream, by reason", ("reason",), 16),
    Metric("xds_messages_total", "counter", "Responses received", ("type",), 8),
    Metric("xds_message_bytes_total", "counter", "Bytes of responses received", ("type",), 8),
    Metric("xds_request_bytes_total", "counter", "Bytes of requests sent", ("type",), 8),
    Metric("xds_acks_total", "counter", "Responses acknowledged"),
    Metric("xds_nacks_total", "counter", "Responses refused in part or whole"),
    Metric("config_loads_total", "counter", "Loads of the configuration file, by outcome", ("outcome",), 4),
)

BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
