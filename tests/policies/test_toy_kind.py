"""A kind of backend that is only here: two parts with policies of their own, of which one may have a finisher that
waits, one stream of events made of a call to each, a policy, log fields and a metric of its own. The proof that a kind
is a package and one row in each table.

A row of the kinds above the proxy, of how they become wire, of the kinds of the proxy, of the registry of policies, of
log fields and of metrics is all that stands outside of this file. It comes under fields that there are (`mcp`, with its
policy `backend_mcp`); a real kind adds fields and models to the API and messages to the wire (docs/architecture.md,
"Adding a kind"), and reason codes to `chain/replies`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from dataplane.backends.registry import KINDS
from dataplane.backends.terminating.terminator import Terminator
from dataplane.chain.calls import FOR_EVER, CallFailed, CallRequest
from dataplane.chain.filter import OF_KIND, STEP, Env, Filter, Refused, Row
from dataplane.chain.streaming import transforming
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from dataplane.http.sse import Event, EventReader, write
from dataplane.mcp.hearing import Signal
from dataplane.proxy.exchange import CarriedExchange
from dataplane.telemetry.log_field import Field, Group
from dataplane.telemetry.log_rows.registry import GROUPS
from dataplane.telemetry.metric import Metric
from dataplane.telemetry.metric_table import METRICS
from dataplane.upstream import kinds
from dataplane.upstream.endpoint import Lease
from dataplane.upstream.lease import BackendPlan, Leases
from dataplane.upstream.outgoing import Outgoing, Unfinished
from dataplane.upstream.parts import Part, plan_of
from gatewright.api.backend.mcp_targets import MCPBackend
from gatewright.api.checks.backend_kinds import KINDS as KINDS_ABOVE
from gatewright.api.checks.backend_kinds import BackendKind, Parts
from gatewright.api.lower.kinds.kind import BackendReferences, Kind, Lowered, Policies
from gatewright.api.lower.kinds.registry import ROWS as LOWERINGS
from gatewright.kept_errors import kept
from gatewright.wire.v1 import backend_pb2, mcp_pb2
from gatewright.wire.v1.resource_pb2 import Resource
from tests.carriers import Answer, Carrier, Request, Response, Run
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.web_objects import CLASS
from tests.unit.translate import golden

FIELD, POLICY = "mcp", "backend_mcp"
"""Fields of the wire's Backend and Policy that it stands in for."""

TEXT = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: joined
      matches: [{path: {type: PathPrefix, value: /joined}}]
      policies: {headerModifiers: {request: {set: [{name: x-a, value: '1'}]}}, timeouts: {request: 60s}ROUTE}
      backends:
      - mcp:
          targets:
          - {name: one, static: {host: 127.0.0.1, port: 9000ONE}}
          - {name: two, static: {host: 127.0.0.2, port: 9000}}
        policies: {OWN}
