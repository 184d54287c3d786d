"""One history: an author, controllers, proxies and accidents on one hand-moved loop, and what must hold meanwhile.

Three links, each checked whenever something new is published, hold the chain from the author to a request:

1. *Author to state.* What a controller publishes answers every probe as one of the author's states did, never going
   back: for each probe there is a state, not older than the one that explained the publication before. So a request
   that the author's neighbouring states both refuse is not served, and none is served by a backend that neither chose.
   The exception that is promised: while a route waits for its backend, other routes and backends do not
   (`controlplane/snapshot/coalesce.py`), so that a state may have an older text of those that wait.
2. *State to proxy.* What a proxy takes is, resource by resource and byte by byte, a published state.
3. *Proxy to table.* The table that a request meets is that of a worker filled anew with the state that the proxy took.

The exception that is promised: a resource that a worker refuses keeps its last good version. `Held` says exactly which
that is, from the states that the proxy took and nothing else.

At the end every hindrance goes, time passes, and everything is compared with a fresh start (`check_end`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE, Snapshot
from controlplane.translate.conditions import StatusBody
from controlplane.translate.fleet import FleetView
from dataplane.agent.xds_stream import State
from dataplane.link.messages import Record
from dataplane.table.table import Table
from tests.histories import answers, texts, wire
from tests.histories.answers import PROBES, Answer, Contents
from tests.histories.hand_loop import HandLoop
from tests.histories.planes import Agent, Controller, Worker, met
from tests.histories.texts import File, Objects, Piece

PROXIES = (("a/one", "p0", 2), ("a/one", "p1", 1), ("a/two", "p2", 1))
"""Gateway, instance, workers."""

LONG, STEP = 70.0, 2.0
"""Seconds in which everything that backs off has tried again, at the latest."""


class Violation(AssertionError):
    """What was promised does not hold."""


def demand(holds: bool, what: str, *details: object) -> None:
    if not holds:
        raise Violation("\n".join((what, *map(str, details))))


@lru_cache(4096)
def _table_of(*states: frozenset[tuple[tuple[str, str], bytes]]) -> tuple[Table, dict[str, str]]:
    applier = answers.fresh_table(*(dict(sorted(state)) for state in states))
    return applier.current.table, dict(applier.outcome.standing)


class Held:
    """What a proxy's workers have to serve, after each state that the proxy took.

    `given`: the newest version of each resource. `good`: the same, but of a resource that workers refuse the last
    version before that they did not; nothing, if there was none since the resource came or came back. Which they refuse
    is asked of a fresh worker.
    """

    def __init__(self) -> None:
        self.given: dict[tuple[str, str], bytes] = {}
        self.good: dict[tuple[str, str], bytes] = {}

    def taken(self, records: Sequence[Record]) -> Held:
        """After a state."""
        after = Held()
        after.given, after.good = dict(self.given), dict(self.good)
        for type_url, name, value in records:
            key = (type_url, name)
            if value is None:
                after.given.pop(key, None)
                after.good.pop(key, None)
            else:
                after.given[key] = value
        refused = after.refused
        for key, value in after.given.items():
            if key[1] not in refused:
                after.good[key] = value
        return after

    @property
    def refused(self) -> dict[str, str]:
        return _table_of(frozenset(self.given.items()))[1]

    @property
    def table(self) -> Table:
        """Of a worker that is filled now: with what is good, then with what is refused."""
        refused = self.refused
        on_top = {key: value for key, value in self.given.items() if key[1] in refused}
        return _table_of(frozenset(self.good.items()), frozenset(on_top.items()))[0]


@dataclass
class Proxy:
    """One proxy over all lives of its agent."""

    gateway: str
    instance: str
    workers: int
    agent: Agent = field(init=False)
    stream: wire.Stream | None = None
    controller: Controller | None = None
    """Whom it called last."""
    held: list[Held] = field(default_factory=list)
    """By number of the agent's state; the first is nothing."""
    met: dict[int, tuple[Worker, int, Table, frozenset[str]]] = field(default_factory=dict)
    """By slot: what requests met last, at which commit."""
    is_held: dict[str, bool] = field(default_factory=lambda: {wire.DOWN: False, wire.UP: False})


