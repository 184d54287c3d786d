"""A valid standalone file as wire resources: what a controller would make of objects that say the same.

Part of standalone, which checks the file first. It reads no file and no variable: contents of secrets are asked of
`resolve`. Keys follow from names and ports alone, so that an edit keeps the keys of everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any, Final

from gatewright.api.checks import certificates
from gatewright.api.checks.certificates import CERTIFICATE, KEY, authorities_problem, revocations_problem
from gatewright.api.frontend.http import FrontendHTTP
from gatewright.api.lower import to_wire
from gatewright.api.objects.gateway import ListenerTLS
from gatewright.api.standalone import prices
from gatewright.api.standalone.backend_resources import NAMESPACE, FileBackends, StdioServer
from gatewright.api.standalone.contents import CONTENTS
from gatewright.api.standalone.file import FileTcpRoute, PlacedListener, PlacedRoute, PlacedStreamRoute, StandaloneFile
from gatewright.api.standalone.secrets import ClientValidation, Content, Unreadable
from gatewright.api.text.places import Path
from gatewright.revisions import resource
from gatewright.wire.v1 import (
    bind_pb2,
    gateway_pb2,
    listener_pb2,
    policy_pb2,
    resource_pb2,
    route_pb2,
    secret_pb2,
    tls_pb2,
)

GATEWAY: Final = "standalone"

_KINDS: Final = {
    "HTTP": ("GRPCRoute", "HTTPRoute"),
    "HTTPS": ("GRPCRoute", "HTTPRoute"),
    "TLS": ("TLSRoute",),
    "TCP": ("TCPRoute",),
    "UDP": ("UDPRoute",),
}
"""Of routes that listeners of each protocol take, sorted: the route says itself which it is."""

_MODES: Final = {
    "AllowValidOnly": tls_pb2.CLIENT_VALIDATION_MODE_ALLOW_VALID_ONLY,
    "AllowInsecureFallback": tls_pb2.CLIENT_VALIDATION_MODE_ALLOW_INSECURE_FALLBACK,
}


Resolve = Callable[[Content], bytes]
"""The text of a content. Raises `Unreadable`."""

_PRICES_KEY: Final = "prices/config"
_GATEWAY_KEY: Final = f"gateway/{NAMESPACE}/{GATEWAY}"
_GATEWAY_REF: Final = policy_pb2.ObjectRef(kind="Gateway", namespace=NAMESPACE, name=GATEWAY)


class Resources:
    """The resources of one file. When all were made, `problems` is what could not be read, by path, and `places` where
    in the file the things stand, by resource key; a route's policies have no key of their own."""

    def __init__(self, content: StandaloneFile, resolve: Resolve | None, socket: str = "") -> None:
        """Without `resolve` a secret whose content is not in the file itself is left out: for those who only check.
        `socket`: path of the Unix socket of those `servers` that the proxy starts."""
        self.problems: list[tuple[Path, str]] = []
        self.places: dict[str, Path] = {_GATEWAY_KEY: ()}
        self._content, self._resolve = content, resolve
        self._backends = FileBackends(content, self._references, self.problems, socket or "/nowhere")
        self._secrets: dict[str, secret_pb2.Secret] = {}
        self.certificates: dict[Path, bytes] = {}
        """Those of listeners, and of what is below them, with those that signed them, by path."""

    @property
    def servers(self) -> Mapping[str, StdioServer]:
        """Those that the proxy starts, by digest."""
        return self._backends.servers

    def made(self) -> list[resource_pb2.Resource]:
        """All of them, parents first, what others name before these."""
        for index, backend in enumerate(self._content.backends):
            self.places[self._backends.key(("backends", index), backend)] = ("backends", index)
        routes = []
        for index, place in enumerate(self._content.routes()):
            route = self._route(place, f"{index:06}")
            key = f"route/{route.source.kind.lower()}/{NAMESPACE}/{place.name}/0"
            self.places[key] = place.path
            routes.append(resource(key, route=route))
        for index, stream in enumerate(self._content.stream_routes()):
            key = f"route/{stream.kind.lower()}/{NAMESPACE}/{stream.name}/0"
            self.places[key] = stream.path
            routes.append(resource(key, **self._stream_route(stream, f"{index:06}")))
        policies = [*self._frontend_policies(), *self._listener_policies()]
        return [
            *self._places(),
            *(resource(key, backend=message) for key, message in self._backends.made.items()),
            *(resource(key, secret=message) for key, message in self._secrets.items()),
            *policies,
            *routes,
            *self._prices(),
        ]

    def _prices(self) -> Iterator[resource_pb2.Resource]:
        wanted = self._content.config.prices
        if wanted is None:
            return
        found = dict(self._prices_of_file(wanted)) | dict(wanted.models or {})
        self.places[_PRICES_KEY] = ("config", "prices")
        yield resource(_PRICES_KEY, prices=prices.message(found))

    def _prices_of_file(self, wanted: prices.Prices) -> Mapping[str, prices.ModelPrices]:
        content = wanted.content
        if content is None or self._resolve is None:
            return {}
        try:
            return prices.read(self._resolve(content).decode())
        except (Unreadable, ValueError) as error:
            why = str(error) if isinstance(error, Unreadable) else f'"{wanted.file}": {error}'
            self.problems.append((("config", "prices", "file"), why))
            return {}

    def _places(self) -> Iterator[resource_pb2.Resource]:
        yield resource(_GATEWAY_KEY, gateway=gateway_pb2.Gateway(namespace=NAMESPACE, name=GATEWAY))
        for index, bind in enumerate(self._content.binds):
            self.places[_bind_key(bind.port)] = ("binds", index)
            message = bind_pb2.Bind(gateway=_GATEWAY_KEY, port=bind.port, addresses=bind.addresses)
            yield resource(_bind_key(bind.port), bind=message)
        for placed in self._content.listeners():
            self.places[_listener_key(placed)] = placed.path
            listener = _listener(placed)
            if placed.listener.tls is not None:
                listener.tls.CopyFrom(self._tls(placed, placed.listener.tls))
            yield resource(_listener_key(placed), listener=listener)

    def _route(self, place: PlacedRoute, order: str) -> route_pb2.Route:
        route = place.route
        references = self._references(f"route/{place.name}", (*place.path, "policies"))
        return route_pb2.Route(
            source=policy_pb2.ObjectRef(
                kind="GRPCRoute" if route.is_grpc else "HTTPRoute", namespace=NAMESPACE, name=place.name
            ),
            parents=[route_pb2.Parent(object=_GATEWAY_REF, section=place.listener.name)],
            hostnames=sorted(route.hostnames),
            matches=[to_wire.route_match(match.as_object()) for match in route.matches],
            backends=[
                route_pb2.RouteBackend(
                    weight=item.weight, backend=self._backends.key((*place.path, "backends", index), item)
                )
                for index, item in enumerate(route.backends)
            ],
            policies=[
                *to_wire.policies(route.policies, references),
                *to_wire.backend_policies(route.policies, references),
            ],
            order=order,
        )

    def _stream_route(self, place: PlacedStreamRoute, order: str) -> dict[str, Any]:  # a message, by field of Resource
        route = place.route
        common: dict[str, Any] = {
            "source": policy_pb2.ObjectRef(kind=place.kind, namespace=NAMESPACE, name=place.name),
            "parents": [route_pb2.Parent(object=_GATEWAY_REF, section=place.listener.name)],
            "backends": [
                route_pb2.RouteBackend(
                    weight=item.weight, backend=self._backends.key((*place.path, "backends", index), item)
                )
                for index, item in enumerate(route.backends)
            ],
            "order": order,
        }
        if isinstance(route, FileTcpRoute):
            return {"tcp_route": route_pb2.TcpRoute(hostnames=sorted(route.hostnames), **common)}
        return {"udp_route": route_pb2.UdpRoute(**common)}

    def _listener_policies(self) -> Iterator[resource_pb2.Resource]:
        """Those of a listener, as of a GatewayPolicy of its name whose target it is."""
        for index, placed in enumerate(self._content.listeners()):
            traffic = placed.listener.policies
            if traffic is None:
                continue
            references = self._references(f"listener/{placed.name}", (*placed.path, "policies"))
            for policy in to_wire.policies(traffic, references):
                policy.source.CopyFrom(policy_pb2.ObjectRef(kind="Listener", namespace=NAMESPACE, name=placed.name))
                policy.places.add(object=_GATEWAY_REF, section=placed.name)
                policy.phase = to_wire.PHASES[traffic.phase]
                policy.order = f"{index:06}"
                yield self._policy(f"listener:{placed.name}", policy, placed.path)

    def _frontend_policies(self) -> Iterator[resource_pb2.Resource]:
        frontend = self._content.frontend_policies
        references = self._references(f"gateway:{GATEWAY}", ("frontendPolicies",))
        for policy in to_wire.frontend_policies(frontend, references) if frontend is not None else ():
            policy.source.CopyFrom(_GATEWAY_REF)
            policy.places.add(object=_GATEWAY_REF)
            name = to_wire.frontend_name(_field(policy))
            yield self._policy(f"gateway:{GATEWAY}", policy, ("frontendPolicies", name))
        for placed in self._content.listeners():
            if placed.listener.http is not None:
                yield self._http_of(placed, placed.listener.http.over(frontend.http if frontend is not None else None))

    def _http_of(self, placed: PlacedListener, settings: FrontendHTTP) -> resource_pb2.Resource:
        """How one listener speaks HTTP, where it has settings of its own."""
        policy = to_wire.frontend_http(settings)
        policy.source.CopyFrom(policy_pb2.ObjectRef(kind="Listener", namespace=NAMESPACE, name=placed.name))
        policy.places.add(object=_GATEWAY_REF, section=placed.name)
        return self._policy(f"listener:{placed.name}", policy, (*placed.path, "http"))

    def _policy(self, name: str, policy: policy_pb2.Policy, path: Path) -> resource_pb2.Resource:
        """`name` has a colon, which no object's name has: a controller beside the file cannot send a policy of the same
        key, which would take the place of this one and leave what it protects open."""
        key = f"policy/{NAMESPACE}/{name}/{_field(policy)}"
        self.places[key] = path
        return resource(key, policy=policy)

    def _tls(self, placed: PlacedListener, tls: ListenerTLS) -> tls_pb2.ListenerTls:
        """What a listener does with TLS; its certificates are among the Secrets."""
        if tls.mode == "Passthrough":
            return tls_pb2.ListenerTls(mode=tls_pb2.TLS_MODE_PASSTHROUGH)
        validation: ClientValidation | None = getattr(tls, "validation", None)  # the file's form has it
        return tls_pb2.ListenerTls(
            mode=tls_pb2.TLS_MODE_TERMINATE,
            certificates=[self._certificate(placed, index, tls) for index in range(len(tls.certificate_refs))],
            client_validation=None if validation is None else self._validation(placed.path, validation),
        )

    def _validation(self, path: Path, validation: ClientValidation) -> tls_pb2.ClientValidation:
        """How clients are verified. What cannot be used is noted as a problem."""
        made = tls_pb2.ClientValidation(mode=_MODES[validation.mode])
        for index, each in enumerate(validation.ca_certificate_refs):
            place = (*path, "tls", "validation", "caCertificateRefs", index)
            made.authorities.append(self._pem((*place, "ca.crt"), each.certificates, authorities_problem))
            if each.revocations is not None:
                made.revocations.append(self._pem((*place, "ca.crl"), each.revocations, revocations_problem))
        return made

    def _pem(self, path: Path, content: Content, problem_of: Callable[[str], str]) -> str:
        """A text of certificates; "" where files are not read."""
        try:
            found = self._entry(content)
        except Unreadable as failure:
            self.problems.append(((*path, failure.form), str(failure)))
            return ""
        text = found.decode("utf-8", "replace") if found is not None else ""
        problem = problem_of(text) if found is not None else ""
        if problem:
            self.problems.append((path, problem))
        return text

    def _certificate(self, placed: PlacedListener, index: int, tls: ListenerTLS) -> str:
        """The key of the Secret with a certificate."""
        (key,) = self._secret(f"listener/{placed.name}", placed.path, f"tls/{index}", tls)
        return key

    def _references(self, owner: str, path: Path) -> to_wire.References:
        return to_wire.References(
            partial(self._backends.key, path),
            partial(self._secret, owner, path),
            partial(self._authorities, path),
            partial(self._server, owner, path),
        )

    def _server(self, owner: str, path: Path, where: Path, make: to_wire.ServerMade) -> str:
        """A backend that a policy brings."""
        name = f"{owner}/{'-'.join(map(str, where))}"
        key = f"backend/policy/{NAMESPACE}/{name}"
        self._backends.made[key] = make(self._references(name, (*path, *where, "policies")))
        return key

    def _authorities(self, path: Path, tls: Any) -> tuple[str, ...]:  # Any: the file's form of BackendTLS
        """Certificates of `caCertificateRefs`. What cannot be read is noted as a problem."""
        found = []
        for index, content in enumerate(tls.ca_certificate_refs):
            try:
                text = self._entry(content)
            except Unreadable as failure:
                self.problems.append(((*path, "tls", "caCertificateRefs", index, failure.form), str(failure)))
            else:
                found.append(text.decode("utf-8", "replace") if text is not None else "")
        return tuple(found)

    def _secret(self, owner: str, path: Path, field: str, model: Any) -> tuple[str, ...]:  # Any: as field says
        """The key of the Secret with the contents of one policy. What cannot be read is noted as a problem."""
        policy, _, index = field.partition("/")
        below, contents = CONTENTS[policy](model, index)
        entries: dict[str, bytes] = {}
        for place, name, content in contents:
            try:
                found = self._entry(content)
            except Unreadable as failure:
                self.problems.append(((*path, *below, *place, failure.form), str(failure)))
            else:
                if found is not None:
                    entries[name] = found
        key = self._secret_key(f"secret/{NAMESPACE}/{owner}/{field}", entries)
        self.places[key] = (*path, *below)
        if len(entries) == len(contents):
            namespace, name = NAMESPACE, owner.partition("/")[2]
            self._secrets[key] = secret_pb2.Secret(namespace=namespace, name=name, data=entries)
            if {CERTIFICATE, KEY} <= entries.keys():
                self._check_pair(self.places[key], entries[CERTIFICATE], entries[KEY])
        return (key,)

    def _secret_key(self, key: str, entries: Mapping[str, bytes]) -> str:
        """Another key where one host has policies of its own in several places, and other secrets in each."""
        for number in count(2):
            known = self._secrets.get(key)
            if known is None or dict(known.data) == entries:
                return key
            key = f"{key.partition('#')[0]}#{number}"
        raise AssertionError("there is no end of numbers")

    def _check_pair(self, path: Path, chain: bytes, key: bytes) -> None:
        """One that cannot be used is noted as a problem."""
        problem = certificates.pair_problem(chain, key)
        if problem is not None:
            self.problems.append(((*path, problem.entry), problem.text))
        elif path[0] == "binds":
            self.certificates[path] = chain

    def _entry(self, content: Content | str) -> bytes | None:
        """None: files are not read. Raises `Unreadable`."""
        if isinstance(content, str):
            return content.encode()
        if content.value is not None:
            return content.value.encode()
        return self._resolve(content) if self._resolve is not None else None


def _bind_key(port: int) -> str:
    return f"bind/{NAMESPACE}/{GATEWAY}/{port}"


def _listener_key(placed: PlacedListener) -> str:
    return f"listener/gateway/{NAMESPACE}/{GATEWAY}/{placed.name}"


def _field(policy: policy_pb2.Policy) -> str:
    """Which setting it is: each policy here has one."""
    return policy.WhichOneof("field") or ""


def _listener(placed: PlacedListener) -> listener_pb2.Listener:
    return listener_pb2.Listener(
        bind=_bind_key(placed.bind.port),
        name=placed.name,
        protocol=f"PROTOCOL_{placed.listener.protocol}",
        hostname=placed.listener.hostname or "",
        source=_GATEWAY_REF,
        admits=listener_pb2.Admission(kinds=_KINDS[placed.listener.protocol], namespaces=[NAMESPACE]),
    )
