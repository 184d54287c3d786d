"""External processing from YAML to what a request gets: nothing that it covers is served without its server."""

from __future__ import annotations

import pytest

from gatewright.api.standalone import standalone
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.both_planes import BothPlanes
from tests.fakes.policy_run import served
from tests.outside.dialects.objects import GATEWAY, SHOP

WORLD = f"""\
{GATEWAY}---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: shop}}
spec:
  parentRefs: [{{name: web}}]
  rules:
  - {{matches: [{{path: {{value: /open}}}}], backendRefs: [{{name: shop, port: 80}}]}}
  - {{name: pay, backendRefs: [{{name: shop, port: 80}}]}}
{SHOP}"""
CORE = "group: gateway.networking.k8s.io"
PROCESSOR = "backendRef: {name: shop, port: 80}"
SETTINGS = {
    "plain": (f"extProc: {{{PROCESSOR}}}", 500),
    "conditional": (f"extProc: {{conditional: [{{condition: 'true', policy: {{{PROCESSOR}}}}}]}}", 500),
    "for nobody": (f"extProc: {{conditional: [{{condition: 'false', policy: {{{PROCESSOR}}}}}]}}", 200),
    "of nobody": ("extProc: {backendRef: {name: none, port: 80}}", 503),
    "with a mistake": ("extProc: {backendRef: 7}", 503),
}
"""Of the server that the tests have, no answer comes; one that is not there makes the policy unusable."""


def policy(target: str, settings: str, name: str = "scan") -> str:
    return f"""\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}}}
spec:
  targetRefs: [{{{CORE}, {target}}}]
  traffic: {{{settings}}}
"""


@pytest.mark.parametrize(("settings", "status"), SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize(
    ("target", "covers"),
    [
        ("kind: Gateway, name: web", (True, True)),
        ("kind: Gateway, name: web, sectionName: http", (True, True)),
        ("kind: HTTPRoute, name: shop", (True, True)),
        ("kind: HTTPRoute, name: shop, sectionName: pay", (False, True)),
    ],
)
def test_what_it_covers_is_not_served_without(
    settings: str, status: int, target: str, covers: tuple[bool, bool]
) -> None:
    planes = BothPlanes("")
    planes.save("---\n".join((WORLD, policy(target, settings))))
    statuses = [status if is_covered else 200 for is_covered in covers]
    assert [planes.ask("/open")[0], planes.ask("/")[0]] == statuses


def test_before_routing_too() -> None:
    text = policy("kind: Gateway, name: web", f"phase: PreRouting, {SETTINGS['plain'][0]}")
    planes = BothPlanes(WORLD + "---\n" + text)
    assert (planes.ask("/open")[0], planes.ask("/")[0]) == (500, 500)


def test_a_server_that_is_not_there_is_said_by_the_condition() -> None:
    planes = BothPlanes(WORLD + "---\n" + policy("kind: HTTPRoute, name: shop", SETTINGS["of nobody"][0]))
    conditions = planes.world.conditions("GatewayPolicy", "scan")
    said = "PartiallyValid (0): what these cover is refused: extProc: backendRef: BackendNotFound"
    assert any(said in each for each in conditions), conditions
    planes.remove("GatewayPolicy", "scan")
    assert planes.ask("/")[0] == 200


OPTIONS = """{
  host: '127.0.0.1:9002', requestAttributes: {path: request.path},
  processingOptions: {requestBodyMode: Buffered, responseBodyMode: None, allowModeOverride: true},
}"""


def test_of_the_file_too() -> None:
    loaded = standalone.load(served(f"policies: {{extProc: {OPTIONS}}}"), "config.yaml")
    assert not loaded.problems, loaded.problems
    (found,) = (each.ext_proc for of in loaded.resources for each in of.route.policies if each.HasField("ext_proc"))
    options = found.processing_options
    modes = (options.request_body_mode, options.response_body_mode, options.allow_mode_override)
    assert modes == (traffic_pb2.BODY_MODE_BUFFERED, traffic_pb2.BODY_MODE_NONE, True)
    assert found.backend and dict(found.request_attributes) == {"path": "request.path"}