class World:
    def __init__(self, loop: HandLoop) -> None:
        self.loop = loop
        self.folder: dict[str, File] = dict(texts.START)
        self.texts = {name: file.text for name, file in self.folder.items()}
        self.authored: list[Objects] = [texts.objects_of(self.folder)]
        self.published: set[tuple[str, str, frozenset[Any]]] = set()
        """Gateway, version and content of every state that ever was."""
        self.controllers: list[Controller] = []
        self.knows_claims = True
        self.busy: frozenset[int] = frozenset()
        self.proxies = [Proxy(*each) for each in PROXIES]
        self.started: list[Proxy] = []
        self.tables = 0
        """That requests met, for the test to know that it tests something."""
        self.violation: Violation | None = None
        loop.each_turn(self._look)

    def begin(self) -> None:
        for proxy in self.proxies:
            self._start(proxy)
            self.started.append(proxy)
        self.add_controller()
        self.rest(0.5)

    def end(self) -> None:
        """Everything ends that was started."""
        for proxy in self.started:
            proxy.agent.kill()
        for controller in self.controllers:
            controller.kill()
        self.loop.each_turn(lambda: None)
        self.loop.turns(20)

    # What happens: the author.

    def write(self, file: str, pieces: Sequence[Piece]) -> None:
        """The author saves a file. One in error is saved when the text before has been read, so that it is known which
        versions are the last good ones."""
        new = self.folder.get(file, File()).written(pieces)
        if new.is_in_error or new.kept:
            self.rest(0.2)
        self._saved({file: new})

    def remove(self, file: str) -> None:
        if file in self.folder:
            self._saved({file: None})

    def move(self, file: str, to: str) -> None:
        """Rename: the file that was there is gone."""
        if file in self.folder and file != to:
            self.rest(0.2)
            moved = File().written(self.folder[file].pieces)
            if to in self.folder:
                moved = self.folder[to].written(moved.pieces)
            self._saved({file: None, to: moved})

    def _saved(self, files: dict[str, File | None]) -> None:
        for name, file in files.items():
            if file is None:
                del self.folder[name], self.texts[name]
            else:
                self.folder[name], self.texts[name] = file, file.text
        self.authored.append(texts.objects_of(self.folder))
        for controller in self.controllers:
            controller.folder.written([*files])

    # Time.

    def turns(self, count: int) -> None:
        self.loop.turns(count)
        self._tell()

    def rest(self, seconds: float) -> None:
        self.loop.rest(seconds)
        self._tell()

    def _tell(self) -> None:
        """What was seen in a turn is told afterwards: there nobody can raise."""
        if self.violation is not None:
            raise self.violation
        demand(not self.loop.failures, "a task failed", self.loop.failures)

    # Controllers.

    def add_controller(self) -> None:
        """One that reads the folder now; the newest is whom proxies call. It has nothing to keep of older texts, so
        what is in error is first written as it acts where there is another: both say the same."""
        for name, file in [*self.folder.items()] if self.controllers else ():
            if file.is_in_error:
                self.write(name, [*file.good()])
        self.rest(0.2)
        self.folder = texts.started_cold(self.folder)
        self.authored.append(texts.objects_of(self.folder))
        explained = _Explained(self)
        self.controllers.append(Controller(self.loop, self.texts, explained.publish))

    def replace_controller(self, knows_claims: bool = True) -> None:
        """All are gone; another one reads the same texts."""
        for controller in self.controllers:
            controller.kill()
        self.controllers.clear()
        for proxy in self.proxies:
            self.cut(proxy)
        self.knows_claims = knows_claims
        self.add_controller()

    def dial(self, instance: str) -> wire.Stream | None:
        proxy = next(each for each in self.proxies if each.instance == instance)
        if not self.controllers:
            return None
        proxy.stream = stream = wire.Stream(self.knows_claims)
        for way, is_held in proxy.is_held.items():
            if is_held:
                stream.ways[way].hold()
        proxy.controller = self.controllers[-1]
        proxy.controller.take(stream)
        return stream

    # Proxies.

    def _start(self, proxy: Proxy) -> None:
        proxy.held, proxy.met = [Held()], {}

        def taken(state: State) -> None:
            proxy.held.append(proxy.held[-1].taken(state.records))
            key = (proxy.gateway, state.version, frozenset(proxy.held[-1].given.items()))
            demand(key in self.published or not proxy.held[-1].given, f"{proxy.instance} took what was never published")

        proxy.agent = Agent(self.loop, proxy.gateway, proxy.instance, proxy.workers, self.busy, taken)

    def restart(self, proxy: Proxy) -> None:
        """The agent dies, its workers with it, and another starts that knows nothing."""
        proxy.agent.kill()
        self.cut(proxy)
        self._start(proxy)

    def kill_worker(self, proxy: Proxy, index: int) -> None:
        for slot, life in proxy.agent.lives():
            if slot == index:
                life.kill()

    def cut(self, proxy: Proxy) -> None:
        if proxy.stream is not None:
            proxy.stream.cut()
            proxy.stream = None

    def hold(self, proxy: Proxy, way: str) -> None:
        proxy.is_held[way] = True
        if proxy.stream is not None:
            proxy.stream.ways[way].hold()

    def pass_on(self, proxy: Proxy, way: str, count: int) -> None:
        if proxy.stream is not None:
            proxy.stream.ways[way].pass_on(count)

    def release(self, proxy: Proxy, way: str) -> None:
        proxy.is_held[way] = False
        if proxy.stream is not None:
            proxy.stream.ways[way].release()

    def take_ports(self, ports: frozenset[int]) -> None:
        """These ports belong to somebody else when a proxy wants to open them."""
        self.busy = ports
        for proxy in self.proxies:
            proxy.agent.sockets.busy = ports

    # What must hold at all times.

    def _look(self) -> None:
        """Link 3, for every worker that takes connections. All of them serve the state that is committed, none an
        older one (`agent/commit`)."""
        try:
            for proxy in self.started:
                for slot in proxy.agent.workers.slots:
                    if slot.life is not None:
                        self._look_at(proxy, slot.index, slot.life)  # type: ignore[arg-type]  # see `planes`
        except Violation as violation:
            self.violation = self.violation or violation

    def _look_at(self, proxy: Proxy, index: int, life: Worker) -> None:
        inner = life.inner
        current = None if inner is None else inner.current
        if inner is None or current is None or not inner.accepts:
            return
        table, accepts, number = met(current), frozenset(inner.accepts), current._committed()
        if proxy.met.get(index) == (life, number, table, accepts):
            return
        proxy.met[index] = (life, number, table, accepts)
        self.tables += 1
        mine, wanted = (answers.answers(each, proxy.gateway, accepts) for each in (table, proxy.held[number].table))
        demand(mine == wanted, f"{proxy.instance} worker {index} answers otherwise than its state {number}",
               *_unlike(mine, wanted))  # fmt: skip

    # What must hold at the end.

    def settle(self) -> None:
        """Every hindrance goes, and time passes."""
        self.take_ports(frozenset())
        for proxy in self.proxies:
            for way in proxy.is_held:
                self.release(proxy, way)
        end = self.loop.now + LONG
        self.rest(STEP)
        while self.loop.now < end and not all(map(_is_whole, self.proxies)):
            self.rest(STEP)
        self.rest(STEP)

    def check_end(self) -> None:
        _, resources = answers.fresh_program(self.authored[-1])
        for proxy in self.proxies:
            self._check_proxy(proxy, resources.get(proxy.gateway, {}))
        for controller in self.controllers:
            self._check_states(controller, resources)
            self._check_status(controller, resources)

    def _check_states(self, controller: Controller, resources: dict[str, Any]) -> None:
        snapshots = controller.pipeline.snapshots
        for gateway in {*snapshots.gateways(), *resources}:
            found, wanted = contents(snapshots.newest(gateway)), resources.get(gateway, {})
            demand(found == wanted, f"{gateway}: the state is not that of a fresh start", *_differences(found, wanted))

    def _check_proxy(self, proxy: Proxy, wanted: Contents) -> None:
        agent, held = proxy.agent, proxy.held[-1]
        demand(held.given == wanted, f"{proxy.instance} does not hold the newest state",
               *_differences(held.given, wanted))  # fmt: skip
        known = {(record.type_url, record.name): record.value for record in agent.resources.good()}
        demand(known == held.good, f"{proxy.instance}'s agent keeps something else", *_differences(known, held.good))
        newest = {record.name for record in agent.resources.unjudged()}
        demand(newest == held.refused.keys(), f"{proxy.instance}: what is refused", newest, held.refused)
        lives = agent.lives()
        demand(len(lives) == proxy.workers, f"{proxy.instance} has {len(lives)} workers")
        for index, life in lives:
            self._check_worker(proxy, index, life)

    def _check_worker(self, proxy: Proxy, index: int, life: Worker) -> None:
        who, held = f"{proxy.instance} worker {index}", proxy.held[-1]
        inner = life.inner
        assert inner is not None and inner.current is not None and inner.serving is not None
        demand(inner.current.prepared is None, f"{who} is not done")
        table, wanted = inner.current.table, held.table
        demand(answers.form(table) == answers.form(wanted), f"{who}: the table is not that of a fresh start",
               answers.form(table), answers.form(wanted))  # fmt: skip
        outcome = inner.serving._applier.outcome
        demand(dict(outcome.standing) == held.refused, f"{who} refuses", outcome.standing, held.refused)
        demand(not outcome.waiting, f"{who} lets routes wait", outcome.waiting)
        demand(inner.accepts == {*table.binds}, f"{who} accepts on", inner.accepts, {*table.binds})

    def _check_status(self, controller: Controller, resources: dict[str, Any]) -> None:
        """Conditions are those of a fresh start whose proxies have all answered; a refused resource has the reason."""
        program, _ = answers.fresh_program(self.authored[-1])
        for thing, acts in texts.wrong_of(self.folder).items():
            program.apply(answers.wrong(thing, acts))
        for gateway in {proxy.gateway for proxy in self.proxies if proxy.controller is controller}:
            connected = [proxy.gateway for proxy in self.proxies if proxy.controller is controller].count(gateway)
            program.fleet(gateway, FleetView(connected, connected))
            program.refuse(gateway, _table_of(frozenset(resources.get(gateway, {}).items()))[1])
        found = {key: _lasting(body) for key, body in controller.pipeline.program.statuses().items()}
        fresh = {key: _lasting(body) for key, body in program.statuses().items()}
        demand(found == fresh, "conditions are not those of a fresh start", *_differences(found, fresh))


