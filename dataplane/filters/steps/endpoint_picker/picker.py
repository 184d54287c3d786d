"""The endpoint picker of an InferencePool: a server that is asked by the same protocol which endpoint serves a request
(Gateway API Inference Extension, "Endpoint Picker Protocol").

A step of the backend, on each try: it sees what is sent there, with the whole body, and may change it. What it has
chosen is left for the kind of backend (`upstream/picked`). It sees the response too, and which endpoint gave it.

Who asks for an endpoint must get one of the pool: a choice that is none is refused in both failure modes, as is one
that differs between header and metadata. `failureMode: FailOpen` is for a picker that gives no answer at all.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final, cast

from dataplane.chain.ext_proc import content, messages
from dataplane.chain.ext_proc.asked import Asked
from dataplane.chain.ext_proc.half import NO_CHANGE, Half, finish
from dataplane.chain.ext_proc.modes import DUPLEX, Modes
from dataplane.chain.ext_proc.phases import RequestHalf, ResponseHalf
from dataplane.chain.replies import made
from dataplane.tls.client import NOTHING, security
from dataplane.upstream import picked
from dataplane.upstream.calls.stepped import CallExchange
from dataplane.upstream.settings import Settings, Tls

if TYPE_CHECKING:
    from dataplane.chain.ext_proc.session import Session
    from dataplane.chain.filter import Env
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange
    from dataplane.streams import Outlet
    from dataplane.table.plans import BackendPlan
    from dataplane.upstream.endpoint import Endpoint
    from gatewright.wire.external import ext_proc_pb2 as pb
    from gatewright.wire.v1 import traffic_pb2

FAILED: Final = "EndpointPickerFailed"
"""Reason code: the picker cannot be asked, or breaks its protocol."""
NO_MEMBER: Final = "EndpointNotInPool"
"""Reason code: what it chose is no endpoint of the pool."""
DESTINATION: Final = b"x-gateway-destination-endpoint"
"""Header, and key of the metadata, that names what was chosen: `ip:port`, or several in the order of preference."""
SERVED: Final = "x-gateway-destination-endpoint-served"
NAMESPACE: Final = "envoy.lb"
"""Of the metadata, in both directions."""
MOST_NAMED: Final = 64
"""Endpoints of one choice that are looked at."""


class Picker(Asked):
    """The picker of one pool."""

    failed_as = FAILED

    def __init__(self, name: str, config: traffic_pb2.EndpointPicker, env: Env) -> None:
        super().__init__(name, "the endpoint picker", config.backend, Modes(), env)
        self.fails_open = config.fail_open
        self._tls = _any_tls(env) if config.any_tls else None

    def plan(self, x: Exchange) -> BackendPlan:
        plan = cast("BackendPlan", super().plan(x))
        if self._tls is None or (plan.transport is not None and plan.transport.tls is not None):
            return plan
        return plan.topped(Settings(tls=self._tls), None)

    def request(self, x: Exchange) -> Awaitable[Reply | None]:
        x.request.remove(DESTINATION)  # a client has no say in it
        picked.forget(x)
        session = self.begun(x)
        return self._pick(x, session, Asking(session, self))

    async def _pick(self, x: Exchange, session: Session, half: Asking) -> Reply | None:
        reply = await half.run(x)
        if reply is not None:
            return reply
        named = _named(x, session)
        if named is None:
            return made(FAILED, f"{self.origin}: its header and its metadata name different endpoints")
        if not named:
            if half.is_open:
                return None  # any endpoint
            return made(FAILED, f"{self.origin}: it named no endpoint")
        found = _members(cast("BackendPlan", x.backend_plan), named)
        if not found:
            return made(NO_MEMBER, f"{self.origin}: it chose {', '.join(named)[:200]}")
        picked.leave(x, found)
        return None

    def response(self, x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        """Answers of our own are not shown; of calls, which no client waits for, their end is (`end`)."""
        session = self.session(x)
        if session is None or session.x is not x or x.response is None or x.reason or isinstance(x, CallExchange):
            return None
        if not session.is_open:
            return None if self.fails_open else session.failure
        return Served(session, self).run(x)


def _any_tls(env: Env) -> Tls:
    """Pickers make a certificate for themselves at their start, unless they are given one."""
    return Tls(security(env.kept, verifies=NOTHING), verifies_names=False)


def _named(x: Exchange, session: Session) -> tuple[str, ...] | None:
    """What was chosen, in the order of preference; () where nothing was, None where two things were."""
    of_metadata: Any = session.metadata.get(NAMESPACE)
    said = of_metadata.get(DESTINATION.decode()) if isinstance(of_metadata, dict) else None
    written = x.request.get(DESTINATION)
    header = None if written is None else written.decode("latin-1")
    if said is not None and not isinstance(said, str):
        return None
    if said and header and _listed(said) != _listed(header):
        return None
    return _listed(said or header or "")


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name for each in text.split(",", MOST_NAMED)[:MOST_NAMED] if (name := each.strip()))


def _members(plan: BackendPlan, named: tuple[str, ...]) -> tuple[Endpoint, ...]:
    """Those of the pool among them."""
    members = {each.label: each for each in (*plan.endpoints, *plan.far)}
    return tuple(members[name] for name in dict.fromkeys(named) if name in members)


class _Opening(Half):
    """A half that goes on as it came where the picker gives no answer and may fail open."""

    def __init__(self, session: Session, picker: Picker) -> None:
        super().__init__(session, picker.env.make_future, made(FAILED))
        self._fails_open = picker.fails_open
        self.is_open = False
        """It goes on without an answer."""

    @property
    def failure(self) -> Reply | None:
        return None if self.is_open else super().failure

    def stage(self, x: Exchange, outlet: Outlet) -> content.Content | None:
        way = self.way
        if not self._fails_open or way.body != DUPLEX:
            return super().stage(x, outlet)
        self._content = content.Kept(self._session, self.direction, outlet, way.trailers)
        return self._content

    def over(self, reply: Reply) -> None:
        if not (self._fails_open and reply.reason == FAILED and self._opens()):
            super().over(reply)

    def _opens(self) -> bool:
        if isinstance(self._content, content.Kept) and not self._content.let_pass():
            return False
        self.is_open = True
        finish(self._headers, NO_CHANGE)
        return True


class Asking(_Opening, RequestHalf):
    """The request."""


class Served(_Opening, ResponseHalf):
    """The response, with who gave it."""

    def shown(self, x: Exchange, end: bool) -> pb.ProcessingRequest:
        message = messages.response_headers(x, end)
        if x.endpoint is not None:
            message.metadata_context.filter_metadata[NAMESPACE].update({SERVED: x.endpoint.label})
        return message
