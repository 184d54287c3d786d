"""The one value that travels: a request, its response, and what was decided about them.

One `Exchange` is made per request, by the codec that read it, and seen by every package up to the log line. It is a
plain slotted object: what a request does not need stays None, and nothing is made for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dataplane.http.heads import Head
from dataplane.http.rules import DEFAULT
from dataplane.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from dataplane.carriers import Downstream, Endpoint, Upstream
    from dataplane.http.body import BodyBuffer
    from dataplane.http.grpc import Call
    from dataplane.http.messages import Peer
    from dataplane.reply import Reply
    from dataplane.streams import Outlet, Stage
    from dataplane.variables import BackendFacts, ListenerFacts, RouteFacts, Services

_NEVER = float("inf")


class Work(Protocol):
    """What runs for an exchange (`Exchange.work`)."""

    @property
    def is_over(self) -> bool: ...

    def cancel(self) -> None:
        """CancelledError is raised where it waits; its cleanup runs to its end."""


class Tries(Protocol):
    """What the log reads of a request's tries (`proxy/attempt/retries.Retries`)."""

    given_up: str


class SpanContext(Protocol):
    """A span, as others name it (`tracing/context`)."""

    @property
    def trace_id(self) -> str: ...

    @property
    def span_id(self) -> str: ...

    def header_lines(self) -> bytes: ...


class Traced(Protocol):
    """What is traced of an exchange while it lives (`tracing/trace`)."""

    @property
    def context(self) -> SpanContext:
        """Of its own span."""

    @property
    def is_recorded(self) -> bool:
        """Its spans are sent to a collector."""

    def try_begins(self, method: bytes, now: float, tries: int, backend: str) -> bytes:
        """The header lines that a try sends; `tries`: how many there were before; `backend`: key of who is asked."""

    def try_ends(self, now: float, endpoint: str, status: int, failure: str) -> None:
        """The try that is under way has ended, if there is one. `status`: of its answer, 0 for none; `failure`: the
        cause, in one word."""

    def call_begins(self, backend: str, method: bytes, now: float) -> TracedCall:
        """A call is made for the sake of the exchange; its caller ends it."""


class TracedCall(Protocol):
    @property
    def context(self) -> SpanContext: ...

    def describe(self, name: str, attributes: tuple[tuple[str, Any], ...]) -> None:
        """It is about something that a protocol above HTTP names."""

    def end(self, now: float, endpoint: str, status: int, failure: str) -> None:
        """As `Traced.try_ends`."""


