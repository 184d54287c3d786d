"""What a table answers to a fixed set of requests, without I/O, and the tables that references are made with.

`answers` is what clients notice: for each probe a refusal with its status, a reply of a filter, or the endpoints it may
be sent to and how the request looks by then. `form` is a table written down whole, for comparing two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from controlplane.facts import Fact, Invalid, fact_of
from controlplane.sources import decode
from controlplane.translate.program import Program
from dataplane.backends.registry import KINDS
from dataplane.chain.filter import Env, Filter, Refused, Row
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters import registry
from dataplane.http.heads import Head
from dataplane.table.applier import Applier
from dataplane.table.binds import BindPlan, ListenerPlan, choose
from dataplane.table.plans import BackendPlan, RoutePlan, Target
from dataplane.table.router import Level
from dataplane.table.store import Change
from dataplane.table.table import Table
from tests.fakes.policy_run import policies_of
from tests.histories.texts import WRONG, Objects, Piece, text_of

Answer = tuple[object, ...]
Contents = Mapping[tuple[str, str], bytes]
"""Type URL and name to content."""


class Probe(NamedTuple):
    port: int
    method: str
    host: str
    path: str


PROBES = tuple(
    Probe(port, method, host, path)
    for port, (method, path), host in product(
        (8080, 8081),
        (("GET", "/"), ("POST", "/"), ("GET", "/p"), ("GET", "/p/q"), ("GET", "/p/q/r"), ("GET", "/e"), ("POST", "/p")),
        ("x.test", "y.test", "z.other"),
    )
)


def answers(table: Table, gateway: str, accepts: Iterable[str] | None = None) -> tuple[Answer, ...]:
    """One answer for each probe. `accepts`: binds that take connections; None: all."""
    open_binds = None if accepts is None else set(accepts)
    return tuple(
        ("nobody accepts",)
        if open_binds is not None and f"bind/{gateway}/{probe.port}" not in open_binds
        else _answer(table, table.binds.get(f"bind/{gateway}/{probe.port}"), probe)
        for probe in PROBES
    )


def is_refusal(answer: Answer) -> bool:
    return answer[0] in ("refused", "nobody accepts")


NO_BIND, NO_LISTENER, NO_ROUTE = ("refused", 404), ("refused", 404), ("refused", 404)


def _answer(table: Table, bind: BindPlan | None, probe: Probe) -> Answer:
    x = Exchange(None, probe.method.encode(), probe.path.encode(), Head(b"\r\nHost: %b\r\n" % probe.host.encode()), 0.0)
    x.host = x.authority = probe.host.encode()
    x.path = probe.path.encode()
    listener = x.listener = choose(bind, x.host) if bind is not None else None
    plan = None if listener is None else listener.router.match(x.host, x.path, x)
    if plan is None:
        return ("refused", 404)
    step = policies_of(x, plan).chain.request
    reply = step(x) if step is not None else None
    if reply is not None:
        assert isinstance(reply, Reply)
        return ("reply", reply.status, reply.headers)
    places = sorted((_place(table, target) for target in plan.targets), key=repr)
    if all(place[0] == "refused" for place in places):
        return places[0] if places else ("refused", 500)
    return ("served", x.target, x.authority, x.request.block, tuple(places), plan.weights)


def _place(table: Table, target: Target) -> Answer:
    """Where a target may send to, with the names of its own steps."""
    backend = table.backends.get(target.backend) if target.backend else None
    if backend is None:
        return ("refused", 500)
    found = _endpoints(backend)
    return (*found, tuple(each.name for each in target.chain.filters)) if found else ("refused", 503)


def _endpoints(backend: BackendPlan) -> tuple[str, ...]:
    if backend.host:
        return (f"{backend.host.decode()}:{backend.port}",)
    return tuple(sorted(endpoint.label for endpoint in backend.endpoints))


# A table, written down.


def form(table: Table) -> dict[str, Any]:
    return {
        "binds": {key: _bind(plan) for key, plan in table.binds.items()},
        "backends": {key: _endpoints(plan) for key, plan in table.backends.items()},
    }


def _bind(plan: BindPlan) -> Any:
    listeners = {**plan.exact, **{b"*" + name: each for name, each in plan.wildcards.items()}}
    if plan.default is not None:
        listeners[b""] = plan.default
    return plan.port, plan.addresses, {name: _listener(each) for name, each in listeners.items()}


def _listener(plan: ListenerPlan) -> Any:
    router = plan.router
    levels = {**router.hosts, **{b"*" + name: level for name, level in router.wildcards.items()}}
    if router.any is not None:
        levels[b""] = router.any
    head = (plan.key, plan.name, plan.gateway, plan.hostname, plan.log, plan.port)
    return head, {name: _level(level) for name, level in levels.items()}


def _level(level: Level) -> Any:
    return (
        {path: _found(found) for path, found in (level.exact or {}).items()},
        {path: _found(found) for path, found in (level.prefixes or {}).items()},
        _found(level.root) if level.root is not None else None,
        sorted(
            (pattern, repr(_match(match))) for rule in (level.regexes or {}).values() for pattern, match in rule.entries
        ),
        _level(level.grpc) if level.grpc is not None else None,
    )


def _found(found: Any) -> Any:
    return _plan(found) if isinstance(found, RoutePlan) else [_match(match) for match in found]


def _match(match: Any) -> Any:
    headers = [(name, value, test is None) for name, value, test in match.headers]
    return match.rank, match.method, headers, match.query, match.path is None, _plan(match.plan)


def _plan(plan: RoutePlan) -> Any:
    targets = [(target.backend, target.invalid, _chain(target.chain)) for target in plan.targets]
    own = plan.policies
    settings = (own.timeouts, own.retry, own.mirrors, own.host_rewrite, plan.order, plan.rule_index, plan.rule)
    return plan.key, plan.log, plan.log_json, _chain(own.chain), targets, plan.weights, settings


def _chain(chain: Any) -> Any:
    """By content, as far as functions tell theirs: the names of the steps and what their hooks are closed over."""
    return [(step.name, *(_hook(hook) for hook in (step.request, step.response, step.end))) for step in chain.filters]


def _hook(hook: Any) -> Any:
    if hook is None:
        return None
    cells = [cell.cell_contents for cell in hook.__closure__ or ()]
    return hook.__qualname__, [_hook(cell) if callable(cell) else repr(cell) for cell in cells]


# References: what a fresh start makes of the same.


def rows() -> tuple[Row, ...]:
    """The registry, with a header modifier that refuses what sets `x-refuse`: what a worker refuses, others accept."""
    return tuple(row if row.name != "header_modifiers" else _refusing(row) for row in registry.ROWS)


def _refusing(row: Row) -> Row:
    def build(config: Any, env: Env) -> Filter | None:
        if any(header.name == "x-refuse" for header in config.request.set):
            raise Refused("x-refuse is refused")
        return row.build(config, env)

    return Row(row.name, build, row.kind, row.reason, row.plan_field)


ROWS = rows()


def _now() -> float:
    return 0.0


def fresh_table(*states: Contents) -> Applier:
    """A worker that was just filled: with one state, or with the last good versions and then what is refused."""
    applier = Applier(ROWS, Env(clock=_now, random=_now), kinds=KINDS)
    for state in states:
        for _ in applier.apply([Change(type_url, name, value) for (type_url, name), value in state.items()]):
            pass
    return applier


@lru_cache(1000)
def models(piece: Piece) -> tuple[Fact, ...]:
    decoded = decode.decode(text_of(piece))
    assert decoded.objects and not decoded.is_in_error, decoded.problems
    return tuple(fact_of(each.model) for each in decoded.objects)


def fresh_program(objects: Objects) -> tuple[Program, dict[str, dict[tuple[str, str], bytes]]]:
    """A controller that was just started: its program, and the resources of each Gateway."""
    program = Program(_now)
    resources: dict[str, dict[tuple[str, str], bytes]] = {}

    def note(changes: Any) -> None:
        for key, _, new in changes:
            resources.setdefault(str(key.gateway), {})[key.type_url, key.name] = new.content

    program.resources.subscribe(note)
    program.apply(edit for piece in sorted(objects) for edit in models(piece))
    return program, resources


def wrong(thing: str, last_good: Piece | None) -> list[Fact]:
    """An object in error, as facts: what the text says is wrong, and what acts."""
    found = decode.decode(text_of(Piece(thing, WRONG)))
    (key,) = found.named
    reasons = tuple(f"{problem.path}: {problem.message}" for problem in found.problems)
    model = models(last_good)[0].acts if last_good is not None else None
    rest = next((each.model for each in found.remains), None)
    return [Fact(key, Invalid(reasons, 0, model, None if model is not None else rest))]


@lru_cache(4096)
def is_unfinished(objects: Objects, gateway: str) -> bool:
    """Whether an author's state has a rule that refuses for want of a backend."""
    return any(f"('refused', {code})" in str(answer) for answer in authored(objects, gateway) for code in (500, 503))


@lru_cache(4096)
def authored(objects: Objects, gateway: str) -> tuple[Answer, ...]:
    """What an author's state answers: that of a fresh controller and a fresh worker."""
    _, resources = fresh_program(objects)
    return answers(fresh_table(resources.get(gateway, {})).current.table, gateway)
