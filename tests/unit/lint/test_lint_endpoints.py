"""Lint of Services and the EndpointSlices that a folder writes by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.lint.lint import lint_paths

SERVICE = """apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {ports: [{name: http, port: 80}]}
"""
SLICE = """apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-1, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{name: http, port: 3000}]
endpoints: [{addresses: ["127.0.0.1"]}]
"""
CART = SERVICE.replace("shop", "cart")
UDP = SERVICE.replace("port: 80", "port: 80, protocol: UDP")
CALLED_WEB = SLICE.replace("name: http", "name: web")
FOR_NOBODY = "nothing is sent to its addresses"
LABEL = 'metadata.labels["kubernetes.io/service-name"]'


def found(folder: Path, *texts: str, elsewhere: tuple[str, ...] = ()) -> list[str]:
    """The warnings of a folder with these files; that nothing is served is an error, and not the point."""
    for number, text in enumerate(texts):
        (folder / f"{number}.yaml").write_text(text)
    warnings = [each for each in lint_paths([folder], elsewhere).problems if each.severity == "warning"]
    return [f"{each.code} {each.object} {each.path}: {each.message}" for each in warnings]


@pytest.mark.parametrize(
    "texts",
    [
        (SERVICE, SLICE),
        (SERVICE,),  # where no slice is written, somebody else makes them
        (SERVICE.replace("spec: {", "spec: {selector: {app: shop}, "), CART, SLICE.replace("shop", "cart")),
        (SERVICE.replace("ports: [{name: http, port: 80}]", "type: ExternalName, externalName: a.example"),),
        (SERVICE, CART, SLICE.replace("127.0.0.1", "localhost")),  # what a slice with a mistake names is not known
    ],
)
def test_services_with_addresses_and_those_of_a_cluster_are_well(tmp_path: Path, texts: tuple[str, ...]) -> None:
    assert found(tmp_path, *texts) == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (
            (SERVICE, SLICE.replace("name: shop}", "name: shopp}")),
            ["leads-nowhere", LABEL, 'no Service default/shopp in these files; did you mean "shop"?', FOR_NOBODY],
        ),
        (
            (SERVICE, SLICE.replace(", labels: {kubernetes.io/service-name: shop}", "")),
            ["leads-nowhere", "has no label kubernetes.io/service-name", FOR_NOBODY],
        ),
        ((SERVICE, CALLED_WEB), ["lacks-part", "spec.ports[0]", '"http" (there are: TCP "web")', "503"]),
        ((UDP, SLICE), ["lacks-part", 'the port UDP "http" (there are: TCP "http")']),
        ((SERVICE, CART, SLICE), ["lacks-part", "default/cart", "no EndpointSlice of these files", "503"]),
    ],
)
def test_what_no_request_reaches_is_named(tmp_path: Path, texts: tuple[str, ...], expected: list[str]) -> None:
    told = found(tmp_path, *texts)
    assert any(all(part in each for part in expected) for each in told), told


def test_slices_of_services_that_come_from_elsewhere_are_not_judged(tmp_path: Path) -> None:
    assert found(tmp_path, SLICE, elsewhere=("Service",)) == []


def test_services_whose_slices_come_from_elsewhere_are_not_judged(tmp_path: Path) -> None:
    assert found(tmp_path, SERVICE, CART, SLICE, elsewhere=("EndpointSlice",)) == []
