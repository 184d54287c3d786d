"""Resources by hand, and an applier without a loop: for tests of the table.

table = TableRun()
table.apply(bind(), listener("http"), route("shop", prefix="/shop"))
assert table.find("shop.example", "/shop/1") == "shop"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from dataplane.backends.registry import KINDS
from dataplane.chain.filter import Env, Row
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from dataplane.http.heads import Head
from dataplane.http.messages import Peer
from dataplane.link.buckets import Buckets
from dataplane.net.turns import Turns
from dataplane.table.applier import Applier
from dataplane.table.binds import BindPlan, ListenerPlan, choose
from dataplane.table.plans import BackendPlan, RoutePlan
from dataplane.table.store import ENDPOINT_TYPE, RESOURCE_TYPE, Change
from gatewright.wire.v1 import backend_pb2, listener_pb2, policy_pb2, resource_pb2, route_pb2, traffic_pb2

GATEWAY = "gateway/default/gw"
BIND = "bind/default/gw/8080"
SERVICE = "backend/service/default/shop/80"


def change(resource: resource_pb2.Resource) -> Change:
    return Change(RESOURCE_TYPE, resource.key, resource.SerializeToString())


def gone(key: str) -> Change:
    return Change(RESOURCE_TYPE, key, None)


def bind(port: int = 8080, addresses: Sequence[str] = ()) -> Change:
    resource = resource_pb2.Resource(key=f"bind/default/gw/{port}")
    resource.bind.gateway, resource.bind.port = GATEWAY, port
    resource.bind.addresses.extend(addresses)
    return change(resource)


def listener_key(name: str = "http") -> str:
    return f"listener/gateway/default/gw/{name}"


def listener(
    name: str = "http",
    hostname: str = "",
    bind: str = BIND,
    protocol: listener_pb2.Protocol = listener_pb2.PROTOCOL_HTTP,
    kinds: Iterable[str] = ("HTTPRoute", "GRPCRoute"),
    namespaces: Iterable[str] | None = None,
    listener_set: str = "",
) -> Change:
    """`namespaces` None: all. `listener_set`: name of the set that has it, instead of the Gateway."""
    resource = resource_pb2.Resource(key=listener_key(name))
    message = resource.listener
    message.bind, message.name, message.hostname, message.protocol = bind, name, hostname, protocol
    message.source.kind, message.source.namespace, message.source.name = "Gateway", "default", "gw"
    if listener_set:
        resource.key = f"listener/listenerset/default/{listener_set}/{name}"
        message.source.kind, message.source.name = "ListenerSet", listener_set
    message.admits.kinds.extend(kinds)
    message.admits.all_namespaces = namespaces is None
    message.admits.namespaces.extend(namespaces or ())
    return change(resource)


def service(key: str = SERVICE, empty: bool = False) -> Change:
    resource = resource_pb2.Resource(key=key)
    _, _, namespace, name, port = key.split("/")
    message = resource.backend.service
    message.namespace, message.name, message.port, message.empty = namespace, name, int(port), empty
    return change(resource)


def static(key: str, host: str = "", port: int = 0, unix_path: str = "") -> Change:
    resource = resource_pb2.Resource(key=key)
    message = resource.backend.static
    message.host, message.port, message.unix_path = host, port, unix_path
    return change(resource)


def endpoint(address: str = "10.0.0.1", port: int = 8080, backend: str = SERVICE, zones: Iterable[str] = ()) -> Change:
    name = endpoint_name(address, port, backend)
    message = backend_pb2.Endpoint(key=name, backend=backend, address=address, port=port, zones=zones)
    return Change(ENDPOINT_TYPE, name, message.SerializeToString())


def endpoint_gone(address: str = "10.0.0.1", port: int = 8080, backend: str = SERVICE) -> Change:
    return Change(ENDPOINT_TYPE, endpoint_name(address, port, backend), None)


def endpoint_name(address: str, port: int, backend: str) -> str:
    return f"{backend.removeprefix('backend/service/')}/{address}:{port}"


def match(
    prefix: str | None = None,
    exact: str | None = None,
    regex: str | None = None,
    method: str = "",
    headers: dict[str, str] | None = None,
    query: dict[str, str] | None = None,
    grpc: tuple[str, str] | None = None,
) -> route_pb2.RouteMatch:
    """A value that begins with "~" is a regular expression. `grpc`: service and method, either of both or none so."""
    message = route_pb2.RouteMatch(method=method)
    for kind, value in (("prefix", prefix), ("exact", exact), ("regex", regex)):
        if value is not None:
            setattr(message.path, kind, value)
    if grpc is not None:
        path = message.path.grpc
        path.regex = any(name.startswith("~") for name in grpc)
        path.service, path.method = (name.removeprefix("~") for name in grpc)
        path.SetInParent()
    for field, values in ((message.headers, headers), (message.query, query)):
        for name, value in (values or {}).items():
            entry = field.add(name=name)
            setattr(entry, *(("regex", value[1:]) if value.startswith("~") else ("exact", value)))
    return message


def route_key(name: str, rule: int = 0, kind: str = "HTTPRoute") -> str:
    return f"route/{kind.lower()}/default/{name}/{rule}"


def route(
    name: str,
    *matches: route_pb2.RouteMatch,
    hosts: Iterable[str] = (),
    listeners: Iterable[str] = ("http",),
    parents: Iterable[route_pb2.Parent] | None = None,
    backends: Iterable[str] = (),
    policies: Iterable[policy_pb2.Policy] = (),
    order: str = "",
    rule: int = 0,
    kind: str = "HTTPRoute",
    **one: Any,  # fields of one match, instead of `matches`
) -> Change:
    """`listeners`: sections of the Gateway, each a parent, unless `parents` says otherwise."""
    resource = resource_pb2.Resource(key=route_key(name, rule, kind))
    message = resource.route
    message.source.kind, message.source.namespace, message.source.name = kind, "default", name
    message.rule_index = rule
    message.parents.extend([parent(each) for each in listeners] if parents is None else parents)
    message.hostnames.extend(hosts)
    message.matches.extend([match(**one)] if one else matches)
    for backend in backends:
        message.backends.add(weight=1, backend=backend)
    message.policies.extend(policies)
    message.order = order or f"2026-11-21T12:00:00Z/default/{name}"
    return change(resource)


def parent(section: str = "", port: int = 0, kind: str = "Gateway", name: str = "gw") -> route_pb2.Parent:
    """Listeners of an object in namespace default."""
    source = policy_pb2.ObjectRef(kind=kind, namespace="default", name=name)
    return route_pb2.Parent(object=source, section=section, port=port)


def header(name: str, value: str) -> policy_pb2.Policy:
    policy = policy_pb2.Policy()
    policy.header_modifiers.request.set.add(name=name, value=value)
    return policy


def timeouts(request_ms: int) -> policy_pb2.Policy:
    return policy_pb2.Policy(timeouts=traffic_pb2.Timeouts(request_ms=request_ms))


def exchange(
    method: str = "GET", host: str = "a.example", path: str = "/", query: str = "", headers: bytes = b""
) -> Exchange:
    """`headers`: finished lines (b"a: 1\\r\\n")."""
    target = path + ("?" + query if query else "")
    block = b"\r\nHost: " + host.encode() + b"\r\n" + headers
    x = Exchange(None, method.encode(), target.encode(), Head(block), 0.0)
    x.host = x.authority = host.encode()
    x.path, x.query = path.encode(), query.encode()
    x.client = Peer("192.0.2.1")
    services: Any = SimpleNamespace(turns=Turns(lambda call: None))  # what expressions share their time by
    x.context = services
    return x


class TableRun:
    """An applier with a clock that ticks at each look."""

    def __init__(self, rows: Sequence[Row] = ROWS, tick: float = 0.0, zone: str = "") -> None:
        self.now = 0.0
        self.tick = tick
        self.applier = Applier(
            rows, Env(clock=self._clock, random=lambda: 0.0, buckets=Buckets.local()), zone=zone, kinds=KINDS
        )

    def _clock(self) -> float:
        self.now += self.tick
        return self.now

    def apply(self, *changes: Change) -> int:
        """Apply a state; the number of times that it paused."""
        return sum(1 for _ in self.applier.apply(iter(changes)))

    @property
    def refused(self) -> dict[str, str]:
        return dict(self.applier.outcome.refused)

    def bind(self, key: str = BIND) -> BindPlan:
        return self.applier.current.table.binds[key]

    def listeners(self) -> dict[str, ListenerPlan]:
        """By name, of all binds."""
        plans: list[ListenerPlan | None] = []
        for plan in self.applier.current.table.binds.values():
            plans += [*plan.exact.values(), *plan.wildcards.values(), plan.default]
        return {plan.name: plan for plan in plans if plan is not None}

    def backend(self, key: str = SERVICE) -> BackendPlan | None:
        return self.applier.current.table.backends.get(key)

    def plan(self, x: Exchange, bind: str = BIND) -> RoutePlan | None:
        """Route an exchange as `proxy/request/entry` does."""
        listener = choose(self.bind(bind), x.host)
        x.listener = listener
        return None if listener is None else listener.router.match(x.host, x.path, x)

    def find(self, host: str = "a.example", path: str = "/", **request: Any) -> str | None:  # fields of `exchange`
        """Name of the route that a request finds."""
        plan = self.plan(exchange(host=host, path=path, **request))
        return None if plan is None else plan.key.split("/")[3]


def toy(name: str, build: Callable[[Any, Env], Any], kind: str = "step", plan_field: str = "") -> Row:
    """A row for a policy field, with a builder of the test's own."""
    return Row(name, build, kind, "a test's", plan_field)
