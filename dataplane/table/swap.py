"""The work of applying one state, in order: endpoints and backends, binds and listeners, routes, then the swap.

A step is one resource; `run` yields after each, and the applier decides when to pause. A resource is judged whole
before anything is changed, so that a bad one leaves its last good version untouched.
"""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from dataplane.chain.filter import Refused
from dataplane.table import compile as compiler
from dataplane.table.draft import RouterDraft
from dataplane.table.matches import Placement, place
from dataplane.table.outcome import Outcome
from dataplane.table.parted import Container, PartedDict, grown
from dataplane.table.plans import BackendPlan
from dataplane.table.router import EMPTY, Level
from dataplane.table.store import (
    ENDPOINT_TYPE,
    RESOURCE_TYPE,
    BackendRecord,
    Change,
    EndpointRecord,
    RouteRecord,
    decode,
    decode_endpoint,
    decode_route,
)
from dataplane.table.table import Table
from dataplane.upstream.endpoint import Endpoint
from gatewright.wire.v1 import route_pb2

if TYPE_CHECKING:
    from dataplane.table.applier import Applier

Work = Iterator[None]
Handler = Callable[[str, bytes | None], None]

ENDPOINT = "/endpoint"
"""The group of endpoints: their names do not begin with a kind, and no key begins with this."""


