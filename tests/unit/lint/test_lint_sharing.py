"""A Gateway's certificate for backends, and who else may use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.lint.lint import lint_paths

GATEWAY = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: gatewright}}
spec: {{controllerName: {controller}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: web, namespace: edge}}
spec:
  gatewayClassName: gatewright
  {tls}
  {more}
  listeners:
    - {{name: own, port: 8080, protocol: HTTP}}
    - {{name: shared, port: 8081, protocol: HTTP, allowedRoutes: {{namespaces: {{{namespaces}}}}}}}
"""
CERTIFICATE = "tls: {backend: {clientCertificateRef: {name: own}}}"
SELECTOR = "from: Selector, selector: {matchLabels: {team: shop}}"


def warnings(
    folder: Path,
    tls: str = CERTIFICATE,
    more: str = "",
    namespaces: str = "from: Same",
    controller: str = "gatewright.dev",
) -> list[str]:
    text = GATEWAY.format(tls=tls, more=more, namespaces=namespaces, controller=f"{controller}/controller")
    (folder / "gateway.yaml").write_text(text)
    found = lint_paths([folder], elsewhere=["Secret"]).problems
    return [each.message for each in found if each.code == "lends-certificate"]


@pytest.mark.parametrize(
    ("settings", "admitting"),
    [
        ({"namespaces": "from: All"}, "(listener shared)"),
        ({"namespaces": SELECTOR}, "(listener shared)"),
        ({"more": "allowedListeners: {namespaces: {from: All}}"}, "(allowedListeners)"),
        (
            {"namespaces": "from: All", "more": f"allowedListeners: {{namespaces: {{{SELECTOR}}}}}"},
            "(listener shared, allowedListeners)",
        ),
    ],
)
def test_a_certificate_that_routes_of_other_namespaces_use_is_a_warning(
    settings: dict[str, str], admitting: str, tmp_path: Path
) -> None:
    (found,) = warnings(tmp_path, **settings)
    assert admitting in found


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tls": "", "namespaces": "from: All"},
        {"tls": "tls: {backend: {}}", "namespaces": "from: All"},
        {"more": "allowedListeners: {namespaces: {from: Same}}"},
        {"more": "allowedListeners: {namespaces: {from: None}}"},
        {"namespaces": "from: All", "controller": "example.com"},
    ],
    ids=["own routes alone", "no tls", "no certificate", "own sets", "no sets", "of another controller"],
)
def test_nothing_is_said_where_nobody_else_uses_it(settings: dict[str, str], tmp_path: Path) -> None:
    assert warnings(tmp_path, **settings) == []
