"""Every error that the gateway answers with itself: cause -> status, public text, stable reason code. One table.

For the steps of policies and for the proxy alike; the table of `docs/operations.md` is this one. Codes appear in log
and metric and do not change meaning. Texts go to clients: they say what the client can act on, never an address or a
name of Gatewright's.
"""

from __future__ import annotations

from dataclasses import replace

from dataplane.chain.reply import Reply


def _table(*rows: tuple[str, int, str, bool]) -> dict[str, Reply]:
    return {reason: Reply(status, reason, text.encode(), close=close) for reason, status, text, close in rows}


REPLIES = _table(
    # reason, status, text, close. Close where what follows on the connection cannot be distinguished from this message.
    ("BadRequest", 400, "bad request", True),  # RFC 9112 2.2, 3, 5, 6.3: malformed or ambiguous
    ("AmbiguousPath", 400, "bad request", False),  # path policy has safe defaults
    ("TooManyParameters", 400, "too many query parameters", False),  # more than a listener lets policies read
    ("JsonTooLarge", 400, "json has too many keys or levels", False),  # the same
    ("AgentCallUnreadable", 400, "call cannot be read", False),  # a policy asked which one, and readers would differ
    ("ExpressionsTooCostly", 400, "request takes too long to look at", False),  # cel/budget: of one turn of the loop
    ("PatternTooCostly", 400, "request takes too long to look at", False),  # regexes/prices: a pattern of a route
    ("UnusualHeaderName", 400, "bad request", True),  # refused where it is configured so
    ("BodyTooLarge", 413, "request body is too large", True),  # buffer overflow
    ("TooManyBodies", 503, "too many request bodies at once", True),  # no memory for what a step has to read
    ("TooManyResponses", 503, "too many responses at once", False),  # the same, of a response
    ("Overspent", 429, "too little content for the work it takes", True),  # net/accounts
    ("Overloaded", 503, "too many requests at once", False),  # frontend.limits.maxRequests
    ("TargetTooLong", 414, "request target is too long", True),  # RFC 9112 3
    ("ExpectationFailed", 417, "expectation failed", True),  # RFC 9110 10.1.1
    ("HeadersTooLarge", 431, "request headers are too large", True),  # RFC 6585 5
    ("LoopDetected", 508, "request came through too many proxies", True),  # RFC 5842 7.2: it goes round in a circle
    ("MethodNotImplemented", 501, "method is not implemented", True),  # RFC 9110 9.1
    ("CodingNotImplemented", 501, "transfer coding is not implemented", True),  # RFC 9112 6.1
    ("VersionNotSupported", 505, "http version is not supported", True),  # RFC 9110 15.6.6
    ("RequestTimeout", 408, "request was not received in time", True),  # RFC 9110 15.5.9
    ("ConnectNotAllowed", 405, "method not allowed", True),  # CONNECT while unset
    ("ConnectDenied", 403, "connect is not allowed", True),  # `frontend.connect` Deny
    ("ConnectTargetNotFound", 404, "listener not found", True),  # `frontend.connect` Tunnel: no bind has the port
    ("TunnelTooDeep", 403, "tunnels lie within too many tunnels", True),  # http/connect_rules
    ("TraceNotAllowed", 405, "method not allowed", False),  # RFC 9110 9.3.8: it shows what proxies added
    ("UpgradeNotAllowed", 501, "protocol is not supported", False),  # RFC 9220 3, RFC 8441: extended CONNECT
    ("BindClosed", 404, "listener not found", True),  # the port was taken out of the configuration
    ("ListenerNotFound", 404, "listener not found", False),
    ("Misdirected", 421, "misdirected request", False),  # RFC 9110 15.5.20: the server name was another listener's
    ("RouteNotFound", 404, "route not found", False),
    ("CsrfFailed", 403, "CSRF validation failed", False),
    ("JwtMissing", 401, "authentication failed", False),  # RFC 9110 15.5.2
    ("JwtInvalid", 401, "authentication failed", False),
    ("JwtKeysUnavailable", 401, "authentication failed", False),  # fails closed
    ("BasicMissing", 401, "authentication failed", False),
    ("BasicInvalid", 401, "authentication failed", False),
    ("AuthenticationBusy", 503, "too many logins at once", False),
    ("ApiKeyMissing", 401, "authentication failed", False),
    ("ApiKeyInvalid", 401, "authentication failed", False),
    ("ExtAuthDenied", 403, "external authorization failed", False),
    ("ExtAuthFailed", 403, "external authorization failed", False),  # server unavailable
    ("AuthorizationDenied", 403, "authorization failed", False),
    ("RateLimited", 429, "rate limit exceeded", False),
    ("RateLimitFailed", 500, "rate limit failed", False),  # the service is down, and the policy fails closed
    ("ExtProcAnswered", 403, "answered by the external processor", False),  # its status and body are the server's
    ("EndpointPickerFailed", 503, "endpoint picker failed", False),  # Gateway API Inference Extension: it fails closed
    ("EndpointNotInPool", 503, "no such endpoint", False),  # the picker chose what is none of the pool's
    ("ExtProcFailed", 500, "ext_proc failed", False),  # the processor is down; it fails closed
    ("RequestTransformationFailed", 500, "request transformation failed", False),  # body without a value
    ("ResponseTransformationFailed", 502, "response transformation failed", False),  # the same, of a response
    ("ResponseTooLarge", 502, "response body is too large", False),  # buffer overflow
    ("DirectResponseFailed", 500, "direct response failed", False),
    ("NoValidBackend", 500, "no valid backends", False),  # Gateway API: rule without a valid backendRef
    ("InvalidBackend", 500, "backend does not exist", False),  # Gateway API: share of an invalid backendRef
    ("BackendRefused", 500, "backend cannot be used", False),  # Gateway API: BackendTLSPolicy that cannot be honoured
    ("DestinationRefused", 403, "destination is not allowed", False),  # dynamic forward proxy
    ("BackendAuthenticationFailed", 500, "backend authentication failed", False),  # no credentials
    ("PolicyUnusable", 503, "policy cannot be applied", False),  # architecture, A bad resource
    ("NoEndpoints", 503, "no healthy backends", False),  # Gateway API: Service without ready endpoints
    ("BackendBusy", 503, "too many requests to the backend at once", False),  # backend.limits.maxRequests
    ("DnsFailed", 503, "backend name cannot be resolved", False),
    ("ConnectFailed", 503, "upstream connection failed", False),
    ("TunnelFailed", 503, "upstream connection failed", False),  # backend.tunnel: the proxy opened none
    ("UpstreamFailed", 502, "upstream closed the connection before it answered", False),
    ("RetriesExhausted", 503, "upstream closed the connection on every try", False),  # Gateway API: 500 or 503 by then
    ("UpstreamInvalid", 502, "upstream sent an invalid response", False),
    ("OAuthMetadataUnavailable", 502, "authorization server metadata is unavailable", False),  # jwtAuthentication.mcp
    ("AgentCardInvalid", 502, "agent card is invalid", False),  # it cannot be rewritten to lead through us
    ("UpgradeFailed", 502, "request upgrade failed", False),
    ("UpstreamTimeout", 504, "upstream call timeout", False),  # per attempt
    ("RequestDeadline", 504, "request timeout", False),  # over all attempts
    ("McpNotAcceptable", 406, "Not Acceptable: Client must accept text/event-stream", False),
    ("McpContentType", 415, "content type must be application/json", False),  # RFC 9110 15.5.16
    ("McpBadMessage", 400, "not a JSON-RPC message", False),  # JSON-RPC 2.0, 5.1
    ("McpBadVersion", 400, "unsupported protocol version", False),  # MCP, Transports: MCP-Protocol-Version
    ("McpSessionMissing", 400, "header Mcp-Session-Id is required", False),  # MCP, Transports: sessions
    ("McpSessionUnknown", 404, "session not found", False),  # the same
    ("McpMethodNotAllowed", 405, "method must be GET, POST or DELETE", False),
    ("McpNoStream", 405, "there is no stream of events to listen to", False),  # MCP, Transports: listening
    ("McpOriginNotAllowed", 403, "host or origin is not allowed", False),  # MCP, Transports: DNS rebinding
    ("McpDenied", 200, "unknown item", False),  # refused MCP call
    ("McpAnswerRefused", 200, "the answer is not passed on", False),  # MCP: this call failed, its session goes on
    ("McpItemUnknown", 400, "unknown item", False),  # the same, MCP 2026-07-28
    ("McpMethodUnknown", 404, "method not found", False),  # MCP 2026-07-28, Transports
    ("McpRejected", 200, "rejected by a guardrail", False),  # `guardrails` of backend.mcp
    ("McpNoTargets", 503, "no MCP servers", False),
    ("McpBusy", 503, "too many streams or messages of MCP at a time", False),  # the older transport
    ("McpTargetFailed", 502, "MCP server is not available", False),
    ("LlmBadRequest", 400, "request body cannot be used", False),  # docs/llm: what APIs of LLM providers take
    ("LlmFormatUnsupported", 400, "the provider does not have this API", False),  # `routes` of backend.ai
    ("LlmModelDenied", 403, "this model may not be used", False),  # who may use which model
    ("PromptRejected", 403, "rejected by a guard", False),  # `response` of a guard of requests
    ("AnswerRejected", 403, "rejected by a guard", False),  # `response` of a guard of responses
    ("GuardUnavailable", 403, "a guard cannot judge", False),  # guards that cannot be asked
    ("LlmMethodNotAllowed", 405, "method not allowed", False),  # RFC 9110 15.5.6
    ("LlmNeedsWebSocket", 426, "this API needs a WebSocket", False),  # RFC 9110 15.5.22; docs/llm/realtime.md
    ("LlmContentCoding", 415, "request body must not be compressed", False),  # RFC 9110 15.5.16
    ("LlmProvidersFailed", 503, "no provider could answer", False),  # docs/llm/failover.md: what comes next refused
    ("LlmStreamBroken", 502, "the provider ended the stream before its end", False),  # an event of the stream
    ("InternalError", 500, "internal error", True),
)


def is_plain(reply: Reply) -> bool:
    """Whether it says what its row does: its text was not replaced."""
    row = REPLIES.get(reply.reason)
    return row is not None and reply.body == row.body and reply.content_type == row.content_type


def made(reason: str, detail: str = "", headers: bytes = b"") -> Reply:
    """The reply for a cause. `detail` is for the log, `headers` are finished lines."""
    reply = REPLIES[reason]
    return replace(reply, detail=detail, headers=headers) if detail or headers else reply
