"""GRPCRoutes from YAML to calls at endpoints: the control plane's translation and a whole proxy, in memory."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.fakes.h2_upstream import Endpoint2, Taken
from tests.fakes.memory_proxy import FakeTransport
from tests.outside.dialects.objects import GATEWAY, NEXT, SHOP, policy, route, service
from tests.outside.dialects.serving import Served
from tests.unit.translate.golden import World as Translated

MESSAGE = b"\0\0\0\0\x05hello"
TRAILERS = b"\r\ngrpc-status: 0\r\n"
BASE = GATEWAY + SHOP + NEXT + service("old", 3002).replace("port: 80}", "port: 80, appProtocol: http}")


def grpc_route(spec: str, name: str = "calls") -> str:
    """A GRPCRoute of the Gateway; `spec` is what follows parentRefs."""
    return route(spec, name).replace("kind: HTTPRoute", "kind: GRPCRoute")


def on_route(settings: str, section: str = "", of: str = "traffic") -> str:
    """A GatewayPolicy for the GRPCRoute `calls` or a rule of it."""
    target = "kind: GRPCRoute, name: calls" + (f", sectionName: {section}" if section else "")
    return f"""\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: on-calls}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, {target}}}]
  {of}: {settings}
"""


class World:
    """A proxy with objects, a client of HTTP/1.1, endpoints of HTTP/2."""

    def __init__(self, *objects: str) -> None:
        self.proxy = Served(BASE + "".join(objects), {})
        self._far: dict[int, Endpoint2] = {}

    def call(self, path: str, *lines: str, content_type: str = "application/grpc") -> FakeTransport:
        client: FakeTransport = self.proxy.connect()
        host = [] if any(line.startswith("host:") for line in lines) else ["host: shop.example.com"]
        head = [f"POST {path} HTTP/1.1", *host, f"content-type: {content_type}", *lines]
        client.send("\r\n".join([*head, "content-length: 10", "", ""]).encode() + MESSAGE)
        return client

    def arrived(self) -> list[tuple[Endpoint2, Taken]]:
        """Requests at endpoints of HTTP/2, by the order of connections."""
        for number, upstream in enumerate(self.proxy.connector.upstreams):
            self._far.setdefault(number, Endpoint2(upstream))
        return [(far, request) for far in self._far.values() for request in far.requests]

    def served(self, path: str, *lines: str) -> tuple[str, bytes, bytes]:
        """A call that is answered: port of the endpoint, the head there, what the client got."""
        before = len(self.arrived())
        client = self.call(path, *lines)
        far, request = self.arrived()[before]
        port = far.upstream.protocol.endpoint.label.rpartition(":")[2]
        far.head(request, 200, b"\r\ncontent-type: application/grpc\r\nx-of: far\r\n")
        far.content(request, MESSAGE)
        far.trailers(request, TRAILERS)
        return port, request.head.low, client.take()


def refused(world: World, path: str, *lines: str) -> bytes:
    """What a client gets of a call that reaches no endpoint."""
    before = len(world.arrived())
    answer = world.call(path, *lines).take()
    assert len(world.arrived()) == before
    return answer


def test_rules_lead_to_their_backends() -> None:
    world = World(
        grpc_route("""
  rules:
  - matches: [{method: {service: shop.Cart, method: Get}}, {method: {service: shop.Stock}}]
    backendRefs: [{name: shop, port: 80}]
  - matches: [{method: {type: RegularExpression, service: 'shop[.].*', method: Get|Put}}]
    backendRefs: [{name: next, port: 80}]
""")
    )
    asked = {path: world.served(path)[0] for path in ("/shop.Cart/Get", "/shop.Stock/Any", "/shop.Cart/Put")}
    assert asked == {"/shop.Cart/Get": "3000", "/shop.Stock/Any": "3000", "/shop.Cart/Put": "3001"}
    assert b"\r\ngrpc-status: 12\r\n" in refused(world, "/shop.Cart/Delete")


def test_headers_match() -> None:
    world = World(
        grpc_route("""
  rules:
  - matches: [{headers: [{name: version, value: one}]}]
    backendRefs: [{name: shop, port: 80}]
  - matches: [{headers: [{name: version, value: two}, {name: color, value: blue}]}]
    backendRefs: [{name: next, port: 80}]