"""

# --- what comes with the kind: log fields, a metric, a policy

EVENTS = "toy_events_total"
METRIC = Metric(EVENTS, "counter", "Events, by part", ("part",), 8)
NOTES = "toy"


def _events(x: Exchange, took: float) -> int:
    return cast("dict[str, dict[str, int]]", x.attributes)[NOTES]["events"]


GROUP = Group(
    lambda x: x.attributes is not None and NOTES in x.attributes, (Field("toy.events", "how many were sent", _events),)
)


@dataclass(frozen=True)
class Most:
    """The policy: how many events a client gets."""

    events: int
    refused: str = ""


def build(config: mcp_pb2.BackendMcp, env: Env) -> Most:
    """One number is enough for a toy: that of another setting."""
    if config.keep_alive_ms % 1000:
        raise Refused("keepAlive: whole seconds")
    return Most(config.keep_alive_ms // 1000)


ROW = Row(
    POLICY,
    build,
    OF_KIND,
    "asked by the kind, of each event",
    refuses=True,
    merged=lambda policies, best: best,
    closed=lambda why: Most(0, why),
)


# --- the kind


@dataclass(frozen=True)
class Plan:
    """`BackendPlan.of_kind`."""

    parts: tuple[Part, ...]
    most: Most | None


class Joining(kinds.Row):
    """`kinds.Kind`."""

    name, policy = FIELD, POLICY

    def __init__(self) -> None:
        self.cleaned = 0
        self.cleanups: list[Any] | None = None
        """What cleanups wait for; None: they do not."""

    def parts(self, message: backend_pb2.McpBackend) -> Sequence[Part]:
        return [Part(each.name, each.backend) for each in message.targets]

    def plan(self, message: backend_pb2.McpBackend, parts: Sequence[Part], policies: object) -> Plan:
        return Plan(tuple(parts), cast("Most | None", policies))

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        assert isinstance(holder, CarriedExchange)
        made = cast("Plan", plan.of_kind)
        most = made.most or cast("Most | None", holder.policies.of_kind.get(POLICY))
        if most is not None and most.refused:
            holder.lease_failed("refused", f"{plan.key}: {most.refused}")
            return
        holder.up = Terminator(holder, Joined(self, holder, made.parts, most).serve)
        holder.lease_ready(holder.up)

    async def cleanup(self) -> None:
        if self.cleanups is not None:
            self.cleanups.append(self.make_future())
            await self.cleanups[-1]
        self.cleaned += 1

    make_future: Callable[[], Any]


# --- above the proxy: what the API knows of it, and how it becomes wire


class Lowering(Kind):
    """`lower/kinds.Kind`."""

    facts = KINDS_ABOVE[FIELD]._replace(
        what="parts that are joined", parts=Parts("part", "targets", "targets[].static", "BackendSimple")
    )

    def lowered(self, model: MCPBackend, policies: Policies, references: BackendReferences) -> Lowered:
        parts, leads = {}, []
        shared = {field: policy for field, policy in policies.items() if field != POLICY}
        for index, target in enumerate(model.targets):
            assert target.static is not None
            path, static = ("targets", index, "static"), target.static
            if static.host is None:
                key = references.named(target.name, static.backend_ref, static.port, path)
            else:
                own = references.policies(target.name, static.policies, (*path, "policies"))
                address = backend_pb2.StaticBackend(host=static.host, port=static.port)
                parts[target.name] = backend_pb2.Backend(static=address, policies={**shared, **own}.values())
                key = references.part(target.name)
            leads.append((target.name, key))
        message = backend_pb2.McpBackend(targets=[backend_pb2.McpTarget(name=name, backend=key) for name, key in leads])
        warning = "one part joins nothing" if len(leads) == 1 else ""
        backend = backend_pb2.Backend(mcp=message, policies=policies.values())
        return Lowered(backend, parts, tuple(leads), tuple(name for name, _ in leads), warning)


@contextmanager
def above_the_proxy() -> Iterator[pytest.MonkeyPatch]:
    """With its rows in the tables."""
    with pytest.MonkeyPatch.context() as tables:
        row = Lowering()
        tables.setitem(cast("dict[str, BackendKind]", KINDS_ABOVE), FIELD, row.facts)
        tables.setitem(cast("dict[str, Kind]", LOWERINGS), FIELD, row)
        yield tables


class Joined:
    """What serves one request."""

    def __init__(self, kind: Joining, x: CarriedExchange, of: tuple[Part, ...], most: Most | None) -> None:
        self.kind, self.x, self.parts, self.most = kind, x, of, most
        self.notes = {"events": 0}
        x.leave(NOTES, self.notes)
        self.left = len(of)
        self.failure: CallFailed | None = None
        self.changed = Signal(x.context.make_future)

    async def serve(self, out: Terminator) -> None:
        works = [self.x.work(self.follow(out, part)) for part in self.parts]
        try:
            while self.left and self.failure is None:
                await self.changed.wait()
        finally:
            for each in works:
                each.cancel()
            await self.kind.cleanup()
        if self.failure is None:
            out.end()
        else:
            out.lost()

    async def follow(self, out: Terminator, part: Part) -> None:
        calls = self.x.context.calls
        name = part.name.encode()
        plan = plan_of(self.x.table, part, self.x.policies, calls.leases)
        call = calls.open(plan, CallRequest(b"GET", b"/part", b"part"), x=self.x, head_within=FOR_EVER)
        try:
            while data := await call.receive():
                self.x.context.recorder.count(EVENTS, part.name)
                self.event(out, Event(data, name))
                await out.ready()
        except CallFailed as failed:
            if failed.cause != "timeout":
                self.failure = kept(failed)
            else:
                self.event(out, Event(b"late", name))
        finally:
            call.cancel()
            self.left -= 1
            self.changed.set()

    def event(self, out: Terminator, event: Event) -> None:
        if self.most is not None and self.notes["events"] >= self.most.events:
            return
        self.notes["events"] += 1
        if not out.has_begun:
            out.head(200, b"content-type: text/event-stream\r\n")
        out.give(write(event))


class Token:
    """Finishes what is sent to a part: with a token that it waits for."""

    needs_body = False

    def __init__(self) -> None:
        self.make_future: Callable[[], Any]
        self.waiting: list[Any] = []
        self.left = 0
        """How often nobody wanted it any more."""

    async def finish(self, out: Outgoing) -> None:
        future = self.make_future()
        self.waiting.append(future)
        try:
            token = await future
        except GeneratorExit:
            self.left += 1
            raise
        if not token:
            raise Unfinished("BackendAuthFailed", "no token")
        out.head.set(b"x-token", token)

    def come(self, token: bytes) -> None:
        """It is here; b"": it will not come."""
        for each in self.waiting:
            each.set_result(token)


class World:
    """A proxy with that kind, and a client that asked it for something."""

    def __init__(
        self,
        carrier: Carrier,
        rows: Sequence[Row] = ROWS,
        route: str = "",
        own: str = "",
        one: str = "",
        resources: Iterable[bytes] = (),
        token: Token | None = None,
    ) -> None:
        """`resources`: in place of the file's; `token`: finishes what is sent to part one."""
        text = TEXT.replace("ROUTE", route).replace("OWN", own).replace("ONE", one)
        with above_the_proxy() as tables:
            self.kind = Joining()
            tables.setattr(MemoryProxy, "kinds", {**KINDS, FIELD: self.kind})
            tables.setattr(MemoryProxy, "log_groups", (*GROUPS, GROUP))
            tables.setattr(MemoryProxy, "metric_rows", (*METRICS, METRIC))
            self.run: Run = carrier.proxy(text, rows=tuple(ROW if row.name == POLICY else row for row in rows))
        if resources:
            self.run.memory.take(map(Resource.FromString, resources))
        self.kind.make_future = self.run.memory.context.make_future
        if token is not None:
            token.make_future = self.kind.make_future
            (plan,) = [
                each for key, each in self.run.memory.applier.current.table.backends.items() if key[-4:] == "/one"
            ]
            plan.finishers = (token,)
        self.asked: Conversation = self.run.send(Request("GET", "/joined"))

    @property
    def one(self) -> Arrival:
        return self.run.arrivals[0]

    @property
    def two(self) -> Arrival:
        return self.run.arrivals[1]

    def begin(self) -> tuple[Arrival, Arrival]:
        for part in (self.one, self.two):
            part.head(Response(200))
        return self.one, self.two

    def counted(self) -> dict[tuple[str, ...], int]:
        """Events by part, as the agent would read them."""
        found = self.run.memory.metrics.series()
        return {series.labels: numbers[0] for series, numbers in found if series.metric is METRIC}


