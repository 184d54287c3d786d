"""`mcp.selectorsNeedGrants`: selectors of MCP backends and Services of other namespaces."""

from __future__ import annotations

from tests.unit.translate.golden import World
from tests.unit.translate.tenants import BACKEND_REF, CLASS, OURS, SELECTOR, SERVICE, backend, gateway, grant, route


def servers_of(made: World) -> list[str]:
    message = made.messages("b/gw")["backend/gatewaybackend/b/tools"]["backend"]["mcp"]
    return [each["name"] for each in message.get("targets", [])]


def test_where_selectors_need_grants_they_find_what_those_name() -> None:
    made = World(selectors_need_grants=True)
    made.put("---".join((CLASS, gateway("b"), SERVICE, backend("b", SELECTOR), route("b", BACKEND_REF % "b"))))
    assert servers_of(made) == []
    assert made.conditions("GatewayBackend", "tools", namespace="b")[1] == (
        "ResolvedRefs=False BackendNotFound (0): target all: no Service with an MCP port is selected; others need a "
        "ReferenceGrant in their namespace, from GatewayBackends of namespace b"
    )
    made.put(grant("GatewayBackend", "Service", "tools", group=OURS))
    assert servers_of(made) == ["tools-80"]
    assert made.conditions("GatewayBackend", "tools", namespace="b")[1].startswith("ResolvedRefs=True")
    made.put(grant("GatewayBackend", "Service", "others", group=OURS))
    assert servers_of(made) == []


def test_within_their_namespace_selectors_need_no_grant() -> None:
    made = World(selectors_need_grants=True)
    here = SERVICE.replace("namespace: a", "namespace: b")
    own = "{mcp: {targets: [{name: all, selector: {services: {}}}]}}"
    made.put("---".join((CLASS, gateway("b"), here, backend("b", own), route("b", BACKEND_REF % "b"))))
    assert servers_of(made) == ["tools-80"]
