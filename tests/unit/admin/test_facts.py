"""Objects that the files hold but that were never readable."""

from __future__ import annotations

import pytest

from controlplane.admin import facts
from controlplane.admin.facts import ObjectRow, ProxyRow, Refusal, Selector
from controlplane.cli.asking import verdicts
from controlplane.translate.graph import Collections
from gatewright.api.text.problem import Problem


def problem(kind: str, place: str, message: str, **more: object) -> Problem:
    return Problem("a.yaml", 3, kind, place, message, **more)  # type: ignore[arg-type]


def test_an_object_that_is_wrong_from_the_start_has_a_condition() -> None:
    rows = list(
        facts.unreadable(
            [
                problem("HTTPRoute default/shop", "spec.rules[0].nme", "unknown field"),
                problem("HTTPRoute default/shop", "spec.hostnames[0]", "must be a host name"),
                problem("GatewayClass gatewright", "spec.controllerName", "required"),
            ],
            known=set(),
        )
    )
    assert [(row.kind, row.namespace, row.name, row.file) for row in rows] == [
        ("HTTPRoute", "default", "shop", "a.yaml"),
        ("GatewayClass", "", "gatewright", "a.yaml"),
    ]
    assert not any(row.foreign for row in rows)
    assert {(row.generation, row.status["conditions"][0]["observedGeneration"]) for row in rows} == {(0, 0)}
    (condition,) = rows[0].status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Accepted", "False", "UnsupportedValue")
    assert condition["message"] == "spec.rules[0].nme: unknown field; spec.hostnames[0]: must be a host name"


def test_what_has_a_good_state_warns_only_or_has_no_conditions_gets_none() -> None:
    problems = [
        problem("HTTPRoute default/good", "spec", "wrong now"),
        problem("HTTPRoute default/warned", "spec", "unusual", severity="warning"),
        problem("Service default/a", "spec", "wrong"),
        problem("", "", "is not YAML"),
    ]
    assert not list(facts.unreadable(problems, known={("HTTPRoute", "default", "good")}))


def test_proxies_are_judged_by_whole_versions_and_shown_without_the_part_of_secrets() -> None:
    seen, old, new = "a" * 32, "1" * 32, "2" * 32
    row = facts.ProxyRow("default/web", "proxy-1", seen + new, seen + old, 0.5)
    told = facts.shown_proxy(row)
    assert (told["state"], told["wanted"], told["acknowledged"]) == (facts.STALE, seen, seen)


def test_every_kind_that_has_a_status_is_known_to_commands() -> None:
    """What `status` says of an object that cannot be read, and what `wait` waits for."""
    kinds = Collections().statuses.keys()
    every = [problem(f"{kind} default/a", "spec", "wrong") for kind in kinds]
    assert {each.kind for each in facts.unreadable(every, known=())} == kinds
    assert verdicts.DEFAULTS.keys() == kinds


@pytest.mark.parametrize(
    ("acknowledged", "refusals", "state"),
    [
        ("v2", (), "Synced"),
        ("v1", (), "Stale"),
        ("", (), "Waiting"),
        ("", (Refusal("x", "bad"),), "Refused"),
        ("v2", (Refusal("x", "bad"),), "Refused"),
    ],
)
def test_the_state_of_a_proxy(acknowledged: str, refusals: tuple[Refusal, ...], state: str) -> None:
    assert ProxyRow("shop/web", "one", "v2", acknowledged, 0.0, refusals).state == state


@pytest.mark.parametrize(
    ("text", "parts"),
    [("gateway", ("gateway", "", "")), ("Gateway/web", ("Gateway", "", "web")), ("a/b/c", ("a", "b", "c"))],
)
def test_what_names_objects(text: str, parts: tuple[str, str, str]) -> None:
    assert Selector.parse(text) == Selector(*parts)


@pytest.mark.parametrize("text", ["", "/", "a/", "/b", "a//c", "a/b/c/d"])
def test_what_names_none(text: str) -> None:
    with pytest.raises(ValueError, match="names no object; write KIND, KIND/NAME or KIND/NAMESPACE/NAME"):
        Selector.parse(text)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("gateway", True),
        ("GATEWAY/web", True),
        ("Gateway/shop/web", True),
        ("HTTPRoute", False),
        ("Gateway/api", False),
        ("Gateway/Web", False),
        ("Gateway/other/web", False),
        ("Gateway/shop/api", False),
    ],
)
def test_which_objects_are_meant(text: str, matches: bool) -> None:
    assert ObjectRow("Gateway", "shop", "web", 1, "a.yaml", {}).matches(Selector.parse(text)) is matches
