"""From one decoded message to one plan. Pure: what is wrong is raised as `Refused`, and nothing was changed by then."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from dataplane.chain.chain import EMPTY
from dataplane.chain.filter import OF_KIND, SETTING, Refused
from dataplane.chain.network import NetworkGate
from dataplane.http import connect_rules
from dataplane.http.connection_rules import strictest
from dataplane.http.uri import SCHEME_PORTS
from dataplane.net.proxy_rules import ProxyRules
from dataplane.table.binds import HBONE, BindPlan, ListenerPlan, Phases
from dataplane.table.built import Built
from dataplane.table.intern import Interns
from dataplane.table.plans import GRPC_ROUTE, BackendPlan, Destination, ListenerPolicies, RoutePlan, Target, planned
from dataplane.table.router import Router
from dataplane.table.security import TlsPlan
from dataplane.table.sites import is_owned
from dataplane.tls.settings import HANDSHAKE_TIMEOUT, TlsSettings
from dataplane.upstream.backend_rules import Rules
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.kinds import Address, Kind
from dataplane.upstream.parts import Part
from dataplane.upstream.settings import NO_SETTINGS, CloudPlace, Settings, Tls
from dataplane.upstream.versions import BY_REQUEST, HTTP2, configured, speaks_tls
from gatewright.attach.merge import Attached
from gatewright.wire.v1 import backend_pb2, bind_pb2, listener_pb2, route_pb2

PROTOCOLS = frozenset(("HTTP", "HTTPS", "TLS", "TCP", "UDP", HBONE))
"""Of listeners that are opened."""

TCP, UDP = "TCP", "UDP"
BY_PORT = frozenset((TCP, UDP, HBONE))
"""Protocols that say no host name."""

FAMILIES = {"HTTP": "HTTP", "HTTPS": "TLS", "TLS": "TLS", "TCP": "TCP", HBONE: HBONE}
"""Protocols that can share a port are of one family: a connection's first bytes say which it is."""

_PROTOCOLS = {value: name.removeprefix("PROTOCOL_") for name, value in listener_pb2.Protocol.items()}


def route_plan(
    key: str, message: route_pb2.Route, interns: Interns, attached: tuple[Attached[Built], ...] = ()
) -> RoutePlan:
    """The plan of a route rule; `attached`: the policies that name the route or the rule. Raises `Refused`."""
    check_route(key, message)
    policies = interns.with_attached(attached, interns.inline(message.policies, key))
    targets, weights = _targets(message.backends, interns)
    source = message.source
    rule_index = message.rule_index
    log, log_json = _log_fields(
        "route", f"{source.namespace}/{source.name}", "route_rule", message.rule or str(rule_index)
    )
    return RoutePlan(
        key,
        log,
        log_json,
        policies,
        targets,
        weights,
        order=message.order,
        rule_index=rule_index,
        rule=message.rule,
        kind=source.kind,
        http_version=HTTP2 if source.kind == GRPC_ROUTE else BY_REQUEST,
        traces=any(match.method == "TRACE" for match in message.matches),
        is_named=bool(message.hostnames),
    )


def check_route(key: str, message: route_pb2.Route) -> None:
    """Raises `Refused`. Which listeners take a route depends on its kind and namespace, and its key says these too."""
    if not message.parents:
        raise Refused("a route needs a parent")
    source = message.source
    if key != f"route/{source.kind.lower()}/{source.namespace}/{source.name}/{message.rule_index}":
        raise Refused(f"it is of {source.kind} {source.namespace}/{source.name}, which its key does not say")


Targets = tuple[tuple[Target, ...], tuple[int, ...]]


def _targets(references: Sequence[route_pb2.RouteBackend], interns: Interns) -> Targets:
    """Backend references that have a weight, and cumulative weights where there is a choice."""
    if len(references) == 1:
        key: object = (_TARGETS, references[0].SerializeToString())
    else:
        key = (_TARGETS, tuple([reference.SerializeToString() for reference in references]))
    known: Targets | None = interns.kept(key)
    if known is not None:
        return known
    used = [reference for reference in references if reference.weight]
    targets = tuple([_target(reference, interns) for reference in used])
    found = targets, tuple(accumulate(reference.weight for reference in used)) if len(used) > 1 else ()
    if all(target.chain is EMPTY for target in targets):  # others would keep their chains alive
        interns.keep(key, found)
    return found


_TARGETS = "targets"


