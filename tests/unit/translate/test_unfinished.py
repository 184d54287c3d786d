"""What looks as if something were still missing is marked on its way: judged by the resources of whole objects."""

from __future__ import annotations

import pytest

from tests.unit.translate.golden import World, objects
from tests.unit.translate.test_program import CLASS, GATEWAY, ROUTE, SERVICE, SLICE

FOREIGN = ROUTE.replace("{name: shop, port: 80}", "{name: shop, namespace: other, port: 80}")
MIRROR = ROUTE.replace(
    "backendRefs:",
    "filters: [{type: RequestMirror, requestMirror: {backendRef: {name: gone, port: 80}}}], backendRefs:",
)
ROUTE_KEY = "route/httproute/default/shop/0"
SERVICE_KEY = "backend/service/default/shop/80"
POLICY = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic: {%s}
---
"""
USERS = POLICY % "basicAuthentication: {secretRef: {name: users}}"
ASKS = POLICY % "csrf: {}, extAuth: {backendRef: {name: shop, port: 80}, http: {}}"
FORBIDDEN = POLICY % "extAuth: {backendRef: {name: shop, namespace: other, port: 80}, http: {}}"
SECRET = """
---
{apiVersion: v1, kind: Secret, metadata: {name: users, namespace: default}, stringData: {.htaccess: 'a:b'}}
"""
RESTS = CLASS + GATEWAY


def unfinished(made: World) -> set[str]:
    return {key.name for key, message in made.program.resources.present().items() if message.unfinished}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ROUTE + SERVICE + SLICE, set()),
        (ROUTE, {ROUTE_KEY}),
        (ROUTE + SERVICE, {SERVICE_KEY}),
        (FOREIGN, set()),
        (MIRROR + SERVICE + SLICE, set()),
        (USERS, {"policy/default/p/basic_authentication"}),
        (USERS + SECRET, set()),
        (ASKS, {"policy/default/p/ext_auth"}),
        (ASKS + SERVICE + SLICE, set()),
        (FORBIDDEN, set()),
    ],
    ids=[
        "whole", "no Service", "no endpoints", "not permitted", "mirror to nobody", "no Secret", "Secret", "no server",
        "server", "server not permitted",
    ],
)  # fmt: skip
def test_what_lacks_something_is_marked(text: str, expected: set[str]) -> None:
    made = World()
    made.put(RESTS + text)
    assert unfinished(made) == expected


def test_the_mark_goes_with_what_was_missing_and_comes_back() -> None:
    made = World()
    made.put(RESTS + ROUTE)
    made.put(SERVICE + SLICE)
    assert unfinished(made) == set()
    made.apply([(kind, key, None) for kind, key, _ in objects(SERVICE)])
    assert unfinished(made) == {ROUTE_KEY}
    made.apply([(kind, key, None) for kind, key, _ in objects(ROUTE)])
    assert unfinished(made) == set()


def test_words_of_a_user_are_no_mark() -> None:
    made = World()
    made.put(RESTS + SERVICE + SLICE + ROUTE.replace("rules:", "hostnames: [backendnotfound.example.com]\n  rules:"))
    assert unfinished(made) == set()


def test_a_resource_shows_nothing_of_its_content() -> None:
    made = World()
    made.put(RESTS + USERS + SECRET)
    assert "a:b" not in repr(made.program.resources.present())
