"""Every code of `gatewright lint` has its section on the page, and an input that brings it out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controlplane.lint.lint import lint_paths
from gatewright.api.lint.codes import CODES

PAGE = Path(__file__).parents[2] / "docs" / "lint.md"

API = "apiVersion: gateway.networking.k8s.io/v1\n"
OWN = "apiVersion: gatewright.dev/v1alpha1\n"
CLASS = API + "kind: GatewayClass\nmetadata: {name: gatewright}\nspec: {controllerName: gatewright.dev/controller}\n"
GATEWAY = API + (
    "kind: Gateway\nmetadata: {name: web}\n"
    "spec: {gatewayClassName: gatewright, listeners: [{name: a, port: 8080, protocol: HTTP}]}\n"
)
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: shop}\nspec: {ports: [{port: 80}]}\n"
ROUTE = API + (
    "kind: HTTPRoute\nmetadata: {name: shop}\n"
    "spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: shop, port: 80}]}]}\n"
)
POLICY = OWN + (
    "kind: GatewayPolicy\nmetadata: {name: p}\n"
    "spec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]\n  traffic: {cors: {}}\n"
)
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {one: '{}'}\n"
WORLD = (CLASS, GATEWAY, SERVICE, ROUTE)
KEYS = "traffic: {apiKeyAuthentication: {secretRef: {name: keys}}}"


def but(old: str, new: str, *more: str) -> tuple[str, ...]:
    """The files of a folder that serves something, with one part in another way, and more files."""
    assert sum(old in text for text in WORLD) >= 1
    return (*(text.replace(old, new) for text in WORLD), *more)


AI = (
    OWN + "kind: GatewayPolicy\nmetadata: {name: %s}\nspec:\n"
    "  targetRefs: [{group: gatewright.dev, kind: GatewayBackend, name: model}]\n"
)

HOSTED = ROUTE.replace("name: shop}\nspec: {", "name: b}\nspec: {hostnames: [b.example], ")

FOLDERS: dict[str, tuple[tuple[str, ...], str]] = {
    "invalid": (but("port: 8080", "prot: 8080"), "error"),
    "defined-twice": ((*WORLD, SERVICE), "error"),
    "unsupported": (but("rules: [{", "useDefaultGateways: All, rules: [{"), "error"),
    "refused": (
        (*WORLD, POLICY.replace("cors: {}", "jwtAuthentication: {providers: [{issuer: i, jwks: {inline: '{}'}}]}")),
        "error",
    ),
    "not-read": ((*WORLD, "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: old}\n"), "info"),
    "unknown-class": (but("gatewayClassName: gatewright", "gatewayClassName: gatewrite"), "error"),
    "serves-nothing": (but("gatewright.dev/controller", "example.com/other"), "error"),
    "tls-port": (but("port: 8080", "port: 443"), "error"),
    "no-backend": (but("backendRefs: [{name: shop, port: 80}]", "name: bare"), "error"),
    "leads-nowhere": (but("{name: web}]", "{name: wab}]"), "error"),
    "not-granted": (
        (
            *but("{name: shop, port", "{name: shop, namespace: away, port"),
            SERVICE.replace("{name: shop}", "{name: shop, namespace: away}"),
        ),
        "warning",
    ),
    "lacks-part": (but("{name: shop, port: 80}", "{name: shop, port: 81}"), "warning"),
    "unknown-section": ((*WORLD, POLICY.replace("name: web}", "name: web, sectionName: b}")), "warning"),
    "no-effect": ((*WORLD, POLICY, POLICY.replace("name: p}", "name: q}")), "warning"),
    "no-section": ((*WORLD, POLICY.replace("  traffic: {cors: {}}\n", "")), "error"),
    "left-out": (
        (
            *WORLD,
            SECRET,
            POLICY.replace("traffic: {cors: {}}", KEYS),
        ),
        "warning",
    ),
    "not-attached": (
        but(
            "port: 8080,",
            "port: 8080, hostname: a.example,",
            HOSTED,
        ),
        "error",
    ),
    "bad-condition": (
        but("port: 8080, protocol: HTTP}", "port: 8080, protocol: HTTP}, {name: b, port: 15000, protocol: HTTP}"),
        "error",
    ),
    "open-forward": (
        (*WORLD, OWN + "kind: GatewayBackend\nmetadata: {name: any}\nspec: {dynamicForwardProxy: {}}\n"),
        "warning",
    ),
    "leads-back": (
        (
            *but("protocol: HTTP}", "protocol: HTTP}, {name: db, port: 5432, protocol: TCP}"),
            OWN + "kind: GatewayBackend\nmetadata: {name: db}\nspec: {static: {host: localhost, port: 5432}}\n",
            API
            + "kind: TCPRoute\nmetadata: {name: db}\nspec:\n  parentRefs: [{name: web, sectionName: db}]\n"
            + "  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: db}]}]\n",
        ),
        "error",
    ),
    "lends-certificate": (
        (
            *but(
                "gatewayClassName: gatewright, listeners: [{name: a, ",
                "gatewayClassName: gatewright, tls: {backend: {clientCertificateRef: {name: own}}},"
                " listeners: [{name: a, allowedRoutes: {namespaces: {from: All}}, ",
            ),
        ),
        "warning",
    ),
    "hardly-meant": ((*WORLD, POLICY.replace("cors: {}", "timeouts: {}")), "warning"),
}
"""Code to the files of a folder that bring it out, and how severe it is."""

ELSEWHERE = {"unreadable", "selects-nothing", "dropped-guard", "expiring"}
"""Shown by tests of their own: test_lint_folders.py, test_lint_policies.py and test_lint_expiring.py in
tests/unit/lint, and below."""


def codes(folder: Path, texts: tuple[str, ...]) -> dict[str, str]:
    """Code to severity, of what lint finds."""
    for number, text in enumerate(texts):
        (folder / f"{number}.yaml").write_text(text)
    return {problem.code: problem.severity for problem in lint_paths([folder]).problems}


@pytest.mark.parametrize("code", FOLDERS)
def test_a_folder_that_has_it(code: str, tmp_path: Path) -> None:
    texts, severity = FOLDERS[code]
    assert codes(tmp_path, texts).get(code) == severity


def test_the_folder_without_a_mistake_has_none(tmp_path: Path) -> None:
    assert codes(tmp_path, WORLD) == {}


def test_what_is_not_there(tmp_path: Path) -> None:
    assert {each.code for each in lint_paths([tmp_path / "no.yaml"]).problems} == {"unreadable"}
    empty = lint_paths([tmp_path])
    assert [(each.code, each.severity, each.message) for each in empty.problems] == [
        ("serves-nothing", "error", "holds no object: nothing is served")
    ]
    assert (empty.files, empty.objects) == (0, 0)


def test_each_code_has_a_section_and_each_section_a_code() -> None:
    assert re.findall(r"^## (\S+)$", PAGE.read_text(), re.MULTILINE) == list(CODES)


def test_each_code_has_a_folder() -> None:
    assert FOLDERS.keys() | ELSEWHERE == CODES.keys()