""")
    )
    assert world.served("/a.A/B", "version: one")[0] == "3000"
    assert world.served("/a.A/B", "version: two", "color: blue")[0] == "3001"
    for lines in ((), ("version: two",), ("version: three",)):
        assert b"\r\ngrpc-status: 12\r\n" in refused(world, "/a.A/B", *lines)


def test_hostnames_of_listeners() -> None:
    one = "{name: http, protocol: HTTP, port: 8080, allowedRoutes: {namespaces: {from: All}}}"
    two = one.replace("http,", "%s,").replace("8080,", "8080, hostname: %s,")
    listeners = ", ".join((two % ("bar", "bar.com"), two % ("foo", "'*.foo.com'")))
    on = "  rules: [{backendRefs: [{name: %s, port: 80}]}]"
    world = World()
    world.proxy.load(
        BASE.replace(one, listeners)
        + (grpc_route(on % "shop", "a") + grpc_route(on % "next", "b"))
        .replace("name: web, ", "name: web, sectionName: bar, ", 1)
        .replace("name: web, namespace", "name: web, sectionName: foo, namespace")
    )
    assert world.served("/a.A/B", "host: bar.com")[0] == "3000"
    assert world.served("/a.A/B", "host: one.foo.com")[0] == "3001"
    for host in ("foo.com", "other.com", "a.bar.com"):
        assert b"\r\ngrpc-status: 12\r\n" in refused(world, "/a.A/B", f"host: {host}")


def test_filters_act() -> None:
    world = World(
        grpc_route("""
  rules:
  - filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-rule, value: "1"}]}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-answer, value: "2"}]}}
    backendRefs:
    - name: shop
      port: 80
      filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-backend, value: "3"}]}}]
""")
    )
    _, head, answer = world.served("/a.A/B")
    assert b"\r\nx-rule: 1\r\n" in head and b"\r\nx-backend: 3\r\n" in head
    assert b"\r\nx-answer: 2\r\n" in answer and b"\r\ngrpc-status: 0\r\n" in answer


def test_a_mirror_gets_the_call_too() -> None:
    mirror = "{type: RequestMirror, requestMirror: {backendRef: {name: next, port: 80}}}"
    world = World(grpc_route(f"  rules: [{{filters: [{mirror}], backendRefs: [{{name: shop, port: 80}}]}}]"))
    world.call("/a.A/B")
    found = world.arrived()
    ports = {far.upstream.protocol.endpoint.label.rpartition(":")[2]: request.content for far, request in found}
    assert ports == {"3000": MESSAGE, "3001": MESSAGE}


def test_weights() -> None:
    refs = "[{name: shop, port: 80, weight: 3}, {name: next, port: 80}, {name: old, port: 80, weight: 0}]"
    world = World(grpc_route(f"  rules: [{{backendRefs: {refs}}}]"))
    world.proxy.dice = 0.74
    assert world.served("/a.A/B")[0] == "3000"
    world.proxy.dice = 0.76
    assert world.served("/a.A/B")[0] == "3001"


ALL = grpc_route("""
  rules:
  - {name: named, matches: [{method: {service: a.A}}], backendRefs: [{name: shop, port: 80}]}
  - {backendRefs: [{name: shop, port: 80}]}
