"""Which layers there are, as rows: the first stands nearest to the carrier."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from dataplane.http.grpc import WEB, WEB_TEXT
from dataplane.proxy.layers import a2a
from dataplane.proxy.layers.a2a import AgentCall
from dataplane.proxy.layers.grpc_web import WebCall
from dataplane.proxy.layers.layer import Layer

if TYPE_CHECKING:
    from dataplane.carriers import Upstream
    from dataplane.chain.reply import Reply
    from dataplane.proxy.active import ActiveExchange


class LayerRow(NamedTuple):
    """`reason`: why at this place. `concerns`: whether a try, which `up` carries, has it."""

    reason: str
    concerns: Callable[[ActiveExchange, Upstream], bool]
    over: Callable[[ActiveExchange, Upstream], Upstream]
    refuses: Callable[[ActiveExchange], Reply | None] | None = None
    """Asked before each try: an answer where nothing may be sent. None: there is nothing to ask."""
    changes_content: Callable[[ActiveExchange], bool] | None = None
    """Whether it may send other content than the request has, with some carrier. None: it does not."""


def _is_web_call(x: ActiveExchange, up: Upstream) -> bool:
    """A client of gRPC-Web, and an endpoint of gRPC: one of HTTP/1.1 may speak as the client does."""
    return x.grpc is not None and x.grpc.kind >= WEB and up.is_shared and x.has_body


def _is_text(x: ActiveExchange) -> bool:
    return x.grpc is not None and x.grpc.kind == WEB_TEXT


def _is_for_agent(x: ActiveExchange, up: Upstream) -> bool:
    return x.backend_plan.application == a2a.APPLICATION


def _is_elsewhere(x: ActiveExchange, up: Upstream) -> bool:
    """A finisher of the backend has changed the target, for the endpoint alone: the log has the request's."""
    return x.backend_plan.finishers is not None and x.outgoing.target != x.target


def _elsewhere(x: ActiveExchange, up: Upstream) -> Layer:
    layer = Layer(x, up)
    layer.target = x.outgoing.target
    return layer


LAYERS: Final = (
    LayerRow("what is finished leaves as it is", _is_elsewhere, _elsewhere),
    LayerRow("the agent's own words are read, not those of a translation", _is_for_agent, AgentCall, a2a.refuses),
    LayerRow("what leaves is gRPC's, whatever else reads the call", _is_web_call, WebCall, changes_content=_is_text),
)


def over(x: ActiveExchange, up: Upstream) -> Upstream:
    """What carries this try for `x`: `up`, with the layers that concern it."""
    for row in LAYERS:
        if row.concerns(x, up):
            up = x.up = row.over(x, up)
    return up


def may_change_content(x: ActiveExchange) -> bool:
    """Whether what is sent may be other content than the request's."""
    return any(row.changes_content is not None and row.changes_content(x) for row in LAYERS)


def refusal(x: ActiveExchange) -> Reply | None:
    """An answer to a request that must not be sent to `x.backend_plan`."""
    for row in LAYERS:
        if row.refuses is not None:
            reply = row.refuses(x)
            if reply is not None:
                return reply
    return None
