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

    copies: Any
    """What mirrors get (`proxy/mirrors.Mirroring`), when it was drawn before the steps of a backend reference; set only
    where there are both."""

    def __init__(self, down: Any, method: bytes, target: bytes, request: Head, started: float) -> None:
        self.down = down
        """Who carries this exchange downstream: a `server/connection.Connection`, later also an HTTP/2 stream."""
        self.method = method
        self.target = self.asked_target = target
        """`asked_target` and `asked_host` stay as the client sent them; steps may change the others."""
        self.request = request
        self.started = started
        """Monotonic seconds at the last byte of the request head."""
        self.path = self.query = self.host = self.asked_host = self.authority = b""
        self.scheme = b"http"
        self.version = b"HTTP/1.1"
        self.peer = ""
        """The client's IP address, IPv4 written plainly."""
        self.table: Any = None
        """The pinned table (`table.table.Table`)."""
        self.bind = ""
        """Key of the bind that it came in on."""
        self.listener: Any = None
        """ListenerPlan that took the request, or None."""
        self.plan: Any = None
        """RoutePlan, or None when no route matched."""
        self.prefix = b""
        """The path prefix that the rule matched; b"" when it matched otherwise."""
        self.policies: Any = None
        """What the policies of `plan` come to on `listener` (`plans.RoutePolicies`), once the route is known."""
        self.backend_plan: Any = None
        """BackendPlan of the chosen backend."""
        self.endpoint: Any = None
        """upstream.endpoint.Endpoint in use or last used."""
        self.up: Any = None
        """The upstream connection that carries this exchange now."""
        self.attempt = 0
        """Number of this try upstream, from 0."""
        self.target_plan: Any = None
        """The chosen Target of `plan`."""
        self.trying = False
        """An attempt is under way and counted at its endpoint."""
        self.deadline = self.attempt_deadline = _NEVER
        """Monotonic seconds at which the request, or the present attempt up to its response head, has to be done."""
        self.has_body = False
        """The request came with a body (of any length, if it is chunked)."""
        self.held: bytes | None = None
        """The whole request body, when a step asked for it or made it. It stays here after it was sent."""
        self.body: Body | None = None
        """The request body, when it is held for a step or for an upstream that is not connected yet."""
        self.out = b""
        """What was written upstream so far, while it can still be sent again."""
        self.host_set = False
        """A step chose the host to send (URLRewrite, a header modifier): hostRewrite leaves it."""
        self.retries: Any = None
        """How often it may be tried again (`proxy/retries.Retries`); None: no policy says so."""
        self.copy: Any = None
        """The request body as it went upstream (`proxy/replay.BodyCopy`), while another try or a mirror may need it."""
        self.status = 0
        self.response: Head | None = None
        """Response headers, once there are any that a response step may edit."""
        self.answer_body: bytes | None = None
        """The whole response body while response steps run, when one of them reads it and it could be held. A step that
        makes another one sets it, and `answer_changed`."""
        self.answer_changed = False
        self.answer_over = False
        """The response body was too large to be held for the steps that read it."""
        self.reason = ""
        """Why we made the answer ourselves (a code of `chain/replies`), or ""."""
        self.detail = ""
        """What the log says beside `reason`; never sent to a client."""
        self.replied = False
        """An answer is decided: a response head went to the client, or is about to."""
        self.ended = False
        # `took`: seconds from `started` to the last byte; there once its log line is being made, for expressions.
        self.stage = 0
        """How far the descent came (`proxy/responses`)."""
        self.stopped = -1
        """Index of the step that ended the descent, -1 when none did."""
        self.body_bytes = 0
        """Request body bytes received."""
        self.response_bytes = 0
        """Response body bytes sent to the client."""
        self.attributes: dict[str, Any] | None = None
        """What policies leave for later expressions, by path of the variable ("jwt", "extauthz", "metadata", ...)."""

    def __repr__(self) -> str:
        route = self.plan.key if self.plan is not None else "-"
        request = b"%b %b" % (self.method, self.host)
        return f"Exchange({request.decode('latin-1')} route={route} status={self.status})"
