"""What expressions read of an exchange: the table of variables (`gatewright/variables`) as attributes.

`Exchange` inherits from this, so it is itself the context of evaluation and making one costs nothing. An attribute is
worked out when an expression reads it. Values that policies find out are in `Exchange.attributes`, by the path of their
variable ("jwt", "extauthz", "metadata", ...); one that nobody has left there has no value (None), an open map is empty.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataplane.http import rules
from dataplane.http.heads import plain_name
from dataplane.tls.names import names_of
from gatewright.cel import parameters
from gatewright.cel.errors import CelError, Fault, TooMany
from gatewright.cel.values import HeaderMap, Timestamp
from gatewright.variables.table import BY_PATH, CHILDREN, VARIABLES
from gatewright.variables.variable import CLOSED, FREE, OPEN

if TYPE_CHECKING:
    from dataplane.a2a import Call as AgentCall
    from dataplane.http.body import BodyBuffer
    from dataplane.http.grpc import Call
    from dataplane.http.heads import Head
    from dataplane.http.messages import Peer
    from dataplane.http.rules import HttpRules
    from dataplane.tls.names import Names
    from gatewright.cel.functions import json_text

NANOSECONDS: Final = 1_000_000_000

POD_NAME: Final = os.environ.get("POD_NAME") or os.uname().nodename
POD_NAMESPACE: Final = os.environ.get("POD_NAMESPACE", "")

KEPT: Final = 16_384
"""Bytes of JSON whose value is kept while a response comes. That of more is parsed again, once, when the response's
steps or the log ask for it."""

_LONG_STATUS: Final = 10
"""Digits that no status has: an endpoint may send as many as it likes, and Python converts only so many."""


class Unread(Exception):
    """What a client sent has more parts than may be read, and a route or a step asked for it: the request ends with the
    reply `reason` (`chain/replies`). It is no CelError: no expression is to go on without what it asked for."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Services(Protocol):
    """What the exchanges of one worker share, as policies and expressions use it (`proxy/context.Context`)."""

    @property
    def clock(self) -> Callable[[], float]:
        """Monotonic seconds."""

    @property
    def make_future(self) -> Callable[[], Any]:  # Any: asyncio's, which no package of this layer imports
        """A future of the worker's loop."""

    @property
    def turns(self) -> ComputingTurns:
        """Those of the worker's loop."""


class ComputingTurns(Protocol):
    """What is read of `net.turns.Turns`, which knows no expressions."""

    number: int
    is_costly: bool

    def add(self, waiting: Any, /) -> None:  # Any: `net.turns.Waiting`
        """`waiting` goes on in the next turn."""

    def compute(self, *sources: str) -> int:
        """An evaluation is about to take long, for these peers. Which turn this is."""

    def is_full(self, *sources: str) -> bool:
        """Nothing that can wait or be left out is computed for one of these peers any more in this turn."""


class ListenerFacts(Protocol):
    """What is read of a `binds.ListenerPlan` below the tables."""

    key: str
    name: str
    gateway: str
    port: int
    log: str
    log_json: str
    http: HttpRules

    @property
    def access_log(self) -> Any:  # Any: a `telemetry/log_plan.LogPlan`, which is above
        """What the access log of its Gateway adds and leaves out."""


class RouteFacts(Protocol):
    """What is read of a `plans.RoutePlan` below the tables."""

    key: str
    log: str
    log_json: str
    rule: str
    rule_index: int
    kind: str


class BackendFacts(Protocol):
    """What is read of a `plans.BackendPlan` below the tables."""

    key: str
    is_agent: bool


class EndpointFacts(Protocol):
    """What is read of an `upstream.endpoint.Endpoint` here."""

    @property
    def label(self) -> str: ...


