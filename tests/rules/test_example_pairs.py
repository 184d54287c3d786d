"""Examples that exist in both forms, a folder for a controller and a standalone file, mean the same to a proxy.

`examples/standalone/NAME.yaml` is the file's form of the folder `examples/NAME`. Both are translated to wire resources
by the product; here keys are replaced by names that both forms have in common, and everything else must be equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from gatewright.api.standalone import standalone
from gatewright.wire.v1 import backend_pb2, resource_pb2, route_pb2
from tests.unit.translate.golden import World

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted((EXAMPLES / "standalone").glob("*.yaml"))

Resources = dict[str, resource_pb2.Resource]
Comparable = dict[str, dict[str, Any]]


def of_folder(folder: Path) -> tuple[Resources, list[backend_pb2.Endpoint]]:
    """What the controller sends for the one Gateway of a folder."""
    world = World()
    world.put("\n---\n".join(path.read_text() for path in sorted(folder.glob("*.yaml"))))
    resources: Resources = {}
    endpoints: list[backend_pb2.Endpoint] = []
    for (_, type_url, name), data in world.resources.items():
        if type_url.endswith(".Endpoint"):
            endpoints.append(backend_pb2.Endpoint.FromString(data))
        else:
            resources[name] = resource_pb2.Resource.FromString(data)
    return resources, endpoints


def of_file(file: Path) -> Resources:
    loaded = standalone.load(file.read_text(), file.name)
    assert loaded.problems == ()
    return {resource.key: resource for resource in loaded.resources}


def comparable(resources: Resources, endpoints: Sequence[backend_pb2.Endpoint] = ()) -> Comparable:
    """Resources by names that do not depend on the form, without their keys."""
    of_service = {endpoint.backend: endpoint for endpoint in endpoints}
    assert len(of_service) == len(endpoints), "a file writes one address for each backend"
    names = {key: common_name(resource, resources, of_service) for key, resource in resources.items()}
    assert len(set(names.values())) == len(names)
    return {names[key]: content(resource, names, of_service) for key, resource in resources.items()}


def common_name(
    resource: resource_pb2.Resource, resources: Resources, of_service: Mapping[str, backend_pb2.Endpoint]
) -> str:
    """The key mapping: a bind is its port, a listener its name, a backend where it leads, a route its rule's name."""
    kind = str(resource.WhichOneof("kind"))
    if kind == "bind":
        return f"bind {resource.bind.port}"
    if kind == "listener":
        return f"listener {resource.listener.name}"
    if kind == "backend":
        return f"backend {address(resource, of_service)}"
    if kind == "route":
        return f"route {route_name(resource.route, resources)}"
    assert kind == "gateway"
    return kind


def address(resource: resource_pb2.Resource, of_service: Mapping[str, backend_pb2.Endpoint]) -> str:
    static = as_static(resource, of_service)
    return static.unix_path or f"{static.host}:{static.port}"


def as_static(
    resource: resource_pb2.Resource, of_service: Mapping[str, backend_pb2.Endpoint]
) -> backend_pb2.StaticBackend:
    """A Service with one address is what a file, which has no Services, writes as `host`."""
    if resource.backend.HasField("static"):
        return resource.backend.static
    endpoint = of_service[resource.key]
    return backend_pb2.StaticBackend(host=endpoint.address, port=endpoint.port)


def route_name(route: route_pb2.Route, resources: Resources) -> str:
    """The name of the rule; of the route, when that is its only rule; else the route's with the rule's number."""
    rules = [each.route for each in resources.values() if each.route.source == route.source]
    return route.rule or (route.source.name if len(rules) == 1 else f"{route.source.name}-{route.rule_index}")


def content(
    resource: resource_pb2.Resource, names: Mapping[str, str], of_service: Mapping[str, backend_pb2.Endpoint]
) -> dict[str, Any]:
    """A resource with the common names in place of keys, and without what only serves to make a key."""
    message = resource_pb2.Resource()
    message.CopyFrom(resource)
    message.ClearField("key")
    if message.HasField("gateway"):
        message.gateway.Clear()  # namespace and name
        message.gateway.SetInParent()
    elif message.HasField("backend"):
        message.backend.static.CopyFrom(as_static(resource, of_service))
    elif message.HasField("route"):
        for field in ("source", "rule", "rule_index", "order"):
            message.route.ClearField(field)
        for parent in message.route.parents:
            parent.ClearField("object")  # the Gateway, which a file has no name for
            # A route of a folder may leave out the only listener; in a file it stands below one.
            parent.section = parent.section or only_listener(names)
    elif message.HasField("listener"):
        message.listener.ClearField("source")
    content: dict[str, Any] = renamed(MessageToDict(message, preserving_proto_field_name=True), names)
    return content


def only_listener(names: Mapping[str, str]) -> str:
    found = [name.removeprefix("listener ") for name in names.values() if name.startswith("listener ")]
    return found[0] if len(found) == 1 else ""


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: renamed(part, names) for name, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, names) for part in value]
    return names.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_both_forms_give_equal_resources(file: Path) -> None:
    resources, endpoints = of_folder(EXAMPLES / file.stem)
    of_the_folder, of_the_file = comparable(resources, endpoints), comparable(of_file(file))
    assert of_the_file.keys() == of_the_folder.keys()
    for name, expected in of_the_folder.items():
        assert of_the_file[name] == expected, name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_example_depends_on_the_order_of_its_routes(file: Path) -> None:
    """`order` decides between equal matches alone, and both forms number differently: so there are none."""
    seen: set[tuple[Any, ...]] = set()
    for resource in of_file(file).values():
        route = resource.route
        for match in route.matches:
            claim = (
                *(parent.section for parent in route.parents),
                *route.hostnames,
                match.SerializeToString(deterministic=True),
            )
            assert claim not in seen, resource.key
            seen.add(claim)
