"""The standalone file (`gatewright-proxy -f`): text to wire resources, settings and problems.

Called by the proxy's agent and by lint, so that both read a file alike. It opens no file. A file with an error gives
no resources at all: its reader keeps the last good ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from gatewright.api import names, to_wire, yaml_text
from gatewright.api.advice import Advice
from gatewright.api.documents import NO_EFFECT, split_documents
from gatewright.api.errors import findings
from gatewright.api.expressions import broken_expressions
from gatewright.api.http_filters import HTTPRouteFilter
from gatewright.api.log_level import parse_log_level
from gatewright.api.nulls import without_nulls
from gatewright.api.places import Path, Place, Subject
from gatewright.api.problem import UNSUPPORTED, Problem, path_text
from gatewright.api.references import BackendObjectReference
from gatewright.api.standalone_backends import FileBackend, FileRouteBackend
from gatewright.api.standalone_config import Config
from gatewright.api.standalone_file import PlacedListener, PlacedRoute, StandaloneFile, meeting
from gatewright.api.standalone_policies import FileMirror, RoutePolicies
from gatewright.api.targets import target
from gatewright.api.unsupported import LISTENER_PROTOCOLS, STANDALONE, unsupported_fields
from gatewright.wire.v1 import (
    backend_pb2,
    bind_pb2,
    gateway_pb2,
    listener_pb2,
    policy_pb2,
    resource_pb2,
    route_pb2,
    traffic_pb2,
)

_FOR_A_CONTROLLER: Final = "a file with apiVersion and kind is for a controller: run its folder with `gatewright up`"

NAMESPACE: Final = "default"
GATEWAY: Final = "standalone"
REVISION: Final = 1
"""Wire revision of the resources."""

_GATEWAY_KEY: Final = f"gateway/{NAMESPACE}/{GATEWAY}"
_TOP_LEVEL: Final = ("binds", "config", "backends", "frontendPolicies")


@dataclass(frozen=True, slots=True)
class Standalone:
    """What a file says. With an error among `problems` there are no resources, and settings are the defaults."""

    settings: Config
    resources: tuple[resource_pb2.Resource, ...]
    problems: tuple[Problem, ...]
    content: StandaloneFile | None = None
    """The file's own values, when they are valid."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that keep the file from being applied."""
        return tuple(problem for problem in self.problems if problem.severity == "error")


def is_standalone(value: Any) -> bool:
    """Whether a document is a standalone file rather than a Kubernetes object."""
    return isinstance(value, dict) and not {"apiVersion", "kind"} & set(value) and bool(set(_TOP_LEVEL) & set(value))


def load(text: str, file: str, log_modules: Collection[str] | None = None) -> Standalone:
    """Read a file. `log_modules` are the names that `config.logging.level` may use; None: any."""
    documents = split_documents(text)
    if len(documents) != 1:
        message = f"must be one document; {_FOR_A_CONTROLLER}"
        if not documents:
            message = "is empty; write `binds: []` to serve nothing"
        line = documents[1][0] if documents else 1
        return Standalone(Config(), (), (Problem(file, line, "", "", message),))
    first_line, document = documents[0]
    try:
        value = yaml_text.load(document)
    except yaml_text.TextError as failure:
        line = first_line + failure.line - 1
        return Standalone(Config(), (), (Problem(file, line, "", "", failure.message, column=failure.column),))
    subject = Subject(Place(document, file, first_line), (), "")
    if not isinstance(value, dict):
        return Standalone(Config(), (), (subject.problem((), f"must be an object with {', '.join(_TOP_LEVEL)}"),))
    if {"apiVersion", "kind"} <= set(value):
        return Standalone(Config(), (), (subject.problem((), _FOR_A_CONTROLLER),))
    return _read(value, subject, log_modules)


def _read(value: dict[str, Any], subject: Subject, log_modules: Collection[str] | None) -> Standalone:
    conflicts: list[names.BothSpellings] = []
    document = without_nulls(names.canonical(value, conflicts))
    problems = [
        subject.problem(clash.neutral, f"is the same as {path_text(clash.canonical)}: set only one of them")
        for clash in conflicts
    ]
    problems += [subject.problem(found.path, found.message) for found in broken_expressions(StandaloneFile, document)]
    try:
        content = StandaloneFile.model_validate(document)
    except ValidationError as failure:
        problems += [
            subject.problem(found.path, found.message) for found in findings(failure, StandaloneFile, document)
        ]
        return Standalone(Config(), (), _sorted(problems))
    problems += [subject.problem(path, message, unsupported=True) for path, message in _unsupported(content)]
    try:
        parse_log_level(content.config.logging.level, log_modules)
    except ValueError as failure:
        problems.append(subject.problem(("config", "logging", "level"), str(failure)))
    if problems:
        return Standalone(Config(), (), _sorted(problems), content)
    return Standalone(content.config, tuple(_resources(content)), (), content)


def _unsupported(content: StandaloneFile) -> Iterator[tuple[Path, str]]:
    """What is valid and cannot be honoured yet."""
    yield from unsupported_fields(STANDALONE, content)
    for placed in content.listeners():
        if placed.listener.protocol in LISTENER_PROTOCOLS:
            yield (*placed.path, "protocol"), f"{UNSUPPORTED}{placed.listener.protocol}"


