"""Fetched keys: when they are fetched, who waits, and what counts while fetching fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from dataplane.credentials import jwks
from dataplane.credentials.key_sources import BACKOFF, REFETCH, STALE, InlineKeys, RemoteKeys, Unavailable
from dataplane.link.buckets import Buckets, Sign
from tests.fakes.tokens import Issuer

FIRST, SECOND = jwks.read(Issuer().key_set()), jwks.read(Issuer(kid="k2").key_set())
SECONDS = 300.0


class Server:
    """What `RemoteKeys` asks, with a clock: `answer` is what it says, or why it says nothing; `hold` makes it slow."""

    def __init__(self, sign: Sign | None = None) -> None:
        self.now, self.fetches = 0.0, 0
        self.answer: jwks.KeySet | str = FIRST
        self.hold: asyncio.Event | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        name = "backend/keys /jwks"
        self.keys = RemoteKeys(name, self.fetch, SECONDS, lambda: self.now, self.spawn, self.future, sign)

    async def fetch(self) -> jwks.KeySet:
        self.fetches += 1
        if self.hold is not None:
            await self.hold.wait()
        if isinstance(self.answer, str):
            raise Unavailable(self.answer)
        return self.answer

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.add(asyncio.create_task(work))

    def future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    async def settle(self) -> None:
        """Let what was begun end."""
        while self.tasks:
            await self.tasks.pop()


@pytest.fixture
def server() -> Server:
    return Server()


async def test_the_first_look_begins_to_fetch_and_does_not_wait(server: Server) -> None:
    assert server.keys.current() is None and server.keys.may_fetch(False)
    await server.settle()
    assert server.keys.current() is FIRST and server.fetches == 1


async def test_all_who_come_before_the_keys_wait_for_one_fetch(server: Server) -> None:
    server.hold = asyncio.Event()
    server.keys.current()
    waiting = [asyncio.create_task(server.keys.fetched()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    server.hold.set()
    await asyncio.gather(*waiting[1:])
    assert server.keys.keys is FIRST and server.fetches == 1


async def test_old_keys_count_while_new_ones_are_fetched(server: Server) -> None:
    await server.keys.fetched()
    server.now, server.answer = SECONDS - 1, SECOND
    assert server.keys.current() is FIRST and not server.tasks - {task for task in server.tasks if task.done()}
    server.now = SECONDS
    assert server.keys.current() is FIRST
    assert server.keys.current() is FIRST
    await server.settle()
    assert server.keys.current() is SECOND and server.fetches == 2


async def test_very_old_keys_are_waited_for(server: Server) -> None:
    await server.keys.fetched()
    server.now, server.answer = 3 * SECONDS, SECOND
    assert server.keys.current() is None
    await server.keys.fetched()
    assert server.keys.keys is SECOND


async def test_the_same_keys_stay_the_same_object(server: Server) -> None:
    await server.keys.fetched()
    server.now, server.answer = SECONDS, jwks.read(FIRST.text)
    server.keys.current()
    await server.settle()
    assert server.keys.keys is FIRST and server.fetches == 2


async def test_known_keys_stay_while_fetching_fails_for_a_day(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    await server.keys.fetched()
    server.answer = "the server answered 500"
    for server.now in (SECONDS, SECONDS + 100, 40_000.0):
        server.keys.current()
        await server.settle()
        assert server.keys.current() is FIRST or server.keys.keys is FIRST
    server.now = STALE + 1
    server.keys.current()
    await server.settle()
    assert server.keys.current() is None
    assert caplog.text.count("the server answered 500") == 1  # once per change of state
    server.answer, server.now = SECOND, server.now + BACKOFF
    await server.keys.fetched()
    assert server.keys.current() is SECOND and "fetched again" not in caplog.text  # a line of level info


async def test_pauses_between_tries_begin_anew_after_one_that_went_well(server: Server) -> None:
    async def pause() -> float:
        """How long nothing is fetched after a try."""
        await server.keys.fetched()
        began = server.now
        while not server.keys.may_fetch(False):
            server.now += 0.25
        return server.now - began

    server.answer = "no"
    assert [await pause() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    server.answer = FIRST
    assert await pause() == 0
    server.answer = "no"
    assert [await pause() for _ in range(2)] == [1, 2]


async def test_of_workers_that_share_a_sign_one_tells(caplog: pytest.LogCaptureFixture) -> None:
    sign = Buckets.local().sign("keys lost")
    workers = [Server(sign), Server(sign)]
    caplog.set_level("INFO", "dataplane.credentials")

    async def told(answer: jwks.KeySet | str, now: float) -> list[str]:
        """What is told when both fetch, one after the other."""
        caplog.clear()
        for worker in workers:
            worker.answer, worker.now = answer, now
            await worker.keys.fetched()
        return [message.rpartition("/jwks: ")[2] for message in caplog.messages]

    assert await told(FIRST, 1) == []
    lost = "the server answered 500; those known stay in force"
    assert await told("the server answered 500", 2) == [lost]
    assert await told("the server answered 500", 3) == []
    assert await told(SECOND, 4) == ["fetched again"]
    assert await told("the server answered 500", 5) == [lost]
    workers[:] = [Server(sign)]  # the ones before were killed
    assert await told(FIRST, 6) == ["fetched again"]
    assert await told("the server answered 500", 7) == [lost]


async def test_tries_are_further_and_further_apart(server: Server) -> None:
    server.answer = "the server answered 500"
    tried = []
    for second in range(200):
        server.now = float(second)
        server.keys.current()
        await server.settle()
        tried += [second] if server.fetches > len(tried) else []
    assert tried == [0, 1, 3, 7, 15, 31, 61, 91, 121, 151, 181]


async def test_unknown_names_cause_one_fetch_in_a_while(server: Server) -> None:
    await server.keys.fetched()
    assert not server.keys.may_fetch(unknown=True)
    server.now = REFETCH
    assert server.keys.may_fetch(unknown=True)
    server.answer = SECOND
    await server.keys.fetched()
    assert server.keys.keys is SECOND and not server.keys.may_fetch(unknown=True)


async def test_a_fetch_that_breaks_releases_who_waits(server: Server) -> None:
    async def broken() -> jwks.KeySet:
        raise ZeroDivisionError

    keys = RemoteKeys("name", broken, SECONDS, lambda: 0.0, server.spawn, server.future)
    await keys.fetched()
    assert keys.keys is None
    (task,) = server.tasks
    assert isinstance(task.exception(), ZeroDivisionError)


async def test_without_anyone_to_spawn_the_one_who_asks_fetches(server: Server) -> None:
    keys = RemoteKeys("name", server.fetch, SECONDS, lambda: 0.0, None, server.future)
    assert keys.current() is None and keys.may_fetch(False)
    await keys.fetched()
    assert keys.current() is FIRST


async def test_a_fetch_that_ends_at_once_is_not_waited_for(server: Server) -> None:
    def at_once(work: Coroutine[Any, Any, None]) -> None:
        with pytest.raises(StopIteration):
            work.send(None)

    keys = RemoteKeys("name", server.fetch, SECONDS, lambda: 0.0, at_once, server.future)
    await asyncio.wait_for(keys.fetched(), 5)
    assert keys.current() is FIRST


async def test_keys_count_a_second_at_least(server: Server) -> None:
    keys = RemoteKeys("name", server.fetch, 0.001, lambda: server.now, server.spawn, server.future)
    await keys.fetched()
    server.now = 0.9
    assert keys.current() is FIRST and server.fetches == 1 and keys.fresh_for() == 1.0


def test_inline_keys_are_always_there() -> None:
    keys = InlineKeys(FIRST)
    assert keys.current() is keys.keys is FIRST and keys.fresh_for() == float("inf")


def test_nothing_of_the_keys_is_shown(server: Server) -> None:
    server.keys.keys = FIRST
    assert repr(server.keys) == "RemoteKeys(backend/keys /jwks, KeySet(1 keys))"


async def test_how_long_a_token_that_was_verified_needs_no_other_look_at_the_keys(server: Server) -> None:
    """Until the keys are old; then for ten seconds, or as long as keys count where that is less."""
    await server.keys.fetched()
    for server.now, seconds in ((0.0, 300.0), (100.0, 200.0), (290.0, 10.0), (295.0, 10.0), (400.0, 10.0)):
        assert server.keys.fresh_for() == seconds
    short = RemoteKeys("name", server.fetch, 4.0, lambda: server.now, server.spawn, server.future)
    await short.fetched()
    for server.now, seconds in ((400.0, 4.0), (401.0, 4.0), (404.0, 4.0), (500.0, 4.0)):
        assert short.fresh_for() == seconds


async def test_keys_are_in_force_up_to_a_day_and_fetched_again_at_the_very_end_of_their_time(server: Server) -> None:
    await server.keys.fetched()
    server.now = SECONDS
    assert server.keys.may_fetch(False)
    server.keys.current()
    await server.settle()
    assert server.fetches == 2
    server.answer, server.now = "no", SECONDS + 86400.0
    assert server.keys.keys is FIRST
    server.keys.current()
    assert server.keys.keys is FIRST
    await server.settle()
    server.now += 0.001
    server.keys.current()
    assert server.keys.keys is None


async def test_keys_of_twice_their_age_are_not_waited_for_older_ones_are(server: Server) -> None:
    await server.keys.fetched()
    server.now, server.hold = 2 * SECONDS, asyncio.Event()
    assert server.keys.current() is FIRST and server.keys.current() is FIRST
    server.now += 0.001
    assert server.keys.current() is None
    server.hold.set()
    await server.settle()
