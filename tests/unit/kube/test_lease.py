"""Who leads, by what a Lease says and our own clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.kube import lease as leases

NOW = datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=UTC)


def lease(holder: str, renewed: str = "t1", duration: object = 15) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": duration, "leaseTransitions": 4}
    return {"metadata": {"name": "gatewright", "resourceVersion": "7"}, "spec": spec}


def test_nobody_takes_a_lease_that_is_renewed() -> None:
    watched = leases.Watched("me")
    for second in range(60):
        watched.saw(lease("you", f"t{second // 10}"), float(second))
        assert not watched.may_take(float(second))


def test_a_holder_that_is_silent_for_its_duration_is_gone() -> None:
    watched = leases.Watched("me")
    watched.saw(lease("you"), 0.0)
    watched.saw(lease("you"), 14.0)
    assert not watched.may_take(15.0)
    assert watched.may_take(15.1)


def test_a_duration_that_makes_no_sense_is_the_usual_one() -> None:
    watched = leases.Watched("me")
    for odd in (None, 0, -1, "15"):
        watched.saw(lease("you", str(odd), odd), 0.0)
        assert not watched.may_take(14.0)
        assert watched.may_take(16.0)


def test_ours_and_a_free_one_may_be_taken() -> None:
    watched = leases.Watched("me")
    for holder in ("me", ""):
        watched.saw(lease(holder), 0.0)
        assert watched.may_take(0.0)


def test_taking_over_counts_a_transition_and_keeps_what_is_not_ours() -> None:
    made = leases.wanted(lease("you"), "gatewright", "system", "me", NOW)
    assert made["metadata"] == {"name": "gatewright", "resourceVersion": "7"}
    assert made["spec"] == {
        "holderIdentity": "me",
        "renewTime": "2026-01-02T03:04:05.000600Z",
        "acquireTime": "2026-01-02T03:04:05.000600Z",
        "leaseDurationSeconds": leases.DURATION,
        "leaseTransitions": 5,
    }


def test_renewing_keeps_the_time_of_acquisition() -> None:
    mine = leases.wanted(None, "gatewright", "system", "me", datetime(2025, 1, 1, tzinfo=UTC))
    assert mine["spec"]["leaseTransitions"] == 0
    again = leases.wanted(mine, "gatewright", "system", "me", NOW)
    assert again["spec"]["acquireTime"] == "2025-01-01T00:00:00.000000Z"
    assert again["spec"]["renewTime"] != mine["spec"]["renewTime"]


def test_who_renews_too_late_steps_back_before_another_may_lead() -> None:
    assert leases.RENEW + leases.RETRY < leases.DURATION


def test_a_lease_given_back_is_free() -> None:
    watched = leases.Watched("you")
    watched.saw(leases.released(lease("me")), 0.0)
    assert watched.may_take(0.0)


def test_a_lease_that_was_not_seen_yet_is_nobody_s() -> None:
    watched = leases.Watched("me")
    assert (watched.holder, watched.address, watched.others) == ("", "", ())
    assert watched.may_take(0.0)


def test_a_holder_that_renews_in_time_stays_and_its_own_duration_counts() -> None:
    watched = leases.Watched("me")
    watched.saw(lease("you", duration=3), 100.0)
    assert not watched.may_take(103.0)
    assert watched.may_take(103.5)
    watched.saw(lease("you", "later", duration=3), 103.0)
    assert not watched.may_take(105.0)
    watched.saw(lease("you", "at last", duration=1), 106.0)
    assert (watched.may_take(107.0), watched.may_take(107.1)) == (False, True)


def named(*controllers: str, address: str = "10.0.0.1:1") -> dict[str, Any]:
    annotations = {leases.ADDRESS: address, leases.CONTROLLERS: " ".join(controllers), "other": "x"}
    return {**lease("you"), "metadata": {"name": "gatewright", "annotations": annotations}}


def test_where_the_holder_takes_reports_and_who_the_others_are() -> None:
    watched = leases.Watched("me")
    watched.saw(named("a", "b"), 0.0)
    assert (watched.address, watched.others) == ("10.0.0.1:1", ("a", "b"))
    watched.saw(named(*map(str, range(leases.MOST + 1))), 1.0)
    assert watched.others == tuple(map(str, range(leases.MOST)))
    watched.saw(lease("you"), 2.0)
    assert (watched.address, watched.others) == ("", ())


@pytest.mark.parametrize(("there", "is_added"), [(0, True), (leases.MOST - 1, True), (leases.MOST, False)])
def test_a_controller_adds_itself_to_the_others_where_there_is_room(there: int, is_added: bool) -> None:
    controllers = [f"c{number:03}" for number in range(there)]
    found = leases.joined(named(*controllers), "b")
    assert (found is not None) is is_added
    if found is not None:
        assert found["metadata"]["annotations"] == {
            leases.ADDRESS: "10.0.0.1:1",
            leases.CONTROLLERS: " ".join(["b", *controllers]),
            "other": "x",
        }
        assert leases.joined(found, "b") is None, "it is there already"


def test_a_lease_without_annotations_names_whoever_joins() -> None:
    found = leases.joined(lease("you"), "me")
    assert found is not None and found["metadata"]["annotations"] == {leases.CONTROLLERS: "me"}
    assert found["metadata"]["resourceVersion"] == "7"


def test_a_holder_says_where_it_is_and_whom_it_knows_and_leaves_the_rest() -> None:
    others = frozenset(f"c{number:03}" for number in range(leases.MOST + 1))
    made = leases.wanted(named("x"), "gatewright", "system", "me", NOW, leases.Place("10.0.0.9:1", others))
    assert made["metadata"]["annotations"] == {
        leases.ADDRESS: "10.0.0.9:1",
        leases.CONTROLLERS: " ".join(sorted(others)[: leases.MOST]),
        "other": "x",
    }


@pytest.mark.parametrize(("transitions", "expected"), [(4, 5), (0, 1), (None, 1), ("4", 1)])
def test_transitions_are_counted_from_what_makes_sense(transitions: object, expected: int) -> None:
    there = lease("you")
    there["spec"]["leaseTransitions"] = transitions
    assert leases.wanted(there, "gatewright", "system", "me", NOW)["spec"]["leaseTransitions"] == expected


def test_a_lease_given_back_keeps_the_rest_and_counts_for_a_second() -> None:
    made = leases.released(lease("me"))
    assert (made["spec"]["holderIdentity"], made["spec"]["leaseDurationSeconds"]) == ("", 1)
    assert (made["spec"]["leaseTransitions"], made["metadata"]) == (4, lease("me")["metadata"])
    assert leases.released({})["spec"] == {"holderIdentity": "", "leaseDurationSeconds": 1}
