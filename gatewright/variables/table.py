"""The table of all variables: names, types, the moment from which each exists, and what it means.

Everything that is said of variables comes from here: environments of the checker, the page, the JSON schema, the
contexts of `gatewright cel`. Callers that evaluate expressions offer a context with the attributes that the rows name.
"""

from __future__ import annotations

from typing import Final

from gatewright.variables.agents import A2A, LLM, MCP
from gatewright.variables.variable import (
    BYTES,
    CLOSED,
    DURATION,
    FREE,
    HEADERS,
    INT,
    OPEN,
    STRING,
    TIMESTAMP,
    Variable,
    list_of,
)

_REQUEST: Final = (
    Variable("request", CLOSED, "request", "The request as the client sent it, with what policies changed since."),
    Variable("request.method", STRING, "request", "The method, such as `GET`."),
    Variable("request.uri", STRING, "request", "The whole URI, with scheme and host.", parameters="request_query"),
    Variable("request.scheme", STRING, "request", "`http` or `https`."),
    Variable("request.host", STRING, "request", "The host that the request names, with its port if it names one."),
    Variable("request.path", STRING, "request", "The path without the query."),
    Variable("request.pathAndQuery", STRING, "request", "The path with the query.", parameters="request_query"),
    Variable("request.version", STRING, "request", "The protocol: `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`."),
    Variable(
        "request.headers",
        HEADERS,
        "request",
        "Headers by lower-case name, values of a repeated one joined by `, `. Letter case does not matter in a name"
        " that is written out.",
        lookup="request_header",
    ),
    Variable(
        "request.body",
        BYTES,
        "request",
        "The body, which is held in memory for this. It has no value when it is larger than the buffer limit.",
        maybe=True,
        parsed="request_json",
    ),
    Variable(
        "request.bodyPrefix",
        BYTES,
        "request",
        "The beginning of the body, up to the buffer limit.",
        maybe=True,
        parsed="request_prefix_json",
    ),
    Variable("request.startTime", TIMESTAMP, "request", "When the head of the request had been read."),
    Variable("request.endTime", TIMESTAMP, "end", "When the response had been sent."),
)

_RESPONSE: Final = (
    Variable("response", CLOSED, "response", "The response that the client gets; of `extAuth`, the server's answer."),
    Variable("response.code", INT, "response", "The status code."),
    Variable("response.grpcStatus", INT, "response", "The gRPC status, of a gRPC response.", maybe=True),
    Variable("response.headers", HEADERS, "response", "Headers, as those of the request.", lookup="response_header"),
    Variable(
        "response.body",
        BYTES,
        "response",
        "The body, which is held in memory for this. It has no value when it is larger than the buffer limit, or when"
        " it was streamed to the client already.",
        maybe=True,
        parsed="response_json",
    ),
    Variable(
        "response.bodyPrefix",
        BYTES,
        "response",
        "As `response.body`; it has no value where that has none.",
        maybe=True,
        parsed="response_prefix_json",
    ),
)

_CONNECTION: Final = (
    Variable("source", CLOSED, "connection", "The client's side of the connection."),
    Variable(
        "source.address",
        STRING,
        "connection",
        "The client's IP address, of the PROXY header if there was one. Networks take it:"
        ' `cidr("10.0.0.0/8").containsIP(source.address)`.',
    ),
    Variable("source.port", INT, "connection", "The client's port."),
    Variable(
        "source.rawAddress", STRING, "connection", "The address of the peer itself, whatever proxies in front say."
    ),
    Variable("source.rawPort", INT, "connection", "The port of the peer itself."),
    Variable("source.identity", CLOSED, "connection", "The workload, of a SPIFFE certificate.", maybe=True),
    Variable("source.identity.trustDomain", STRING, "connection", "Its trust domain.", maybe=True),
    Variable("source.identity.namespace", STRING, "connection", "Its namespace.", maybe=True),
    Variable("source.identity.serviceAccount", STRING, "connection", "Its service account.", maybe=True),
    Variable("source.spiffeId", STRING, "connection", "The SPIFFE id of the certificate, as written.", maybe=True),
    Variable("source.subjectAltNames", list_of(STRING), "connection", "Names of the client's certificate.", maybe=True),
    Variable("source.issuer", STRING, "connection", "Issuer of the client's certificate.", maybe=True),
    Variable("source.subject", STRING, "connection", "Subject of the client's certificate.", maybe=True),
    Variable("source.subjectCn", STRING, "connection", "Common name of that subject.", maybe=True),
    Variable("source.certificate", STRING, "connection", "The client's certificate, as PEM.", maybe=True),
    Variable(
        "source.unverifiedWorkload",
        CLOSED,
        "connection",
        "The workload that has the client's address, which is not proven.",
        maybe=True,
    ),
    Variable("source.unverifiedWorkload.name", STRING, "connection", "Its name.", maybe=True),
    Variable("source.unverifiedWorkload.namespace", STRING, "connection", "Its namespace.", maybe=True),
    Variable("source.unverifiedWorkload.serviceAccount", STRING, "connection", "Its service account.", maybe=True),
    Variable(
        "source.connectHeaders",
        HEADERS,
        "connection",
        "Headers of the CONNECT request that made the tunnel.",
        maybe=True,
        lookup="source_connect_header",
    ),
    Variable("destination", CLOSED, "connection", "Our side of the connection."),
    Variable("destination.address", STRING, "connection", "The IP address that the client connected to."),
    Variable("destination.port", INT, "connection", "The port that the client connected to."),
    Variable("destination.hostname", STRING, "connection", "The server name of TLS.", maybe=True),
)

