"""The one value that travels: a request, its response, and what was decided about them.

One `Exchange` is made per request, by the codec that read it, and seen by every room up to the log line. It is a plain
slotted object: what a request does not need stays None, and nothing is made for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.http.heads import Head
from dataplane.variables import Variables

if TYPE_CHECKING:
    from dataplane.http.body import Body

_NEVER = float("inf")


class Exchange(Variables):
    """A request in flight. Request fields are bytes, checked by the codec; `path` and `host` are canonical:

    `method` as sent; `target` = path and query to send upstream; `path` without query, dot segments removed, unreserved
    percent-escapes decoded; `query` after the "?" or b""; `host` lower-case, no port, no trailing dot; `authority` the
    Host header's value to send on; `scheme` b"http" or b"https"; `request` the header block.
    """

    __slots__ = (
        "answer_body",
        "answer_changed",
        "answer_over",
        "asked_host",
        "asked_target",
        "attempt",
        "attempt_deadline",
        "authority",
        "backend_plan",
        "bind",
        "body",
        "body_bytes",
        "copies",
        "copy",
        "deadline",
        "detail",
        "down",
        "ended",
        "endpoint",
        "has_body",
        "held",
        "host",
        "host_set",
        "listener",
        "method",
        "out",
        "path",
        "peer",
        "plan",
        "policies",
        "prefix",
        "query",
        "reason",
        "replied",
        "request",
        "response",
        "response_bytes",
        "retries",
        "scheme",
        "stage",
        "started",
        "status",
        "stopped",
        "table",
        "target",
        "target_plan",
        "took",
        "trying",
        "up",
        "version",
    )

    # --- whose it is

    down: Any
    """Who carries this exchange downstream: a `server/connection.Connection`, later also an HTTP/2 stream."""
    started: float
    """Monotonic seconds at the last byte of the request head."""
    peer: str
    """The client's IP address, IPv4 written plainly."""
    bind: str
    """Key of the bind that it came in on."""

    # --- the request

    method: bytes
    target: bytes
    asked_target: bytes
    """`asked_target` and `asked_host` stay as the client sent them; steps may change the others."""
    path: bytes
    query: bytes
    host: bytes
    asked_host: bytes
    authority: bytes
    scheme: bytes
    version: bytes
    request: Head
    has_body: bool
    """The request came with a body (of any length, if it is chunked), or a step made one."""
    body: Body | None
    """The request body, when it is held for a step or for an upstream that is not connected yet."""
    held: bytes | None
    """The whole request body, when a step asked for it or made it. It stays here after it was sent."""
    body_bytes: int
    """Request body bytes received."""

    # --- what was decided about it

    table: Any
    """The pinned table (`table.table.Table`)."""
    listener: Any
    """ListenerPlan that took the request, or None."""
    plan: Any
    """RoutePlan, or None when no route matched."""
    prefix: bytes
    """The path prefix that the rule matched; b"" when it matched otherwise."""
    policies: Any
    """What the policies of `plan` come to on `listener` (`plans.RoutePolicies`), once the route is known."""
    target_plan: Any
    """The chosen Target of `plan`."""
    stage: int
    """How far the descent came (`proxy/responses`)."""
    stopped: int
    """Index of the step that ended the descent, -1 when none did."""
    host_set: bool
    """A step chose the host to send (URLRewrite, a header modifier): hostRewrite leaves it."""
    attributes: dict[str, Any] | None
    """What policies leave for later expressions, by path of the variable ("jwt", "extauthz", "metadata", ...)."""

    # --- its tries upstream

    backend_plan: Any
    """BackendPlan of the chosen backend."""
    endpoint: Any
    """upstream.endpoint.Endpoint in use or last used."""
    up: Any
    """The upstream connection that carries this exchange now."""
    attempt: int
    """Number of this try upstream, from 0."""
    trying: bool
    """An attempt is under way and counted at its endpoint."""
    deadline: float
    attempt_deadline: float
    """Monotonic seconds at which the request, or the present attempt up to its response head, has to be done."""
    out: bytes
    """What was written upstream so far, while it can still be sent again."""
    retries: Any
    """How often it may be tried again (`proxy/retries.Retries`); None: no policy says so."""
    copy: Any
    """The request body as it went upstream (`proxy/replay.BodyCopy`), while another try or a mirror may need it."""
    copies: Any
    """What mirrors get (`proxy/mirrors.Mirroring`), when it was drawn before the steps of a backend reference; set only
    where there are both."""

    # --- the response

    status: int
    response: Head | None
    """Response headers, once there are any that a response step may edit."""
    answer_body: bytes | None
    """The whole response body while response steps run, when one of them reads it and it could be held. A step that
    makes another one sets it, and `answer_changed`."""
    answer_changed: bool
    answer_over: bool
    """The response body was too large to be held for the steps that read it."""
    response_bytes: int
    """Response body bytes sent to the client."""
    reason: str
    """Why we made the answer ourselves (a code of `chain/replies`), or ""."""
    detail: str
    """What the log says beside `reason`; never sent to a client."""
    replied: bool
    """An answer is decided: a response head went to the client, or is about to."""
    ended: bool
    took: float
    """Seconds from `started` to the last byte. Set when its log line is made, for expressions."""

    def __init__(self, down: Any, method: bytes, target: bytes, request: Head, started: float) -> None:
        self.down = down
        self.method = method
        self.target = self.asked_target = target
        self.request = request
        self.started = started
        self.path = self.query = self.host = self.asked_host = self.authority = self.prefix = self.out = b""
        self.scheme = b"http"
        self.version = b"HTTP/1.1"
        self.peer = self.bind = self.reason = self.detail = ""
        self.table = self.listener = self.plan = self.policies = self.target_plan = None
        self.backend_plan = self.endpoint = self.up = self.retries = self.copy = None
        self.body = self.held = self.response = self.answer_body = self.attributes = None
        self.has_body = self.host_set = self.trying = self.replied = self.ended = False
        self.answer_changed = self.answer_over = False
        self.attempt = self.status = self.stage = self.body_bytes = self.response_bytes = 0
        self.stopped = -1
        self.deadline = self.attempt_deadline = _NEVER

    def __repr__(self) -> str:
        route = self.plan.key if self.plan is not None else "-"
        request = b"%b %b" % (self.method, self.host)
        return f"Exchange({request.decode('latin-1')} route={route} status={self.status})"
