"""The life of an exchange: what acts on the data of `dataplane/exchange`.

A downstream carrier makes one for each request, sets the request's fields and calls `start`; from then on the exchange
is the consumer of its upstream and the owner of its answer, until it is over. It knows no protocol and no socket: its
two carriers frame. Its methods are in the files of this package, by what they are about; this is their table.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dataplane.carriers import Downstream
from dataplane.exchange import Exchange
from dataplane.proxy import ends, times
from dataplane.proxy.attempt import attempts
from dataplane.proxy.request import entry, request_body
from dataplane.proxy.response import own_answers, response
from dataplane.proxy.steps import request_stages, response_stages
from dataplane.proxy.steps.waiting import work as begin_work
from dataplane.upstream.versions import is_grpc

if TYPE_CHECKING:
    from dataplane.carriers import Upstream
    from dataplane.chain.filter import Filter
    from dataplane.proxy.attempt.mirrors import Mirroring
    from dataplane.proxy.attempt.replay import BodyCopy
    from dataplane.proxy.attempt.retries import Retries
    from dataplane.proxy.context import Context
    from dataplane.proxy.request.admission import Bounds
    from dataplane.proxy.response.delayed_responses import DelayedResponse
    from dataplane.proxy.steps.request_stages import Inlet
    from dataplane.proxy.steps.waiting import Waits
    from dataplane.table.binds import ListenerPlan
    from dataplane.table.plans import BackendPlan, RoutePlan, RoutePolicies, Target
    from dataplane.table.table import Table
    from dataplane.upstream.endpoint import Endpoint
    from dataplane.upstream.limits import Tally
    from dataplane.upstream.outgoing import Outgoing

log = logging.getLogger("dataplane.proxy")


class ActiveExchange(Exchange):
    """`dataplane.carriers.Carried`, `Consumer` and `upstream.endpoint.Lease` in one object."""

    __slots__ = ()

    # What the types of the data do not say to those below the tables.
    down: Downstream
    context: Context
    table: Table
    listener: ListenerPlan
    plan: RoutePlan
    policies: RoutePolicies
    target_plan: Target
    waiting: Waits | None
    installing: Filter
    backend_plan: BackendPlan
    endpoint: Endpoint | None
    up: Upstream | None
    counted: Tally | None
    outgoing: Outgoing  # the present try, where its backend has finishers; else not there
    retries: Retries | None
    body_copy: BodyCopy | None
    mirroring: Mirroring | None
    delayed_response: DelayedResponse | None
    inlet: Inlet | None
    bounds: Bounds | None

    # --- called by the downstream carrier (`carriers.Carried`)

    expect = request_body.expect
    start = entry.start
    downstream_content = request_body.downstream_content
    downstream_whole = request_body.downstream_whole
    downstream_trailers = request_body.downstream_trailers
    downstream_blocked = response.downstream_blocked
    downstream_drained = response.downstream_drained
    downstream_gone = ends.abandon
    wake = times.wake

    # --- called by the upstream carrier (`carriers.Consumer`) and its lease

    @property
    def never_indexed(self) -> frozenset[bytes]:
        """As `carriers.Consumer.never_indexed`."""
        return self.down.never_indexed

    upstream_never_indexed = response.upstream_never_indexed
    upstream_head = response.upstream_head
    upstream_interim = response.upstream_interim
    upstream_content = response.upstream_content
    upstream_trailers = response.upstream_trailers
    upstream_lost = response.upstream_lost
    upstream_blocked = request_body.upstream_blocked
    upstream_drained = request_body.upstream_drained
    lease_ready = attempts.lease_ready
    lease_again = attempts.lease_again
    lease_failed = attempts.lease_failed

    @property
    def is_grpc(self) -> bool:
        return self.grpc is not None and is_grpc(self.request.low)  # a step may have changed what it says

    @property
    def is_for_agent(self) -> bool:
        backends, plan = self.table.backends, self.plan
        found = () if plan is None else [backends.get(target.backend) for target in plan.targets]
        return any(backend is not None and backend.application for backend in found)

    # --- called by steps and within this package

    replace_body = request_body.replace_body
    stream_request = request_stages.stream_request
    stream_response = response_stages.stream_response
    work = begin_work
    onward = request_body.onward
    onward_trailers = request_body.onward_trailers
    invite = request_body.invite
    pace = request_body.pace
    reply = own_answers.reply
    failed = own_answers.failed
    give_up = own_answers.give_up
    complete = ends.complete
    abandon = ends.abandon
    unclaim = ends.unclaim