def _is_whole(proxy: Proxy) -> bool:
    """Connected, with all workers, and no port that still has to be opened, nor a worker that is behind."""
    is_connected = proxy.stream is not None and not proxy.stream.is_cut
    journey = proxy.agent.journey
    return is_connected and len(proxy.agent.lives()) == proxy.workers and not (journey.failures or journey.late)


class _Explained:
    """Link 1, for one controller: the oldest author's state that may explain the next answer to each probe."""

    def __init__(self, world: World) -> None:
        self._world = world
        first = len(world.authored) - 1
        self._oldest: dict[str, list[int]] = {gateway: [first] * len(PROBES) for gateway, _, _ in PROXIES}

    def publish(self, snapshot: Snapshot) -> None:
        content = frozenset(contents(snapshot).items())
        self._world.published.add((snapshot.gateway, snapshot.version, content))
        oldest = self._oldest.get(snapshot.gateway)
        if oldest is None:
            return
        found = answers.answers(_table_of(content)[0], snapshot.gateway)
        for index, answer in enumerate(found):
            oldest[index] = self._explain(snapshot.gateway, index, answer, oldest[index])

    def _explain(self, gateway: str, index: int, answer: Answer, start: int) -> int:
        authored = self._world.authored
        seen = []
        for number in range(start, len(authored)):
            seen.append(answers.authored(authored[number], gateway)[index])
            if seen[-1] == answer:
                return number
        if self._is_ahead_of_what_waits(gateway, index, answer, start):
            return start
        violation = Violation(f"{gateway}: {PROBES[index]} is answered as no state of the author\n{answer}\n{seen}")
        self._world.violation = self._world.violation or violation
        return start

    def _is_ahead_of_what_waits(self, gateway: str, index: int, answer: Answer, start: int) -> bool:
        """Whether the answer is that of a state with an older text of some of what may wait."""
        authored = self._world.authored
        for number in range(start + 1, len(authored)):
            for older in range(max(0, start - WAITED), number):
                states = _mixed(gateway, *authored[older : number + 1])
                if any(answers.authored(each, gateway)[index] == answer for each in states):
                    return True
        return False


