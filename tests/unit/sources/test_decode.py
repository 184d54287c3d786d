"""Pieces of files as the tree gets them: objects, what is named and wrong, and where the problems are."""

from __future__ import annotations

from controlplane.sources import decode
from gatewright.api.routes.http_route import HTTPRoute

HEAD = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: shop}\n"
POLICY = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  traffic: {csrf: {}, cors: 3}
"""


def told(piece: str) -> list[tuple[int, str, str]]:
    return [(each.line, each.path, each.severity) for each in decode.decode(piece).problems]


def test_a_good_piece_is_its_objects() -> None:
    found = decode.decode(HEAD + "spec: {}\n")
    assert [str(each.key) for each in found.objects] == ["HTTPRoute default/shop"]
    assert isinstance(found.objects[0].model, HTTPRoute)
    assert found.objects[0].content == found.objects[0].model
    assert (found.problems, found.named, found.remains, found.is_in_error) == ((), (), (), False)
    assert decode.decode("# nothing\n") == decode.Decoded()


def test_a_piece_in_error_names_what_it_was_about() -> None:
    found = decode.decode(f"---\n{HEAD}spec: {{rules: 3}}\n")
    assert [str(each) for each in found.named] == ["HTTPRoute default/shop"]
    assert (found.objects, found.is_broken, found.is_in_error) == ((), False, True)
    assert told(f"---\n{HEAD}spec: {{rules: 3}}\n") == [(5, "spec.rules", "error")]


def test_a_policy_in_error_leaves_what_it_guards() -> None:
    found = decode.decode(POLICY)
    assert [str(each.key) for each in found.remains] == ["GatewayPolicy default/p"]
    assert found.remains[0].model == found.remains[0].content
    assert told(POLICY) == [(6, "spec.traffic.cors", "error")]


def test_a_piece_that_is_no_object_is_broken() -> None:
    for piece in ("a: [\n", "- 1\n", "kind: HTTPRoute\n"):
        found = decode.decode(piece)
        assert (found.objects, found.named, found.is_broken) == ((), (), True)
        assert len(found.problems) == 1


def test_warnings_and_notes_are_no_error() -> None:
    text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}], newer: 1}\n"
    found = decode.decode(text)
    assert len(found.objects) == 1 and not found.is_in_error
    assert {each.severity for each in found.problems} == {"warning"}
    foreign = decode.decode("apiVersion: apps/v1\nkind: Deployment\n")
    assert [each.severity for each in foreign.problems] == ["info"]
    assert (foreign.objects, foreign.is_in_error) == ((), False)


def test_a_generation_is_the_objects_own() -> None:
    (item,) = decode.decode(HEAD + "spec: {}\n").objects
    counted = decode.with_generation(item.model, 7)
    assert counted.metadata.generation == 7 and item.model.metadata.generation != 7
    assert counted.key == item.key
