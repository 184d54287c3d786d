"""What an endpoint answers, on its way to the client: each part as the upstream carrier reports it.

Without response steps it passes to the downstream carrier at once. Responses that wait for steps are in
`delayed_responses`, what follows a 101 in `tunnel`, our own answers in `own_answers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http import dates
from dataplane.http.heads import Head
from dataplane.http.statuses import SWITCHING
from dataplane.proxy import grpc_calls
from dataplane.proxy.attempt import attempts
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.response import delayed_responses, tunnel
from dataplane.proxy.steps.response_steps import BACKEND
from dataplane.upstream import balance, lease

if TYPE_CHECKING:
    from dataplane.http.messages import ResponseHead
    from dataplane.proxy.active import ActiveExchange


def begins(x: ActiveExchange, head: ResponseHead, first: bytes, end: bool) -> None:
    """As `carriers.Consumer.upstream_head`."""
    endpoint = x.endpoint
    if x.leased:
        x.leased = False
        assert endpoint is not None  # it was leased
        endpoint.pending -= 1
        x.attempt_deadline = NEVER
        backend = x.backend_plan
        if backend.rule_state is not None or head.status >= 500 or endpoint.health != 1.0:
            lease.answered(backend, endpoint, head, x)
    if end:
        x.up = None  # the carrier has given it back
    retries = x.retries
    if retries is not None and attempts.refuses(x, head):
        return  # it is tried again
    if x.grpc is not None:
        grpc_calls.begins(x.grpc, head, end)
    if x.resendable is not None:
        x.resendable = None
        if not x.attempt and endpoint is not None:  # sent in one piece: the client's own pace is not in the figure
            balance.observe(endpoint, x.context.clock() - x.started)
    status = x.status = head.status
    down = x.down
    if not end and down.is_blocked:
        x.up.pause()  # type: ignore[union-attr]  # it has more to say
    if status == SWITCHING:
        if tunnel.is_wanted(x, head):
            x.response = Head(head.block, head.low)
            delayed_responses.respond(x, head, first, end)
        return
    route, target, gateway = x.policies.chain.response, x.target_plan.chain.response, x.listener.chain.response
    steps = x.backend_plan.steps if x.stage == BACKEND else None
    own = None if steps is None else steps.response
    undecided = retries is not None and not retries.decided
    block, low = head.block, head.low
    if not head.is_dated:
        block, low = dates.dated(head), None
    if route is None and target is None and gateway is None and own is None and not undecided:
        telemetry = x.listener.telemetry
        if telemetry is not None and telemetry.reads_headers:
            x.response = Head(block, low)
        x.replied = True
        x.response_bytes = len(first)
        down.head(head.line, block, head.length, first, end)
        if end:
            x.complete()
        elif head.length < 0 and x.up is not None and x.grpc is None:  # a call's trailers are looked at
            down.join(x.up)
        return
    x.response = Head(block, low)
    reads = x.policies.chain.response_body or x.target_plan.chain.response_body or x.listener.chain.response_body
    if reads or undecided or (steps is not None and steps.response_body):
        delayed_responses.buffer(x, head, first, end)
    else:
        delayed_responses.respond(x, head, first, end)


def received(x: ActiveExchange, data: bytes, end: bool) -> None:
    """As `carriers.Consumer.upstream_content`."""
    if x.delayed_response is not None:
        delayed_responses.keep(x, x.delayed_response, data, end)
        return
    x.response_bytes += len(data)
    if end and x.tunnel:
        if data:
            x.down.content(data, False)
        tunnel.endpoint_ended(x)
        return
    x.down.content(data, end)
    if end:
        x.complete()


def received_trailers(x: ActiveExchange, lines: bytes) -> None:
    """As `carriers.Consumer.upstream_trailers`."""
    grpc_calls.ended(x, lines)
    delayed = x.delayed_response
    if delayed is not None:
        delayed.trailers = lines
        delayed_responses.keep(x, delayed, b"", True)
        return
    x.down.trailers(lines)
    x.complete()


def lost(x: ActiveExchange, cause: str, stale: bool) -> None:
    """As `carriers.Consumer.upstream_lost`."""
    if x.delayed_response is not None:
        if x.waiting is not None and not x.delayed_response.is_growing and not x.replied:
            x.waiting.cancel()  # its steps
        delayed_responses.drop(x)
    if x.tunnel and cause == "closed":  # in good order: so goes the client's side, once it has what is here
        x.complete()
    elif x.replied:
        x.up = None
        x.give_up("UpstreamFailed", cause)
    else:
        attempts.lost(x, cause, stale)


# --- flow control towards the endpoint's sending


def pause(x: ActiveExchange) -> None:
    """As `carriers.Carried.downstream_blocked`."""
    delayed = x.delayed_response
    if delayed is not None and delayed.stages is not None:
        delayed.stages.block()
    elif x.up is not None and (delayed is None or not delayed.is_growing):
        x.up.pause()


def resume(x: ActiveExchange) -> None:
    """As `carriers.Carried.downstream_drained`."""
    delayed = x.delayed_response
    if delayed is None:
        if x.up is not None:
            x.up.resume()
    elif delayed.stages is not None and x.replied:
        delayed.stages.unblock()
