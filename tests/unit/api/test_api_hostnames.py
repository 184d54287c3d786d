"""Which hostnames of a route meet a listener's (Gateway API, HTTPRouteSpec.hostnames), and what compares a secret."""

from __future__ import annotations

import pytest

from gatewright.api.advice.secret_comparisons import comparisons
from gatewright.api.standalone import standalone
from gatewright.api.traffic.authorization import Authorization
from gatewright.attach.hostnames import meeting


@pytest.mark.parametrize(
    ("name", "listener", "meets"),
    [
        ("a.example.com", None, True),
        ("*.example.com", None, True),
        ("a.example.com", "a.example.com", True),
        ("a.example.com", "b.example.com", False),
        ("a.example.com", "*.example.com", True),
        ("b.a.example.com", "*.example.com", True),
        ("example.com", "*.example.com", False),
        ("aexample.com", "*.example.com", False),
        ("a.example.org", "*.example.com", False),
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "*.example.com", True),
        ("*.a.example.com", "*.example.com", True),
        ("*.example.com", "*.a.example.com", True),
        ("*.example.com", "*.example.org", False),
        ("*.aexample.com", "*.example.com", False),
        ("*.com", "a.example.com", True),
        ("*.com", "*.a.example.com", True),
    ],
)
def test_hostnames_that_meet(name: str, listener: str | None, meets: bool) -> None:
    assert meeting(listener or "", (name,)) == ((name,) if meets else None)


def test_only_those_that_meet_are_left_in_their_order() -> None:
    assert meeting("*.a.com", ("b.a.com", "x.org", "a.a.com")) == ("b.a.com", "a.a.com")
    assert meeting("*.a.com", ()) == ()


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("apiKey.key == 'k'", ["apiKey.key"]),
        ("'k' == apiKey.key", ["apiKey.key"]),
        ("apiKey.key != 'k'", ["apiKey.key"]),
        ("'k' != apiKey.key && true", ["apiKey.key"]),
        ("apiKey.key in ['a']", ["apiKey.key"]),
        ("apiKey.key.unredacted() == 'k'", []),
        ("'k' == apiKey.key.unredacted()", []),
        ("apiKey.keys == 'k'", []),
        ("request.path == 'apiKey.key'", []),
        ("request.path == '/'", []),
    ],
)
def test_a_secret_that_is_compared_as_it_shows_itself(expression: str, names: list[str]) -> None:
    part = Authorization.model_validate({"policy": {"matchExpressions": ["true", expression]}})
    found = list(comparisons(part.policy))
    assert [name for _, name in found] == names
    assert [path for path, _ in found] == [("matchExpressions", 1)] * len(names)


def test_a_file_serves_a_route_that_is_wider_than_its_listener() -> None:
    """As a controller does: what both cover is served."""
    text = """\
binds:
- port: 80
  listeners:
  - hostname: "*.a.example.com"
    routes:
    - {name: wide, hostnames: ["*.example.com"], backends: [{host: "10.0.0.1:80"}]}
"""
    loaded = standalone.load(text, "gw.yaml")
    assert loaded.problems == ()
    (route,) = (each.route for each in loaded.resources if each.HasField("route"))
    assert list(route.hostnames) == ["*.example.com"]
