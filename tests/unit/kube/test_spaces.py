"""Which namespaces of a cluster are read, by a selector as people write it."""

from __future__ import annotations

import pytest

from controlplane.facts import Fact, fact_of, gone
from controlplane.kube.reading.spaces import Spaces
from gatewright.api.objects.namespace import Namespace
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.schema.selector_text import parsed

EDGE, NONE, TEST = {"team": "edge", "stage": "live"}, dict[str, str](), {"team": "shop", "stage": "test", "a.b/c": ""}

ROWS: list[tuple[str, tuple[bool, bool, bool]]] = [
    ("team=edge", (True, False, False)),
    ("team==edge", (True, False, False)),
    ("team != edge", (False, True, True)),
    ("team", (True, False, True)),
    ("!team", (False, True, False)),
    ("stage in (live, test)", (True, False, True)),
    ("stage notin (live,dev)", (False, True, True)),
    ("team in (edge,shop),stage!=test", (True, False, False)),
    ("a.b/c=", (False, False, True)),
    (" team = edge , !other ", (True, False, False)),
]


@pytest.mark.parametrize(("text", "expected"), ROWS)
def test_a_selector_selects_as_that_of_kubectl(text: str, expected: tuple[bool, ...]) -> None:
    selector = parsed(text)
    assert tuple(selector.matches(each) for each in (EDGE, NONE, TEST)) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", "team=edge,", "in (a)", "team in ()x", "team in a", "te am", "-a", "a=b=c", "a" * 64, "x" * 5000, "a>1"],
)
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"selector|requirement"):
        parsed(text)


def namespace(name: str, **labels: str) -> Fact:
    metadata = {"name": name, "labels": labels}
    return fact_of(Namespace.model_validate({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))


def test_without_a_selector_all_are_read() -> None:
    spaces = Spaces()
    assert spaces.take([namespace("a")]) == {}
    assert spaces.is_read("a") and spaces.is_read("never") and not spaces.is_selective


def test_a_namespace_is_read_while_it_has_the_labels() -> None:
    spaces = Spaces(parsed("team=edge"))
    assert spaces.is_read("") and not spaces.is_read("a")
    assert spaces.take([namespace("a", team="edge"), namespace("b")]) == {"a": True}
    assert spaces.take([namespace("a", team="edge", more="x")]) == {}
    assert spaces.is_read("a") and not spaces.is_read("b")
    assert spaces.take([namespace("a", team="other"), namespace("b", team="edge")]) == {"a": False, "b": True}
    assert spaces.take([gone(ObjectKey("Namespace", "", "b")), gone(ObjectKey("Namespace", "", "c"))]) == {"b": False}
    assert len(spaces) == 0
