"""States as a controller would send them, made here: for benchmarks of a proxy that should not measure the controller.

Made lazily, resource by resource, so that a state of 100,000 routes costs the benchmark no memory of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dataplane.table.store import ENDPOINT_TYPE, RESOURCE_TYPE, Change
from gatewright import revisions
from gatewright.wire.v1 import backend_pb2, listener_pb2, policy_pb2, resource_pb2, route_pb2, traffic_pb2

NAME = "bench"
GATEWAY = f"gateway/default/{NAME}"
LISTENER = f"listener/gateway/default/{NAME}/http"
_OWNER = policy_pb2.ObjectRef(kind="Gateway", namespace="default", name=NAME)
OTHER_LISTENER = f"listener/gateway/default/{NAME}/other"
BACKEND = "backend/service/default/origin/80"
TRAFFIC_HOST = "traffic.example"


def host(number: int) -> str:
    return f"h{number}.example"


class States:
    """Changes of one Gateway with `count` routes, each with a hostname, a header modifier and a timeout of its own."""

    def __init__(self, count: int, port: int = 8080, upstreams: Sequence[int] = ()) -> None:
        self.count = count
        self.bind_key = f"bind/default/{NAME}/{port}"
        self.port, self.upstreams = port, upstreams

    def gateway(self) -> Iterator[Change]:
        """Everything but the routes of `routes`; the route of TRAFFIC_HOST is here."""
        yield from self.endpoints(range(1))
        yield _change(GATEWAY, gateway=resource_pb2.Resource().gateway)
        bind = resource_pb2.Resource().bind
        bind.gateway, bind.port = GATEWAY, self.port
        bind.addresses.append("127.0.0.1")
        yield _change(self.bind_key, bind=bind)
        yield from self.listener(LISTENER)
        service = backend_pb2.ServiceBackend(namespace="default", name="origin", port=80)
        yield _change(BACKEND, backend=backend_pb2.Backend(service=service))
        yield _change("route/httproute/default/traffic/0", route=self._route("traffic", TRAFFIC_HOST, 1))

    def listener(self, key: str) -> Iterator[Change]:
        """A listener of the bind; another than LISTENER takes the requests of `routes` over."""
        name = key.rpartition("/")[2]
        hostname = "" if key == LISTENER else "*.example"
        yield _change(
            key,
            listener=listener_pb2.Listener(
                bind=self.bind_key,
                name=name,
                hostname=hostname,
                protocol=listener_pb2.PROTOCOL_HTTP,
                source=_OWNER,
                admits=listener_pb2.Admission(kinds=["HTTPRoute"], all_namespaces=True),
            ),
        )

    def routes(self, numbers: Iterable[int], version: int = 1, alias: bool = False) -> Iterator[Change]:
        """Routes of their own hostname each; `alias`: of a second one as well."""
        for number in numbers:
            message = self._route(f"route-{number}", host(number), version)
            if alias:
                message.hostnames.append(f"alias-{host(number)}")
            yield _change(f"route/httproute/default/route-{number}/0", route=message)

    def crowd(self, numbers: Iterable[int], version: int = 1) -> Iterator[Change]:
        """The same routes, all under one hostname with a path each."""
        for number in numbers:
            message = self._route(f"route-{number}", "crowd.example", version)
            message.matches[0].path.prefix = f"/p{number}"
            yield _change(f"route/httproute/default/route-{number}/0", route=message)

    def guarded(self, name: str, expressions: Sequence[str]) -> Iterator[Change]:
        """A route of its own hostname that all of these have to let in."""
        message = self._route(name, f"{name}.example", 1)
        authorization = message.policies.add().authorization
        authorization.action = traffic_pb2.ACTION_ALLOW
        authorization.policy.match_expressions.extend(expressions)
        yield _change(f"route/httproute/default/{name}/0", route=message)

    def patterned(self, numbers: Iterable[int], matches: int) -> Iterator[Change]:
        """Routes of one hostname with so many regular expressions each, which none of the others has."""
        for number in numbers:
            message = self._route(f"route-{number}", "crowd.example", 1)
            del message.matches[:]
            for index in range(matches):
                message.matches.add().path.regex = f"/r{number}/{index}/[a-z]+"
            yield _change(f"route/httproute/default/route-{number}/0", route=message)

    def removed(self, numbers: Iterable[int]) -> Iterator[Change]:
        for number in numbers:
            yield from self.gone(f"route/httproute/default/route-{number}/0")

    def gone(self, key: str) -> Iterator[Change]:
        yield Change(RESOURCE_TYPE, key, None)

    def endpoints(self, numbers: Iterable[int]) -> Iterator[Change]:
        """The first are the upstreams; the others are addresses without a server."""
        for number in numbers:
            is_real = number < len(self.upstreams)
            address, port = ("127.0.0.1", self.upstreams[number]) if is_real else (_address(number), 80)
            message = backend_pb2.Endpoint(key=_endpoint_name(number), backend=BACKEND, address=address, port=port)
            yield Change(ENDPOINT_TYPE, message.key, message.SerializeToString())

    def endpoints_gone(self, numbers: Iterable[int]) -> Iterator[Change]:
        for number in numbers:
            yield Change(ENDPOINT_TYPE, _endpoint_name(number), None)

    def _route(self, name: str, hostname: str, version: int) -> route_pb2.Route:
        message = route_pb2.Route(
            source=policy_pb2.ObjectRef(kind="HTTPRoute", namespace="default", name=name),
            parents=[route_pb2.Parent(object=_OWNER)],
            hostnames=[hostname],
            matches=[route_pb2.RouteMatch(path=route_pb2.PathMatch(prefix="/"))],
            backends=[route_pb2.RouteBackend(weight=1, backend=BACKEND)],
            order=f"2026-11-21T12:00:00Z/default/{name}",
        )
        modifier = message.policies.add().header_modifiers.response
        modifier.set.add(name="x-version", value=str(version))
        modifier.set.add(name="x-route", value=name)
        message.policies.add().timeouts.request_ms = 30_000
        return message


def _address(number: int) -> str:
    return f"127.9.{number >> 8}.{number & 255}"


def _endpoint_name(number: int) -> str:
    return f"default/origin/80/endpoint-{number}"


def _change(key: str, **kind: object) -> Change:
    return Change(RESOURCE_TYPE, key, revisions.resource(key, **kind).SerializeToString())
