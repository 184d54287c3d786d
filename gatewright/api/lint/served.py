"""What a folder would serve: Gateways without a class, rules without a backend, ports for TLS without TLS.

Called by the checks of lint that look between objects. Each of these is valid, and refuses all requests or has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from gatewright.api.checks.unsupported import LISTENER_PROTOCOLS
from gatewright.api.lint import reach
from gatewright.api.objects.gateway import Gateway
from gatewright.api.objects.gateway_class import GatewayClass
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.routes.http_route import HTTPRoute, HTTPRouteRule
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.schema.names import CONTROLLER_NAME
from gatewright.api.text.problem import Advice

TLS_PORT: Final = 443
"""The port of https (RFC 9110 4.2.2): clients that open it speak TLS."""

Found = Iterator[tuple[ObjectKey, Advice]]


def unknown_classes(objects: reach.Objects, known: Collection[ObjectKey]) -> Found:
    """Gateways whose class is not among `known`."""
    for key, item in objects.items():
        if isinstance(item, Gateway):
            name = item.spec.gateway_class_name
            if ObjectKey("GatewayClass", "", name) not in known:
                message = f"names no GatewayClass of these files, so nobody serves this Gateway: no {name}"
                yield key, Advice(("spec", "gatewayClassName"), message, "error")


def nothing_served(objects: reach.Objects) -> Found:
    """Gateways of which no listener opens a port; and all of them, where no class is ours."""
    gateways = [item for item in objects.values() if isinstance(item, Gateway)]
    classes = {item.key.name: item for item in objects.values() if isinstance(item, GatewayClass)}
    foreign = [each for each in gateways if (of := classes.get(each.spec.gateway_class_name)) and not _is_ours(of)]
    for gateway in foreign:
        if len(foreign) == len(gateways):
            message = f"is of another controller, as all Gateways here: no class is one of {CONTROLLER_NAME}"
            yield gateway.key, Advice(("spec", "gatewayClassName"), message, "error")
    for gateway in gateways:
        listeners = gateway.spec.listeners
        if gateway not in foreign and listeners and all(each.protocol in LISTENER_PROTOCOLS for each in listeners):
            yield (
                gateway.key,
                Advice(("spec", "listeners"), "open no port: none has a protocol that works yet", "error"),
            )


def _is_ours(gateway_class: GatewayClass) -> bool:
    return gateway_class.spec.controller_name == CONTROLLER_NAME


def tls_ports(objects: reach.Objects) -> Found:
    """Listeners without TLS on the port of https."""
    for key, item in objects.items():
        for index, listener in enumerate(item.spec.listeners if isinstance(item, Gateway) else ()):
            if listener.port == TLS_PORT and listener.protocol == "HTTP":
                message = "is the port of https, and the protocol is HTTP: clients that open it speak TLS"
                yield key, Advice(("spec", "listeners", index, "port"), message, "error")


def without_backends(objects: reach.Objects) -> Found:
    """Rules of HTTPRoutes that have no backend, and neither a redirect nor a policy that may answer by itself."""
    policies = [item for item in objects.values() if isinstance(item, GatewayPolicy) and _answers(item)]
    answered = {key for policy in policies for key, _ in reach.targets(policy, objects)}
    for key, item in objects.items():
        if not isinstance(item, HTTPRoute) or answered & {key, *reach.parents(item)}:
            continue
        for index, rule in enumerate(item.spec.rules or ()):
            if not rule.backend_refs and not _redirects(rule):
                message = "has no backendRefs and no RequestRedirect, so every request that it matches gets 500"
                yield key, Advice(("spec", "rules", index), message, "error")


def _answers(policy: GatewayPolicy) -> bool:
    return policy.spec.traffic is not None and policy.spec.traffic.direct_response is not None


def _redirects(rule: HTTPRouteRule) -> bool:
    return any(each.type == "RequestRedirect" for each in rule.filters or ())
