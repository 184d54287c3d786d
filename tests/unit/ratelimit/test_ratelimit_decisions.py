"""What the rate limit server decides: windows of the calendar, costs, several descriptors, in each store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from controlplane.ratelimit import decision, limits
from controlplane.ratelimit.sqlite import SqliteStore
from controlplane.ratelimit.store import Budget, Store, StoreFailed
from controlplane.ratelimit.windows import WINDOWS, Unit
from gatewright.wire.external.rate_limit_pb2 import (
    DAY,
    MONTH,
    SECOND,
    RateLimitDescriptor,
    RateLimitRequest,
    RateLimitResponse,
)

OK, OVER = RateLimitResponse.OK, RateLimitResponse.OVER_LIMIT


def moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


SPANS = {
    (Unit.SECOND, "2028-02-29T23:59:59"): ("2028-02-29T23:59:59", "2028-03-01T00:00:00"),
    (Unit.MINUTE, "2028-02-29T23:59:59"): ("2028-02-29T23:59:00", "2028-03-01T00:00:00"),
    (Unit.HOUR, "2028-02-29T23:59:59"): ("2028-02-29T23:00:00", "2028-03-01T00:00:00"),
    (Unit.DAY, "2028-02-29T23:59:59"): ("2028-02-29T00:00:00", "2028-03-01T00:00:00"),
    (Unit.WEEK, "2028-03-01T00:00:00"): ("2028-02-28T00:00:00", "2028-03-06T00:00:00"),  # a Wednesday
    (Unit.MONTH, "2028-02-10T12:00:00"): ("2028-02-01T00:00:00", "2028-03-01T00:00:00"),
    (Unit.MONTH, "2027-12-31T23:59:59"): ("2027-12-01T00:00:00", "2028-01-01T00:00:00"),
    (Unit.YEAR, "2028-12-31T23:59:59"): ("2028-01-01T00:00:00", "2029-01-01T00:00:00"),
}


@pytest.mark.parametrize(("unit", "at"), SPANS)
def test_windows_are_those_of_clock_and_calendar(unit: int, at: str) -> None:
    start, end = SPANS[unit, at]  # type: ignore[index]  # the enum's numbers
    assert WINDOWS[unit](moment(at)) == (moment(start), moment(end))
    assert WINDOWS[unit](moment(end)).start == moment(end)


def request(*descriptors: tuple[str, int | None, int, Any], domain: str = "d", hits: int = 0) -> RateLimitRequest:
    """Of each: who, its own hits, a limit, and the limit's unit."""
    made = RateLimitRequest(domain=domain, hits_addend=hits)
    for who, own, limit, unit in descriptors:
        each = made.descriptors.add(entries=[{"key": "who", "value": who}])
        each.limit.requests_per_unit, each.limit.unit = limit, unit
        if own is not None:
            each.hits_addend.value = own
    return made


class Server:
    """A store, limits of files, and a clock."""

    def __init__(self, text: bytes = b"domain: d", path: Path | str = ":memory:", most: int = 100) -> None:
        self.now = moment("2026-11-28T12:00:00")
        self.limits = limits.read([("a.yaml", text)])
        self.store: Store = SqliteStore(path, lambda: self.now, most)

    async def ask(self, asked: RateLimitRequest, if_admitted: bool = False) -> RateLimitResponse:
        found = decision.asked(asked, self.limits, self.now)
        before = await self.store.take(found.charges, if_admitted) if found.charges else ()
        return decision.answered(found, before, if_admitted, self.now)

    async def codes(self, asked: RateLimitRequest, times: int, if_admitted: bool = False) -> list[int]:
        return [(await self.ask(asked, if_admitted)).overall_code for _ in range(times)]

    async def used(self) -> dict[str, int]:
        return {each.key.entries: each.used for each in await self.budgets()}

    async def budgets(self) -> list[Budget]:
        return list(await self.store.budgets(100))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    yield made
    await made.store.close()


async def test_what_is_allowed_is_exact_and_begins_anew_with_the_window(server: Server) -> None:
    asked = request(("ann", None, 3, SECOND))
    assert await server.codes(asked, 5) == [OK, OK, OK, OVER, OVER]
    server.now += 1
    assert await server.codes(asked, 4) == [OK, OK, OK, OVER]


async def test_the_answer_says_what_is_left_and_until_when(server: Server) -> None:
    (status,) = (await server.ask(request(("ann", 4, 10, DAY)))).statuses
    assert (status.code, status.limit_remaining, status.duration_until_reset.seconds) == (OK, 6, 12 * 3600)
    assert (status.current_limit.requests_per_unit, status.current_limit.unit) == (10, Unit.DAY)
    (status,) = (await server.ask(request(("ann", 7, 10, DAY)))).statuses
    assert (status.code, status.limit_remaining) == (OVER, 0)


async def test_hits_of_the_request_count_where_a_descriptor_has_none(server: Server) -> None:
    await server.ask(request(("ann", None, 10, DAY), ("bob", 2, 10, DAY), hits=5))
    assert sorted((await server.used()).values()) == [2, 5]


@pytest.mark.parametrize(("used", "code"), [(2, OK), (3, OVER), (4, OVER)])
async def test_no_hits_ask_whether_anything_is_left(server: Server, used: int, code: int) -> None:
    await server.ask(request(("ann", used, 3, MONTH)))
    assert (await server.ask(request(("ann", 0, 3, MONTH)))).overall_code == code
    assert list((await server.used()).values()) == [used]