""")
DENY = "{directResponse: {status: 403}}"


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("{name: ghost, port: 80}", "backend does not exist"),
        ("{name: old, port: 80}", "backend does not exist"),  # its appProtocol cannot carry calls
        ("{name: shop, namespace: other, port: 80}", "backend does not exist"),
    ],
)
def test_a_bad_backend_is_unavailable(reference: str, text: str) -> None:
    answer = refused(World(grpc_route(f"  rules: [{{backendRefs: [{reference}]}}]")), "/a.A/B")
    assert b"\r\ngrpc-status: 14\r\n" in answer and text.encode() in answer


def test_a_rule_without_backends_is_unavailable() -> None:
    assert b"\r\ngrpc-status: 14\r\n" in refused(World(grpc_route("  rules: [{}]")), "/a.A/B")


def test_a_policy_on_the_route_acts_on_all_of_its_rules() -> None:
    world = World(ALL, on_route(DENY))
    assert b"\r\ngrpc-status: 7\r\n" in refused(world, "/a.A/B")
    assert b"\r\ngrpc-status: 7\r\n" in refused(world, "/b.B/B")


def test_a_policy_on_a_rule_acts_on_that_one() -> None:
    world = World(ALL, on_route(DENY, section="named"))
    assert b"\r\ngrpc-status: 7\r\n" in refused(world, "/a.A/B")
    assert world.served("/b.B/B")[0] == "3000"


LEVELS = {
    "Gateway": "kind: Gateway, name: web",
    "listener": "kind: Gateway, name: web, sectionName: http",
    "route": "kind: GRPCRoute, name: calls",
    "rule": "kind: GRPCRoute, name: calls, sectionName: named",
}
SETS = "{transformation: {request: {set: [{name: x-%s, value: \"'1'\"}]}}}"


def at(level: str, settings: str) -> str:
    """A GatewayPolicy at this level."""
    return (
        on_route(settings)
        .replace("{name: on-calls}", f"{{name: on-{level.lower()}}}")
        .replace(LEVELS["route"], LEVELS[level])
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_policy_acts_at_each_level_and_says_so(level: str) -> None:
    """On the wire and in conditions."""
    objects = (BASE, ALL, at(level, SETS % level.lower()))
    assert f"\r\nx-{level.lower()}: 1\r\n".encode() in World(*objects[1:]).served("/a.A/B")[1]
    told = Translated()
    told.put("".join(objects))
    conditions = told.conditions("GatewayPolicy", f"on-{level.lower()}")
    assert [each.partition(" ")[0] for each in conditions] == ["Accepted=True", "Attached=True", "ResolvedRefs=True"]
    assert told.conditions("GRPCRoute", "calls", entry=0)[0].startswith("Accepted=True ")


@pytest.mark.parametrize(("upper", "lower"), [*itertools.combinations(LEVELS, 2)])
def test_the_more_specific_level_counts_unless_the_other_overrides(upper: str, lower: str) -> None:
    """Gateway, listener, route, rule: each pair; of a field that both set one counts."""
    above, below = at(upper, SETS % "of"), at(lower, SETS % "of")
    above, below = (each.replace("'1'", f"'{level}'") for each, level in ((above, upper), (below, lower)))
    assert f"\r\nx-of: {lower}\r\n".lower().encode() in World(ALL, above, below).served("/a.A/B")[1].lower()
    locked = above.replace("  traffic:", "  strategy: {inheritance: Override}\n  traffic:")
    assert f"\r\nx-of: {upper}\r\n".lower().encode() in World(ALL, locked, below).served("/a.A/B")[1].lower()
    told = Translated()
    told.put("".join((BASE, ALL, locked, below)))
    assert any(each.startswith("Overridden=True ") for each in told.conditions("GatewayPolicy", f"on-{lower.lower()}"))


@pytest.mark.parametrize(
    "setting", [on_route("{timeouts: {request: 1s}}"), policy("    timeouts: {request: 1s}", kind="Gateway")]
)
def test_timeouts_of_policies_have_no_effect(setting: str) -> None:
    world = World(ALL, setting)
    client = world.call("/a.A/B")
    world.proxy.advance(60.0)
    assert client.take() == b""
    ((far, request),) = world.arrived()
    far.head(request, 200, b"\r\ncontent-type: application/grpc\r\n")
    far.trailers(request, TRAILERS)
    assert client.take().startswith(b"HTTP/1.1 200 ")


def test_the_client_s_deadline_counts() -> None:
    world = World(ALL, on_route("{timeouts: {request: 100s}}"))
    client = world.call("/a.A/B", "grpc-timeout: 2S")
    world.proxy.advance(1.0)
    assert client.take() == b""
    world.proxy.advance(1.5)
    assert b"\r\ngrpc-status: 4\r\n" in client.take()


def test_what_is_no_call_goes_out_over_http2_too() -> None:
    world = World(ALL)
    world.call("/a.A/B", content_type="application/json")
    ((_, request),) = world.arrived()
    assert request.content == MESSAGE


def test_unless_a_policy_says_otherwise() -> None:
    world = World(ALL, on_route("{http: {version: HTTP1}}", of="backend"))
    world.call("/a.A/B")
    assert world.proxy.upstream.received.startswith(b"POST /a.A/B HTTP/1.1\r\n")


def test_beside_an_http_route_of_the_same_name() -> None:
    pages = route("  rules: [{backendRefs: [{name: next, port: 80}]}]", name="calls")
    world = World(ALL, pages, on_route(DENY, section="named"))
    assert b"\r\ngrpc-status: 7\r\n" in refused(world, "/a.A/B")  # the policy is of the GRPCRoute alone
    world.call("/a.A/B", content_type="application/json")
    assert world.proxy.upstream.received.startswith(b"POST /a.A/B HTTP/1.1\r\n")
    assert world.proxy.upstream.protocol.endpoint.label.endswith(":3001")


def test_the_log_names_route_and_rule() -> None:
    world = World(ALL)
    world.served("/a.A/B")
    assert " route=default/calls route_rule=named " in world.proxy.log_lines()[-1]


def test_the_page_s_example(root: Path) -> None:
    page = (root / "docs/grpc.md").read_text()
    example = page[page.index("## GRPCRoute") :].split("```yaml\n", 1)[1].split("```", 1)[0]
    backends = (service("orders", 3000), service("orders-v2", 3001))
    world = World(*(text.replace("port: 80}", "port: 50051}") for text in backends), "---\n", example)
    world.proxy.dice = 0.5
    host = "host: grpc.example.com"
    asked = {
        "a method": world.served("/shop.Orders/Create", host)[0],
        "a method of another rule": world.served("/shop.Orders/Get", host)[0],
        "with the header": world.served("/shop.Orders/Get", host, "version: 2")[0],
    }
    assert asked == {"a method": "3001", "a method of another rule": "3000", "with the header": "3001"}
    assert b"\r\ntier: read\r\n" in world.served("/shop.Stock/List", host)[1]
    assert b"\r\ngrpc-status: 12\r\n" in refused(world, "/shop.Orders/Get", "host: other.example.com")
