"""Policies that are not accepted: their guards refuse what they would have guarded, the rest is not sent."""

from __future__ import annotations

import pytest

from controlplane.sources import decode, tree
from controlplane.sources.tree import Tree
from dataplane.filters.registry import ROWS
from gatewright.attach.guards import GUARDS
from gatewright.wire.v1 import policy_pb2, resource_pb2
from tests.unit.translate.golden import World
from tests.unit.translate.test_program import CLASS, GATEWAY, ON_GATEWAY, policy, world

NOT_SUPPORTED = "csrf: {}, timeouts: {request: 9s}, extProc: {backendRef: {name: s, port: 1}}"
FINE = ["Accepted=True Accepted (1)", "Attached=True Attached (1)", "ResolvedRefs=True ResolvedRefs (1)"]


def sent(made: World) -> dict[str, policy_pb2.Policy]:
    """Policies by the last part of their keys."""
    return {
        name.rpartition("/")[2]: resource_pb2.Resource.FromString(data).policy
        for (_, _, name), data in made.resources.items()
        if name.startswith("policy/")
    }


def read(*texts: str) -> World:
    """What a controller makes of these texts of one file, one after the other."""
    made = world(CLASS, GATEWAY)
    folder = Tree(decode.decode, decode.with_generation)
    for text in texts:
        *_, staged = folder.stage("a.yaml", text)
        assert isinstance(staged, tree.Staged)
        made.program.apply([(*change.key[:1], change.key[1:], change.model) for change in folder.commit(staged)])
    return made


def test_both_planes_know_the_same_guards() -> None:
    assert set(GUARDS) == {row.name for row in ROWS if row.refuses}


def test_guards_of_a_policy_with_a_setting_that_is_not_supported() -> None:
    made = world(CLASS, GATEWAY, policy("a", ON_GATEWAY, NOT_SUPPORTED))
    (guard,) = sent(made).values()
    assert guard.WhichOneof("field") == "csrf" and guard.places and guard.order
    assert guard.invalid == "not supported yet: spec.traffic.extProc"
    assert made.conditions("GatewayPolicy", "a") == [
        "Accepted=False Invalid (1): not supported yet: spec.traffic.extProc; what csrf would guard is refused",
        "Attached=True Attached (1)",
        "ResolvedRefs=Unknown Pending (1): not examined, because the policy is not accepted",
    ]


def test_they_take_their_field_from_others_who_are_told() -> None:
    made = world(CLASS, GATEWAY, policy("a", ON_GATEWAY, NOT_SUPPORTED), policy("b", ON_GATEWAY, "csrf: {}"))
    conflict = "Conflicted=True Conflicted (1): traffic.csrf of GatewayPolicy default/a counts on Gateway default/gw"
    assert made.conditions("GatewayPolicy", "b") == [*FINE, conflict]


@pytest.mark.parametrize(
    ("traffic", "guards"),
    [
        ("authorization: {policy: {matchExpressions: ['a =']}}, timeouts: {request: 1s}", {"authorization"}),
        ("csrf: {additionalOrigins: []}, rateLimit: 7", {"csrf", "rate_limit"}),
        ("authorisation: {}", {"authorization"}),  # misspelt: who knows what was meant
        ("phase: PreRouting, csrf: {}, authorization: 1", {"authorization", "csrf"}),
        ("timeouts: {request: soon}", set()),
    ],
)
def test_guards_of_a_policy_that_is_not_valid(traffic: str, guards: set[str]) -> None:
    """From the first reading on: nobody remembers a good version."""
    made = read(policy("a", ON_GATEWAY, traffic))
    assert sent(made).keys() == guards
    early = "PreRouting" in traffic
    for message in sent(made).values():
        assert message.invalid.startswith("not valid: spec.traffic")
        assert (message.phase == policy_pb2.PHASE_PRE_ROUTING) == early
    if guards:
        (accepted, attached, _) = made.conditions("GatewayPolicy", "a")
        assert accepted.startswith("Accepted=False Invalid (1): not valid: ") and attached == FINE[1]


def test_a_target_that_cannot_be_read_is_left_out() -> None:
    made = read(policy("a", f"{ON_GATEWAY}, {{kind: 7}}", "csrf: {}"))
    assert [place.object.name for place in sent(made)["csrf"].places] == ["gw"]
    assert not sent(read(policy("a", "{kind: 7}", "csrf: {}")))


def test_the_last_good_version_counts_and_a_mend_ends_the_refusal() -> None:
    good, bad = policy("a", ON_GATEWAY, "csrf: {}"), policy("a", ON_GATEWAY, "csrf: {additionalOrigins: []}")
    assert sent(read(good, bad))["csrf"].invalid == ""
    worse = policy("a", ON_GATEWAY, "csrf: 1, authorization: 1")
    assert sent(read(bad, worse)).keys() == {"csrf", "authorization"}
    assert sent(read(bad, worse, good))["csrf"].invalid == ""
    assert not sent(read(bad, ""))
