"""`controlplane.translate.status.status_merge`: what we say, put into a status that others write as well."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.translate.conditions import KEEP, Keeps
from controlplane.translate.status.status_merge import MOST_CONDITIONS, MOST_ENTRIES, OWN_TYPES, merged
from gatewright.api.schema.names import CONTROLLER_NAME

T0, T1, T2 = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"
OTHER = "example.com/other"


def condition(name: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": name, "status": status, "reason": "R", "message": "", "observedGeneration": 1, **more}


def parent(name: str, *conditions: dict[str, Any], controller: str = CONTROLLER_NAME) -> dict[str, Any]:
    return {"parentRef": {"name": name}, "controllerName": controller, "conditions": list(conditions)}


TIMES = st.sampled_from([T0, T1])
STATUSES = st.sampled_from(["True", "False", "Unknown"])
OURS = st.lists(st.sampled_from(sorted(OWN_TYPES)), max_size=4, unique=True).flatmap(
    lambda names: st.tuples(*(st.builds(condition, st.just(name), STATUSES) for name in names)).map(list)
)
FOREIGN = st.lists(st.sampled_from(["example.com/A", "B", "Ready"]), max_size=3, unique=True)


@st.composite
def written_conditions(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = [*draw(FOREIGN), *draw(st.lists(st.sampled_from(sorted(OWN_TYPES)), max_size=4, unique=True))]
    names = draw(st.permutations(names))
    return [condition(name, draw(STATUSES), lastTransitionTime=draw(TIMES)) for name in names]


@st.composite
def entries(draw: st.DrawFn) -> list[dict[str, Any]]:
    count = draw(st.integers(0, 4))
    return [
        parent(
            draw(st.sampled_from("abcd")),
            *draw(written_conditions()),
            controller=draw(st.sampled_from([CONTROLLER_NAME, OTHER, "third.example/x"])),
        )
        for _ in range(count)
    ]


OWN = st.fixed_dictionaries(
    {"conditions": OURS},
    optional={
        "parents": st.lists(st.sampled_from("abcd"), max_size=3, unique=True).flatmap(
            lambda names: st.tuples(*(OURS.map(lambda found, name=name: parent(name, *found)) for name in names)).map(
                list
            )  # type: ignore[misc]
        )
    },
)
PREVIOUS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {}, optional={"conditions": written_conditions(), "parents": entries(), "addresses": st.just([{"value": "x"}])}
    ),
)


def foreign_conditions(status: Any) -> list[Any]:
    return [each for each in status.get("conditions", ()) if each["type"] not in OWN_TYPES]


def foreign_parents(status: Any) -> list[Any]:
    return [each for each in status.get("parents", ()) if each["controllerName"] != CONTROLLER_NAME]


@given(OWN, PREVIOUS, st.one_of(st.none(), PREVIOUS))
def test_the_laws_hold(own: dict[str, Any], previous: Any, known: Any) -> None:
    inputs = copy.deepcopy((own, previous, known))
    first = merged(own, known, previous, T2)
    assert (own, previous, known) == inputs, "an input was changed"
    assert first is not None
    assert merged(own, None, first, "later") == first
    assert merged(own, first, first, "later") == first
    before = previous or {}
    assert foreign_conditions(first) == foreign_conditions(before)
    if "parents" in own:
        assert foreign_parents(first) == foreign_parents(before)
        ours = [each["parentRef"] for each in first["parents"] if each["controllerName"] == CONTROLLER_NAME]
        assert ours == [each["parentRef"] for each in own["parents"]]
    else:
        assert first.get("parents") == before.get("parents")
    assert first.get("addresses") == before.get("addresses")
    said = [(each["type"], each["status"]) for each in first["conditions"] if each["type"] in OWN_TYPES]
    assert said == [(each["type"], each["status"]) for each in own["conditions"]]


def test_a_condition_of_the_same_status_keeps_its_time_and_another_gets_the_present() -> None:
    before = {
        "conditions": [condition("Accepted", lastTransitionTime=T0), condition("Programmed", lastTransitionTime=T0)]
    }
    made = merged({"conditions": [condition("Accepted"), condition("Programmed", "False")]}, None, before, T2)
    assert made is not None
    assert [each["lastTransitionTime"] for each in made["conditions"]] == [T0, T2]


def test_what_is_written_counts_before_what_was_only_said() -> None:
    known = {"conditions": [condition("Accepted", lastTransitionTime=T1)]}
    before = {"conditions": [condition("Accepted", lastTransitionTime=T0)]}
    made = merged({"conditions": [condition("Accepted")]}, known, before, T2)
    assert made is not None and made["conditions"][0]["lastTransitionTime"] == T0


def test_conditions_of_ours_that_hold_no_longer_go_and_those_of_others_stay_in_their_place() -> None:
    before = {
        "conditions": [
            condition("Accepted", lastTransitionTime=T0),
            condition("example.com/Checked", lastTransitionTime=T0),
            condition("Overridden", lastTransitionTime=T0),
        ]
    }
    made = merged({"conditions": [condition("Accepted"), condition("ResolvedRefs")]}, None, before, T2)
    assert made is not None
    assert [each["type"] for each in made["conditions"]] == ["Accepted", "example.com/Checked", "ResolvedRefs"]


@pytest.mark.parametrize(("field", "identity"), [("listeners", "name"), ("parents", "parentRef")])
def test_each_entry_keeps_its_own_times_whatever_its_place(field: str, identity: str) -> None:
    def entry(name: str, *conditions: dict[str, Any]) -> dict[str, Any]:
        return {identity: name, "controllerName": CONTROLLER_NAME, "conditions": list(conditions)}

    before = {
        field: [
            entry("a", condition("Accepted", lastTransitionTime=T0)),
            entry("gone", condition("Accepted", lastTransitionTime=T1)),
            entry("b", condition("Accepted", lastTransitionTime=T1), condition("Checked", lastTransitionTime=T0)),
        ],
        "addresses": [{"value": "10.0.0.1"}],
    }
    own = {field: [entry("b", condition("Accepted")), entry("new", condition("Accepted")), entry("a")]}
    own[field][2]["conditions"] = [condition("Accepted", "False")]
    for made in (merged(own, None, before, T2), merged(own, before, before, T2)):
        assert made is not None and made["addresses"] == before["addresses"]
        found = {
            each[identity]: [(one["type"], one["lastTransitionTime"]) for one in each["conditions"]]
            for each in made[field]
        }
        assert found == {
            "b": [("Accepted", T1), ("Checked", T0)],
            "new": [("Accepted", T2)],
            "a": [("Accepted", T2)],
        }


KEPT = [
    (Keeps.TRUE, "True", 1, True),
    (Keeps.TRUE, "True", 2, False),
    (Keeps.TRUE, "True", None, False),
    (Keeps.TRUE, "False", 1, False),
    (Keeps.TRUE, "Unknown", 1, False),
    (Keeps.ANY, "True", 2, True),
    (Keeps.ANY, "False", 1, True),
    (Keeps.NONE, "True", 1, False),
]


@pytest.mark.parametrize(("keeps", "status", "generation", "is_kept"), KEPT)
def test_what_was_said_stays_where_it_is_better_than_what_is_known(
    keeps: Keeps, status: str, generation: int | None, is_kept: bool
) -> None:
    former = condition("Programmed", status, lastTransitionTime=T0, reason="Former", observedGeneration=generation)
    own = {"conditions": [condition("Programmed", "Unknown", **{KEEP: keeps})]}
    for known, previous in ((None, {"conditions": [former]}), ({"conditions": [former]}, None)):
        made = merged(own, known, previous, T2)
        assert made is not None
        (found,) = made["conditions"]
        assert (found == former) is is_kept
        assert is_kept or (found["reason"], KEEP in found) == ("R", False)


def test_entries_of_two_controllers_with_one_parent_are_two() -> None:
    theirs = parent("a", condition("Accepted", "False", lastTransitionTime=T0), controller=OTHER)
    made = merged({"parents": [parent("a", condition("Accepted", "False"))]}, None, {"parents": [theirs]}, T2)
    assert made is not None and made["parents"][0] == theirs
    assert made["parents"][1]["conditions"][0]["lastTransitionTime"] == T2


@pytest.mark.parametrize("field", ["parents", "ancestors"])
def test_others_are_not_driven_out_of_a_full_list(field: str) -> None:
    identity = {"parents": "parentRef", "ancestors": "ancestorRef"}[field]
    theirs = [
        {identity: {"name": f"t{n}"}, "controllerName": OTHER, "conditions": []} for n in range(MOST_ENTRIES[field])
    ]
    own = {field: [{identity: {"name": "a"}, "controllerName": CONTROLLER_NAME, "conditions": []}]}
    full, almost = (merged(own, None, {field: theirs[start:]}, T2) for start in (0, 1))
    assert full is not None and full[field] == theirs
    assert almost is not None and almost[field] == [*theirs[1:], *own[field]]


def test_a_status_never_gets_more_conditions_than_can_be_written() -> None:
    others = [condition(f"example.com/{number}", lastTransitionTime=T0) for number in range(8)]
    made = merged({"conditions": [condition("Accepted")]}, None, {"conditions": others}, T2)
    assert made is not None and len(made["conditions"]) == MOST_CONDITIONS
    assert [each["type"] for each in made["conditions"]][-1] == "Accepted"
    assert made["conditions"][:7] == others[:7]


def test_of_an_object_that_concerns_us_no_longer_our_entries_go() -> None:
    theirs = parent("b", controller=OTHER)
    assert merged(None, None, {"parents": [parent("a"), theirs], "x": 1}, T2) == {"parents": [theirs], "x": 1}
    assert merged(None, None, {"parents": [theirs]}, T2) is None
    assert merged(None, None, {"conditions": [condition("Accepted")]}, T2) is None
    assert merged(None, None, None, T2) is None


def test_what_is_not_known_now_stays_as_it_was() -> None:
    own = {"conditions": [condition("Programmed", "False", **{KEEP: Keeps.ANY})]}
    written = condition("Programmed", reason="Programmed", observedGeneration=3, lastTransitionTime=T0)
    made = merged(own, None, {"conditions": [written]}, T2)
    assert made == {"conditions": [written]}
    assert merged(own, {"conditions": [written]}, None, T2) == {"conditions": [written]}
    new = merged(own, None, None, T2)
    assert new == {"conditions": [condition("Programmed", "False", lastTransitionTime=T2)]}


@pytest.mark.parametrize("value", [None, 3, "x", [3, None, "x"], {"a": 1}, [[]]])
def test_a_malformed_status_of_others_breaks_nothing(value: Any) -> None:
    own = {"conditions": [condition("Accepted")], "parents": [parent("a")]}
    made = merged(own, None, {"conditions": value, "parents": value}, T2)
    assert made is not None and [each["type"] for each in made["conditions"]] == ["Accepted"]
    assert len(made["parents"]) == 1