class Exchange(Variables):
    """A request in flight: its data, as policies and the log see them. What acts on them, the life of an exchange, is
    its subclass `proxy/exchange.CarriedExchange`; the two are one object, and this file knows no more of the types
    above it than what is read here (Protocols).

    Request fields are bytes, checked by the codec; `path` and `host` are canonical:

    `method` as sent; `target` = path and query to send upstream; `path` without query, dot segments removed, unreserved
    percent-escapes decoded; `query` after the "?" or b""; `host` lower-case, no port, no trailing dot; `authority` the
    Host header's value to send on; `scheme` b"http" or b"https"; `request` the header block.
    """

    __slots__ = (
        "as_routed",
        "asked_authority",
        "asked_host",
        "asked_target",
        "attempt",
        "attempt_deadline",
        "authority",
        "backend_plan",
        "bind",
        "body",
        "body_bytes",
        "body_copy",
        "bounds",
        "buffer",
        "claimed",
        "client",
        "context",
        "counted",
        "deadline",
        "delayed_response",
        "detail",
        "down",
        "ended",
        "endpoint",
        "expects",
        "grpc",
        "has_body",
        "host",
        "host_set",
        "inlet",
        "installing",
        "lease",
        "leased",
        "length",
        "listener",
        "measures",
        "method",
        "mirroring",
        "outgoing",
        "path",
        "paused",
        "peer",
        "plan",
        "policies",
        "prefix",
        "query",
        "readings",
        "reason",
        "replied",
        "request",
        "request_done",
        "resendable",
        "response",
        "response_body_changed",
        "response_body_too_large",
        "response_bytes",
        "retries",
        "scheme",
        "stage",
        "started",
        "status",
        "stopped",
        "table",
        "takes_trailers",
        "target",
        "target_plan",
        "took",
        "trace",
        "trailers",
        "tunnel",
        "up",
        "upgrade",
        "version",
        "waiting",
    )

    # --- whose it is

    down: Downstream | None
    """Who carries this exchange to its client; none when it is over."""
    context: Services
    """What the exchanges of one worker share (`proxy/context.Context`)."""
    client: Peer
    """The two ends of the client's connection."""
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
    readings: tuple[bytes, ...] | None
    """Other paths that an origin may read `path` as (`http/spellings`): what decides by it has to decide alike.
    None: not known yet; a carrier that has seen that the path has nothing of the kind sets ()."""
    query: bytes
    host: bytes
    asked_host: bytes
    authority: bytes
    asked_authority: bytes
    """The client's, where a step has set another one (`host_set`); else not there."""
    scheme: bytes
    version: bytes
    request: Head
    upgrade: bytes
    """The protocol that it asks to switch to, or b""."""
    has_body: bool
    """The request came with a body (of any length, if it is chunked), or a step made one."""
    length: int
    """Bytes of content as the head announces them; 0: none, -1: it does not (`messages.UNKNOWN`)."""
    request_done: bool
    """The request is here whole."""
    takes_trailers: bool
    """The client said `te: trailers` (RFC 9110 10.1.4)."""
    expects: bool
    """The client waits for a 100 before it sends its content. This and the next three are set with `has_body` only."""
    inlet: object
    """Who takes its content in place of the upstream: stages, or what drops it
    (`proxy/steps/request_stages.Inlet`)."""
    installing: object
    """The step that made stages last (`chain/filter.Filter`); set only where one does."""
    trailers: bytes
    """Trailer lines of the request, once it is here whole."""
    claimed: int
    """Bytes of the worker's memory (`link/pools.BodyMemory`) that its buffer takes."""
    paused: int
    """Why the client's content is not read now (bits of `proxy/request/request_body`)."""
    buffer: BodyBuffer | None
    """Content of the request that is kept for a step, or for an upstream that is not connected yet."""
    body: bytes | None
    """The whole request body, when a step asked for it or made it. It stays here after it was sent."""
    body_bytes: int
    """Request body bytes received."""

    # --- what was decided about it

    table: object
    """The pinned table (`table.table.Table`)."""
    listener: ListenerFacts | None
    """ListenerPlan that took the request, or None."""
    plan: RouteFacts | None
    """RoutePlan, or None when no route matched."""
    prefix: bytes
    """The path prefix that the rule matched; b"" when it matched otherwise."""
    policies: object
    """What the policies of `plan` come to on `listener` (`plans.RoutePolicies`), once the route is known."""
    target_plan: object
    """The chosen Target of `plan`."""
    waiting: object
    """Steps that wait now (`proxy/steps/waiting.Steps`): they can be cancelled."""
    bounds: object
    """What limits of requests keep of it (`proxy/request/admission.Bounds`); None: there are none."""
    stage: int
    """How far the descent came (`proxy/steps/response_steps`)."""
    stopped: int
    """Index of the step that ended the descent, -1 when none did."""
    host_set: bool
    """A step chose the host to send (URLRewrite, a header modifier): hostRewrite leaves it."""
    trace: Traced | None
    """What is traced of it; None: nothing."""
    attributes: dict[str, object] | None
    """What policies leave for later expressions, by path of the variable ("jwt", "extauthz", "metadata", ...)."""

    # --- its tries upstream

    backend_plan: BackendFacts | None
    """BackendPlan of the chosen backend."""
    endpoint: Endpoint | None
    up: Upstream | None
    leased: bool
    lease: int
    """Its lease (`upstream/endpoint.Lease`)."""
    counted: object
    """By whom it is counted among the requests to its backend (`upstream/limits.Tally`); None: nothing limits these."""
    attempt: int
    """Number of this try upstream, from 0."""
    deadline: float
    attempt_deadline: float
    """Monotonic seconds at which the request, or the present attempt up to its response head, has to be done."""
    as_routed: object
    """The request as its route left it (`proxy/attempt/backend_steps.AsRouted`); set where another try may need it."""
    resendable: bytes | None
    """The content that went upstream with the head, while it is all of it and can be sent again; else None."""
    retries: Tries | None
    """How often it may be tried again (`proxy/attempt/retries.Retries`); None: no policy says so."""
    body_copy: object
    """The request body as it went upstream (`proxy/attempt/replay.BodyCopy`), while another try or a mirror may need
    it."""
    mirroring: object
    """What mirrors get (`proxy/attempt/mirrors.Mirroring`), when it was drawn before the steps of a backend reference;
    set only where there are both."""

    # --- the response

    status: int
    response: Head | None
    """Response headers, once there are any that a response step may edit."""
    grpc: Call | None
    """What is known of a gRPC or gRPC-Web call; None: it is none."""
    delayed_response: object
    """What is not passed on yet of it (`proxy/response/delayed_responses.DelayedResponse`), because response steps read
    its body, or wait."""
    tunnel: int
    """Bits of `proxy/response/tunnel`: whether this is a tunnel by now, and which side sends no more."""
    response_body: bytes | None
    """The whole response body while response steps run, when one of them reads it and it was not too large. A step that
    makes another one sets it, and `response_body_changed`."""
    response_body_changed: bool
    response_body_too_large: bool
    """The response body was too large to be buffered for the steps that read it."""
    response_bytes: int
    """Response body bytes sent to the client."""
    reason: str
    """Why we made the answer ourselves (a code of `chain/replies`), or ""."""
    detail: str
    """What the log says beside `reason`; never sent to a client."""
    replied: bool
    """An answer is decided: a response head went to the client, or is about to."""
    ended: bool
    measures: object
    """What is counted of it with labels of its Gateway (`telemetry/measures.Measures`); None: nothing yet."""
    took: float
    """Seconds from `started` to the last byte. Set when its log line is made, for expressions."""

    def __init__(self, down: Downstream | None, method: bytes, target: bytes, request: Head, started: float) -> None:
        self.down = down
        self.method = method
        self.target = self.asked_target = target
        self.request = request
        self.started = started
        self.readings = None
        self.path = self.query = self.host = self.asked_host = self.authority = self.prefix = self.upgrade = b""
        self.scheme = b"http"
        self.version = b"HTTP/1.1"
        self.peer = self.bind = self.reason = self.detail = ""
        self.table = self.listener = self.plan = self.policies = self.target_plan = self.waiting = None
        self.grpc = self.agent_call = self.backend_plan = self.endpoint = self.up = self.retries = self.body_copy = (
            self.resendable
        ) = None
        self.buffer = self.body = self.response = self.response_body = self.attributes = self.delayed_response = None
        self.bounds = self.counted = self.measures = self.trace = None
        self.noted = self.has_body = self.host_set = self.leased = self.replied = self.ended = False
        self.response_body_changed = self.response_body_too_large = self.takes_trailers = False
        self.request_done = True
        self.attempt = self.status = self.stage = self.body_bytes = self.response_bytes = self.length = 0
        self.lease = self.paused = self.tunnel = 0
        self.stopped = -1
        self.deadline = self.attempt_deadline = _NEVER

    def may_hold(self, wanted: int) -> int:
        """Bytes of a body of this exchange that who wants so many may hold (`http/rules.HttpRules.may_hold`)."""
        listener = self.listener
        return (DEFAULT if listener is None else listener.http).may_hold(wanted)

    if TYPE_CHECKING:  # what `proxy/exchange` has, for steps

        def replace_body(self, data: bytes) -> None:
            """Make `data` the content that goes upstream. Headers that describe the old content are the step's to take
            out (`http/body.DESCRIBING`)."""

        def stream_request(self, hook: StreamHook) -> Reply | None:
            """Let the content of the request pass a stage (`dataplane/streams`), what has come of it first. For request
            steps, which answer what the stage answers. A request without content has none."""

        def stream_response(self, hook: StreamHook) -> Awaitable[Reply | None] | Reply | None:
            """The same for the response, for response steps. A body that was buffered passes the stage as a whole: the
            awaitable ends with it. Raises `http.body.TooLarge`, or what the stage raised, there or at once."""

        @property
        def is_for_agent(self) -> bool:
            """Whether the rule leads to an A2A agent: then its body may be read for `a2a`."""

        def work(self, work: Coroutine[object, None, None]) -> Work:
            """Run what belongs to this exchange, for a backend that ends the request itself: it may await what steps
            may (`chain/filter`). It is cancelled with the exchange, whose end follows its cleanup."""

    def __repr__(self) -> str:
        route = self.plan.key if self.plan is not None else "-"
        request = b"%b %b" % (self.method, self.host)
        return f"Exchange({request.decode('latin-1')} route={route} status={self.status})"


if TYPE_CHECKING:
    StreamHook = Callable[[Exchange, Outlet], Stage | None]
    """Makes a stage for an exchange, or None: its content passes as it is."""
