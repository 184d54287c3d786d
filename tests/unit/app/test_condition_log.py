"""What becomes False is said in the log, once, with the object and what would mend it."""

from __future__ import annotations

import logging

import pytest

from controlplane import condition_log
from tests.fakes.web_objects import CLASS
from tests.unit.translate.golden import World

GATEWAY = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, port: 80, protocol: HTTP}]
"""
)
ROUTE = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: NAME, namespace: default}
spec:
  parentRefs: [{name: web, sectionName: http}]
  rules: [{backendRefs: [{name: SERVICE, port: 80}]}]
"""
SERVICE = """
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: default}
spec: {ports: [{port: 80}]}
"""


class Said:
    """A controller's translation, and the warnings of its log."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.WARNING, "controlplane")
        self._caplog, self.world = caplog, World()
        self.world.program.status_changes.subscribe(condition_log.write)

    def after(self, text: str) -> list[str]:
        self._caplog.clear()
        self.world.put(text)
        return [each.getMessage() for each in self._caplog.records if each.levelno == logging.WARNING]


def route(name: str, service: str) -> str:
    return ROUTE.replace("NAME", name).replace("SERVICE", service)


WEB = "(Gateway web, http)"
MISSING = f"HTTPRoute default/%s {WEB}: ResolvedRefs is False, BackendNotFound: Service default/shop does not exist"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Said:
    return Said(caplog)


def test_what_is_well_is_not_said(said: Said) -> None:
    assert said.after(GATEWAY + SERVICE + route("a", "shop")) == []


def test_each_condition_is_said_once_until_it_changes(said: Said) -> None:
    assert said.after(GATEWAY + route("a", "shop")) == [MISSING % "a"]
    assert said.after(route("b", "shop")) == [MISSING % "b"]
    assert said.after(SERVICE) == []
    assert said.after(route("a", "other")) == [(MISSING % "a").replace("shop does", "other does")]


def test_another_reason_is_another_line(said: Said) -> None:
    assert said.after(GATEWAY + route("a", "shop")) == [MISSING % "a"]
    kind = route("a", "shop").replace("name: shop,", "name: shop, kind: Unknown,")
    (line,) = said.after(kind)
    assert "ResolvedRefs is False, InvalidKind: " in line


POLICY = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: NAME, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}]
  traffic: {timeouts: {request: 5s}}
"""


def test_what_is_there_only_where_something_is_wrong_is_said_too(said: Said) -> None:
    assert said.after(GATEWAY + SERVICE + route("a", "shop") + POLICY.replace("NAME", "one")) == []
    (line, *others) = said.after(POLICY.replace("NAME", "two"))
    counts = (
        "Conflicted is True, Conflicted: traffic.timeouts of GatewayPolicy default/one counts on HTTPRoute default/a"
    )
    assert line.endswith(counts) and len(others) < 2
    assert set(said.world.program.true_conditions()) == {("GatewayPolicy", "Conflicted", "Conflicted")}


def test_a_conflict_of_listeners_is_said_by_what_it_makes_false(said: Said) -> None:
    lines = said.after(GATEWAY.replace("HTTP}]", "HTTP}, {name: two, port: 80, protocol: TCP}]"))
    assert any("(listener two): Accepted is False, ProtocolConflict: " in each for each in lines)
    assert not [each for each in lines if "is True" in each] and said.world.program.true_conditions() == {}


def test_many_are_a_number(said: Said) -> None:
    names = [f"r{number:02}" for number in range(condition_log.MOST_LINES + 3)]
    lines = said.after(GATEWAY + "".join(route(name, "shop") for name in names))
    assert lines[:-1] == [MISSING % name for name in names[: condition_log.MOST_LINES]]
    assert lines[-1] == "and 3 more conditions report trouble; `gatewright status` shows all"