WAITED = 4
"""States of the author that something has waited through before the publication that is looked at."""
MAY_WAIT = ("route", "service", "slice", "backend")


def _mixed(gateway: str, *states: Objects) -> Iterator[Objects]:
    """The last state with the first one's text of each set of things that may wait; nothing where all is complete."""
    first, last = ({piece.thing: piece for piece in each} for each in (states[0], states[-1]))
    moved = [piece for name, piece in first.items() if name.startswith("slice") and last.get(name) != piece]
    first |= {each.thing: each for each in map(texts.as_before, moved)}
    things = [name for name in {*first, *last} if name.startswith(MAY_WAIT) and first.get(name) != last.get(name)]
    if not any(answers.is_unfinished(each, gateway) for each in states):
        return
    for count in range(1, min(len(things), 6)):
        for some in combinations(sorted(things), count):
            older = {name: first.get(name) for name in some}
            yield frozenset(piece for piece in (last | older).values() if piece is not None)


def contents(snapshot: Snapshot) -> dict[tuple[str, str], bytes]:
    return {
        (type_url, record.name): record.content().value
        for type_url in (ENDPOINT_TYPE, RESOURCE_TYPE)
        for record in snapshot.resources(type_url)
    }


def _unlike(found: Sequence[Answer], wanted: Sequence[Answer]) -> list[str]:
    rows = zip(PROBES, found, wanted, strict=True)
    return [f"{probe}: {mine}, not {other}" for probe, mine, other in rows if mine != other]


def _differences(found: Any, wanted: Any) -> list[str]:
    keys = [key for key in {**found, **wanted} if found.get(key) != wanted.get(key)]
    return [f"{key}: {found.get(key)}, not {wanted.get(key)}" for key in keys]


def _lasting(body: StatusBody) -> Any:
    """A status without what counts or dates the way to it."""
    if isinstance(body, dict):
        ways = ("observedGeneration", "lastTransitionTime")
        return {name: _lasting(value) for name, value in body.items() if name not in ways}
    return [_lasting(each) for each in body] if isinstance(body, list) else body
