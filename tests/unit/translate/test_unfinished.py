"""What looks as if something were still missing: judged by the resources that the translator makes."""

from __future__ import annotations

import pytest

from controlplane.snapshot import RESOURCE_TYPE
from controlplane.translate import wire
from controlplane.translate.unfinished import is_unfinished
from gatewright.wire.v1 import backend_pb2, policy_pb2, route_pb2

MISSING = route_pb2.RouteBackend(invalid=route_pb2.InvalidBackend(reason="BackendNotFound: Service a/b does not exist"))
FORBIDDEN = route_pb2.RouteBackend(invalid=route_pb2.InvalidBackend(reason="RefNotPermitted: a/b"))
THERE = route_pb2.RouteBackend(backend="backend/service/a/BackendNotFound/80")


def policy(invalid: str, order: str = "") -> bytes:
    return wire.resource("x", policy=policy_pb2.Policy(invalid=invalid, order=order))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "route/httproute/a/b/0",
            wire.resource("route/httproute/a/b/0", route=route_pb2.Route(backends=[THERE, MISSING])),
            True,
        ),
        (
            "route/httproute/a/b/0",
            wire.resource("route/httproute/a/b/0", route=route_pb2.Route(backends=[THERE])),
            False,
        ),
        (
            "route/httproute/a/b/0",
            wire.resource("route/httproute/a/b/0", route=route_pb2.Route(backends=[FORBIDDEN])),
            False,
        ),
        ("route/httproute/a/b/0", None, False),
        (
            "backend/service/a/b/80",
            wire.resource("x", backend=backend_pb2.Backend(service=backend_pb2.ServiceBackend(empty=True))),
            True,
        ),
        (
            "backend/service/a/b/80",
            wire.resource("x", backend=backend_pb2.Backend(service=backend_pb2.ServiceBackend())),
            False,
        ),
        ("backend/service/a/b/80", None, False),
        ("policy/a/b/csrf", policy(""), False),
        ("policy/a/b/ext_auth", policy("backendRef: BackendNotFound: Service a/b does not exist"), True),
        ("policy/a/b/basic_authentication", policy("secretRef: SecretNotFound: Secret a/b does not exist"), True),
        ("policy/a/b/ext_auth", policy("backendRef: RefNotPermitted: Service b/b"), False),
        ("policy/a/b/ext_auth", policy("a CEL error", "a/BackendNotFound: x"), False),
        ("listener/a/b/c", b"BackendNotFound", False),
    ],
)
def test_unfinished(name: str, content: bytes | None, expected: bool) -> None:
    assert is_unfinished(("a/gw", RESOURCE_TYPE, name, content)) is expected
