"""Which proxies are connected, what each of them holds and what it refuses.

Pure bookkeeping: sessions report, conditions, `status` and CSDS read. A proxy's answer to a state replaces what it
refused before, so a refusal ends when a later answer does not name it, or when the proxy leaves.

Other controllers may serve the same Gateways: what is known here is given out in `answers`, and what they know is taken
by `expect`, `hear` and `forget` (module `shared` has the laws). A view counts the proxies of all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from controlplane.answers.nacks import NONE, Refusal
from controlplane.answers.proxies import NOTHING, Proxy, ProxyStatus, View, refused_by_key, refusers, status
from controlplane.answers.shared import Answer, AnswerKey, Elsewhere
from controlplane.derive import Change, Outlet


class Watcher(Protocol):
    """Who reads a fleet: it hears of each change at once."""

    def acknowledged(self, proxy: Proxy) -> None:
        """It has acknowledged a state for the first time."""

    def answered(self, gateway: str) -> None:
        """The view of its proxies has changed."""

    def completed(self) -> None:
        """It has changed whether the proxies of all controllers are known."""


class NoWatcher:
    """The watcher of a fleet whose changes are not read."""

    def acknowledged(self, proxy: Proxy) -> None:
        """As `Watcher` has it."""

    def answered(self, gateway: str) -> None:
        """As `Watcher` has it."""

    def completed(self) -> None:
        """As `Watcher` has it."""


NO_WATCHER: Final = NoWatcher()


def _unknown(_gateway: str, _version: str) -> int:
    """Of a controller that knows no states."""
    return NOTHING


class Fleet:
    """The connected proxies of all Gateways. `clock` gives wall-clock seconds, `steady` those that never jump;
    `sequence_of` gives the sequence that a version of a Gateway's state has here, or NOTHING; `origin` is the name
    under which other controllers know this one."""

    def __init__(
        self,
        clock: Callable[[], float],
        steady: Callable[[], float] | None = None,
        sequence_of: Callable[[str, str], int] = _unknown,
        origin: str = "",
        watcher: Watcher = NO_WATCHER,
    ) -> None:
        self._clock, self._steady = clock, steady or clock
        self._sequence_of = sequence_of
        self.origin = origin
        self.answers: Outlet[AnswerKey, Answer] = Outlet()
        """What the proxies that are connected here answered."""
        self._watcher = watcher
        self._elsewhere = Elsewhere()
        self._streams: dict[str, list[Proxy]] = defaultdict(list)
        """Of one node id, in the order in which they connected."""
        self._proxies: dict[str, dict[Proxy, None]] = defaultdict(dict)
        self._answered: dict[str, Counter[int]] = defaultdict(Counter)
        """By Gateway: of how many proxies each state is the last that they have answered."""
        self.acks = self.nacks = 0

    # What sessions report

    def connect(self, node_id: str, gateway: str, address: str) -> Proxy:
        """A proxy opened a stream."""
        proxy = Proxy(node_id, gateway, address, self._steady())
        self._proxies[gateway][proxy] = None
        self._streams[node_id].append(proxy)
        self._answered[gateway][NOTHING] += 1
        for former in [each for each in self._streams[node_id] if each.is_expected_back and each.gateway == gateway]:
            self._succeed(proxy, former)
        self._give_out(proxy)
        self._watcher.answered(gateway)
        return proxy

    def disconnect(self, proxy: Proxy) -> None:
        """Its stream ended, for whatever reason. May be called again."""
        remaining = self._proxies.get(proxy.gateway, {})
        if proxy not in remaining:
            return
        del remaining[proxy]
        self._streams[proxy.node_id].remove(proxy)
        if not self._streams[proxy.node_id]:
            del self._streams[proxy.node_id]
        self._count(proxy, None)
        if not remaining:
            del self._proxies[proxy.gateway], self._answered[proxy.gateway]
        self._give_out(proxy)
        self._watcher.answered(proxy.gateway)

    def _succeed(self, proxy: Proxy, former: Proxy) -> None:
        """It is back: what it answered counts until it answers again."""
        proxy.acknowledged, proxy.acknowledged_version = former.acknowledged, former.acknowledged_version
        proxy.acknowledged_at, proxy.refused_at = former.acknowledged_at, former.refused_at
        proxy.refused, proxy.refused_version = former.refused, former.refused_version
        proxy.answered_version, proxy.refusals = former.answered_version, former.refusals
        self._count(proxy, former.answered)
        self.disconnect(former)

    def acknowledge(self, proxy: Proxy, sequence: int, version: str) -> None:
        """It holds this state and refuses nothing of it."""
        self._count(proxy, sequence)
        self.acks += 1
        is_news = sequence > proxy.acknowledged
        proxy.acknowledged = sequence
        proxy.acknowledged_version = version
        proxy.acknowledged_at = self._clock()
        proxy.refusals = NONE
        proxy.answered_version = version
        self._give_out(proxy)
        if is_news:
            self._watcher.acknowledged(proxy)
        self._watcher.answered(proxy.gateway)

    def refuse(
        self, proxy: Proxy, sequence: int, version: str, refusals: Mapping[str, Refusal], *, complete: bool
    ) -> None:
        """It refuses a part of this state. `complete`: these are all, and the rest is applied. Keeps the mapping."""
        proxy.refusals = refusals if complete else {**proxy.refusals, **refusals}
        self.nacks += 1
        if complete:
            self._count(proxy, sequence)
            proxy.answered_version = version
        proxy.refused, proxy.refused_version, proxy.refused_at = sequence, version, self._clock()
        self._give_out(proxy)
        self._watcher.answered(proxy.gateway)

    def hear_report(self, proxy: Proxy, report: str) -> None:
        """What it says of endpoints. Kept as it came, and parsed when it is asked for."""
        proxy.report, proxy.reported_at = report, self._clock()

    def _count(self, proxy: Proxy, sequence: int | None) -> None:
        """It has answered this state; None: it is gone."""
        counts = self._answered[proxy.gateway]
        counts[proxy.answered] -= 1
        if not counts[proxy.answered]:
            del counts[proxy.answered]
        if sequence is not None:
            counts[sequence] += 1
            proxy.answered = sequence

    def _give_out(self, proxy: Proxy) -> None:
        """The newest fact about a proxy. One that has connected again before its old stream ended counts as it is."""
        key = AnswerKey(self.origin, proxy.gateway, proxy.node_id)
        same = self._streams.get(proxy.node_id)
        old, new = self.answers.present().get(key), None
        if same:
            new = Answer(same[-1].answered_version, same[-1].refusals)
        if old != new:
            self.answers.put([Change(key, old, new)])

    # What other controllers know

    def expect(self, origin: str) -> None:
        """Another controller serves proxies, too: until it reports, their state is unknown."""
        was = self._elsewhere.complete
        self._elsewhere.expect(origin)
        self._note_completeness(was)

    def hear(self, origin: str, changes: Sequence[Change[AnswerKey, Answer]]) -> None:
        """Take a batch of its feed."""
        was = self._elsewhere.complete
        for gateway in sorted(self._elsewhere.hear(origin, changes)):
            self._watcher.answered(gateway)
        self._note_completeness(was)

    def forget(self, origin: str) -> None:
        """It is no more."""
        was = self._elsewhere.complete
        for gateway in sorted(self._elsewhere.forget(origin)):
            self._watcher.answered(gateway)
        self._note_completeness(was)

    def _note_completeness(self, was: bool) -> None:
        if self._elsewhere.complete != was:
            self._watcher.completed()

    # What others read

    def serves(self, gateway: str) -> bool:
        """Whether a proxy of it is connected here."""
        return bool(self._proxies.get(gateway))

    def have_all_answered(self, gateway: str, newest: int) -> bool:
        """Whether every proxy has answered the state of the sequence `newest`. Costs the same for any number."""
        return self.answered(gateway, newest) == len(self._proxies.get(gateway, ()))

    def answered(self, gateway: str, sequence: int) -> int:
        """How many proxies have answered that state, and none after it. Costs the same for any number."""
        return self._answered[gateway][sequence] if gateway in self._answered else 0

    def view(self, gateway: str) -> View:
        """The proxies of one Gateway, whichever controller they are connected to."""
        proxies = [*self._proxies.get(gateway, ()), *self._others(gateway)]
        refused_by = refused_by_key(proxies)
        return View(
            gateway,
            len(proxies),
            tuple(proxy.acknowledged for proxy in proxies),
            tuple(proxy.answered for proxy in proxies),
            refusers(proxies, refused_by),
            refused_by,
            self._elsewhere.complete,
        )

    def _others(self, gateway: str) -> Iterator[Proxy]:
        """Those that are connected elsewhere and not here, as if they were."""
        return (proxy for _, proxy in self._others_with_origins(gateway))

    def _others_with_origins(self, gateway: str) -> Iterator[tuple[str, Proxy]]:
        here = {proxy.node_id for proxy in self._proxies.get(gateway, ())}
        for key, answer in self._elsewhere.of(gateway):
            if key.instance not in here:
                sequence = self._sequence_of(gateway, answer.version) if answer.version else NOTHING
                held = NOTHING if answer.refusals else sequence
                proxy = Proxy(
                    key.instance,
                    gateway,
                    "",
                    0.0,
                    acknowledged=held,
                    answered=sequence,
                    answered_version=answer.version,
                    refused_version=answer.version,
                    refusals=answer.refusals,
                )
                yield key.origin, proxy

    def elsewhere(self) -> tuple[tuple[str, Proxy], ...]:
        """The proxies that are connected to other controllers and not here, each with the name of its controller."""
        return tuple(
            (origin, proxy)
            for gateway in sorted(self._elsewhere.gateways())
            for origin, proxy in self._others_with_origins(gateway)
        )

    def proxies(self, newest: Callable[[str], int]) -> tuple[ProxyStatus, ...]:
        """All proxies, by node id. `newest` gives the sequence of a Gateway's newest state."""
        rows = (status(proxy, newest(name)) for name, proxies in self._proxies.items() for proxy in proxies)
        return tuple(sorted(rows, key=lambda row: (row.node_id, row.connected_since)))