OBJECTS = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: default}
spec: {gatewayClassName: gatewright, listeners: [{name: http, port: 8080, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: default}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: both}]}]
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: both, namespace: default}
spec:
  mcp: {targets: TARGETS}
  policies: OWN
"""
)
ONE, TWO = "{name: one, static: {host: 127.0.0.1, port: 9000}}", "{name: two, static: {host: 127.0.0.2, port: 9000}}"


def of_objects(targets: str, *others: str, own: str = "{}") -> golden.World:
    """A control plane with that kind, and these objects."""
    with above_the_proxy():
        made = golden.World()
        made.put("---".join((OBJECTS.replace("TARGETS", targets).replace("OWN", own), *others)))
    return made


def events(answer: Answer) -> list[tuple[bytes, bytes]]:
    return [(event.type, event.data) for event in EventReader().feed(answer.body)]


def test_two_answers_are_joined_to_one_stream_of_events(carrier: Carrier) -> None:
    world = World(carrier)
    one, two = world.begin()
    assert {each.endpoint.address for each in (one, two)} == {"127.0.0.1", "127.0.0.2"}
    one.content(b"a")
    assert events(world.asked.answer) == [(b"one", b"a")]
    two.content(b"b")
    two.end()
    one.content(b"c\nd")
    assert not world.asked.answer.ended
    one.end()
    assert events(world.asked.answer) == [(b"one", b"a"), (b"two", b"b"), (b"one", b"c\nd")]
    assert world.asked.answer.ended and world.asked.answer.headers["content-type"] == "text/event-stream"
    (line,) = world.run.new_lines()
    assert " http.status=200 " in line and "reason=" not in line and world.kind.cleaned == 1
    assert " toy.events=3 " in line and world.counted() == {("one",): 2, ("two",): 1}


def test_each_part_is_spoken_to_by_its_own_policies_and_those_of_the_whole(carrier: Carrier) -> None:
    world = World(carrier, own="http: {requestTimeout: 9s}", one=", policies: {http: {requestTimeout: 5s}}")
    world.run.advance(5.1)
    assert world.one.is_cancelled and not world.two.is_cancelled
    assert events(world.asked.answer) == [(b"one", b"late")]
    world.run.advance(4.0)
    assert world.two.is_cancelled and world.asked.answer.ended
    assert events(world.asked.answer) == [(b"one", b"late"), (b"two", b"late")] and world.counted() == {}


def test_a_part_is_asked_once_its_finisher_has_ended_and_the_others_meanwhile(carrier: Carrier) -> None:
    token = Token()
    world = World(carrier, token=token)
    (two,) = world.run.arrivals
    two.head(Response(200))
    two.content(b"b")
    token.come(b"secret")
    _, one = world.run.arrivals
    assert one.endpoint.address == "127.0.0.1" and one.received.headers["x-token"] == "secret"
    assert "x-token" not in two.received.headers
    one.head(Response(200))
    one.content(b"a")
    one.end()
    two.end()
    assert events(world.asked.answer) == [(b"two", b"b"), (b"one", b"a")] and world.asked.answer.ended


def test_nothing_is_sent_to_a_part_that_cannot_be_finished(carrier: Carrier) -> None:
    token = Token()
    world = World(carrier, token=token)
    token.come(b"")
    (two,) = world.run.arrivals
    assert two.is_cancelled and world.asked.answer.status == 502
    assert world.kind.cleaned == 1 and "reason=UpstreamFailed" in world.run.new_lines()[0]


def test_a_finisher_is_left_when_its_part_is_for_nobody(carrier: Carrier) -> None:
    token = Token()
    world = World(carrier, token=token)
    world.asked.cancel()
    assert token.left == 1 and world.run.arrivals[0].is_cancelled
    token.come(b"secret")
    assert len(world.run.arrivals) == 1 and len(world.run.new_lines()) == 1


def test_a_part_whose_finisher_takes_too_long_is_late(carrier: Carrier) -> None:
    token = Token()
    world = World(carrier, own="http: {requestTimeout: 5s}", token=token)
    world.run.advance(5.1)
    assert token.left == 1 and events(world.asked.answer) == [(b"one", b"late"), (b"two", b"late")]


def test_it_comes_from_objects_as_from_a_file(carrier: Carrier) -> None:
    """What the control plane makes of a GatewayBackend of that kind, in place of the file's resources."""
    made = of_objects(f"[{ONE}, {TWO}]", own="{http: {requestTimeout: 5s}}")
    world = World(carrier, resources=made.resources.values())
    world.one.head(Response(200))
    world.one.content(b"a")
    world.run.advance(5.1)  # policies of the whole are for its parts
    assert events(world.asked.answer) == [(b"one", b"a"), (b"two", b"late")]


