"""One request of a client, as far as it concerns all methods: who asks, in which session, what policies say of it."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, cast

from dataplane.backends.mcp.memory_queue import Claim
from dataplane.chain.replies import made
from dataplane.http.heads import Head
from dataplane.http.sse import Event, write
from dataplane.link.sources import source_of
from dataplane.mcp import errors, sessions, spellings
from dataplane.mcp.messages import Malformed
from dataplane.mcp.methods import METHODS
from dataplane.mcp.policies import MCP, NO_POLICIES, POLICY
from dataplane.telemetry.metric_rows.mcp import REQUESTS
from dataplane.tls.names import names_of
from gatewright.cel.values import Redacted

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.backends.mcp.typing import McpExchange
    from dataplane.backends.terminating.contract import Answer
    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import McpPlan
    from dataplane.mcp.policies import McpPolicies
    from dataplane.mcp.sessions import Session
    from dataplane.mcp.worker import Goodbye, Remembered

EVENTS: Final = b"content-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\nx-accel-buffering: no\r\n"
JSON_LINES: Final = b"content-type: application/json\r\n"

_OUTCOMES: Final = {"McpDenied": "denied", "McpRejected": "denied", "McpAnswerRefused": "failed"}
"""By reason of a reply of the gateway, for the metric."""


class Visit:
    """`out` takes the answer; `block`: header lines of the request."""

    def __init__(self, x: McpExchange, out: Answer, block: bytes, plan: McpPlan, policies: McpPolicies) -> None:
        self.x = x
        self.out = out
        self.plan = plan
        self.policies = policies
        self._block = block
        self._services = x.context.of_kind(MCP)
        self.memory = self._services.memory
        asked = self.memory.heads.asked(block)
        self.passing, self.lasting, (self.takes_stream, self.takes_json) = asked[:3]
        self.session_id, self._version, self.has_json = asked[3:]
        self.session: Session | None = None
        self.is_modern = False
        """It is of the revision without sessions."""
        self.is_idempotent = False
        """A server may get its message twice."""
        self.name_line = b""
        """Header that names the item to its server; b"": none."""
        self.is_counted = False
        """It brings a message, which a metric counts in the end."""
        self.is_answered = False
        """The client has all of an answer, of whatever kind."""
        self.farewell: Callable[[Visit, Goodbye | None], Goodbye | None] | None = None
        """Makes what ends the session at its servers once it is idle, of the one before; None: nothing does."""
        self.asking: Callable[[], None] | None = None
        """Called before a server is asked; None: not called."""
        self._claim: Claim | None = None
        self._remembered: Remembered | None = None
        self._owner: bytes | None = None
        self._described: dict[str, Any] = {}

    @property
    def head(self) -> Head:
        """Of the request."""
        return Head(self._block)

    @property
    def claim(self) -> Claim:
        """Of memory for answers that are read whole, as long as the request is served."""
        if self._claim is None:
            self._claim = Claim(self._services.answers, self.out.hold, self.x.peer)
        return self._claim

    @property
    def keys(self) -> tuple[str | bytes, ...]:
        """Whose shares the client draws on (`link/pools`): its address, and who it has proven to be."""
        caller, address = caller_of(self), source_of(self.x.peer)
        return (address, caller) if caller else (address,)

    @property
    def owner(self) -> bytes:
        """Backend and caller: what a session belongs to."""
        if self._owner is None:
            self._owner = self.x.backend_plan.key.encode() + b"\0" + caller_of(self)
        return self._owner

    @property
    def now(self) -> float:
        return self.x.context.wall_clock()

    def version(self) -> str:
        """The revision that the client names (`asked.Asked`)."""
        return self._version

    def new_session(self, hello: bytes) -> Session:
        if len(hello) > sessions.MAX_HELLO:
            hello = b"{}"  # it cannot be repeated: a server that forgets the client makes it begin anew
        return sessions.Session(os.urandom(8), int(self.now), hello, [])

    def open_session(self) -> Reply | None:
        """The session that the request names; otherwise why there is none."""
        text = self.session_id
        if text is None:
            return errors.refused("McpSessionMissing")
        context = self.x.context
        memory = self.memory
        found = memory.opened(text.decode("latin-1"), self._services.sealer, self.owner, self.now)
        if found is None or memory.is_over(found.number, context.clock()):
            return errors.refused("McpSessionUnknown")
        self.session = found
        self.enter()
        return None

    def enter(self) -> None:
        """The session is used, until `leave`."""
        session, context = self.session, self.x.context
        if session is None or self._remembered is not None:
            return
        memory = self.memory
        self._remembered = remembered = memory.enter(session.number, context.clock())
        if memory.ends_idle and self.farewell is not None:
            remembered.goodbye = self.farewell(self, remembered.goodbye)

    def leave(self) -> None:
        """This request is over."""
        remembered, self._remembered = self._remembered, None
        if remembered is not None and self.session is not None:
            context = self.x.context
            self.memory.leave(self.session.number, remembered, context.clock())

    def over(self) -> None:
        """This request is over, whatever has come of it."""
        if self.is_counted:
            self.is_counted = False
            self._count(_OUTCOMES.get(self.x.reason, "answered" if self.is_answered else "failed"))
        self.leave()
        if self._claim is not None:
            self._claim.over()

    # --- for expressions and logs

    def describe(self, method: str) -> None:
        self._described = {"methodName": method}
        if self.session is not None:
            self._described["sessionId"] = self.session.label
        self.x.leave("mcp", self._described)

    def item(self, kind: str, target: str, name: str, arguments: Any = None) -> None:
        """The item that is called, or in question."""
        key = "id" if kind == "task" else "name"
        part = {"target": target, key: name}
        if arguments is not None:
            part["arguments"] = arguments
        self.x.leave(f"mcp.{kind}", part)
        self._described[kind] = part

    def hides(self, kind: str, target: str, name: str) -> bool:
        """Whether rules refuse an item that a message names beside the one that is asked for, as a notice does. They
        see that one alone; the log goes on with what was asked for."""
        if not self.policies.rules:
            return False
        x, described, attributes = self.x, self._described, self.x.attributes
        self._described = {key: value for key, value in described.items() if not isinstance(value, dict)}
        x.attributes = {key: value for key, value in (attributes or {}).items() if not key.startswith("mcp.")}
        x.leave("mcp", self._described)
        try:
            return self.refuses(kind, target, name) is not None
        except Malformed:
            return True  # too long to be judged
        finally:
            self._described, x.attributes = described, attributes

    def refuses(self, kind: str, target: str, name: str, arguments: Any = None) -> str | None:
        """Why rules refuse an item, whichever way its server may read its name; None: they do not. Raises
        `Malformed`."""
        context: Any = self.x
        for each in spellings.spelled(kind, name):
            self.item(kind, target, each.name, arguments)
            denied = (self.policies.for_lenient if each.is_lenient else self.policies.for_calls)(context)
            if denied is not None:
                return denied
        return None

    def no_item(self, kind: str) -> None:
        """None is any more."""
        self._described.pop(kind, None)
        if self.x.attributes is not None:
            self.x.attributes.pop(f"mcp.{kind}", None)

    def _count(self, outcome: str) -> None:
        """For the metric, once for each message. Unknown methods are one."""
        described, target, tool = self._described, "", ""
        method = described["methodName"]
        for kind, item in described.items():
            if type(item) is dict:
                target = item["target"]
                tool = item["name"] if kind == "tool" and outcome != "denied" else ""
                break
        known = method in METHODS or method in ("initialize", "response")
        shown = method if known else "notification" if method.startswith("notifications/") else "other"
        self.x.context.recorder.count_for(self.x, REQUESTS, shown, target, tool, outcome)

    # --- answers

    def give(self, body: bytes, lines: bytes = b"") -> None:
        """A JSON-RPC message as the whole answer, in the form that the client takes."""
        if self.takes_json:
            self.out.whole(200, JSON_LINES + lines, body)
        else:
            event = write(Event(body, b"message"))
            self.out.whole(200, EVENTS + lines, event)

    def give_last(self, body: bytes) -> None:
        """A JSON-RPC message as the answer, or as the last event of one that has begun."""
        if not self.out.has_begun:
            self.give(body)
            return
        self.out.give(write(Event(body, b"message")))
        self.out.end()

    @property
    def is_judged(self) -> bool:
        """Rules or guardrails say what may be sent: it must mean the same to every reader."""
        return bool(self.policies.rules) or self.policies.guardrails is not None

    def unusable(self) -> Reply | None:
        """Why nothing may be served at all."""
        if self.policies.refused:
            return made("PolicyUnusable", self.policies.refused)
        if not self.plan.targets:
            return errors.refused("McpNoTargets")
        return None


def policies_of(x: McpExchange, plan: McpPlan) -> McpPolicies:
    """What policies of the backend and of the route say together."""
    of_route = cast("McpPolicies | None", x.policies.of_kind.get(POLICY))
    return (plan.policies or NO_POLICIES).over(of_route)


def caller_of(visit: Visit) -> bytes:
    """Identifies who the client has proven to be; b"" for anybody."""
    attributes = visit.x.attributes
    tls, workload = visit.x.client.tls, visit.x.client.workload
    if not attributes and tls is None and workload is None:
        return b""
    attributes = attributes or {}
    parts: list[object] = []
    claims: Any = attributes.get("jwt")
    if claims:
        lasting = {name: value for name, value in claims.items() if name not in _OF_ONE_TOKEN}
        parts += ["jwt", claims.get("iss"), claims["sub"] if "sub" in claims else sorted(lasting.items(), key=repr)]
    for path, name in (("basicAuth", "username"), ("apiKey", "key")):
        values: Any = attributes.get(path)
        value = None if not values else values.get(name)
        if value is not None:
            parts += [path, value.unredacted() if isinstance(value, Redacted) else value]
    if tls is not None and tls.certificate and tls.is_proven:
        parts += ["certificate", tls.certificate]
    if workload is not None:  # by its name: its certificates are short-lived
        parts += ["workload", names_of(workload.certificate).spiffe_id]
    return blake2b(repr(parts).encode(), digest_size=16).digest() if parts else b""


_OF_ONE_TOKEN: Final = frozenset({"exp", "iat", "nbf", "jti", "auth_time", "rawToken"})
"""Claims that the next token of the same caller has otherwise."""
