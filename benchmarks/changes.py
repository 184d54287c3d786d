"""Changes to a pair of proxies, made one by one and asked about: timed or watched, as `propagation` describes.

Used by `propagation` and by tests. Each answer is looked at, whatever it was asked for.
"""

from __future__ import annotations

import itertools
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from benchmarks.commits import Committed
from benchmarks.pair import WORKERS, Pair
from benchmarks.probes import Asked, Client, Request, answer
from benchmarks.route_files import RouteFiles
from tests.harness.patience import PATIENCE

POLL = 0.001
"""Seconds between two questions of a watched change."""
LOOK = 0.0001
"""Seconds between two looks at what a proxy has committed, in a timed one."""
ALL_THE_SAME = 0.010
"""Seconds after which a proxy is asked although it has committed nothing."""
WATCHED = 5
"""Every so many changes one is watched: no multiple of the number of kinds."""
CONNECTIONS = 100
"""New ones after the first 200, half to each proxy."""
CENSUS = 50
"""Every so many routes the connections are kept until each worker has reported how many of them it has."""


class Lost(Exception):
    """A change did not reach a proxy."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A timed change. Seconds; `began` and `served` by the steady clock."""

    number: int
    wall: float
    """Of the write, by the clock of the logs."""
    began: float
    served: float
    """When the proxy that came last first answered as it should."""
    own: float
    """CPU of whoever asked."""
    questions: int

    @property
    def seconds(self) -> float:
        return self.served - self.began


class Run:
    """All that was asked, and how long each timed change took."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.clients = [Client(port) for port in pair.ports]
        self.asked: list[Asked] = []
        self.wrong: list[str] = []
        self.created: list[Taken] = []
        self.removed: list[Taken] = []
        self.writes: list[float] = []
        """When each change began, timed or watched; steady seconds."""
        self.per_worker: Counter[str] = Counter()
        self._committed = [Committed(agent) for agent in pair.agents]

    def close(self) -> None:
        for each in (*self.clients, *self._committed):
            each.close()

    def answers(self, request: Request) -> set[int]:
        """What there is to see, without a judgement."""
        return {status for statuses in self._look(request) for status in statuses}

    def create(self, files: RouteFiles, number: int) -> None:
        self._change(files, number, 404, 200)
        self._ask_anew(files.request(number), 200, is_census=number % CENSUS == 0)

    def remove(self, files: RouteFiles, number: int) -> None:
        self._change(files, number, 200, 404)
        self._ask_anew(files.request(number), 404, is_census=False)

    def _change(self, files: RouteFiles, number: int, before: int, after: int) -> None:
        request = files.request(number)
        for statuses in self._look(request):
            self._check(request, statuses, {before})
        make = files.write if after == 200 else files.remove
        if number % WATCHED == WATCHED - 1:
            self._watch(request, lambda: make(number), before, after)
        else:
            (self.created if after == 200 else self.removed).append(self._time(request, make, number, before, after))
        for status in self._look_again(request):
            self._check(request, [status], {after})

    def _watch(self, request: Request, make: Callable[[], None], before: int, after: int) -> None:
        """Ask all the time."""
        began = time.perf_counter()
        self.writes.append(began)
        make()
        missing = list(self.clients)
        looks = itertools.cycle((self._look_anew, self._look_again))
        while missing:
            for client, status in zip(self.clients, next(looks)(request), strict=True):
                # The order counts: an old answer after a new one is wrong, of whichever worker.
                self._check(request, [status], {before, after} if client in missing else {after})
                if client in missing and status == after:
                    missing.remove(client)
            _be_patient(began, request, missing)
            time.sleep(POLL)

    def _time(self, request: Request, make: Callable[[int], None], number: int, before: int, after: int) -> Taken:
        """Ask when there may be something new."""
        seen = {client: committed.read() for client, committed in zip(self.clients, self._committed, strict=True)}
        own, questions = time.thread_time(), 0
        wall, began = time.time(), time.perf_counter()
        self.writes.append(began)
        make(number)
        served = asked = began
        while seen:
            time.sleep(LOOK)
            now = time.perf_counter()
            is_due = now - asked >= ALL_THE_SAME
            asked = now if is_due else asked
            for client, committed in zip(self.clients, self._committed, strict=True):
                if client not in seen or ((newest := committed.read()) == seen[client] and not is_due):
                    continue
                has_news, seen[client] = newest != seen[client], newest
                questions += 1
                status = answer(client.ask_again(request))
                # What was committed while the question was under way is in its answer, and is seen now.
                has_news = has_news or committed.read() != newest
                self._check(request, [status], {before, after} if has_news else {before})
                if status == after:
                    served = time.perf_counter()
                    del seen[client]
            _be_patient(began, request, seen)
        return Taken(number, wall, began, served, time.thread_time() - own, questions)

    def _look(self, request: Request) -> list[list[int]]:
        """The status of each proxy on a new connection, then on the kept one."""
        return [list(both) for both in zip(self._look_anew(request), self._look_again(request), strict=True)]

    def _look_anew(self, request: Request) -> list[int]:
        """The status of each proxy on a new connection; both are asked at the same time."""
        new = [client.ask(request) for client in self.clients]
        statuses = [answer(connection) for connection in new]
        for connection in new:
            connection.close()
        return statuses

    def _look_again(self, request: Request) -> list[int]:
        """The same on the connections that are kept."""
        return [answer(connection) for connection in [client.ask_again(request) for client in self.clients]]

    def _ask_anew(self, request: Request, wanted: int, *, is_census: bool) -> None:
        for client, admin in zip(self.clients, self.pair.admins, strict=True):
            kept = []
            for _ in range(CONNECTIONS // len(self.clients)):
                kept.append(client.ask(request))
                self._check(request, [answer(kept[-1])], {wanted})
                if not is_census:
                    kept.pop().close()
            for worker in range(WORKERS) if is_census else ():
                self.per_worker[f"{client.port}/{worker}"] += connections(admin, worker)
            for connection in kept:
                connection.close()

    def _check(self, request: Request, statuses: Sequence[int], allowed: set[int]) -> None:
        self.asked += [Asked(request.kind, status) for status in statuses]
        self.wrong += [
            f"{status} for {request.target} of {request.host} ({request.kind}), where {sorted(allowed)} was right"
            for status in statuses
            if status not in allowed
        ]

    def answer_seconds(self, request: Request, questions: int = 400) -> float:
        """CPU that one answer costs a proxy, asked at the pace of a change."""
        before = sum(self.pair.cpu_seconds().values())
        for _ in range(questions // len(self.clients)):
            self._look_again(request)
            time.sleep(POLL)
        return (sum(self.pair.cpu_seconds().values()) - before) / questions


def _be_patient(began: float, request: Request, missing: Collection[Client]) -> None:
    if time.perf_counter() - began > PATIENCE:
        raise Lost(f"{request.target} of {request.host} at ports {[client.port for client in missing]}")


def connections(admin: int, worker: int) -> int:
    """How many a worker has open now."""
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/config_dump?worker={worker}", timeout=5) as page:
        return int(json.load(page)["connections"])