class Swap:
    def __init__(self, applier: Applier) -> None:
        self.of = applier
        self.store = applier.store
        self.refused: dict[str, str] = {}
        self.drafts: dict[str, RouterDraft] = {}
        """By listener: routers that change."""
        self.new_listeners: list[str] = []
        self.listeners: set[str] = set()
        """Whose plans are made anew."""
        self.binds: set[str] = set()
        self.dirty_backends: dict[str, None] = {}
        self.backends: Container[str, BackendPlan] | None = None
        """Changed copy of the table's."""
        self.unblocked: list[str] = []
        self.released: list[Endpoint] = []
        self.garbage: list[Any] = []
        """Pieces of the old table, of any type, kept until they can be dropped one by one."""
        self.handlers: dict[str, Handler] = {
            ENDPOINT: self._endpoint,
            "backend": self._backend,
            "gateway": self._gateway,
            "bind": self._bind,
            "listener": self._listener,
            "route": self._route,
            "": self._unknown,
        }

    def run(self, changes: Iterable[Change]) -> Work:
        groups: dict[str, deque[Change]] = {kind: deque() for kind in self.handlers}
        yield from self._sort(changes, groups)
        del changes
        for kind in (ENDPOINT, "backend"):
            yield from self._handle(kind, groups)
        yield from self._make_backends()
        for kind in ("gateway", "bind", "listener"):
            yield from self._handle(kind, groups)
        yield from self._fill_new_listeners()
        for kind in ("route", ""):
            yield from self._handle(kind, groups)
        yield from self._enter_unblocked()
        self._publish()
        yield from self._dispose()

    def _sort(self, changes: Iterable[Change], groups: dict[str, deque[Change]]) -> Work:
        """By kind, which a key begins with; the name of an endpoint does not."""
        for change in changes:
            kind = ""
            if change.type_url == RESOURCE_TYPE:
                kind = change.name.partition("/")[0]
            elif change.type_url == ENDPOINT_TYPE:
                kind = ENDPOINT
            groups[kind if kind in groups else ""].append(change)
            yield

    def _handle(self, kind: str, groups: dict[str, deque[Change]]) -> Work:
        handler, group = self.handlers[kind], groups[kind]
        while group:
            _, name, value = group.popleft()
            self._judge(handler, name, value)
            yield

    def _judge(self, handler: Handler, name: str, value: bytes | None) -> None:
        try:
            handler(name, value)
        except Refused as error:
            self.refused[name] = self.of.refused[name] = str(error)
        else:
            self.of.refused.pop(name, None)

    # Endpoints and backends.

    def _endpoint(self, name: str, value: bytes | None) -> None:
        old = self.store.endpoints.get(name)
        new = None
        if value is not None:
            message = decode_endpoint(name, value)
            compiler.check_endpoint(message)
            new = EndpointRecord(message.backend, self.of.carryover.take(message.address, message.port))
            self.store.endpoints[name] = new
            self.store.endpoints_of.add(new.backend, name)
            self.dirty_backends[new.backend] = None
        if old is not None:
            self.released.append(old.endpoint)
            self.dirty_backends[old.backend] = None
            if new is None:
                del self.store.endpoints[name]
            if new is None or new.backend != old.backend:
                self.store.endpoints_of.remove(old.backend, name)

    def _backend(self, key: str, value: bytes | None) -> None:
        old = self.store.backends.get(key)
        if value is None:
            if old is not None:
                del self.store.backends[key]
        else:
            if old is not None and old.raw == value:
                return
            message = decode(key, value).backend
            compiler.check_backend(message)
            address = compiler.static_address(message)
            static = None if address is None else self.of.carryover.take(*address)
            self.store.backends[key] = BackendRecord(message, value, static)
        if old is not None and old.static is not None:
            self.released.append(old.static)
        self.dirty_backends[key] = None

    def _make_backends(self) -> Work:
        for key in self.dirty_backends:
            self._make_backend(key)
            if key in self.of.blocked and self._ready(key):
                self.unblocked.extend(self.of.blocked[key])
            yield

    def _make_backend(self, key: str) -> None:
        record = self.store.backends.get(key)
        old = self.of.backends.get(key)
        if record is None:
            if old is not None:
                del self._changed_backends()[key]
            return
        if record.static is not None:
            endpoints = [record.static]
        else:
            endpoints = [self.store.endpoints[name].endpoint for name in self.store.endpoints_of.of(key)]
        new = compiler.backend_plan(key, record.message, endpoints)
        if old is None or (old.endpoints, old.host, old.port) != (new.endpoints, new.host, new.port):
            self._changed_backends()[key] = new
            self.backends = grown(self._changed_backends())

    def _changed_backends(self) -> Container[str, BackendPlan]:
        if self.backends is None:
            self.backends = self.of.backends.copy()
        return self.backends

    def _ready(self, backend: str) -> bool:
        """A backend may be used once it has an endpoint or is known to have none. One that is not there waits for
        nothing: its requests are answered with 500."""
        record = self.store.backends.get(backend)
        if record is None or record.message.WhichOneof("kind") != "service":
            return True
        return record.message.service.empty or self.store.endpoints_of.has(backend)

    # Binds and listeners.

    def _gateway(self, key: str, value: bytes | None) -> None:
        """Its names are in the keys of binds; kept so that a dump of the store is complete."""
        if value is None:
            self.store.gateways.pop(key, None)
        else:
            decode(key, value)
            self.store.gateways[key] = value

    def _bind(self, key: str, value: bytes | None) -> None:
        if value is None:
            if self.store.binds.pop(key, None) is None:
                return
        else:
            message = decode(key, value).bind
            compiler.check_bind(message)
            if self.store.binds.get(key) == message:
                return
            self.store.binds[key] = message
        self.binds.add(key)
        self.listeners.update(self.store.listeners_of.of(key))

    def _listener(self, key: str, value: bytes | None) -> None:
        old = self.store.listeners.get(key)
        if value is not None:
            message = decode(key, value).listener
            compiler.check_listener(message)
            if old == message:
                return
            self.store.listeners[key] = message
            self.listeners.add(key)
            if old is None:
                self.of.routers[key] = EMPTY
                self.new_listeners.append(key)
        elif old is None:
            return
        else:
            self._drop_listener(key)
        if old is not None:
            self.store.listeners_of.remove(old.bind, key)
            self.binds.add(old.bind)
        if value is not None:
            self.store.listeners_of.add(message.bind, key)
            self.binds.add(message.bind)

    def _drop_listener(self, key: str) -> None:
        """Its routes stay in the store: they name other listeners, or this one comes back."""
        del self.store.listeners[key]
        self.of.listener_plans.pop(key, None)
        router = self.of.routers.pop(key)
        self.garbage.extend(_pieces(router.hosts) + _pieces(router.wildcards) + [router.any])

    def _fill_new_listeners(self) -> Work:
        """Enter the routes that were there before their listener."""
        for listener in self.new_listeners:
            if listener not in self.of.routers:
                continue  # removed by the same state
            for key in self.store.routes_of.of(listener):
                record = self.store.routes[key]
                message = decode_route(record.raw)
                draft = self._draft(listener)
                assert draft is not None  # it is new, so it is there
                placements = place(message, record.plan)
                for hostname in compiler.hostnames(message):
                    draft.add(hostname, placements)
                yield

    # Routes.

    def _route(self, key: str, value: bytes | None) -> None:
        record = self.store.routes.get(key)
        if value is None:
            self._unwait(key)
            if record is not None:
                self._leave(key, record)
            return
        if record is not None and record.raw == value:
            self._unwait(key)
            return
        message = decode(key, value).route
        plan = compiler.route_plan(key, message, self.of.interns)
        placements = place(message, plan)
        self._unwait(key)
        blocking = [backend for backend in compiler.wanted_backends(message) if not self._ready(backend)]
        if blocking:
            self._wait(key, value, blocking)
            return
        if record is not None:
            self._leave(key, record)
        self.store.routes[key] = RouteRecord(value, plan)
        self._enter(key, message, placements)

    def _enter(self, key: str, message: route_pb2.Route, placements: list[Placement]) -> None:
        hostnames = compiler.hostnames(message)
        for listener in dict.fromkeys(message.listeners):
            self.store.routes_of.add(listener, key)
            draft = self._draft(listener)
            if draft is not None:
                for hostname in hostnames:
                    draft.add(hostname, placements)

    def _leave(self, key: str, record: RouteRecord) -> None:
        message = decode_route(record.raw)
        placements = place(message, record.plan)
        hostnames = compiler.hostnames(message)
        for listener in dict.fromkeys(message.listeners):
            self.store.routes_of.remove(listener, key)
            draft = self._draft(listener)
            if draft is not None:
                for hostname in hostnames:
                    draft.remove(hostname, placements, record.plan)
        del self.store.routes[key]
        self.garbage.append(record)

    def _draft(self, listener: str) -> RouterDraft | None:
        """The next router of a listener; None when the listener is not there."""
        draft = self.drafts.get(listener)
        if draft is None:
            router = self.of.routers.get(listener)
            if router is None:
                return None
            draft = self.drafts[listener] = RouterDraft(router)
            for container in (router.hosts, router.wildcards):
                self.garbage.extend(container.parts() if type(container) is PartedDict else ())
        return draft

    def _wait(self, key: str, value: bytes, backends: list[str]) -> None:
        self.of.waiting[key] = value
        for backend in backends:
            self.of.blocked.setdefault(backend, {})[key] = None

    def _unwait(self, key: str) -> None:
        value = self.of.waiting.pop(key, None)
        if value is None:
            return
        for backend in dict.fromkeys(compiler.wanted_backends(decode_route(value))):
            routes = self.of.blocked.get(backend)
            if routes is not None:
                routes.pop(key, None)
                if not routes:
                    del self.of.blocked[backend]

    def _enter_unblocked(self) -> Work:
        for key in self.unblocked:
            value = self.of.waiting.get(key)
            if value is not None:
                self._judge(self._route, key, value)
            yield

    def _unknown(self, name: str, value: bytes | None) -> None:
        """A type or kind that this proxy has no use for."""
        if value is not None:
            decode(name, value)
            raise Refused("a kind of resource that this proxy does not know")

    # The swap.

    def _publish(self) -> None:
        of, old = self.of, self.of.current.table
        for key, draft in self.drafts.items():
            if key in of.routers:
                of.routers[key] = draft.finish()
                self.listeners.add(key)
            self.garbage.extend(draft.replaced)
        self._make_listeners()
        binds = self._make_binds()
        if self.backends is not None:
            self.garbage.extend(_pieces(of.backends))
            of.backends = self.backends
        if self.binds or self.backends is not None or not old.version:
            of.current.table = Table(old.version + 1, binds, of.backends)
        standing = dict(ChainMap(of.refused, *of.conflicts.values()))
        of.outcome = Outcome(self.refused, binds, standing, frozenset(of.waiting))

    def _make_listeners(self) -> None:
        for key in self.listeners:
            message = self.store.listeners.get(key)
            bind = None if message is None else self.store.binds.get(message.bind)
            if message is None or bind is None:
                continue
            self.of.listener_plans[key] = compiler.listener_plan(key, message, bind, self.of.routers[key])
            self.binds.add(message.bind)

    def _make_binds(self) -> dict[str, Any]:
        binds = dict(self.of.current.table.binds)
        for key in self.binds:
            binds.pop(key, None)
            self.of.conflicts.pop(key, None)
            message = self.store.binds.get(key)
            listeners = sorted(self.store.listeners_of.of(key))
            if message is None or not listeners:
                continue  # no port is opened for nobody
            plans = [self.of.listener_plans[listener] for listener in listeners]
            binds[key], refused = compiler.bind_plan(key, message, plans)
            self.refused |= refused
            self.of.conflicts[key] = refused
        return binds

    def _dispose(self) -> Work:
        """Drop the old table piece by piece."""
        for endpoint in self.released:
            self.of.carryover.give_back(endpoint)
            yield
        garbage = self.garbage
        self.drafts.clear()
        while garbage:
            piece = garbage.pop()
            if type(piece) is Level:
                for container in (piece.exact, piece.prefixes):
                    garbage.extend(container.parts() if type(container) is PartedDict else ())
            yield


def _pieces(container: Container[Any, Any]) -> list[Any]:
    """What can be dropped one by one, so that dropping the container itself frees little; of any type."""
    return container.parts() if type(container) is PartedDict else list(container.values())