def _target(reference: route_pb2.RouteBackend, interns: Interns) -> Target:
    for policy in reference.policies:
        _, row = interns.row(policy)
        if row.kind in (SETTING, OF_KIND):
            raise Refused(f"{row.name} is not supported as a filter of a backend reference")
    kind = reference.WhichOneof("target")
    if kind == "backend":
        return Target(reference.backend, "", interns.inline(reference.policies, reference.backend).chain)
    reason = reference.invalid.reason if kind == "invalid" else ""
    return Target("", reason or "a backend reference of a kind that this proxy does not know")


def wanted_backends(message: route_pb2.Route) -> list[str]:
    """Keys of the backends that a route can lead to: those of its plan's targets."""
    return [reference.backend for reference in message.backends if reference.weight and reference.backend]


def listener_plan(
    key: str,
    message: listener_pb2.Listener,
    bind: bind_pb2.Bind,
    router: Router,
    policies: ListenerPolicies,
    tls: TlsPlan | None = None,
) -> ListenerPlan:
    protocol = _PROTOCOLS[message.protocol]
    if protocol == HBONE:
        from dataplane.table import hbone  # here: few proxies are in a mesh

        policies = hbone.policies_of(policies)
    gateway = bind.gateway.removeprefix("gateway/")
    log, log_json = _log_fields("gateway", gateway, "listener", message.name)
    return ListenerPlan(
        key, message.name, gateway, message.hostname, log, log_json, router, bind.port, *policies, protocol, tls
    )


def tls_settings(message: listener_pb2.Listener, policies: ListenerPolicies) -> TlsSettings:
    """How a listener speaks TLS."""
    if message.protocol != listener_pb2.PROTOCOL_HBONE:
        return policies.tls_settings
    from dataplane.table import hbone  # as above

    return hbone.TLS


def check_listener(message: listener_pb2.Listener) -> None:
    """Raises `Refused` for what must not be opened."""
    name = _PROTOCOLS.get(message.protocol, str(message.protocol))
    if name not in PROTOCOLS:
        raise Refused(f"protocol {name} is not supported yet")
    if message.hostname and name in BY_PORT:
        raise Refused(f"a listener of protocol {name} has no hostname: nothing says which host is meant")
    if not message.bind:
        raise Refused("a listener needs a bind")
    if not is_owned(message):
        raise Refused("a listener needs the Gateway or ListenerSet that has it")


def check_bind(message: bind_pb2.Bind) -> None:
    """Raises `Refused`."""
    if not 0 < message.port < 65536:
        raise Refused(f"port {message.port} is not between 1 and 65535")
    for address in message.addresses:
        if not _is_ip(address):
            raise Refused(f"address {address!r} is not an IP address")


def bind_plan(key: str, message: bind_pb2.Bind, listeners: Iterable[ListenerPlan]) -> tuple[BindPlan, dict[str, str]]:
    """A bind with its listeners, and listeners that cannot be on it beside an earlier one, with the reason.

    Of a TCP port the first listener says what is spoken there. UDP's ports are others than TCP's."""
    plan = BindPlan(key, message.port, tuple(message.addresses))
    refused = {}
    spoken: ListenerPlan | None = None
    for listener in listeners:
        if listener.protocol == UDP:
            if plan.datagrams is None:
                plan.datagrams = listener
            else:
                refused[listener.key] = f"{plan.datagrams.key} has the datagrams of the same bind"
            continue
        spoken = spoken or listener
        if FAMILIES.get(listener.protocol) != FAMILIES.get(spoken.protocol):
            why = f"protocol {listener.protocol} cannot share a port with {spoken.protocol} of {spoken.key}"
            refused[listener.key] = why
            continue
        hostname = listener.hostname.lower().encode()
        if not hostname:
            first = plan.default = plan.default or listener
        elif hostname.startswith(b"*."):
            first = plan.wildcards.setdefault(hostname[1:], listener)
        else:
            first = plan.exact.setdefault(hostname, listener)
        if first is not listener:
            refused[listener.key] = f"has the hostname of {first.key} on the same bind"
    plan.of_key = {listener.key: listener for listener in plan.listeners()}
    _before_listeners(plan, tuple(plan.listeners()))
    plan.is_raw = spoken is not None and spoken.protocol == TCP
    return plan, refused


