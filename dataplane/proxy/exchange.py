"""The life of an exchange, as a table: what its carriers, its lease and its steps call, and the function that does it.

A downstream carrier makes one for each request, sets the request's fields and calls `start`; from then on the exchange
is the consumer of its upstream and the owner of its answer, until it is over. It knows no protocol and no socket: its
two carriers frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http.grpc import UNREAD
from dataplane.proxy import ends, times
from dataplane.proxy.active import ActiveExchange
from dataplane.proxy.attempt import attempts
from dataplane.proxy.request import entry, request_body
from dataplane.proxy.response import own_answers, upstream_answers
from dataplane.proxy.steps import request_stages, response_stages, waiting
from dataplane.upstream.versions import is_grpc

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine
    from typing import Any

    from dataplane.carriers import Upstream
    from dataplane.chain.reply import Reply
    from dataplane.exchange import StreamHook
    from dataplane.http.messages import ResponseHead
    from dataplane.table.plans import BackendPlan


class CarriedExchange(ActiveExchange):
    """`dataplane.carriers.Carried`, `Consumer` and `upstream.endpoint.Lease` in one object. Each method is as its
    protocol has it."""

    __slots__ = ()

    # --- called by the downstream carrier (`carriers.Carried`)

    def expect(self, length: int, kind: int = UNREAD) -> None:
        request_body.expect(self, length, kind)

    def start(self) -> None:
        entry.start(self)

    def downstream_content(self, data: bytes, end: bool) -> None:
        request_body.received(self, data, end)

    def downstream_whole(self, data: bytes) -> None:
        request_body.received_whole(self, data)

    def downstream_trailers(self, lines: bytes) -> None:
        request_body.received_trailers(self, lines)

    def downstream_blocked(self) -> None:
        upstream_answers.pause(self)

    def downstream_drained(self) -> None:
        upstream_answers.resume(self)

    def downstream_gone(self, reason: str) -> None:
        ends.abandon(self, reason)

    def wake(self, now: float) -> float:
        return times.wake(self, now)

    # --- called by the upstream carrier (`carriers.Consumer`)

    @property
    def never_indexed(self) -> frozenset[bytes]:
        names, plan = self.down.never_indexed, self.backend_plan
        return names if plan is None or plan.finishers is None else names | self.outgoing.secrets

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None:
        """They are never less than the response has that goes on, and may be more: of tries that another one took the
        place of, which does no harm."""
        self.down.never_index(names)

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        upstream_answers.begins(self, head, first, end)

    def upstream_interim(self, head: ResponseHead) -> None:
        self.down.interim(head.line, head.block)

    def upstream_content(self, data: bytes, end: bool) -> None:
        upstream_answers.received(self, data, end)

    def upstream_trailers(self, lines: bytes) -> None:
        upstream_answers.received_trailers(self, lines)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        upstream_answers.lost(self, cause, stale)

    def upstream_blocked(self) -> None:
        request_body.block(self)

    def upstream_drained(self) -> None:
        request_body.unblock(self)

    # --- called by its lease (`upstream.endpoint.Lease`)

    @property
    def is_grpc(self) -> bool:
        return self.grpc is not None and is_grpc(self.request.low)  # a step may have changed what it says

    def lease_ready(self, up: Upstream) -> None:
        attempts.send(self, up)

    def lease_again(self, up: Upstream) -> None:
        attempts.send_again(self, up)

    def leads_to(self, plan: BackendPlan) -> None:
        attempts.toward(self, plan)

    def lease_failed(self, cause: str, detail: str, others: bool = False) -> None:
        attempts.no_carrier(self, cause, detail)

    # --- called by steps and kinds of backends (`dataplane.exchange.Exchange`)

    @property
    def is_for_agent(self) -> bool:
        backends, plan = self.table.backends, self.plan
        found = () if plan is None else [backends.get(target.backend) for target in plan.targets]
        return any(backend is not None and backend.application for backend in found)

    def replace_body(self, data: bytes) -> None:
        request_body.replace(self, data)

    def stream_request(self, hook: StreamHook) -> Reply | None:
        return request_stages.install(self, hook)

    def stream_response(self, hook: StreamHook) -> Awaitable[Reply | None] | Reply | None:
        return response_stages.install(self, hook)

    def work(self, work: Coroutine[Any, Any, Reply | None]) -> waiting.Steps:
        return waiting.work(self, work)

    def pace(self) -> None:
        request_body.pace(self)

    # --- called from anywhere (`ActiveExchange`)

    def reply(self, reply: Reply) -> None:
        own_answers.reply(self, reply)

    def failed(self, error: Exception) -> None:
        own_answers.failed(self, error)

    def give_up(self, reason: str, detail: str = "") -> None:
        own_answers.give_up(self, reason, detail)

    def complete(self) -> None:
        ends.complete(self)

    def abandon(self, reason: str) -> None:
        ends.abandon(self, reason)
