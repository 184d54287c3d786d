"""One of several controllers writes: taking the Lease, holding it, losing it, giving it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from controlplane.kube import lease as leases
from controlplane.kube.access import ApiError
from controlplane.kube.leadership import Leadership
from tests.fakes.api_server import ApiServer
from tests.harness.waiting import cancelled

LEASES = "/apis/coordination.k8s.io/v1/namespaces/system/leases"


class Candidate:
    def __init__(self, server: ApiServer, name: str, clock: Callable[[], float]) -> None:
        self.leadership = Leadership(server, "system", name, clock)
        self.works = 0
        self._running = asyncio.create_task(self.leadership.lead(self._work))

    async def _work(self) -> None:
        self.works += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.works -= 1

    async def end(self) -> None:
        await cancelled(self._running)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RETRY", 0.001)


async def turns(holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came to that")


def holder(server: ApiServer) -> object:
    return server.objects[LEASES]["gatewright"]["spec"]["holderIdentity"]


async def test_who_takes_over_waits_for_the_others_but_not_for_who_is_gone() -> None:
    server, clock = ApiServer(), Clock()
    gone = leases.wanted(None, "gatewright", "system", "gone", datetime(2026, 1, 1, tzinfo=UTC))
    gone["metadata"]["annotations"] = {leases.CONTROLLERS: "gone one other"}
    server.put(LEASES, gone)
    one = Candidate(server, "one", clock)
    await turns(lambda: one.leadership.watched.holder == "gone")
    assert one.leadership.before == ()
    clock.now += leases.DURATION + 1
    await turns(lambda: one.works == 1)
    assert one.leadership.before == ("other",)
    await one.end()


async def test_one_of_two_leads_and_the_other_follows_at_once_when_it_ends() -> None:
    server, clock = ApiServer(), Clock()
    first, second = Candidate(server, "one", clock), Candidate(server, "two", clock)
    await turns(lambda: first.works + second.works == 1)
    for _ in range(20):
        await asyncio.sleep(0.001)
        assert first.works + second.works == 1
    leads, follows = (first, second) if first.works else (second, first)
    await leads.end()
    assert leads.works == 0
    await turns(lambda: follows.works == 1)
    assert follows.leadership.is_leader
    await follows.end()
    assert holder(server) == ""


async def test_who_died_without_a_word_is_followed_after_its_time() -> None:
    server, clock = ApiServer(), Clock()
    server.put(LEASES, leases.wanted(None, "gatewright", "system", "dead", leases.datetime.now(leases.UTC)))
    heir = Candidate(server, "heir", clock)
    await turns(lambda: heir.leadership.watched.holder == "dead")
    clock.now += leases.DURATION - 0.1
    await asyncio.sleep(0.01)
    assert heir.works == 0
    clock.now += 0.2
    await turns(lambda: heir.works == 1)
    await heir.end()


async def test_who_cannot_renew_stops_working_before_another_may_begin() -> None:
    server, clock = ApiServer(), Clock()
    one = Candidate(server, "one", clock)
    await turns(lambda: one.works == 1)
    server.refuse.extend(OSError("unreachable") for _ in range(10_000))
    clock.now += leases.RENEW + 0.1
    await turns(lambda: one.works == 0)
    assert not one.leadership.is_leader
    assert "unreachable" in one.leadership.trouble
    server.refuse.clear()
    await turns(lambda: one.works == 1)
    assert one.leadership.trouble == ""
    await one.end()


async def test_who_is_driven_out_stops_at_once() -> None:
    server, clock = ApiServer(), Clock()
    one = Candidate(server, "one", clock)
    await turns(lambda: one.works == 1)
    taken = leases.wanted(
        server.objects[LEASES]["gatewright"], "gatewright", "system", "two", leases.datetime.now(leases.UTC)
    )
    server.put(LEASES, taken)
    await turns(lambda: one.works == 0)
    await one.end()
    assert holder(server) == "two"


async def test_whose_work_fails_says_why_and_gives_the_lease_back() -> None:
    server = ApiServer()
    leadership = Leadership(server, "system", "one", Clock())

    async def work() -> None:
        await asyncio.sleep(0)
        raise ValueError("no status can be written")

    with pytest.raises(ValueError, match="no status can be written"):
        await leadership.lead(work)
    assert holder(server) == "" and not leadership.is_leader


async def test_without_permission_the_reason_is_told() -> None:
    server, clock = ApiServer(), Clock()
    server.refuse.extend(ApiError(403, "Forbidden", "leases is forbidden") for _ in range(10_000))
    one = Candidate(server, "one", clock)
    await turns(lambda: "leases is forbidden" in one.leadership.trouble)
    await one.end()
