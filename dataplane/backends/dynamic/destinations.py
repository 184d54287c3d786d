"""The destinations that clients have named: their addresses, judged, and the endpoints that are made of them.

A name is looked up when it is first asked for, and again when it is used after the time of its records. What a look-up
answers is judged before there is an endpoint of it, and an endpoint is connected to by that very address: between the
two the name is not looked up again, so an answer that changes meanwhile changes nothing. Nothing is looked up but for a
request. How many are known, and how many look-ups are under way, is bounded: the names are a client's to choose.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from dataplane.backends.dynamic import names
from dataplane.backends.dynamic.addresses import Rules, meanings
from dataplane.link import pools
from dataplane.link.pools import Key, Places, Shares, key_of
from dataplane.telemetry.metric_rows.dynamic import KNOWN, LOOK_UPS
from dataplane.upstream.destinations import Named, NoDestination
from dataplane.upstream.look_ups import Found, LookUp
from dataplane.upstream.resolver import LONGEST, SHORTEST, Resolver, renewed

if TYPE_CHECKING:
    from dataplane.table.plans import BackendPlan
    from dataplane.telemetry.requests import Recorder
    from dataplane.telemetry.shortages import Shortages
    from dataplane.upstream.lease import Endpoint

MOST: Final = 1024
"""Destinations that a worker remembers; the one that was used longest ago is forgotten for another one."""
MOST_LOOK_UPS: Final = 256
"""Names that a worker asks for at the same time. A client has its share of them (`link/pools`)."""
UNUSED: Final = 600.0
"""Seconds after which a destination is forgotten when there is another one."""
RETRY: Final = 1.0
"""Seconds until a name that was not found is asked for again."""


class ForwardWorker(Protocol):
    """Of a worker (`proxy/context.Context`)."""

    clock: Callable[[], float]
    spawn: Callable[[Coroutine[Any, Any, None]], Any]
    recorder: Recorder
    look_up: LookUp
    holds: Callable[[str, int], bool]
    """Whether an address and port are an endpoint of a backend that is configured."""
    shortages: Shortages


class _Open(NamedTuple):
    """An endpoint that may be connected to, and the addresses by which it may be that of a configured backend."""

    endpoint: Endpoint
    meanings: tuple[str, ...]


@dataclass(slots=True)
class _Known:
    """One destination."""

    endpoints: tuple[Endpoint, ...] | None = None
    """(): it has no address. None: not answered yet."""
    open: tuple[_Open, ...] = ()
    why: str = ""
    """Of one that is not open."""
    until: float = 0.0
    """When the answer is over."""
    used: float = 0.0
    is_asked: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)

    def drop(self) -> None:
        for each in self.endpoints or ():
            each.close_idle()


_Key = tuple[str, int, bool]
"""Host, port, and whether a proxy on the way looks names up."""


class Destinations:
    """One per worker: `kinds.Services` and `upstream/destinations.Destinations`."""

    sockets = 0

    def __init__(self, worker: ForwardWorker, rules: Rules, suffixes: Iterable[str]) -> None:
        """`suffixes`: of the cluster's DNS."""
        self._worker, self._rules, self._suffixes = worker, rules, frozenset(suffixes)
        self._known: OrderedDict[_Key, _Known] = OrderedDict()
        self._look_ups = Places(MOST_LOOK_UPS, Shares(pools.LOOK_UPS, worker.shortages.filled))
        self._slot = worker.recorder.metrics.gauge(KNOWN)

    def __len__(self) -> int:
        return len(self._known)

    def toward(self, plan: BackendPlan, named: Named, ready: Callable[[], None]) -> BackendPlan | None:
        """As `upstream/destinations.Destinations`."""
        try:
            host = names.host_of(named.host)
        except ValueError as error:
            raise NoDestination("forbidden", str(error)) from error
        is_inner = names.is_below(host, self._suffixes)
        if is_inner and not self._rules.allows_some:  # no client learns which names there are
            raise NoDestination("forbidden", f"{host} is a name of the cluster")
        port = named.port or plan.where.port_of(plan.own.tls is not None)
        known = self._of((host, port, plan.own.tunnel is not None), named.client)
        if known.endpoints is None:
            known.waiting.append(ready)
            return None
        if not known.endpoints:
            raise NoDestination("forbidden" if is_inner else "dns", f"{host}:{port} cannot be resolved")
        return plan.toward(host, port, self._usable(known, host, port))

    def close(self) -> None:
        """The worker ends."""
        while self._known:
            self._known.popitem()[1].drop()

    def _of(self, key: _Key, client: str | None) -> _Known:
        now, known = self._worker.clock(), self._known.get(key)
        if known is None:
            self._forget_oldest(now)
            known = self._known[key] = _Known()
            self._count()
        self._known.move_to_end(key)
        known.used = now
        if now >= known.until and not known.is_asked:
            self._ask(key, known, () if client is None else (key_of(client),))
        return known

    def _usable(self, known: _Known, host: str, port: int) -> tuple[Endpoint, ...]:
        """What may be connected to now: the table may have other endpoints than when the name was looked up."""
        holds = self._worker.holds
        usable = tuple(each.endpoint for each in known.open if not any(holds(it, port) for it in each.meanings))
        if not usable:
            why = known.why or "an endpoint of a backend that is configured"
            raise NoDestination("forbidden", f"{host}:{port}: {why}")
        return usable

    # --- look-ups

    def _ask(self, key: _Key, known: _Known, whose: tuple[Key, ...]) -> None:
        """`whose`: shares that the look-up draws on."""
        host, _, is_behind = key
        if is_behind or names.is_address(host):
            self._found(key, known, Found((host,), None))
            return
        if self._look_ups.taken >= MOST_LOOK_UPS or not self._look_ups.fits(*whose):
            if known.endpoints is not None:  # the last answer serves on
                return
            del self._known[key]
            self._count()
            taken = self._look_ups.taken
            raise NoDestination("limit", f"{taken} names are being looked up, of at most {MOST_LOOK_UPS}")
        self._look_ups.hold(*whose)
        known.is_asked = True
        self._worker.spawn(self._look_up(key, known, whose))

    async def _look_up(self, key: _Key, known: _Known, whose: tuple[Key, ...]) -> None:
        host, port, _ = key
        try:
            found = await self._worker.look_up(f"{host}.", port)  # absolute: no search list makes another name of it
        except (OSError, ValueError):
            self._worker.recorder.count(LOOK_UPS, "failed")
            known.endpoints = known.endpoints or ()
            known.until = self._worker.clock() + RETRY
        else:
            self._worker.recorder.count(LOOK_UPS, "found")
            self._found(key, known, found)
        finally:
            self._look_ups.free(*whose)
            known.is_asked = False
        waiting, known.waiting = known.waiting, []
        for ready in waiting:
            ready()

    def _found(self, key: _Key, known: _Known, found: Found) -> None:
        """An answer: judged, and made endpoints of. Those that were there keep their connections."""
        host, port, is_behind = key
        known.endpoints = renewed(known.endpoints or (), found.addresses, port)
        verdicts = [(each, self._why(host, each.address, port, is_behind)) for each in known.endpoints]
        known.open = tuple(
            _Open(each, () if self._rules.allows(each.address) else meanings(each.address))
            for each, why in verdicts
            if not why
        )
        refused = [f"{each.address} {why}" for each, why in verdicts if why]
        known.why = refused[0] if refused else ""
        seconds = Resolver.REFRESH if found.ttl is None else min(max(found.ttl, SHORTEST), LONGEST)
        known.until = self._worker.clock() + seconds

    def _why(self, host: str, address: str, port: int, is_behind: bool) -> str:
        """Why nothing may be sent to this address of a destination; "": it may. Behind a proxy a name is all that is
        known: the proxy judges its addresses."""
        is_inner = names.is_below(host, self._suffixes)
        if not is_behind or names.is_address(host):
            return self._rules.why(address, port, is_inner)
        if is_inner:
            return "is a name of the cluster"
        return "is a name of the proxy's own machine" if names.is_below(host, ("localhost",)) else ""

    # --- bounds

    def _forget_oldest(self, now: float) -> None:
        """For one more: who was used longest ago goes, unless somebody waits for its name."""
        for key, known in [*islice(self._known.items(), MOST_LOOK_UPS + 1)] if self._is_full(now) else ():
            if not known.is_asked:
                del self._known[key]
                known.drop()
                break

    def _is_full(self, now: float) -> bool:
        if len(self._known) >= MOST:
            return True
        return bool(self._known) and now - next(iter(self._known.values())).used > UNUSED

    def _count(self) -> None:
        self._worker.recorder.metrics.slots[self._slot] = len(self._known)
