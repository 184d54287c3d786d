"""Places and phases: the order that docs/attachment.md gives, and the words that users write."""

from __future__ import annotations

import pytest

from gatewright.attach.outcome import Setting
from gatewright.attach.places import (
    Level,
    ListenerPosition,
    Phase,
    PlaceKey,
    backend_places,
    key_of,
    level_of,
    rule_places,
)
from gatewright.wire.v1 import policy_pb2

# "Which one wins" of docs/attachment.md, from left to right.
PRECEDENCE = [
    *("GATEWAY", "LISTENER_SET", "LISTENER", "ROUTE", "RULE", "INLINE"),
    *("BACKEND", "SECTION", "BACKEND_INLINE", "SECTION_INLINE"),
]


def test_levels_go_from_the_least_to_the_most_specific() -> None:
    assert [level.name for level in sorted(Level)] == PRECEDENCE
    assert len(set(map(int, Level))) == len(PRECEDENCE)


def test_phases_run_in_their_order_and_are_sections_of_a_policy() -> None:
    found = [(phase.section, phase.written) for phase in Phase]
    assert found == [("frontend", ""), ("traffic", "PreRouting"), ("traffic", "PostRouting"), ("backend", "")]


@pytest.mark.parametrize(
    ("kind", "whole", "section"),
    [
        ("Gateway", Level.GATEWAY, Level.LISTENER),
        ("ListenerSet", Level.LISTENER_SET, Level.LISTENER),
        ("HTTPRoute", Level.ROUTE, Level.RULE),
        ("GRPCRoute", Level.ROUTE, Level.RULE),
        ("Service", Level.BACKEND, Level.SECTION),
        ("GatewayBackend", Level.BACKEND, Level.SECTION),
    ],
)
def test_a_section_is_more_specific_than_its_object(kind: str, whole: Level, section: Level) -> None:
    assert level_of(PlaceKey(kind, "ns", "name")) is whole
    assert level_of(PlaceKey(kind, "ns", "name", "part")) is section


def test_places_of_positions_come_least_specific_first() -> None:
    own = ListenerPosition(("infra", "edge"), "web")
    of_set = ListenerPosition(("infra", "edge"), "web", ("team", "extra"))
    assert [(level.name, str(place)) for level, place in own.places()] == [
        ("GATEWAY", "Gateway infra/edge"),
        ("LISTENER", "Gateway infra/edge web"),
    ]
    assert [(level.name, str(place)) for level, place in of_set.places()] == [
        ("GATEWAY", "Gateway infra/edge"),
        ("LISTENER_SET", "ListenerSet team/extra"),
        ("LISTENER", "ListenerSet team/extra web"),
    ]
    assert [str(place) for _, place in rule_places("HTTPRoute", "shop", "cart", "pay")] == [
        "HTTPRoute shop/cart",
        "HTTPRoute shop/cart pay",
    ]
    assert [str(place) for _, place in rule_places("HTTPRoute", "shop", "cart", "")] == ["HTTPRoute shop/cart"]
    assert [str(place) for _, place in backend_places("Service", "shop", "cart", "http", "80", "", "http")] == [
        "Service shop/cart",
        "Service shop/cart http",
        "Service shop/cart 80",
    ]


def test_a_place_of_the_wire_is_the_same_key() -> None:
    place = policy_pb2.Place(section="web")
    place.object.kind, place.object.namespace, place.object.name = "Gateway", "infra", "edge"
    assert key_of(place) == PlaceKey("Gateway", "infra", "edge", "web")


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        (Setting(Phase.POST_ROUTING, "ext_auth"), "traffic.extAuth"),
        (Setting(Phase.PRE_ROUTING, "api_key_authentication"), "traffic.apiKeyAuthentication"),
        (Setting(Phase.BACKEND, "backend_http"), "backend.http"),
        (Setting(Phase.FRONTEND, "access_log"), "frontend.accessLog"),
        (Setting(Phase.POST_ROUTING, "cors"), "traffic.cors"),
    ],
)
def test_a_setting_is_shown_as_users_write_it(setting: Setting, shown: str) -> None:
    assert str(setting) == shown
