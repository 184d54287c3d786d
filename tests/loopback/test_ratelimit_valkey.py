"""The rate limit server on a real Valkey: several servers count together, an outage of the store, its decisions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from controlplane.ratelimit import resp
from controlplane.ratelimit import valkey as valkey_store
from controlplane.ratelimit.resp import Address
from controlplane.ratelimit.store import Budget, Charge, Key, StoreFailed
from controlplane.ratelimit.valkey import ValkeyStore
from controlplane.ratelimit.windows import WINDOWS, Unit
from tests.fakes.rate_limits import BY_USER, ONE_OF_ALL, asking, counting, statuses
from tests.harness.processes import started
from tests.harness.waiting import until

pytestmark = pytest.mark.needs("valkey-server")

LIMITS = """
domain: d
descriptors:
- key: user
  rate_limit: {unit: year, requests_per_unit: 2}
- key: all
  rate_limit: {unit: year, requests_per_unit: 10}
"""


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    path = tmp_path / "limits.yaml"
    path.write_text(LIMITS)
    return path


@asynccontextmanager
async def valkey(tool: Callable[[str], str], folder: Path, *options: str) -> AsyncIterator[Address]:
    """On a socket of its own; what it holds is gone with it."""
    path = folder / "valkey.sock"
    path.unlink(missing_ok=True)
    command = [tool("valkey-server"), "--port", "0", "--unixsocket", str(path), "--save", "", *options]
    async with started(folder, "valkey", command):
        await until(path.exists, "the socket")
        yield Address(path=str(path))


async def test_two_servers_and_two_proxies_share_a_budget_exactly(
    tool: Callable[[str], str], tmp_path: Path, limits: Path
) -> None:
    async with (
        valkey(tool, tmp_path) as where,
        counting(where, limits) as one,
        counting(where, limits) as other,
        asking(one.port) as a,
        asking(other.port) as b,
    ):
        assert Counter(await statuses([a, b] * 20)) == {200: 10, 429: 30}


@pytest.mark.parametrize(("mode", "status"), [("FailClosed", 500), ("FailOpen", 200)])
async def test_while_the_store_is_away_the_failure_mode_counts(
    tool: Callable[[str], str], tmp_path: Path, limits: Path, mode: str, status: int
) -> None:
    address = Address(path=str(tmp_path / "valkey.sock"))
    async with counting(address, limits) as server, asking(server.port, ONE_OF_ALL, mode) as proxy:
        async with valkey(tool, tmp_path):
            assert await statuses([proxy] * 3) == [200] * 3
        assert await statuses([proxy] * 3) == [status] * 3
        async with valkey(tool, tmp_path):
            assert await statuses([proxy] * 12) == [200] * 10 + [429] * 2, "it came back empty"


async def test_a_client_of_its_own_database_with_a_password(
    tool: Callable[[str], str], tmp_path: Path, limits: Path
) -> None:
    async with valkey(tool, tmp_path, "--requirepass", "secret") as where:
        right = Address(path=where.path, password="secret", database=3)
        async with counting(right, limits) as server, asking(server.port, BY_USER) as proxy:
            assert await statuses([proxy] * 3, "X-User: ann\r\n") == [200, 200, 429]
        wrong = Address(path=where.path, password="other")
        async with counting(wrong, limits) as server, asking(server.port, BY_USER) as proxy:
            assert await statuses([proxy], "X-User: ann\r\n") == [500]


NOW = datetime(2026, 11, 28, tzinfo=UTC).timestamp()


def charge(who: str, hits: int, limit: int = 3, refuses: bool = True, domain: str = "d") -> Charge:
    # A window that ends later than the test, for Valkey has the real time.
    window = WINDOWS[Unit.YEAR](2_000_000_000.0)
    return Charge(Key(domain, who, Unit.YEAR), window, hits, limit, refuses)


async def test_a_decision_counts_as_in_a_file(tool: Callable[[str], str], tmp_path: Path) -> None:
    """As the decisions of `test_ratelimit_decisions`."""
    async with valkey(tool, tmp_path) as where:
        store = ValkeyStore(where, lambda: NOW)
        assert await store.take([charge("a", 1), charge("b", 2)], True) == [0, 0]
        assert await store.take([charge("a", 1), charge("b", 2)], True) == [1, 2], "b refuses: nobody is charged"
        assert await store.take([charge("a", 1), charge("b", 2)], False) == [1, 2], "now all are"
        assert await store.take([charge("a", 0), charge("b", 0)], True) == [2, 4]
        assert await store.take([charge("c", 2), charge("c", 2)], False) == [0, 2]
        assert await store.take([charge("s", 9, refuses=False)], True) == [0]
        assert await store.take([charge("s", 9, refuses=False, domain="}{x:")], True) == [0]
        assert await store.take([charge("big", 2**53, 2**32 - 1)], False) == [0]
        assert {(each.key.domain, each.key.entries): each.used for each in await store.budgets(100)} == {
            ("d", "a"): 2,
            ("d", "b"): 4,
            ("d", "c"): 4,
            ("d", "s"): 9,
            ("}{x:", "s"): 9,
            ("d", "big"): 2**53,
        }
        found = await store.budgets(2)
        assert len(found) == 2 and all(isinstance(each, Budget) and each.limit for each in found)
        await store.close()


async def test_a_counter_that_is_beyond_all_limits_stays_there(tool: Callable[[str], str], tmp_path: Path) -> None:
    async with valkey(tool, tmp_path) as where:
        store = ValkeyStore(where, lambda: NOW)
        used = [await store.take([charge("a", 2**53)] * 256, False) for _ in range(6)]
        assert used[-1][0] >= 2**60
        assert await store.take([charge("a", 1), charge("b", 1)], True) == [used[-1][0], 0]
        await store.close()


async def test_many_at_once_are_exact(tool: Callable[[str], str], tmp_path: Path) -> None:
    async with valkey(tool, tmp_path) as where:
        stores = [ValkeyStore(where) for _ in range(2)]
        taking = (store.take([charge("a", 1, 50)], True) for store in stores for _ in range(100))
        before = [used for (used,) in await asyncio.gather(*taking)]
        assert Counter(used < 50 for used in before) == {True: 50, False: 150}
        for store in stores:
            await store.close()


# --- servers that are none


async def answering(sent: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(sent)
    if not sent:
        await reader.read()
    writer.close()


NO_ANSWERS = (
    *(b"", b"HTTP/1.1 400 Bad\r\n\r\n", b"$5\r\nab", b"*99999999\r\n", b":1\r\n", b"-ERR no\r\n"),
    *(b"*1\r\n*1\r\n*1\r\n", b"*1\r\n:1\r\n", b"*2\r\n:1\r\n$1\r\na\r\n", b"+OK\r\n", b"$-1\r\n"),
)


@pytest.mark.parametrize("sent", NO_ANSWERS)
async def test_what_is_no_answer_is_a_failure(sent: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resp, "WITHIN", 0.2)
    path = str(tmp_path / "none.sock")
    async with await asyncio.start_unix_server(partial(answering, sent), path):
        store = ValkeyStore(Address(path=path))
        with pytest.raises(StoreFailed):
            await store.take([charge("a", 1), charge("b", 1)], True)
        await store.close()


@pytest.mark.parametrize("said", [b"$99999999999\r\n", b"*99999999999\r\n"])
async def test_sizes_beyond_all_answers_are_not_waited_for(said: bytes) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(said)
    async with asyncio.timeout(5):
        with pytest.raises(ValueError, match="more than"):
            await resp.read_answer(reader)


@pytest.mark.parametrize("page", [b"*2\r\n$1\r\n1\r\n*0\r\n", b"*2\r\n$1\r\n0\r\n*1\r\n:1\r\n", b":1\r\n"])
async def test_pages_of_keys_that_are_none_or_never_end_are_a_failure(
    page: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(valkey_store, "MOST_PAGES", 50)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while words := await reader.readline():
            if words in (b"SCAN\r\n", b"HMGET\r\n"):
                writer.write(page if words == b"SCAN\r\n" else b"*2\r\n$1\r\n1\r\n$1\r\n1\r\n")
        writer.close()

    path = str(tmp_path / "pages.sock")
    async with await asyncio.start_unix_server(answer, path):
        store = ValkeyStore(Address(path=path))
        with pytest.raises(StoreFailed):
            await store.budgets(100)
        await store.close()


ADDRESSES = {
    "redis://a": Address("a"),
    "valkey://a:7": Address("a", 7),
    "rediss://u:p%40@a/2": Address("a", 6379, "", "u", "p@", 2, True),
    "redis://:p@[::1]:7": Address("::1", 7, "", "", "p"),
    "unix:/run/v.sock": Address(path="/run/v.sock"),
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_addresses(url: str) -> None:
    assert resp.address(url) == ADDRESSES[url]
    assert "p@" not in repr(resp.address(url))


@pytest.mark.parametrize("url", ["http://a", "redis://", "redis://a/b", "redis://a:99999"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ValueError):  # words are urllib's or ours
        resp.address(url)
