"""The revision that a resource asks for: a proxy that is older must not take it, and no other is kept from it."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.translate import wire
from gatewright.wire.v1 import backend_pb2, listener_pb2, policy_pb2, resource_pb2, route_pb2, secret_pb2

Backend, Policy = backend_pb2.Backend, policy_pb2.Policy


def policy(field: str, **values: Any) -> policy_pb2.Policy:
    made = Policy()
    part = getattr(made, field)
    part.SetInParent()
    for name, value in values.items():
        setattr(part, name, value)
    return made


CASES: list[tuple[str, Any, int]] = [
    ("backend", Backend(), wire.REVISION),
    ("secret", secret_pb2.Secret(), wire.POLICIES),
    ("policy", policy("cors"), wire.POLICIES),
    ("backend", Backend(policies=[policy("cors")]), wire.BACKEND_POLICIES),
    ("backend", Backend(refused="no"), wire.REFUSED_BACKENDS),
    ("backend", Backend(refused="no", policies=[policy("cors")]), wire.REFUSED_BACKENDS),
    ("listener", listener_pb2.Listener(), wire.PARENTS),
    ("route", route_pb2.Route(), wire.PARENTS),
    ("policy", policy("frontend_tls"), wire.CONNECTIONS),
    ("policy", policy("backend_tcp"), wire.CONNECTIONS),
    ("backend", Backend(policies=[policy("cors"), policy("backend_tls")]), wire.CONNECTIONS),
    ("policy", policy("backend_mcp"), wire.AGENTS),
    ("policy", policy("backend_limits", max_connections=1), wire.BACKEND_CONNECTIONS),
    ("policy", policy("backend_tcp", proxy_protocol=1), wire.BACKEND_CONNECTIONS),
    ("policy", policy("backend_client_certificate"), wire.BACKEND_CONNECTIONS),
    ("backend", Backend(policies=[policy("backend_client_certificate")]), wire.BACKEND_CONNECTIONS),
    ("policy", policy("frontend_http"), wire.POLICIES),
    ("policy", policy("frontend_http", max_json_keys=5), wire.POLICIES),
    ("policy", policy("frontend_http", max_buffer_size=5), wire.CONNECTIONS),
    ("policy", policy("frontend_http", max_json_keys=5, http2_frame_size=5), wire.CONNECTIONS),
]


@pytest.mark.parametrize(("kind", "content", "revision"), CASES)
def test_a_resource_asks_for_the_revision_that_brought_what_is_in_it(kind: str, content: Any, revision: int) -> None:
    found = resource_pb2.Resource.FromString(wire.resource("some/key", **{kind: content}))
    assert (found.key, found.revision, found.min_revision) == ("some/key", revision, revision)
    assert getattr(found, kind) == content
