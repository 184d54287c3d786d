"""The page of limits that users can meet and no setting changes (docs/bounds.md): a table, with values of the code.

Called by `test_bounds_page`. A row names a constant by module and name, and says what a user sees of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple


class Bound(NamedTuple):
    """A constant of the code, what it bounds (with its unit), and what comes beyond it."""

    module: str
    name: str
    what: str
    beyond: str


BOUNDS: Final = {
    "Requests and responses": (
        Bound("dataplane.http.h1.chunked", "MAX_LINE", "bytes of a chunk-size line with its extensions", "400"),
        Bound("dataplane.http.h1.chunked", "MAX_TRAILERS", "bytes of trailer lines", "400"),
        Bound("dataplane.http.h1.chunked", "MAX_TRAILER_FIELDS", "trailer lines", "400"),
        Bound("dataplane.http.connect_rules", "MAX_DEPTH", "tunnels within each other", "the request is refused"),
        Bound("dataplane.upstream.h1", "MAX_HEAD", "bytes of the head of a backend's response", "502"),
        Bound("dataplane.upstream.h1", "MAX_INFORMATIONAL", "1xx responses before the final one", "502"),
        Bound("dataplane.proxy.in_flight", "MAX_IN_FLIGHT", "mirrored requests of a worker at a time", "no copy"),
        Bound(
            "dataplane.http.sse.reader",
            "MAX_EVENT",
            "bytes of one event that is read",
            "the stream ends, or passes unread",
        ),
        Bound(
            "dataplane.server.raw.session_table",
            "MAX_SESSIONS",
            "UDP sessions of a worker",
            "the one idle for longest ends",
        ),
        Bound(
            "dataplane.net.proxy_header",
            "MAX_BLOCK",
            "bytes of a PROXY header of version 2",
            "the connection is closed",
        ),
    ),
    "TLS": (
        Bound("dataplane.tls.client_hello", "MAX_HELLO", "bytes of a ClientHello", "the connection is closed"),
        Bound(
            "dataplane.tls.contexts",
            "MAX_DEPTH",
            "certificates between a peer's and an authority's",
            "the handshake fails",
        ),
        Bound("dataplane.tls.contexts", "MAX_RSA", "bits of a private key of RSA", "the listener is not programmed"),
        Bound(
            "gatewright.api.checks.certificates",
            "SMALLEST_RSA",
            "bits of a key of RSA at least",
            "the certificate is refused",
        ),
        Bound(
            "gatewright.api.checks.certificates",
            "LONGEST_CHAIN",
            "bytes of a certificate chain",
            "the Secret is refused",
        ),
        Bound(
            "gatewright.api.checks.certificates",
            "LONGEST_BUNDLE",
            "bytes of a bundle of authorities",
            "the ConfigMap is refused",
        ),
    ),
    "Credentials and policies": (
        Bound("dataplane.credentials.jwt", "MAX_TOKEN", "bytes of a JWT", "401"),
        Bound(
            "dataplane.credentials.jwks",
            "MOST_OF_NAME",
            "keys of one `kid` and algorithm that check a token",
            "later ones are not asked",
        ),
        Bound("dataplane.credentials.issuer_keys", "MAX_KEY_SET", "bytes of a key set", "the last good one stays"),
        Bound("dataplane.credentials.htpasswd", "MAX_PASSWORD", "bytes of a password", "401"),
        Bound(
            "dataplane.credentials.htpasswd", "MAX_BCRYPT_COST", "the cost of a bcrypt hash", "the Secret is refused"
        ),
        Bound("dataplane.filters.steps.delay", "LONGEST", "seconds that `delay` waits", "it waits so long"),
        Bound(
            "dataplane.filters.steps.ext_auth.verdict",
            "DEADLINE",
            "seconds for external authorization",
            "`failureMode`",
        ),
        Bound("dataplane.filters.steps.ext_auth.grpc.server", "MOST", "bytes of its answer over gRPC", "403"),
        Bound(
            "dataplane.filters.steps.rate_limit.remote",
            "DEADLINE",
            "seconds for the rate limit server",
            "`failureMode`",
        ),
        Bound(
            "dataplane.chain.ext_proc.session",
            "DEADLINE",
            "seconds for each answer of external processing",
            "`failureMode`",
        ),
        Bound(
            "dataplane.chain.ext_proc.session", "MOST", "bytes of one message of external processing", "`failureMode`"
        ),
        Bound(
            "dataplane.filters.steps.compression",
            "MOST_AT_A_TIME",
            "responses that a worker compresses at a time",
            "not compressed",
        ),
        Bound("dataplane.link.evictions", "MOST", "seconds that an eviction lasts", "it lasts so long"),
        Bound(
            "dataplane.proxy.attempt.tries", "MAX_BACKOFF", "seconds that a doubled backoff grows to", "it stays there"
        ),
        Bound(
            "dataplane.backends.dynamic.destinations",
            "MOST",
            "destinations of a forward proxy that a worker remembers",
            "the one used longest ago is forgotten",
        ),
        Bound("dataplane.upstream.dial.hbone", "MAX_TUNNELS", "tunnels of a worker to one workload of a mesh", "503"),
    ),
    "LLM providers": (
        Bound("dataplane.llm.plans", "MAX_GROUPS", "groups of providers", "the object is refused"),
        Bound("dataplane.llm.plans", "MAX_PROVIDERS", "providers of a group", "the object is refused"),
        Bound("dataplane.llm.body", "MAX_FIELDS", "fields at the top of a request", "400"),
        Bound("dataplane.http.spellings", "LONGEST_READ", "bytes of a path that may be read in several ways", "400"),
        Bound("dataplane.llm.realtime", "MAX_QUERY", "bytes of the query of a realtime session", "400"),
        Bound(
            "dataplane.backends.llm.reading",
            "MAX_ANSWER",
            "bytes of a whole answer that is read",
            "it passes; usage is not read",
        ),
        Bound(
            "dataplane.llm.events", "MAX_EVENT", "bytes of an event that is translated", "the stream ends with an error"
        ),
        Bound(
            "dataplane.backends.llm.held",
            "MOST_HELD",
            "bytes of a stream held for failover before its first content",
            "no further provider is asked",
        ),
        Bound("dataplane.backends.llm.realtime.call", "MAX_EVENT", "bytes of a message of a realtime provider", "1009"),
        Bound(
            "dataplane.guards.patterns", "MAX_MEMORY", "bytes of a compiled pattern of a guard", "the policy is refused"
        ),
        Bound("dataplane.guards.servers.asking", "MAX_ANSWER", "bytes of the answer of a guard's server", "403"),
        Bound("dataplane.backends.llm.models", "MAX_LISTED", "models that one answer lists", "the rest is left out"),
    ),
    "MCP and A2A": (
        Bound(
            "dataplane.mcp.plans",
            "MAX_TARGETS",
            "targets of a backend, with those that selectors find",
            "the rest is left out",
        ),
        Bound("dataplane.mcp.sessions", "LIFETIME", "seconds that a session lives", "404: the client begins anew"),
        Bound(
            "dataplane.backends.mcp.items", "MAX_ARGUMENTS", "bytes of arguments that rules read", "the call is refused"
        ),
        Bound(
            "dataplane.backends.mcp.legacy.holder",
            "MOST",
            "streams of older servers that a worker holds",
            "the one idle for longest ends",
        ),
        Bound(
            "dataplane.mcp.subscriptions",
            "MAX_URIS",
            "resources that one stream is about",
            "an error: invalid parameters",
        ),
        Bound("dataplane.stdio.sessions", "MOST", "processes of servers that the proxy starts", "503"),
        Bound("dataplane.stdio.sessions", "MOST_OF_ONE", "processes of one such server", "503"),
        Bound("dataplane.a2a.cards", "MAX_CARD", "bytes of an agent's card", "502"),
    ),
    "Expressions": (
        Bound("gatewright.cel.lexer", "MAX_TEXT", "characters of an expression", "the object is refused"),
        Bound("gatewright.cel.parser", "MAX_DEPTH", "levels of an expression", "the object is refused"),
        Bound("gatewright.cel.budget", "MAX_STEPS", "steps of one evaluation", "the expression fails"),
        Bound("gatewright.cel.budget", "MAX_BUILT", "bytes that one evaluation builds", "the expression fails"),
        Bound(
            "gatewright.cel.budget",
            "MAX_SECONDS",
            "seconds of processor time of one evaluation",
            "the expression fails",
        ),
        Bound(
            "gatewright.cel.patterns",
            "MAX_PATTERN",
            "characters of a pattern",
            "the object is refused, or the expression fails",
        ),
    ),
    "Objects and files": (
        Bound("gatewright.files", "LARGEST", "bytes of a file of configuration", "the last good one stays"),
        Bound("gatewright.api.text.yaml_text", "MAX_DEPTH", "levels of a document", "the document is refused"),
        Bound(
            "gatewright.api.text.yaml_text", "MAX_ALIASED", "values that YAML aliases repeat", "the document is refused"
        ),
        Bound(
            "gatewright.api.routes.http_route",
            "MAX_MATCHES",
            "matches of all rules of a route",
            "the object is refused",
        ),
        Bound(
            "controlplane.translate.gateway.listener_precedence",
            "MOST_OF_NAMESPACE",
            "listeners that ListenerSets of one namespace add to a Gateway",
            "not accepted",
        ),
        Bound(
            "controlplane.translate.status.policy_status",
            "MAX_ANCESTORS",
            "ancestors in the status of a policy",
            "it acts all the same",
        ),
        Bound(
            "dataplane.agent.xds_client",
            "MAX_MESSAGE",
            "bytes of a message from the controller",
            "the stream begins anew",
        ),
        Bound(
            "controlplane.lint.bounded",
            "DEADLINE",
            "seconds that `gatewright lint` takes",
            "an error that names the file",
        ),
    ),
    "Logs and traces": (
        Bound("dataplane.telemetry.log_values", "MAX_FIELD", "characters of a field of the access log", "cut off"),
        Bound(
            "dataplane.telemetry.access_log",
            "MAX_QUEUED",
            "bytes of lines that wait for the writer",
            "dropped and counted",
        ),
        Bound(
            "dataplane.telemetry.measures",
            "MOST_SETS",
            "sets of values of added labels, of a worker",
            "counted as overflow",
        ),
        Bound("dataplane.tracing.trace", "MOST_SPANS", "spans of one exchange", "counted in an attribute"),
        Bound("dataplane.export.batches", "MOST_HELD", "records that wait for a collector", "dropped and counted"),
    ),
}
"""Sections of the page."""

HEAD: Final = """# Limits that no setting changes

What a user can meet where nothing can be configured, and what happens beyond it. Limits with a setting are in
[limits](limits.md) and on the pages of [policies](policies.md). If one of these is in your way, say so in an issue:
some of them should become settings.
"""


def page() -> str:
    """The text of docs/bounds.md."""
    parts = [HEAD.strip()]
    for title, rows in BOUNDS.items():
        lines = [f"| {row.what} | {_shown(value_of(row))} | {row.beyond} |" for row in rows]
        parts.append("\n".join([f"## {title}", "", "| What | At most | Beyond it |", "| --- | --- | --- |", *lines]))
    return "\n\n".join(parts) + "\n"


def value_of(row: Bound) -> int | float:
    """Raises AttributeError, or AssertionError: there is no such number."""
    value = getattr(import_module(row.module), row.name)
    assert isinstance(value, int | float) and not isinstance(value, bool), row
    return value


def _shown(value: int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
