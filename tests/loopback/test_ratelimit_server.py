"""`gatewright ratelimit` behind proxies: budgets that several share, restarts, outages, changed limits, its pages."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import aiohttp
import grpc
import pytest

from controlplane.cli import __main__ as cli
from gatewright.wire.external.rate_limit_pb2 import DAY, RateLimitDescriptor, RateLimitRequest, RateLimitResponse
from tests.fakes.rate_limits import BY_USER, METHOD, ONE_OF_ALL, PAID, asked, asking, counting, statuses
from tests.harness.ports import reserve
from tests.harness.waiting import until

LIMITS = """
domain: d
descriptors:
- key: user
  rate_limit: {unit: year, requests_per_unit: %d}
- key: all
  rate_limit: {unit: year, requests_per_unit: %d}
"""


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    path = tmp_path / "limits.yaml"
    path.write_text(LIMITS % (2, 10))
    return path


async def test_two_proxies_share_a_budget_of_requests_exactly(tmp_path: Path, limits: Path) -> None:
    async with counting(tmp_path / "db", limits) as server, asking(server.port) as a, asking(server.port) as b:
        found = Counter(await statuses([a, b] * 20))
        assert found == {200: 10, 429: 30}


async def test_a_key_of_each_client(tmp_path: Path, limits: Path) -> None:
    async with counting(tmp_path / "db", limits) as server, asking(server.port, BY_USER) as proxy:
        for user in ("ann", "bob"):
            assert await statuses([proxy] * 4, f"X-User: {user}\r\n") == [200, 200, 429, 429]
        assert await statuses([proxy] * 4) == [200] * 4, "without a value nobody is asked"


async def test_over_the_limit_the_client_learns_until_when(tmp_path: Path, limits: Path) -> None:
    async with counting(tmp_path / "db", limits) as server, asking(server.port, BY_USER) as proxy:
        for _ in range(3):
            answer = await proxy.ask("GET", "/", headers="X-User: ann\r\n")
        head = answer.lower()
        assert b" 429 " in head and b"x-ratelimit-limit: 2\r\n" in head and b"x-ratelimit-remaining: 0\r\n" in head
        assert b"retry-after: " in head


async def test_a_budget_outlives_the_server_and_the_proxy(tmp_path: Path, limits: Path) -> None:
    for expected in ([200] * 7, [200] * 3 + [429] * 4):
        async with counting(tmp_path / "db", limits) as server, asking(server.port) as proxy:
            assert await statuses([proxy] * 7) == expected


@pytest.mark.parametrize(("mode", "status"), [("FailClosed", 500), ("FailOpen", 200)])
async def test_while_the_server_is_away_the_failure_mode_counts(
    tmp_path: Path, limits: Path, mode: str, status: int
) -> None:
    port = reserve()
    async with asking(port, ONE_OF_ALL, mode) as proxy:
        async with counting(tmp_path / "db", limits, port):
            assert await statuses([proxy] * 6) == [200] * 6
        assert await statuses([proxy] * 6) == [status] * 6
        async with counting(tmp_path / "db", limits, port):
            assert await statuses([proxy] * 6) == [200] * 4 + [429] * 2


async def test_costs_are_reported_at_the_end_and_the_overshoot_is_what_was_under_way(
    tmp_path: Path, limits: Path
) -> None:
    async with (
        counting(tmp_path / "db", limits) as server,
        asking(server.port, PAID) as a,
        asking(server.port, PAID) as b,
    ):
        for reported in (8, 16):  # of 10: after the first round 2 are left, so that both may begin once more
            assert await statuses([a, b], "X-Cost: 4\r\n") == [200, 200]
            await until(partial(has_used, server.admin, reported), "both were reported")
        assert await statuses([a, b], "X-Cost: 4\r\n") == [429, 429]
        assert await used(server.admin) == {"all": 16}


async def has_used(admin: str, count: int) -> bool:
    return await used(admin) == {"all": count}


async def used(admin: str) -> dict[str, int]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{admin}/api/budgets") as answer:
        body = await answer.json()
    return {each["entries"][0]["value"]: each["used"] for each in body["budgets"]}


async def test_a_changed_file_counts_and_a_broken_one_does_not(tmp_path: Path, limits: Path) -> None:
    request = RateLimitRequest(domain="d", descriptors=[RateLimitDescriptor(entries=[{"key": "all", "value": "all"}])])

    async def limit(port: int) -> int:
        return (await asked(port, request)).statuses[0].current_limit.requests_per_unit

    async with counting(tmp_path / "db", limits) as server:
        assert await limit(server.port) == 10
        limits.write_text(LIMITS % (2, 99))

        async def is_new() -> bool:
            return await limit(server.port) == 99

        await until(is_new, "the new limit")
        limits.write_text("domain: [")
        await until(partial(reloads_failed, server.admin), "the broken file was seen")
        assert await limit(server.port) == 99


async def reloads_failed(admin: str) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"http://{admin}/metrics") as answer:
        return 'gatewright_ratelimit_reloads_total{outcome="failed"} 1.0' in await answer.text()


async def test_budgets_and_metrics(tmp_path: Path, limits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with counting(tmp_path / "db", limits) as server, asking(server.port, BY_USER) as proxy:
        await statuses([proxy] * 3, "X-User: a\tnn\r\n")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{server.admin}/metrics") as answer:
                text = await answer.text()
            assert 'gatewright_ratelimit_decisions_total{limit="d.user",outcome="ok"} 2.0' in text
            assert 'gatewright_ratelimit_decisions_total{limit="d.user",outcome="over_limit"} 1.0' in text
            other = {"host": "evil.example"}
            async with session.get(f"http://{server.admin}/api/budgets", headers=other) as answer:
                assert answer.status == 403
            async with session.get(f"http://{server.admin}/healthz/ready", headers=other) as answer:
                assert answer.status == 200
        code = await asyncio.to_thread(cli.main, ["budgets", "--admin", server.admin, "--exit-code"])
        head, row = capsys.readouterr().out.splitlines()
        assert code == 1 and head.split() == ["DOMAIN", "WHO", "PER", "USED", "LIMIT", "LEFT", "UNTIL", "(UTC)"]
        assert row.split()[:6] == ["d", "user=a\\u0009nn", "year", "2", "2", "0"]
        assert await asyncio.to_thread(cli.main, ["budgets", "--admin", server.admin, "-o", "json"]) == 0
        (budget,) = json.loads(capsys.readouterr().out)["budgets"]
        assert (budget["used"], budget["limit"], budget["unit"]) == (2, 2, "year")


async def test_what_cannot_be_counted_has_a_status_that_says_why(tmp_path: Path) -> None:
    async with counting(tmp_path / "db") as server:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await asked(server.port, RateLimitRequest(domain="d"))
        assert (raised.value.code(), raised.value.details()) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "descriptors: is empty",
        )


async def test_a_limit_that_comes_with_the_request_needs_no_file(tmp_path: Path) -> None:
    own = RateLimitDescriptor(entries=[{"key": "key", "value": "ann"}], limit={"requests_per_unit": 1, "unit": DAY})
    async with counting(tmp_path / "db") as server:
        request = RateLimitRequest(domain="keys", descriptors=[own])
        codes = [(await asked(server.port, request)).overall_code for _ in range(2)]
        assert codes == [RateLimitResponse.OK, RateLimitResponse.OVER_LIMIT]


@pytest.mark.needs("grpcurl")
async def test_reflection_shows_the_service(tmp_path: Path, tool: Callable[[str], str]) -> None:
    def curl(*words: str) -> str:
        done = subprocess.run(
            [tool("grpcurl"), "-plaintext", *words], capture_output=True, text=True, check=True, timeout=30
        )
        return done.stdout

    async with counting(tmp_path / "db") as server:
        where = f"127.0.0.1:{server.port}"
        assert "envoy.service.ratelimit.v3.RateLimitService" in await asyncio.to_thread(curl, where, "list")
        body = '{"domain": "d", "descriptors": [{"entries": [{"key": "a", "value": "b"}]}]}'
        answer = json.loads(await asyncio.to_thread(curl, "-d", body, where, METHOD.lstrip("/")))
        assert answer == {"overall_code": "OK", "statuses": [{"code": "OK"}]}
        health = await asyncio.to_thread(curl, where, "grpc.health.v1.Health/Check")
        assert json.loads(health) == {"status": "SERVING"}
