"""External processing is not supported, and nothing that it covers is served without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatewright.api.standalone import standalone
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
    "plain": f"extProc: {{{PROCESSOR}}}",
    "conditional": f"extProc: {{conditional: [{{condition: 'false', policy: {{{PROCESSOR}}}}}]}}",
    "with a mistake": "extProc: {backendRef: 7}",
}


def policy(target: str, settings: str, name: str = "scan") -> str:
    return f"""\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}}}
spec:
  targetRefs: [{{{CORE}, {target}}}]
  traffic: {{{settings}}}
"""


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize(
    ("target", "statuses"),
    [
        ("kind: Gateway, name: web", (503, 503)),
        ("kind: Gateway, name: web, sectionName: http", (503, 503)),
        ("kind: HTTPRoute, name: shop", (503, 503)),
        ("kind: HTTPRoute, name: shop, sectionName: pay", (200, 503)),
    ],
)
def test_what_it_covers_is_refused(settings: str, target: str, statuses: tuple[int, int]) -> None:
    planes = BothPlanes("")
    planes.save("---\n".join((WORLD, policy(target, settings))))
    assert (planes.ask("/open")[0], planes.ask("/")[0]) == statuses
    assert len(planes.reached()) == statuses.count(200)


def test_before_routing_too() -> None:
    planes = BothPlanes(WORLD + "---\n" + policy("kind: Gateway, name: web", f"phase: PreRouting, {SETTINGS['plain']}"))
    assert (planes.ask("/open")[0], planes.ask("/")[0]) == (503, 503)


def test_the_condition_says_it_and_without_the_policy_requests_are_served() -> None:
    planes = BothPlanes(WORLD + "---\n" + policy("kind: HTTPRoute, name: shop", SETTINGS["plain"]))
    assert planes.ask("/")[0] == 503
    (accepted, *_) = planes.world.conditions("GatewayPolicy", "scan")
    assert accepted == (
        "Accepted=False Invalid (0): not supported yet: spec.traffic.extProc; what extProc would guard is refused"
    )
    planes.remove("GatewayPolicy", "scan")
    assert planes.ask("/")[0] == 200


def test_a_file_with_it_gives_no_resources() -> None:
    loaded = standalone.load(served("policies: {extProc: {host: '127.0.0.1:9002'}}"), "config.yaml")
    (problem,) = loaded.problems
    assert problem.unsupported and problem.path.endswith("policies.extProc") and not loaded.resources


def test_the_page_says_what_the_condition_says(root: Path) -> None:
    page = " ".join((root / "docs/policies/ext_proc.md").read_text().split())
    assert "not supported yet: spec.traffic.extProc; what extProc would guard is refused" in page