class Variables:
    """Attributes, look-ups and `whole`, as `gatewright.cel.environment` asks of a context."""

    __slots__ = (
        "agent_call",
        "attributes",
        "evaluations",
        "known_agent_call",
        "known_headers",
        "known_query",
        "known_request",
        "known_response",
        "response_body",
    )

    agent_call: AgentCall | None
    known_headers: tuple[bytes, HeaderMap]
    """The header block that was read last as a map, and that map; unset until somebody asks."""
    known_query: tuple[bytes, dict[bytes, bytes]]
    """The query that was read last, and its parameters; unset until somebody asks."""
    known_agent_call: tuple[bytes, bytes | None, AgentCall]
    """The path and the body that were read last as a call of an agent, and that call; unset until somebody asks."""
    known_request: json_text.Read
    known_response: json_text.Read
    """The same of bodies as JSON."""
    evaluations: tuple[int, float]
    """The turn of the loop in which an expression took long, and the thread's time at which all of that turn have to be
    over; unset until one did."""

    if TYPE_CHECKING:  # what `Exchange` has
        authority: bytes
        backend_plan: BackendFacts | None
        bind: str
        client: Peer
        context: Services
        endpoint: EndpointFacts | None
        body: bytes | None
        buffer: BodyBuffer | None
        ended: bool
        has_body: bool
        grpc: Call | None
        listener: ListenerFacts | None
        method: bytes
        path: bytes
        peer: str
        plan: RouteFacts | None
        query: bytes
        replied: bool
        request: Head
        response: Head | None
        scheme: bytes
        started: float
        status: int
        target: bytes
        took: float
        version: bytes

        @property
        def is_for_agent(self) -> bool: ...

    attributes: dict[str, object] | None
    response_body: bytes | None

    # --- the request

    @property
    def request_method(self) -> str:
        return self.method.decode("latin-1")

    @property
    def request_scheme(self) -> str:
        return self.scheme.decode()

    @property
    def request_host(self) -> str:
        return self.authority.decode("latin-1")

    @property
    def request_path(self) -> str:
        return _text(self.path)

    @property
    def request_path_and_query(self) -> str:
        return _text(self.target)

    @property
    def request_uri(self) -> str:
        return _text(b"%b://%b%b" % (self.scheme, self.authority, self.target))

    @property
    def request_query(self) -> dict[bytes, bytes]:
        """The parameters of the query, read once for each query that the request has. Raises Unread, or TooMany when
        the answer is decided."""
        query = self.query
        known = getattr(self, "known_query", None)
        if known is None or known[0] is not query:
            try:
                known = self.known_query = query, parameters.read(query, self._rules().max_query_parameters)
            except TooMany as error:
                raise self._unread("TooManyParameters", error) from None
        return known[1]

    def _rules(self) -> HttpRules:
        return rules.DEFAULT if self.listener is None else self.listener.http

    def _unread(self, reason: str, error: TooMany) -> Exception:
        """The request is refused while it can be; to expressions of the response and the log there is no value."""
        return error if self._is_answered else Unread(reason, str(error))

    @property
    def _is_answered(self) -> bool:
        return self.replied or self.ended or self.response is not None

    @property
    def request_version(self) -> str:
        return self.version.decode()

    @property
    def request_headers(self) -> HeaderMap:
        head = self.request
        known = getattr(self, "known_headers", None)
        if known is None or known[0] is not head.block:
            known = self.known_headers = head.block, header_map(head)
        return known[1]

    def request_header(self, name: str) -> str | None:
        return header(self.request, name)

    @property
    def request_body(self) -> bytes | None:
        if self.body is not None:
            return self.body
        return None if self.has_body else b""

    @property
    def request_body_prefix(self) -> bytes | None:
        if self.body is None and self.buffer is not None:
            return self.buffer.beginning()
        return self.request_body

    @property
    def request_json(self) -> Any:
        return self._json("known_request", self.request_body, "request.body")

    @property
    def request_prefix_json(self) -> Any:
        return self._json("known_request", self.request_body_prefix, "request.bodyPrefix")

    @property
    def request_start_time(self) -> Timestamp:
        return self.timestamp(self.started)

    @property
    def request_end_time(self) -> Timestamp | None:
        took: float | None = getattr(self, "took", None)  # which is set at the end
        return None if took is None else self.timestamp(self.started + took)

    def timestamp(self, moment: float) -> Timestamp:
        """A moment of the monotonic clock as a time of day."""
        return Timestamp(int((time.time() - self.context.clock() + moment) * NANOSECONDS))

    # --- the response

    @property
    def response_code(self) -> int | None:
        return self.status or None  # 0: there is no response yet

    @property
    def response_headers(self) -> HeaderMap:
        return header_map(self.response) if self.response is not None else HeaderMap()

    def response_header(self, name: str) -> str | None:
        return header(self.response, name) if self.response is not None else None

    @property
    def response_body_prefix(self) -> bytes | None:
        return self.response_body

    @property
    def response_json(self) -> Any:
        return self._json("known_response", self.response_body, "response.body")

    @property
    def response_prefix_json(self) -> Any:
        return self._json("known_response", self.response_body_prefix, "response.bodyPrefix")

    def _json(self, slot: str, body: bytes | None, path: str) -> Any:
        """A body as JSON, parsed once for each body. Raises Unread, or a CelError."""
        if body is None:
            raise Fault(f"no such value: {path}")
        known: json_text.Read | None = getattr(self, slot, None)
        if known is None or known.text != body:
            from gatewright.cel.functions import json_text  # with the language: not before an expression asks for it

            known = json_text.read(body, self._rules().max_json_keys)
            setattr(self, slot, known)
        try:
            return known.result()
        except TooMany as error:
            raise self._unread("JsonTooLarge", error) from None

    def evaluations_end(self, now: float, seconds: float) -> float:
        """As `cel.budget.Shares`: all expressions that are evaluated in one turn of the loop have the time of one. The
        steps of a request and of its response wait where the same peers have filled the turn; what is asked beside them
        (the log, conditions of retries and of health) has no value then."""
        turns = self.context.turns
        known = getattr(self, "evaluations", None)
        if known is None or known[0] != turns.number:
            makers = self.makers()
            if self._is_answered and turns.is_full(*makers):
                return now
            known = self.evaluations = turns.compute(*makers), now + seconds
        return known[1]

    def makers(self) -> tuple[str, ...]:
        """The peers whose input expressions read now."""
        if self.response is None or self.endpoint is None:
            return (self.client.address,)
        return self.client.address, self.endpoint.label

    def cut_off(self, error: CelError) -> Exception:
        """As `cel.budget.Shares`. A request whose expressions take too long is refused, whatever they decide about:
        whoever sends what takes long to look at must not choose which of them fail."""
        return error if self._is_answered else Unread("ExpressionsTooCostly", str(error))

    def forget_json(self) -> None:
        """Let go of what was parsed of large bodies: responses may take long, and it is larger than its text."""
        for slot in ("known_request", "known_response"):
            known: json_text.Read | None = getattr(self, slot, None)
            if known is not None and len(known.text) > KEPT:
                delattr(self, slot)

    @property
    def response_grpc_status(self) -> int | None:
        if self.grpc is not None and self.grpc.status is not None:  # trailers said so, or we did
            return self.grpc.status
        text = self.response_header("grpc-status")
        return int(text) if text is not None and len(text) < _LONG_STATUS and text.isdecimal() else None

    # --- the connection

    @property
    def source_address(self) -> str:
        return self.peer

    @property
    def source_port(self) -> int:
        return self.client.port

    @property
    def source_raw_address(self) -> str:
        return self.client.raw_address or self.client.address

    @property
    def source_raw_port(self) -> int:
        return self.client.raw_port if self.client.raw_address else self.client.port

    @property
    def _client_names(self) -> Names | None:
        """Of a certificate that was verified: one that was not proves nothing, so nothing of it is to be read."""
        tls = self.client.tls
        return names_of(tls.certificate) if tls is not None and tls.is_proven else None

    @property
    def source_identity(self) -> dict[str, Any] | None:
        return None if self._workload(0) is None else self.whole("source.identity")

    @property
    def source_identity_trust_domain(self) -> str | None:
        return self._workload(0)

    @property
    def source_identity_namespace(self) -> str | None:
        return self._workload(1)

    @property
    def source_identity_service_account(self) -> str | None:
        return self._workload(2)

    def _workload(self, part: int) -> str | None:
        names = self._client_names
        workload = None if names is None else names.workload
        return None if workload is None else workload[part]

    @property
    def source_spiffe_id(self) -> str | None:
        names = self._client_names
        return None if names is None else names.spiffe_id

    @property
    def source_subject_alt_names(self) -> list[str] | None:
        names = self._client_names
        return None if names is None else list(names.alternatives)

    @property
    def source_issuer(self) -> str | None:
        return self._client_names.issuer if self._client_names is not None else None

    @property
    def source_subject(self) -> str | None:
        return self._client_names.subject if self._client_names is not None else None

    @property
    def source_subject_cn(self) -> str | None:
        return (self._client_names.common_name or None) if self._client_names is not None else None

    @property
    def source_certificate(self) -> str | None:
        return self._client_names.pem if self._client_names is not None else None

    @property
    def source_connect_headers(self) -> HeaderMap | None:
        made_by = self.client.connect
        return None if made_by is None else header_map(made_by)

    def source_connect_header(self, name: str) -> str | None:
        made_by = self.client.connect
        return None if made_by is None else header(made_by, name)

    @property
    def destination_hostname(self) -> str | None:
        """The server name of TLS."""
        tls = self.client.tls
        return (tls.sni.decode() or None) if tls is not None else None

    @property
    def destination_address(self) -> str:
        return str(self.client.local.rpartition(b":")[0].strip(b"[]").decode())

    @property
    def destination_port(self) -> int:
        port = self.client.local.rpartition(b":")[2]
        return int(port) if port.isdigit() else 0

    # --- the place

    @property
    def proxy_bind(self) -> str:
        return self.bind

    @property
    def proxy_gateway_namespace(self) -> str:
        return self.listener.gateway.partition("/")[0] if self.listener is not None else ""

    @property
    def proxy_gateway_name(self) -> str:
        return self.listener.gateway.partition("/")[2] if self.listener is not None else ""

    @property
    def proxy_listener_name(self) -> str:
        return self.listener.name if self.listener is not None else ""

    @property
    def proxy_route(self) -> dict[str, Any] | None:
        return self.whole("proxy.route") if self.plan is not None else None

    @property
    def proxy_route_namespace(self) -> str | None:
        return self.plan.key.split("/")[2] if self.plan is not None else None

    @property
    def proxy_route_name(self) -> str | None:
        return self.plan.key.split("/")[3] if self.plan is not None else None

    @property
    def proxy_route_kind(self) -> str | None:
        return self.plan.kind if self.plan is not None else None

    @property
    def proxy_route_rule(self) -> str | None:
        return (self.plan.rule or None) if self.plan is not None else None

    @property
    def env_pod_name(self) -> str:
        return POD_NAME

    @property
    def env_namespace(self) -> str:
        return POD_NAMESPACE or self.proxy_gateway_namespace

    @property
    def env_gateway(self) -> str:
        return self.proxy_gateway_name

    @property
    def backend(self) -> dict[str, Any] | None:
        return self.whole("backend") if self.backend_plan is not None else None

    @property
    def backend_name(self) -> str | None:
        return self.backend_plan.key.split("/", 2)[2] if self.backend_plan is not None else None

    @property
    def backend_type(self) -> str | None:
        if self.backend_plan is None:
            return None
        return "service" if self.backend_plan.key.startswith("backend/service/") else "static"

    @property
    def backend_protocol(self) -> str | None:
        if self.backend_plan is None:
            return None
        return "a2a" if self.backend_plan.is_agent else "http"

    # --- the call of an agent

    def _agent_call(self) -> AgentCall | None:
        """What is known of the call; while the request is judged it is read strictly, once for each path and body.
        Raises Unread."""
        if self.replied or self.backend_plan is not None or not self.is_for_agent:
            return self.agent_call
        body = self.request_body
        known = getattr(self, "known_agent_call", None)
        if known is None or known[0] is not self.path or known[1] is not body:
            known = self.known_agent_call = self.path, body, self._read_agent_call(body)
        self.agent_call = known[2]
        return known[2]

    def _read_agent_call(self, body: bytes | None) -> AgentCall:
        from dataplane.a2a import Unreadable  # not before an expression asks for it
        from dataplane.a2a.call import facts
        from dataplane.a2a.calls import read
        from gatewright.cel.functions import json_text

        asked = facts(self.method, self.path, self.query, self.request, body or b"")
        try:
            if body and body[0] > 1:  # no frame of gRPC
                json_text.limit(body, self._rules().max_json_keys)
            return read(asked)
        except TooMany as error:
            raise self._unread("JsonTooLarge", error) from None
        except Unreadable as error:
            raise Unread("AgentCallUnreadable", str(error)) from None

    @property
    def a2a(self) -> dict[str, Any] | None:
        return (self.whole("a2a") or None) if self._agent_call() is not None else None

    @property
    def a2a_method(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.method

    @property
    def a2a_binding(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.binding or None

    @property
    def a2a_skill(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.skill

    @property
    def a2a_context_id(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.context

    @property
    def a2a_task(self) -> dict[str, Any] | None:
        return (self.whole("a2a.task") or None) if self._agent_call() is not None else None

    @property
    def a2a_task_id(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.task

    @property
    def a2a_task_state(self) -> str | None:
        call = self._agent_call()
        return None if call is None else call.state

    @property
    def a2a_error_code(self) -> int | None:
        call = self._agent_call()
        return None if call is None else call.error

    # --- what policies left

    @property
    def jwt_raw_token(self) -> str | None:
        return _part_text(self, "jwt", "rawToken")

    @property
    def api_key_key(self) -> str | None:
        return _part_text(self, "apiKey", "key")

    @property
    def basic_auth_username(self) -> str | None:
        return _part_text(self, "basicAuth", "username")

    def whole(self, path: str) -> dict[str, Any]:
        """An object as a map of what is there of it."""
        found: dict[str, Any] = {}
        for row in CHILDREN[path]:
            value = getattr(self, row.attribute) if row.attribute else self.whole(row.path)
            if value is not None and value != {}:
                found[row.name] = value
        if BY_PATH[path].type is OPEN and self.attributes is not None:
            left: Any = self.attributes.get(path, {})
            found |= left
        return found

    def variables(self) -> dict[str, Any]:
        """All variables that are there."""
        return {
            row.name: value
            for row in CHILDREN[""]
            if (value := getattr(self, row.attribute) if row.attribute else self.whole(row.path)) not in (None, {})
        }

    def leave(self, path: str, value: object) -> None:
        """Leave a value for later expressions, under the path of its variable."""
        values = self.attributes
        if values is None:
            values = self.attributes = {}
        values[path] = value


def header_map(head: Head) -> HeaderMap:
    """All headers, for expressions that look at more than one by name."""
    return HeaderMap((name.decode(), _text(value)) for name, value in head.items())


def header(head: Head, name: str) -> str | None:
    """The value of a header by its name, those of a repeated one joined by ", "."""
    key = plain_name(name.encode("utf-8", "replace"))
    needle = b"\r\n" + key + b":"
    low = head.low
    p = low.find(needle)
    if p < 0:
        return None
    start = p + len(needle)
    end = low.find(b"\r\n", start)
    if low.find(needle, end) == -1:
        return _text(head.block[start:end].strip(b" \t"))
    return ", ".join(map(_text, head.get_all(key)))


def _text(value: bytes) -> str:
    """Header values and targets as text: UTF-8 where it is that, else each byte a character (RFC 9110 5.5)."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _part(x: Variables, path: str, name: str) -> Any:
    values: Any = None if x.attributes is None else x.attributes.get(path)
    return None if values is None else values.get(name)


def _part_text(x: Variables, path: str, name: str) -> str | None:
    found: str | None = _part(x, path, name)
    return found


def _left(path: str, empty: bool) -> property:
    """A variable that policies leave in `attributes`."""

    def read(x: Variables) -> Any:
        values = x.attributes
        found = None if values is None else values.get(path)
        return {} if found is None and empty else found

    return property(read)


def _absent(path: str) -> property:
    """A part of an object that a policy left whole."""
    parent, _, name = path.rpartition(".")
    return property(lambda x: _part(x, parent, name))


for _row in VARIABLES:
    if _row.attribute and not hasattr(Variables, _row.attribute):
        _empty = _row.type in (FREE, OPEN) and not _row.maybe
        _is_part = _row.parent and BY_PATH[_row.parent].type in (CLOSED, OPEN) and BY_PATH[_row.parent].maybe
        setattr(Variables, _row.attribute, _absent(_row.path) if _is_part else _left(_row.path, _empty))