def test_its_status_is_made_of_what_its_rows_say() -> None:
    made = of_objects(f"[{ONE}]")
    assert made.conditions("GatewayBackend", "both")[:2] == [
        "Accepted=True Accepted (0): one part joins nothing",
        "ResolvedRefs=True ResolvedRefs (0)",
    ]
    made = of_objects(f"[{ONE}, {{name: two, static: {{backendRef: {{name: gone}}, port: 80}}}}]")
    assert made.conditions("GatewayBackend", "both")[:2] == [
        "Accepted=True Accepted (0)",
        "ResolvedRefs=False BackendNotFound (0): part two: Service default/gone does not exist",
    ]


OF_A_PART = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p, namespace: default}
spec:
  targetRefs: [{group: gatewright.dev, kind: GatewayBackend, name: both, sectionName: three}]
  backend: {http: {requestTimeout: 5s}}
"""
BY_GRPC = """
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: calls, namespace: default}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: both}]}]
"""


def test_what_names_it_is_judged_by_its_row() -> None:
    made = of_objects(f"[{ONE}, {TWO}]", OF_A_PART, BY_GRPC)
    assert 'GatewayBackend default/both has no part "three"' in str(
        made.program.status("GatewayPolicy", "default", "p")
    )
    wrong = "GatewayBackend default/both has parts that are joined, which answer requests of HTTPRoutes"
    assert wrong in str(made.program.status("GRPCRoute", "default", "calls"))


OF_ROUTE, OF_BACKEND = ", mcp: {keepAlive: 1s}", "mcp: {keepAlive: 2s}"


@pytest.mark.parametrize(("route", "own", "most"), [("", "", 3), (OF_ROUTE, "", 1), (OF_ROUTE, OF_BACKEND, 2)])
def test_its_policy_holds_from_the_route_or_the_backend_itself(
    route: str, own: str, most: int, carrier: Carrier
) -> None:
    world = World(carrier, route=route, own=own)
    one, two = world.begin()
    for data in (b"a", b"b", b"c"):
        one.content(data)
    for each in (one, two):
        each.end()
    assert [data for _, data in events(world.asked.answer)] == [b"a", b"b", b"c"][:most]
    assert f" toy.events={most} " in world.run.new_lines()[0] and world.asked.answer.ended


def test_a_policy_of_its_own_that_cannot_be_built_refuses_what_goes_to_it(carrier: Carrier) -> None:
    with pytest.raises(AssertionError, match="keepAlive: whole seconds"):
        World(carrier, own="mcp: {keepAlive: 1500ms}")


@pytest.mark.parametrize("begun", [False, True])
def test_a_client_that_leaves_ends_both_calls_and_the_line_follows_the_cleanup(begun: bool, carrier: Carrier) -> None:
    world = World(carrier)
    world.kind.cleanups = []
    one, two = world.begin()
    if begun:
        one.content(b"a")
    world.asked.cancel()
    assert one.is_cancelled and two.is_cancelled
    (cleanup,) = world.kind.cleanups
    assert world.kind.cleaned == 0 and world.run.new_lines() == []
    cleanup.set_result(None)
    (line,) = world.run.new_lines()
    assert world.kind.cleaned == 1 and "reason=ClientGone" in line
    world.run.advance(2.0)
    assert world.run.new_lines() == []


def test_a_cleanup_that_hangs_holds_the_line_up_for_a_second(carrier: Carrier) -> None:
    world = World(carrier)
    world.kind.cleanups = []
    world.asked.cancel()
    world.run.advance(0.9)
    assert world.run.new_lines() == []
    world.run.advance(0.2)
    assert len(world.run.new_lines()) == 1
    world.kind.cleanups[0].set_result(None)
    assert world.run.new_lines() == []


def test_a_call_that_breaks_off_ends_the_other(carrier: Carrier) -> None:
    world = World(carrier)
    one, two = world.begin()
    one.content(b"a")
    one.reset()
    assert two.is_cancelled and world.asked.answer.reset
    assert "reason=UpstreamFailed" in world.run.new_lines()[0]


def test_a_slow_client_stops_both_calls(carrier: Carrier) -> None:
    world = World(carrier)
    one, two = world.begin()
    world.asked.pause()
    for each in (one, two, one, two):
        each.content(bytes(1_000_000))
    assert not one.is_read and not two.is_read
    world.asked.resume()
    assert one.is_read and two.is_read
    one.end()
    two.end()
    assert world.asked.answer.ended and len(world.asked.answer.body) > 1_000_000


def test_a_deadline_is_answered_behind_the_cleanup(carrier: Carrier) -> None:
    world = World(carrier)
    world.kind.cleanups = []
    world.run.advance(60.1)
    assert world.one.is_cancelled and world.two.is_cancelled and world.asked.answer.status is None
    world.kind.cleanups[0].set_result(None)
    assert world.asked.answer.status == 504 and len(world.run.new_lines()) == 1


def step(made: Filter | Callable[[Env], Filter]) -> tuple[Row, ...]:
    def build(config: object, env: Env) -> Filter:
        return made(env) if callable(made) else made

    return tuple(Row(r.name, build, STEP, "test") if r.name == "header_modifiers" else r for r in ROWS)


def test_its_events_pass_stages(carrier: Carrier) -> None:
    def rewriting(x: Exchange) -> Callable[[bytes, bool], bytes]:
        reader = EventReader()
        return lambda data, end: b"".join(write(replace(event, data=event.data.upper())) for event in reader.feed(data))

    world = World(carrier, step(Filter("test", response_stream=transforming(rewriting))))
    for part in world.begin():
        part.content(b"a")
        part.end()
    assert events(world.asked.answer) == [(b"one", b"A"), (b"two", b"A")] and world.asked.answer.ended


def test_steps_that_wait_beside_it_are_cancelled_with_it(carrier: Carrier) -> None:
    cleanups: list[Any] = []

    def waits(env: Env) -> Filter:
        async def wait(x: Exchange) -> None:
            try:
                await env.make_future()
            finally:
                cleanups.append(env.make_future())
                await cleanups[-1]

        return Filter("test", response=wait)

    world = World(carrier, step(waits))
    world.kind.cleanups = cleanups
    one, two = world.begin()
    one.content(b"a")
    world.asked.cancel()
    assert one.is_cancelled and two.is_cancelled and len(cleanups) == 2
    for cleanup in cleanups:
        assert world.run.new_lines() == []
        cleanup.set_result(None)
    assert len(world.run.new_lines()) == 1