_PLACE: Final = (
    Variable("proxy", CLOSED, "connection", "Where in the configuration this happens."),
    Variable("proxy.bind", STRING, "connection", "The bind."),
    Variable("proxy.gateway", CLOSED, "connection", "The Gateway."),
    Variable("proxy.gateway.namespace", STRING, "connection", "Its namespace."),
    Variable("proxy.gateway.name", STRING, "connection", "Its name."),
    Variable("proxy.listener", CLOSED, "request", "The listener."),
    Variable("proxy.listener.name", STRING, "request", "Its name."),
    Variable("proxy.route", CLOSED, "request", "The route, once it is chosen.", maybe=True),
    Variable("proxy.route.namespace", STRING, "request", "Its namespace.", maybe=True),
    Variable("proxy.route.name", STRING, "request", "Its name.", maybe=True),
    Variable("proxy.route.kind", STRING, "request", "Its kind, such as `HTTPRoute`.", maybe=True),
    Variable("proxy.route.rule", STRING, "request", "The name of its rule, if it has one.", maybe=True),
    Variable(
        "proxy.requestProcessingDuration", DURATION, "response", "From the request to its forwarding.", maybe=True
    ),
    Variable("proxy.upstreamDuration", DURATION, "response", "From there to the head of the response.", maybe=True),
    Variable("proxy.responseProcessingDuration", DURATION, "end", "From there to the end of the response.", maybe=True),
    Variable("env", CLOSED, "connection", "The proxy's surroundings."),
    Variable("env.podName", STRING, "connection", "Name of the proxy's Pod; of its host without one."),
    Variable("env.namespace", STRING, "connection", "Namespace of the proxy."),
    Variable("env.gateway", STRING, "connection", "Name of the proxy's Gateway."),
    Variable("backend", CLOSED, "request", "The backend, once it is chosen.", maybe=True),
    Variable("backend.name", STRING, "request", "Its name.", maybe=True),
    Variable(
        "backend.type", STRING, "request", "`ai`, `mcp`, `static`, `dynamic`, `service` or `unknown`.", maybe=True
    ),
    Variable("backend.protocol", STRING, "request", "`http`, `tcp`, `a2a`, `mcp` or `llm`.", maybe=True),
)

_POLICIES: Final = (
    Variable(
        "jwt", OPEN, "request", "The claims of the token that was accepted, each under its name; empty without one."
    ),
    Variable(
        "jwt.rawToken", STRING, "request", "The token itself; only `.unredacted()` shows it.", maybe=True, secret=True
    ),
    Variable("apiKey", OPEN, "request", "The metadata of the API key that was accepted; empty without one."),
    Variable("apiKey.key", STRING, "request", "The key; only `.unredacted()` shows it.", maybe=True, secret=True),
    Variable("basicAuth", CLOSED, "request", "The user that basic authentication accepted.", maybe=True),
    Variable("basicAuth.username", STRING, "request", "The user's name.", maybe=True),
    Variable("extauthz", FREE, "request", "What external authorization has said: `responseMetadata`."),
    Variable("extproc", FREE, "request", "What external processing has said."),
    Variable("mcpGuardrails", FREE, "request", "What MCP guardrails have said."),
    Variable("metadata", FREE, "request", "What transformations have set as `metadata` so far."),
)

VARIABLES: Final[tuple[Variable, ...]] = (
    *_REQUEST,
    *_RESPONSE,
    *_CONNECTION,
    *_PLACE,
    *_POLICIES,
    *LLM,
    *MCP,
    *A2A,
)
"""All rows; a parent stands before its fields."""

BY_PATH: Final[dict[str, Variable]] = {row.path: row for row in VARIABLES}
"""The rows by path."""


def _children() -> dict[str, tuple[Variable, ...]]:
    found: dict[str, list[Variable]] = {path: [] for path in ("", *BY_PATH)}
    for row in VARIABLES:
        found[row.parent].append(row)
    return {path: tuple(rows) for path, rows in found.items()}


CHILDREN: Final[dict[str, tuple[Variable, ...]]] = _children()
"""The fields of each object; the roots under the empty path."""
