"""Credentials toward backends that proxies refuse are errors where they are written, and show nothing of themselves."""

from __future__ import annotations

import pytest

from gatewright.api.decode import documents

BACKEND = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: it, namespace: default}
spec: {static: {host: HOST, port: 443}, policies: {auth: AUTH}}
"""


def problems(auth: str, host: str = "partner.example") -> list[str]:
    (decoded,) = documents.decode(BACKEND.replace("HOST", host).replace("AUTH", auth), "a.yaml")
    return [f"{each.path}: {each.message}" for each in decoded.problems if each.severity == "error"]


@pytest.mark.parametrize(
    ("auth", "path"),
    [
        ('{key: ""}', "key"),
        ('{key: "  "}', "key"),
        ('{key: "hush\\u200b"}', "key"),
        ('{key: "hush\\nhush"}', "key"),
        ("{key: hush, location: {header: {name: Cookie}}}", "location.header.name"),
        ("{key: hush, location: {header: {name: Host}}}", "location.header.name"),
        ("{key: hush, location: {cookie: {name: 'a b'}}}", "location.cookie.name"),
    ],
)
def test_what_no_request_can_carry_is_an_error(auth: str, path: str) -> None:
    (found,) = problems(auth)
    assert found.startswith(f"spec.policies.auth.{path}: ") and "hush" not in found


@pytest.mark.parametrize(
    "auth",
    [
        "{key: hush}",
        '{key: " hush\\n"}',
        "{key: hush, location: {header: {name: X-Api-Key, prefix: Token}}}",
        "{key: hush, location: {cookie: {name: sid}}}",
        "{key: hush, location: {queryParameter: {name: 'a b'}}}",
        "{passthrough: {}}",
        "{aws: {serviceName: s3}}",
        "{azure: {}}",
        "{gcp: {}}",
    ],
)
def test_others_are_none(auth: str) -> None:
    assert problems(auth) == []


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("s3.eu-west-1.amazonaws.com", True),
        ("S3.EU-WEST-1.AMAZONAWS.COM", True),
        ("minio.internal", False),
        ("10.0.0.1", False),
    ],
)
def test_a_service_of_aws_is_named_by_the_host_or_is_required(host: str, is_known: bool) -> None:
    found = problems("{aws: {}}", host)
    assert [each.partition(": ")[0] for each in found] == ([] if is_known else ["spec.policies.auth.aws.serviceName"])