def _before_listeners(plan: BindPlan, listeners: Sequence[ListenerPlan]) -> None:
    """What has to be known of connections before their listener is."""
    plan.connection = strictest(listener.http.connection for listener in listeners)
    plan.tcp = next((listener.tcp for listener in listeners if listener.tcp is not None), None)
    plan.connect = connect_rules.strictest([each.connect for each in listeners if each.connect is not None])
    rules = [rule for listener in listeners for rule in listener.network]
    if rules:
        plan.network = NetworkGate(rules, plan.key, listeners[0])
    phases = Phases(
        any(listener.tls is not None for listener in listeners),  # then no connection is plaintext
        max((listener.tls_settings.handshake_timeout for listener in listeners), default=HANDSHAKE_TIMEOUT),
        _proxy_rules(listeners),
        tuple(dict.fromkeys(listener.http.hops for listener in listeners if listener.http.hops is not None)),
        plan.network,
    )
    if phases.tls or phases.proxy is not None or phases.network is not None:
        plan.phases = phases


def _proxy_rules(listeners: Iterable[ListenerPlan]) -> ProxyRules | None:
    """Of one Gateway, so they are the same; the strictest should they not be."""
    found = [listener.proxy_protocol for listener in listeners if listener.proxy_protocol is not None]
    return max(found, key=lambda each: (bool(each.refused), each.is_strict), default=None)


def kind_of(kinds: Mapping[str, Kind], message: backend_pb2.Backend) -> tuple[Kind, Any]:
    """The row of a backend, and its own part of the message. Raises `Refused`."""
    name = message.WhichOneof("kind")
    kind = None if name is None else kinds.get(name)
    if kind is None:
        raise Refused("a kind of backend that this proxy does not know")
    return kind, getattr(message, kind.name)


def check_endpoint(message: backend_pb2.Endpoint) -> None:
    """Raises `Refused`."""
    if not _is_ip(message.address):
        raise Refused(f"address {message.address!r} is not an IP address")
    if not 0 < message.port < 65536:
        raise Refused(f"port {message.port} is not between 1 and 65535")


def static_address(address: Address | None, is_tls: bool = False) -> tuple[str, int, str] | None:
    """Address, port and socket path of what needs no resolving; None for all others. `is_tls`: which port is meant
    where it has none."""
    if address is None:
        return None
    if address.unix_path:
        return "", 0, address.unix_path
    host = address.host.removeprefix("[").removesuffix("]")
    return (host, address.port or SCHEME_PORTS[b"https" if is_tls else b"http"], "") if _is_ip(host) else None


def backend_plan(
    key: str,
    message: backend_pb2.Backend,
    kinds: Mapping[str, Kind],
    endpoints: Iterable[Endpoint],
    own: Settings = NO_SETTINGS,
    system_tls: Tls | None = None,
    other: Endpoint | None = None,
    rules: Rules | None = None,
    far: Iterable[Endpoint] = (),
    parts: Sequence[Part] = (),
    policies: object = None,
    fallback: Settings = NO_SETTINGS,
) -> BackendPlan:
    """`own`: what the policies of the backend come to; `system_tls`: TLS where no policy says how; `other`: the
    endpoint with TLS of an address without a port; `rules`: what is said for its sake; `far`: endpoints of other zones;
    `parts`: its own, with what policies say of them; `policies`: what those of its kind come to; `fallback`: what
    counts where no policy says it."""
    kind, inner = kind_of(kinds, message)
    found, far = tuple(dict.fromkeys(endpoints)), tuple(dict.fromkeys(far))
    port, protocol = kind.spoken(inner)
    where = Destination(
        kind.name,
        kind.host(inner),
        port,
        configured(BY_REQUEST, protocol),
        system_tls if speaks_tls(protocol) else None,
        other,
        message.refused,
        kind.application(inner),
        kind.refusal,
        kind.keeps_name,
        kind.type,
        kind.protocol,
        fallback,
        CloudPlace(message.cloud.service, message.cloud.region, message.cloud.audience),
        tuple(kind.finishers(inner)),
        kind.by_request,
    )
    address = kind.address(inner)
    named = address.host.lower().encode() if address is not None and address.host and not found else b""
    plan = BackendPlan(key, found, named, rules=rules, far=far, own=own, where=where, parts=tuple(parts))
    plan.of_kind = kind.plan(inner, parts, policies)
    return planned(plan)


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


_is_bare = re.compile(r"[A-Za-z0-9._/*:-]+").fullmatch


def _log_fields(first: str, value: str, second: str, other: str) -> tuple[str, str]:
    """Two log fields as ` name=value` and as `,"name":"value"`; quoted where a value could be misread."""
    if value and other and _is_bare(value + other):  # names of Kubernetes objects always are
        return f" {first}={value} {second}={other}", f',"{first}":"{value}","{second}":"{other}"'
    value, other = json.dumps(value), json.dumps(other)
    return f" {first}={value} {second}={other}", f',"{first}":{value},"{second}":{other}'