async def test_what_is_refused_costs_nothing_where_that_is_wanted(server: Server) -> None:
    both = request(("ann", 1, 2, DAY), ("all", 1, 100, DAY))
    assert await server.codes(both, 5, if_admitted=True) == [OK, OK, OVER, OVER, OVER]
    assert sorted((await server.used()).values()) == [2, 2]
    assert await server.codes(both, 1) == [OVER], "as Envoy's server does: it is counted"
    assert sorted((await server.used()).values()) == [3, 3]


async def test_a_counter_that_is_named_twice_counts_twice(server: Server) -> None:
    asked = request(("ann", 2, 3, DAY), ("ann", 2, 3, DAY))
    first = await server.ask(asked)
    assert [each.code for each in first.statuses] == [OK, OVER]


FILE = b"""
domain: d
descriptors:
- key: who
  value: ann
  rate_limit: {unit: day, requests_per_unit: 1, name: ann, replaces: [{name: all}]}
- key: all
  rate_limit: {unit: day, requests_per_unit: 0, name: all}
- key: watched
  shadow_mode: true
  rate_limit: {unit: day, requests_per_unit: 0}
- key: free
  rate_limit: {unlimited: true}
"""


def named(*names: str) -> RateLimitRequest:
    return RateLimitRequest(
        domain="d",
        descriptors=[RateLimitDescriptor(entries=[{"key": each, "value": "ann"}]) for each in names],
    )


async def test_limits_of_the_file() -> None:
    server = Server(FILE)
    assert await server.codes(named("who"), 2) == [OK, OVER]
    assert await server.codes(named("all"), 1) == [OVER]
    assert await server.codes(named("watched"), 2) == [OK, OK], "counted, never refused"
    assert await server.codes(named("free", "unknown"), 2) == [OK, OK]
    answer = await server.ask(named("free", "unknown", "who"))
    assert [each.HasField("current_limit") for each in answer.statuses] == [False, False, True]
    server.now += 86_400
    assert await server.codes(named("who", "all"), 1) == [OK], "the other limit is replaced"


BAD = {
    "domain: is empty": RateLimitRequest(),
    "descriptors: is empty": RateLimitRequest(domain="d"),
    "descriptors: one without entries": RateLimitRequest(domain="d", descriptors=[RateLimitDescriptor()]),
    "descriptors: a limit of the unit 0": request(("ann", None, 1, 0)),
    "descriptors: at most 256": request(*[("ann", None, 1, DAY)] * 257),
    "descriptors: entries of more than 16384 characters": request(("a" * 17_000, None, 1, DAY)),
}


@pytest.mark.parametrize("message", BAD)
async def test_what_cannot_be_counted_is_refused(server: Server, message: str) -> None:
    with pytest.raises(decision.BadRequest, match=message.replace("[", r"\[")):
        await server.ask(BAD[message])


async def test_hits_beyond_all_numbers_stay_a_number(server: Server) -> None:
    for _ in range(3):
        await server.ask(request(("ann", 2**64 - 1, 2**32 - 1, DAY)))
    assert list((await server.used()).values()) == [3 * 2**53]


async def test_what_was_counted_is_there_after_a_restart(tmp_path: Path) -> None:
    for expected in ([OK], [OK], [OVER]):
        server = Server(path=tmp_path / "counted.db")
        assert await server.codes(request(("ann", None, 2, MONTH)), 1) == expected
        await server.store.close()


async def test_there_are_at_most_so_many_counters_and_old_ones_make_room() -> None:
    server = Server(most=3)
    assert await server.codes(request(*((who, None, 1, DAY) for who in "abc")), 1) == [OK]
    with pytest.raises(StoreFailed, match="3 counters"):
        await server.ask(request(("d", None, 1, DAY)))
    assert await server.codes(request(("a", None, 1, DAY)), 1) == [OVER], "who is known goes on"
    server.now += 86_400
    assert await server.codes(request(("d", None, 1, DAY)), 1) == [OK]


async def test_a_full_store_is_not_counted_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(most=3)
    assert await server.codes(request(*((who, None, 1, DAY) for who in "abc")), 1) == [OK]
    asked: list[str] = []
    server.store._file.set_trace_callback(asked.append)
    for _ in range(3):
        with pytest.raises(StoreFailed, match="3 counters"):
            await server.ask(request(("d", None, 1, DAY)))
    assert asked and not any("count(*)" in each for each in asked)


async def test_a_disk_that_is_full_leaves_what_was_counted(tmp_path: Path) -> None:
    server = Server(path=tmp_path / "full.db")
    assert await server.codes(request(("a", None, 1, DAY)), 1) == [OK]
    server.store._file.execute("pragma max_page_count=8")
    with pytest.raises(StoreFailed, match="full"):
        for n in range(100):
            await server.ask(request((f"{n}{'x' * 4000}", None, 1, DAY)))
    assert await server.codes(request(("a", None, 1, DAY)), 1) == [OVER]


async def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="no/such"):
        SqliteStore(tmp_path / "no/such")
    (tmp_path / "text").write_text("no database, and long enough to be none" * 100)
    with pytest.raises(StoreFailed, match="not a database"):
        SqliteStore(tmp_path / "text")
