"""What `gatewright up` prints about the objects that it runs: demo servers that they ask for, addresses, lines to try.
Pure.

Reads models of `gatewright.api`; starts nothing.
"""

from __future__ import annotations

import ipaddress
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from controlplane.cli.local.demo import SERVES, Server
from controlplane.cli.local.listeners import ANY_NAME, LOOPBACK, SCHEMES, ServedListener, commands, listeners
from gatewright.api.objects.endpoint_slice import EndpointSlice
from gatewright.api.objects.gateway import Gateway
from gatewright.api.routes.http_route import HTTPRoute, HTTPRouteMatch
from gatewright.api.schema.metadata import KubeObject
from gatewright.attach.hostnames import meeting

DEMO_ANNOTATION = "gatewright.dev/demo"
REQUESTS = ("HTTP", "HTTPS")
"""Protocols of listeners whose routes say which requests they take."""
CURLS = 3
"""Examples of requests that the summary shows."""
_HELLO: Final = {"messages": [{"role": "user", "content": "hello"}]}
BODIES: Final[Mapping[str, Mapping[str, object]]] = {
    "/v1/chat/completions": {"model": "gpt-4o-mini", **_HELLO},
    "/v1/embeddings": {"model": "text-embedding-3-small", "input": "hello"},
    "/v1/messages": {"model": "claude-sonnet-4-5", "max_tokens": 64, **_HELLO},
    "/v1/messages/count_tokens": {"model": "claude-sonnet-4-5", **_HELLO},
    "/v1/responses": {"model": "gpt-4o-mini", "input": "hello"},
}
"""Paths of the APIs of models, and the least that each of them takes by POST."""


def demos(objects: Iterable[KubeObject]) -> tuple[frozenset[Server], list[str]]:
    """The demo servers that EndpointSlices ask for, and what is wrong with what they ask."""
    servers: set[Server] = set()
    complaints: list[str] = []
    for item in objects:
        kind = item.metadata.annotations.get(DEMO_ANNOTATION)
        if kind is None or not isinstance(item, EndpointSlice) or item.address_type == "FQDN":
            continue
        if kind not in SERVES:
            known = ", ".join(sorted(SERVES))
            complaints.append(f"{item.key}: there is no demo server {kind!r}; annotation {DEMO_ANNOTATION}: {known}")
            continue
        for server in _servers(kind, item):
            if ipaddress.ip_address(server.address).is_loopback:
                servers.add(server)
            else:
                complaints.append(f"{item.key}: {server.address} is not loopback; demo servers run on this machine")
    return frozenset(servers), complaints


def _servers(kind: str, item: EndpointSlice) -> Iterator[Server]:
    service = item.service_name or item.metadata.name
    for endpoint in item.endpoints:
        for address in endpoint.addresses:
            for port in item.ports:
                if port.port is not None:
                    yield Server(kind, service, address, port.port)


def curls(gateways: Iterable[Gateway], routes: Sequence[HTTPRoute], offset: int) -> list[str]:
    """Up to three command lines that reach different routes, or else different rules, one for a protocol that none of
    these speaks, then one for each protocol that carries no requests; loopback is all they need."""
    there = listeners(gateways, offset)
    shown = _ranked(there, routes, offset)[:CURLS]
    for protocol in REQUESTS:
        if not any(f"{SCHEMES[protocol]}://" in line for line in shown):
            shown += _ranked([each for each in there if each.protocol == protocol], routes, offset)[:1]
    return [*shown, *commands(there)]


def _ranked(there: Iterable[ServedListener], routes: Sequence[HTTPRoute], offset: int) -> list[str]:
    """One line for each route first, then their further rules."""
    of_gateway: dict[tuple[str, str], list[ServedListener]] = {}
    for listener in there:
        of_gateway.setdefault((listener.gateway.namespace, listener.gateway.name), []).append(listener)
    by_route = [list(dict.fromkeys(_lines(route, of_gateway, offset))) for route in routes]
    longest = max(map(len, by_route), default=0)
    return list(dict.fromkeys(lines[rank] for rank in range(longest) for lines in by_route if rank < len(lines)))


def _lines(
    route: HTTPRoute, of_gateway: Mapping[tuple[str, str], Sequence[ServedListener]], offset: int
) -> Iterator[str]:
    found = [
        listener
        for parent in route.spec.parent_refs
        for listener in of_gateway.get((parent.namespace or route.metadata.namespace or "", parent.name), ())
        if listener.protocol in REQUESTS
        if parent.section_name in (None, listener.name) and parent.port in (None, listener.port - offset)
        if meeting(listener.hostname, route.spec.hostnames) is not None
    ]
    for rule in route.spec.rules:
        for match in rule.matches[:1] or (HTTPRouteMatch(),):
            if found and is_literal(match):
                yield request_line(found[0], route.spec.hostnames, match)


def _host(listener: str, names: Sequence[str]) -> str:
    """One that a listener and its route take; empty: any. `names`: those of the route that the listener has."""
    return min(filter(None, (*names[:1], listener)), key=lambda each: (each.startswith("*"), -len(each)), default="")


def is_literal(match: HTTPRouteMatch) -> bool:
    """A regular expression does not say what to ask for."""
    types = {match.path.type, *(header.type for header in match.headers), *(each.type for each in match.query_params)}
    return "RegularExpression" not in types


def request_line(listener: ServedListener, hostnames: Sequence[str], match: HTTPRouteMatch) -> str:
    """The line for a request that this match of a route with these hosts takes."""
    host = _host(listener.hostname, meeting(listener.hostname, hostnames) or ()).replace("*", ANY_NAME)
    query = urlencode([(parameter.name, parameter.value) for parameter in match.query_params])
    words = ["curl", "-i"]
    body = BODIES.get(match.path.value) if match.method in (None, "POST") else None
    if body is None and match.method not in (None, "GET"):
        words += ["-X", str(match.method)]
    address, headers = listener.address, [(header.name, header.value) for header in match.headers]
    if listener.protocol == "HTTPS":
        words.append("-k")  # people's own machines have certificates of their own
        if host:  # the name is that of the handshake as well
            words += ["--resolve", f"{host}:{listener.port}:{LOOPBACK}"]
            address = f"https://{host}:{listener.port}"
    elif host:
        headers.insert(0, ("host", host))
    for name, value in headers:
        words += ["-H", f"{name}: {value}"]
    if body is not None:  # curl sends it by POST
        words += ["-H", "content-type: application/json", "-d", json.dumps(body)]
    words.append(f"{address}{match.path.value}" + (f"?{query}" if query else ""))
    return shlex.join(words)
