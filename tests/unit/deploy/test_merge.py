"""Strategic merge as Kubernetes does it, and what it refuses."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from controlplane.deploy.merge import DEEPEST, MergeError, merged
from controlplane.deploy.merge_keys import SPECS
from tests.unit.deploy.merge_rows import EXCEPTIONS, ROWS, Row, answers


def without_null(value: Any) -> Any:
    """As kubectl shows an answer: it reads it into types that know no null."""
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_overlay_is_merged_as_kubernetes_merges_it(row: Row) -> None:
    answer = answers()[row.name]
    before = copy.deepcopy(row)
    if "error" in answer:
        with pytest.raises(MergeError):
            merged(row.original, row.overlay, SPECS[row.kind])
        return
    expected = answer["merged"] if row.kind == "ServiceAccount" else answer["merged"]["spec"]
    if row.name in EXCEPTIONS:
        expected["template"]["spec"] |= EXCEPTIONS[row.name]
    assert merged(row.original, row.overlay, SPECS[row.kind]) == without_null(expected)
    assert row == before


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_is_one(name: str) -> None:
    theirs = answers()[name]["merged"]["spec"]["template"]["spec"]
    assert all(theirs[field] != ours for field, ours in EXCEPTIONS[name].items())


def test_there_are_as_many_pairs_as_promised() -> None:
    assert len(ROWS) - len(EXCEPTIONS) >= 60
    assert answers().keys() == {row.name for row in ROWS}


def test_tolerations_without_a_key_are_one_item() -> None:
    any_key = {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}
    late = {"template": {"spec": {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}, {"key": "a"}]}}}
    found = merged(merged({}, any_key, SPECS["Deployment"]), late, SPECS["Deployment"])
    assert found["template"]["spec"]["tolerations"] == [{"operator": "Exists", "effect": "NoSchedule"}, {"key": "a"}]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"template": {"$patch": 5}}, "template.$patch", "must be delete or replace"),
    ({"template": {"spec": {"containers": [{"image": "x"}]}}}, "template.spec.containers.0", "must have name"),
    ({"template": {"spec": {"containers": [{"name": {}}]}}}, "template.spec.containers.0", "must have name"),
    ({"template": {"spec": {"containers": [5]}}}, "template.spec.containers.0", "must be an object"),
    ({"strategy": {"$retainKeys": "type"}}, "strategy.$retainKeys", "must be a list"),
    ({"strategy": {"$retainKeys": ["type", 5]}}, "strategy.$retainKeys", "must be a list"),
    ({"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}, "strategy.$retainKeys", "rollingUpdate is missing"),
    ({"$setElementOrder/x": []}, "$setElementOrder/x", "is not a known directive"),
    ({"template": {"metadata": {"finalizers": [{}]}}}, "template.metadata.finalizers", "plain values"),
    ({"template": {"$deleteFromPrimitiveList/x": 5}}, "template.$deleteFromPrimitiveList/x", "must be a list"),
]


@pytest.mark.parametrize(
    ("overlay", "path", "text"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_cannot_be_merged_is_refused_at_its_place(overlay: dict[str, Any], path: str, text: str) -> None:
    with pytest.raises(MergeError, match=text) as refused:
        merged({}, overlay, SPECS["Deployment"])
    assert ".".join(map(str, refused.value.path)) == path


@pytest.mark.parametrize("inside", ["spec", "other"])
def test_an_overlay_of_many_levels_is_refused(inside: str) -> None:
    overlay: Any = [] if inside == "other" else {}
    for _ in range(5000):
        overlay = [overlay] if inside == "other" else {inside: overlay}
    with pytest.raises(MergeError, match=f"more than {DEEPEST} levels"):
        merged({}, {"template": overlay if inside == "spec" else {"list": overlay}}, SPECS["Deployment"])


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize(("levels", "is_taken"), [(DEEPEST, True), (DEEPEST + 1, False)])
def test_an_overlay_may_have_so_many_levels(is_list: bool, levels: int, is_taken: bool) -> None:
    overlay: Any = 1 if is_list else {}
    for _ in range(levels - is_list):
        overlay = [overlay] if is_list else {"a": overlay}
    overlay = {"a": overlay} if is_list else overlay
    try:
        found = merged({}, overlay)
    except MergeError as error:
        assert not is_taken and f"more than {DEEPEST} levels" in str(error)
    else:
        assert is_taken and found == overlay


POD = {"template": {"spec": {"containers": [{"name": "gatewright", "image": "x"}]}}}


def test_what_an_overlay_wrote_as_it_pleased_is_no_obstacle_to_the_next() -> None:
    """`$patch: replace` takes lists as they are written, also with keys that tell nothing apart."""
    odd = {"template": {"spec": {"$patch": "replace", "containers": [{"name": {"a": 1}}, {"name": ["b"]}, 7]}}}
    before = merged(POD, odd, SPECS["Deployment"])
    found = merged(before, {"template": {"spec": {"containers": [{"name": "c"}]}}}, SPECS["Deployment"])
    assert found["template"]["spec"]["containers"] == [{"name": "c"}, {"name": {"a": 1}}, {"name": ["b"]}, 7]
    odd = {"template": {"metadata": {"$patch": "replace", "finalizers": [{"a": 1}]}}}
    before = merged(POD, odd, SPECS["Deployment"])
    with pytest.raises(MergeError, match="plain values"):
        merged(before, {"template": {"metadata": {"finalizers": ["b"]}}}, SPECS["Deployment"])
    found = merged(
        before, {"template": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"]}}}, SPECS["Deployment"]
    )
    assert found["template"]["metadata"] == {"finalizers": [{"a": 1}]}


def work_of(overlay: dict[str, Any]) -> int:
    """Comparisons of names in a merge."""

    class Name(str):
        compared = 0
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Name.compared += 1
            return str.__eq__(self, other)

    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: named(each) for name, each in value.items()}
        return [named(each) for each in value] if isinstance(value, list) else Name(value)

    merged(merged(POD, named(overlay), SPECS["Deployment"]), named(overlay), SPECS["Deployment"])
    return Name.compared


@pytest.mark.parametrize(
    "made",
    [
        lambda names: {"spec": {"containers": [{"name": name} for name in names]}},
        lambda names: {"spec": {"containers": [{"name": name} for name in reversed(names)]}},
        lambda names: {"metadata": {"finalizers": names, "$deleteFromPrimitiveList/finalizers": names}},
        lambda names: {"metadata": {"labels": {"$retainKeys": names, **dict.fromkeys(names, "x")}}},
    ],
)
def test_a_long_overlay_costs_as_its_length(made: Any) -> None:
    """Whoever may write GatewayParameters must not keep the controller busy."""
    few, many = ([f"n{number}" for number in range(count)] for count in (100, 1000))
    assert work_of({"template": made(many)}) <= 20 * work_of({"template": made(few)}) + 1000


def test_values_are_deleted_from_plain_lists() -> None:
    found = merged(
        {"template": {"metadata": {"finalizers": ["a", "b"]}}},
        {"template": {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}}},
        SPECS["Deployment"],
    )
    assert found == {"template": {"metadata": {"finalizers": ["b", "c"]}}}
