"""Objects of newer definitions than ours: what is unknown drops its rule, fails it, makes the object invalid, or has no
effect and is named."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.decode.documents import Decoded, decode_object

SPECS: dict[str, dict[str, Any]] = {
    "HTTPRoute": {"parentRefs": [{"name": "edge"}]},
    "GRPCRoute": {"parentRefs": [{"name": "edge"}]},
    "Gateway": {"gatewayClassName": "a", "listeners": [{"name": "web", "port": 80, "protocol": "HTTP"}]},
    "GatewayClass": {"controllerName": "a.b/c"},
    "ReferenceGrant": {
        "from": [{"group": "a.b", "kind": "HTTPRoute", "namespace": "a"}],
        "to": [{"group": "", "kind": "Service"}],
    },
}
BACKEND = {"name": "shop", "port": 80}
UNKNOWN = "is unknown to this version"


def decoded(kind: str, spec: dict[str, Any], *, newer: bool = True, **more: Any) -> Decoded:
    version = "v1beta1" if kind == "ReferenceGrant" else "v1"
    head = {"apiVersion": f"gateway.networking.k8s.io/{version}", "kind": kind, "metadata": {"name": "x"}}
    return decode_object({**head, "spec": {**SPECS[kind], **spec}, **more}, "cluster", newer=newer)


def rules(
    *items: dict[str, Any], kind: str = "HTTPRoute"
) -> tuple[list[tuple[bool, str] | None], tuple[str, ...], Any]:
    """What each rule of a route is without, what is said of the route, and the rules."""
    found = decoded(kind, {"rules": list(items)})
    assert found.verdict == "valid" and found.item is not None, [*map(str, found.problems)]
    read: Any = found.item
    unread = [None if each.unread is None else tuple(each.unread) for each in read.spec.rules]
    return unread, read.newer, read.spec.rules


def modifier(**more: Any) -> dict[str, Any]:
    return {"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["a"], **more}}


def test_an_unknown_match_drops_its_rule_alone() -> None:
    known = {"matches": [{"path": {"value": "/a"}}], "backendRefs": [BACKEND]}
    bad = {**known, "name": "b", "filters": [modifier()], "matches": [{}, {"path": {"value": "/"}, "body": {"a": 1}}]}
    unread, said, read = rules(known, bad, known)
    assert unread == [None, (True, f"spec.rules[1].matches[1].body {UNKNOWN}"), None] and said == ()
    assert read[0] == read[2] and read[0].matches[0].path.value == "/a" and read[0].backend_refs
    assert (read[1].name, read[1].backend_refs, read[1].filters) == ("b", (), ())
    assert "/a" not in str(read[1].matches)


def test_an_unknown_filter_fails_its_rule_which_goes_on_matching() -> None:
    known = {"matches": [{"path": {"value": "/a"}}], "backendRefs": [BACKEND], "filters": [modifier()]}
    bad = {**known, "name": "b", "filters": [modifier(), modifier(only=["a"])]}
    unread, said, read = rules(bad, known)
    message = f"spec.rules[0].filters[1].requestHeaderModifier.only {UNKNOWN}"
    assert unread == [(False, message), None] and said == ()
    assert (read[0].name, read[0].backend_refs, read[0].filters) == ("b", (), ())
    assert read[0].matches == read[1].matches and read[1].filters and read[1].backend_refs


@pytest.mark.parametrize(
    ("rule", "unread"),
    [
        # Of a rule with both, the match decides; of two of a kind, the first is named.
        ({"matches": [{"mood": 1}], "filters": [modifier(mood=1)]}, (True, "matches[0].mood")),
        ({"matches": [{"mood": 1}, {"room": 1}]}, (True, "matches[0].mood")),
        ({"filters": [modifier(mood=1), modifier(room=1)]}, (False, "filters[0].requestHeaderModifier.mood")),
        ({"filters": [{"type": "Verify"}]}, (False, "filters[0].type")),
        ({"matches": [{"path": {"type": "Glob", "value": "/a"}}]}, (True, "matches[0].path.type")),
        (
            {"backendRefs": [BACKEND, {**BACKEND, "filters": [modifier(mood=1)]}]},
            (False, "backendRefs[1].filters[0].requestHeaderModifier.mood"),
        ),
        ({"matches": [{"filters": 1}]}, (True, "matches[0].filters")),
    ],
)
@pytest.mark.parametrize("position", [0, 1])
def test_what_decides_of_a_rule(rule: dict[str, Any], unread: tuple[bool, str], position: int) -> None:
    found, said, _ = rules(*[{"backendRefs": [BACKEND]}] * position, rule)
    drops, path = unread
    message = f"spec.rules[{position}].{path} {UNKNOWN}"
    assert found == [None] * position + [(drops, message)]
    assert said == ()


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({"mood": {"a": 1}}, "mood"),
        ({"backendRefs": [{**BACKEND, "mood": 1}, BACKEND]}, "backendRefs[0].mood"),
        ({"backendRefs": [BACKEND, {**BACKEND, "mood": 1}]}, "backendRefs[1].mood"),
        ({"backendRefs": [BACKEND], "timeouts": {"request": "1s", "mood": 1}}, "timeouts.mood"),
    ],
)
def test_what_is_unknown_elsewhere_in_a_rule_has_no_effect(rule: dict[str, Any], path: str) -> None:
    found, said, read = rules(rule, {"name": "other"})
    assert found == [None, None] and said == (f"spec.rules[0].{path} {UNKNOWN} and has no effect",)
    assert [each.name for each in read[0].backend_refs] == ["shop"] * len(rule.get("backendRefs", ()))
    assert read[1].name == "other"


def test_what_is_unknown_beside_rules_that_fail_is_named() -> None:
    one, two = {"filters": [modifier(a=1)]}, {"filters": [modifier(b=1)], "mood": 1}
    found, said, _ = rules({"matches": [{"c": 1}]}, one, two)
    assert [None if each is None else each[0] for each in found] == [True, False, False]
    assert said == (f"spec.rules[2].mood {UNKNOWN} and has no effect",)


def test_calls_are_read_so_too() -> None:
    found, said, _ = rules({"matches": [{"method": {"service": "a", "mood": 1}}]}, kind="GRPCRoute")
    assert found == [(True, f"spec.rules[0].matches[0].method.mood {UNKNOWN}")] and said == ()


@pytest.mark.parametrize(
    ("kind", "spec", "more", "said"),
    [
        ("HTTPRoute", {"mood": 1}, {}, ["spec.mood"]),
        ("HTTPRoute", {"mood": 1, "parentRefs": [{"name": "a"}, {"name": "b", "room": 2}]}, {},
         ["spec.parentRefs[1].room", "spec.mood"]),
        ("HTTPRoute", {}, {"mood": 1}, ["mood"]),
        ("Gateway", {"mood": {"tls": 1}}, {}, ["spec.mood"]),
        ("Gateway", {"listeners": [{"name": "web", "port": 80, "protocol": "HTTP", "mood": 1}]}, {},
         ["spec.listeners[0].mood"]),
        ("Gateway", {}, {"tls": 1}, ["tls"]),
        ("GatewayClass", {"mood": 1}, {}, ["spec.mood"]),
    ],
)  # fmt: skip
def test_what_has_no_effect_is_named(kind: str, spec: dict[str, Any], more: dict[str, Any], said: list[str]) -> None:
    found = decoded(kind, spec, **more)
    assert found.verdict == "valid" and found.item is not None and found.problems == ()
    assert sorted(found.item.newer) == sorted(f"{path} {UNKNOWN} and has no effect" for path in said)


LISTENER = {"name": "web", "port": 80, "protocol": "HTTP"}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        # Where it would admit more.
        ("Gateway", {"listeners": [{**LISTENER, "allowedRoutes": {"namespaces": {"from": "Friends"}}}]}),
        ("Gateway", {"listeners": [{**LISTENER, "allowedRoutes": {"mood": 1}}]}),
        ("Gateway", {"listeners": [{**LISTENER, "protocol": "HTTPS", "tls": {"options": {"a": "b"}, "mood": 1}}]}),
        ("Gateway", {"allowedListeners": {"mood": 1}}),
        ("Gateway", {"mood": 1, "tls": {"mood": 1}}),
        # What is wrong is wrong in any version.
        ("HTTPRoute", {"rules": [{"backendRefs": [{"name": "shop", "port": 0}]}]}),
        ("HTTPRoute", {"mood": 1, "rules": [{"backendRefs": [{"name": "shop", "port": 0}]}]}),
        (
            "HTTPRoute",
            {"rules": [{"matches": [{"mood": 1, "path": 1}], "filters": 1, "backendRefs": 1}], "hostnames": 1},
        ),
        # Kinds of which every field narrows.
        ("ReferenceGrant", {"mood": 1}),
    ],
)
def test_what_is_never_overlooked(kind: str, spec: dict[str, Any]) -> None:
    found = decoded(kind, spec)
    assert found.verdict == "invalid" and found.item is None and found.problems


def test_of_a_text_that_somebody_wrote_it_is_a_mistake() -> None:
    found = decoded("HTTPRoute", {"mood": 1}, newer=False)
    assert found.verdict == "invalid" and [each.path for each in found.problems] == ["spec.mood"]


def test_a_status_and_nulls_are_not_read_and_what_is_known_says_nothing() -> None:
    found = decoded("HTTPRoute", {"mood": None, "rules": [{"backendRefs": [BACKEND], "room": None}]}, status={"a": 1})
    assert found.verdict == "valid" and found.item is not None and found.item.newer == ()
