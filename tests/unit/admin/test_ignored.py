"""What is told of objects that have no status: who would have to act on them, and why nobody here does."""

from __future__ import annotations

import pytest

from controlplane.admin import ignored
from gatewright.api.decode.documents import decode
from gatewright.api.schema.metadata import KubeObject

API = "apiVersion: gateway.networking.k8s.io/v1\n"
OBJECTS = f"""\
{API}kind: GatewayClass
metadata: {{name: other}}
spec: {{controllerName: example.com/c}}
---
{API}kind: Gateway
metadata: {{name: theirs}}
spec: {{gatewayClassName: other, listeners: [{{name: a, port: 80, protocol: HTTP}}]}}
---
{API}kind: Gateway
metadata: {{name: lost}}
spec: {{gatewayClassName: none, listeners: [{{name: a, port: 80, protocol: HTTP}}]}}
---
{API}kind: HTTPRoute
metadata: {{name: away}}
spec: {{parentRefs: [{{name: nowhere}}, {{name: theirs}}], rules: [{{}}]}}
---
{API}kind: HTTPRoute
metadata: {{name: twice}}
spec: {{parentRefs: [{{name: nowhere, sectionName: a}}, {{name: nowhere, sectionName: b}}], rules: [{{}}]}}
---
{API}kind: GRPCRoute
metadata: {{name: calls}}
spec: {{parentRefs: [{{name: shop, kind: Service, group: ""}}], rules: [{{}}]}}
---
{API}kind: HTTPRoute
metadata: {{name: orphan}}
spec: {{rules: [{{}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: shop}}
spec: {{ports: [{{port: 80}}]}}
"""


def world() -> dict[str, KubeObject]:
    items = [each.item for each in decode(OBJECTS, "a.yaml")]
    return {each.metadata.name: each for each in items if each is not None}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("other", "is of controller example.com/c, not of gatewright.dev/controller"),
        (
            "theirs",
            "its GatewayClass other is of controller example.com/c, not of gatewright.dev/controller",
        ),
        ("lost", "its GatewayClass none does not exist"),
        (
            "away",
            "its parent Gateway default/nowhere does not exist; its parent Gateway default/theirs is not served: its"
            " GatewayClass other is of controller example.com/c, not of gatewright.dev/controller",
        ),
        ("twice", "its parent Gateway default/nowhere does not exist"),
        ("calls", "its parent Service default/shop is not served"),
        ("orphan", "names no parent (parentRefs), so no Gateway takes it"),
        ("shop", ""),
    ],
)
def test_the_reason(name: str, told: str) -> None:
    items = world()
    assert ignored.reason(items[name], {item.key: item for item in items.values()}) == told


def test_only_a_class_of_somebody_else_is_in_order() -> None:
    assert [name for name, item in world().items() if ignored.is_foreign(item)] == ["other"]
