"""Routes of gRPC calls in the standalone file: the same messages as of a GRPCRoute, and what is refused by name."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.api.standalone import standalone
from gatewright.wire.v1 import resource_pb2, route_pb2
from tests.fakes.web_objects import CLASS
from tests.unit.translate.golden import World

GATEWAY = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec:
  gatewayClassName: gatewright
  listeners: [{name: web, port: 8080, protocol: HTTP}]
"""
)


def file(matches: Any, policies: str = "{}") -> str:
    """A file with one route, `calls`."""
    return f"""
binds:
- port: 8080
  listeners:
  - routes:
    - {{name: calls, matches: {json.dumps(matches)}, policies: {policies}, backends: [{{host: "a:1"}}]}}
"""


def of_file(matches: Any, policies: str = "{}") -> resource_pb2.Resource:
    loaded = standalone.load(file(matches, policies), "gw.yaml")
    assert [str(problem) for problem in loaded.problems] == []
    return next(each for each in loaded.resources if each.HasField("route"))


def of_object(matches: Any) -> resource_pb2.Resource:
    """Of a GRPCRoute with one rule, whose matches are these in its own form."""
    spec = {"parentRefs": [{"name": "web"}], "rules": [{"matches": matches}]}
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GRPCRoute",
        "metadata": {"name": "calls"},
        "spec": spec,
    }
    world = World()
    world.put(f"{GATEWAY}\n---\n{json.dumps(route)}")
    (found,) = [data for (_, _, name), data in world.resources.items() if name.startswith("route/")]
    return resource_pb2.Resource.FromString(found)


NAMES = st.sampled_from(("shop.Orders", "shop.Stock", "a"))
METHODS = st.sampled_from(("Create", "Read"))
HEADERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(("tier", "Version")), "value": st.sampled_from(("1", "gold"))},
        optional={"type": st.sampled_from(("Exact", "RegularExpression"))},
    ),
    max_size=2,
    unique_by=lambda header: header["name"],
)
CALLS = st.fixed_dictionaries(
    {}, optional={"service": NAMES, "method": METHODS, "type": st.sampled_from(("Exact", "RegularExpression"))}
)


@given(st.lists(st.tuples(CALLS, HEADERS), min_size=1, max_size=3))
def test_matches_mean_the_same_as_in_a_grpc_route(drawn: list[tuple[dict[str, str], list[dict[str, str]]]]) -> None:
    in_the_file = [{"grpc": call, "headers": headers} for call, headers in drawn]
    in_the_route = [
        {"headers": headers} | ({"method": call} if call.keys() - {"type"} else {}) for call, headers in drawn
    ]
    one, other = of_file(in_the_file), of_object(in_the_route)
    assert list(one.route.matches) == list(other.route.matches)
    assert one.key == other.key == "route/grpcroute/default/calls/0"
    assert one.route.source.kind == other.route.source.kind
    assert one.min_revision == other.min_revision


def test_each_part_of_a_match() -> None:
    route = of_file(
        [
            {"grpc": {"service": "shop.Orders", "method": "Create"}},
            {
                "grpc": {"type": "RegularExpression", "service": "shop[.].*"},
                "headers": [{"name": "Tier", "value": "1"}],
            },
            {"grpc": {}},
        ]
    ).route
    assert list(route.matches) == [
        route_pb2.RouteMatch(
            path=route_pb2.PathMatch(grpc=route_pb2.GrpcMethodMatch(service="shop.Orders", method="Create"))
        ),
        route_pb2.RouteMatch(
            path=route_pb2.PathMatch(grpc=route_pb2.GrpcMethodMatch(service="shop[.].*", regex=True)),
            headers=[route_pb2.ValueMatch(name="tier", exact="1")],
        ),
        route_pb2.RouteMatch(),
    ]


def test_policies_of_a_route_of_calls() -> None:
    policies = "{headerModifiers: {request: {remove: [x]}}, retry: {attempts: 2}, requestMirror: {host: 'b:1'}}"
    fields = [each.WhichOneof("field") for each in of_file([{"grpc": {}}], policies).route.policies]
    assert sorted(map(str, fields)) == ["header_modifiers", "request_mirror", "retry"]


@pytest.mark.parametrize(
    ("matches", "policies", "said"),
    [
        ([{"grpc": {"service": "no name"}}], "{}", "matches[0].grpc.service: must be the name of a gRPC service"),
        ([{"grpc": {"method": "a/b"}}], "{}", "matches[0].grpc.method: must be the name of a gRPC method"),
        ([{"grpc": {"type": "RegularExpression", "method": "("}}], "{}", "matches[0].grpc.method: "),
        ([{"grpc": {"service": "x" * 1025}}], "{}", "matches[0].grpc.service: "),
        ([{"grpc": {"services": "a"}}], "{}", "matches[0].grpc.services: "),
        ([{"grpc": {}, "path": {"value": "/"}}], "{}", "matches[0].path: must be absent with grpc"),
        ([{"grpc": {}, "method": "POST"}], "{}", "matches[0].method: must be absent with grpc"),
        (
            [{"grpc": {}, "queryParams": [{"name": "a", "value": "b"}]}],
            "{}",
            "matches[0].queryParams: must be absent with grpc",
        ),
        (
            [{"grpc": {}}, {"path": {"value": "/"}}],
            "{}",
            "matches[1]: must have grpc, as another match of this route has; calls and other requests are two routes",
        ),
        ([{"grpc": {}}], "{urlRewrite: {hostname: a}}", "policies.urlRewrite: must be absent in a route of gRPC calls"),
        ([{"grpc": {}}], "{timeouts: {request: 1s}}", "policies.timeouts: must be absent in a route of gRPC calls"),
    ],
)
def test_what_is_refused(matches: Any, policies: str, said: str) -> None:
    (problem,) = standalone.load(file(matches, policies), "gw.yaml").problems
    assert f"binds[0].listeners[0].routes[0].{said}" in str(problem)


def test_a_redirect_of_calls_is_refused() -> None:
    text = """
        binds:
        - port: 8080
          listeners:
          - routes: [{matches: [{grpc: {}}], policies: {requestRedirect: {port: 1}}}]
    """
    (problem,) = standalone.load(textwrap.dedent(text), "gw.yaml").problems
    assert "policies.requestRedirect: must be absent in a route of gRPC calls: their clients follow" in str(problem)


def test_a_grpc_field_that_is_null_is_absent() -> None:
    assert of_file([{"grpc": None, "path": {"value": "/a"}}]).key == "route/httproute/default/calls/0"
