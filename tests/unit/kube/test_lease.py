"""Who leads, by what a Lease says and our own clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

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