def without_effect(content: StandaloneFile) -> Iterator[Advice]:
    """Retries and mirrors: the proxy reads them and will act on them with the policies."""
    for place in content.routes():
        for name, setting in (
            ("retry", place.route.policies.retry),
            ("requestMirror", place.route.policies.request_mirror),
        ):
            if setting is not None:
                yield Advice((*place.path, "policies", name), NO_EFFECT)


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))


def _resources(content: StandaloneFile) -> Iterator[resource_pb2.Resource]:
    """Parents first. Keys follow from names and ports alone, so that an edit keeps the keys of everything else."""
    yield _resource(_GATEWAY_KEY, gateway=gateway_pb2.Gateway(namespace=NAMESPACE, name=GATEWAY))
    for bind in content.binds:
        yield _resource(
            _bind_key(bind.port), bind=bind_pb2.Bind(gateway=_GATEWAY_KEY, port=bind.port, addresses=bind.addresses)
        )
    for placed in content.listeners():
        yield _resource(_listener_key(placed), listener=_listener(placed))
    backends: dict[str, backend_pb2.Backend] = {}
    for backend in content.backends:
        backends[_backend_key(backend)] = _backend(backend.host or "")
    routes = [
        _resource(f"route/{NAMESPACE}/{place.name}/0", route=_route(place, f"{index:06}", backends))
        for index, place in enumerate(content.routes())
    ]
    for key, message in backends.items():
        yield _resource(key, backend=message)
    yield from routes


def _resource(key: str, **kind: Any) -> resource_pb2.Resource:  # Any: one message of Resource.kind, by field name
    return resource_pb2.Resource(key=key, revision=REVISION, min_revision=REVISION, **kind)


def _bind_key(port: int) -> str:
    return f"bind/{NAMESPACE}/{GATEWAY}/{port}"


def _listener_key(placed: PlacedListener) -> str:
    return f"listener/{NAMESPACE}/{GATEWAY}/{placed.name}"


def _backend_key(reference: FileBackend | FileRouteBackend | FileMirror) -> str:
    """Of a backend by name, or by the host it names: hosts contain a colon, names cannot."""
    name = reference.name if isinstance(reference, FileBackend) else reference.backend
    return f"backend/gatewaybackend/{NAMESPACE}/{name or target(reference.host or '')}"


def _backend(host: str) -> backend_pb2.Backend:
    where = target(host)
    return backend_pb2.Backend(
        static=backend_pb2.StaticBackend(host=where.host, port=where.port, unix_path=where.unix_path)
    )


def _listener(placed: PlacedListener) -> listener_pb2.Listener:
    return listener_pb2.Listener(
        bind=_bind_key(placed.bind.port),
        name=placed.name,
        protocol=listener_pb2.PROTOCOL_HTTP,
        hostname=placed.listener.hostname or "",
    )


def _route(place: PlacedRoute, order: str, backends: dict[str, backend_pb2.Backend]) -> route_pb2.Route:
    """A route; the hosts that it names itself are added to `backends`."""
    route = place.route

    def key(reference: FileRouteBackend | FileMirror) -> str:
        name = _backend_key(reference)
        if reference.host is not None:
            backends.setdefault(name, _backend(reference.host))
        return name

    return route_pb2.Route(
        source=policy_pb2.ObjectRef(kind="HTTPRoute", namespace=NAMESPACE, name=place.name),
        listeners=[_listener_key(place.listener)],
        hostnames=sorted(meeting(route.hostnames, place.listener.listener.hostname)),  # as a controller does
        matches=[to_wire.route_match(match) for match in route.matches],
        backends=[route_pb2.RouteBackend(weight=item.weight, backend=key(item)) for item in route.backends],
        policies=_policies(route.policies, key(route.policies.request_mirror) if route.policies.request_mirror else ""),
        order=order,
    )


def _policies(policies: RoutePolicies, mirror_key: str) -> list[policy_pb2.Policy]:
    """As for the rule of an HTTPRoute with the same settings: the settings become its filters."""
    modifiers = policies.header_modifiers
    settings: dict[str, Any] = {
        "RequestHeaderModifier": modifiers and modifiers.request,
        "ResponseHeaderModifier": modifiers and modifiers.response,
        "URLRewrite": policies.url_rewrite,
        "RequestRedirect": policies.request_redirect,
    }
    filters = [
        HTTPRouteFilter.model_validate({"type": kind, _FILTER_FIELDS[kind]: setting})
        for kind, setting in settings.items()
        if setting is not None
    ]
    lowered = to_wire.rule_policies(filters, mirror_target=_no_reference)
    if policies.request_mirror is not None:
        mirror = to_wire.lower(policies.request_mirror, traffic_pb2.RequestMirror())
        mirror.backend = mirror_key
        lowered.append(policy_pb2.Policy(request_mirror=mirror))
    lowered += to_wire.rule_policies((), policies.timeouts, policies.retry, mirror_target=_no_reference)
    return lowered


def _no_reference(_: BackendObjectReference) -> None:
    """The file has no mirrors among its filters."""


_FILTER_FIELDS: Final = {
    "RequestHeaderModifier": "requestHeaderModifier",
    "ResponseHeaderModifier": "responseHeaderModifier",
    "URLRewrite": "urlRewrite",
    "RequestRedirect": "requestRedirect",
}
