"""grpcio's client and server with a proxy between them: random calls at once, some of which are given up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc

from tests.harness.patience import PATIENCE
from tests.harness.seeds import times
from tests.harness.waiting import until
from tests.loopback.test_grpc_calls import World, world

SIZES = (0, 1, 100, 16_384, 65_536, 300_000)
AT_ONCE = 12


class Caller:
    """Calls of every kind, with what has to come of each. `counted`: calls whose outcome the proxy has to count."""

    def __init__(self, here: World, dice: random.Random) -> None:
        self.here, self.dice = here, dice
        self.kinds: list[Callable[[], Awaitable[None]]] = [
            *(self.say, self.collect, self.spread, self.talk, self.talk),
            *(self.leave_talk, self.leave_spread, self.leave_collect, self.too_late, self.cancel, self.fail),
        ]

    async def go(self, count: int) -> None:
        for _ in range(count):
            await self.dice.choice(self.kinds)()

    def message(self) -> bytes:
        return self.dice.choice((b"a", b"B")) * self.dice.choice(SIZES)

    async def say(self) -> None:
        message = self.message()
        assert await self.here.unary("Say")(message) == message

    async def collect(self) -> None:
        messages = [self.message() for _ in range(self.dice.randrange(20))]
        answer = await self.here.channel.stream_unary("/test.Echo/Collect")(given(messages))
        assert answer == b"%d" % sum(map(len, messages))

    async def spread(self) -> None:
        count = self.dice.choice((0, 1, 500))
        call = self.here.channel.unary_stream("/test.Echo/Spread")(b"%d" % count)
        assert [each async for each in call] == [b"%d" % number for number in range(count)]

    async def talk(self) -> None:
        messages = [self.message() for _ in range(self.dice.randrange(20))]
        call = self.here.channel.stream_stream("/test.Echo/Talk")(given(messages))
        assert [each async for each in call] == [each.upper() for each in messages]

    async def leave_talk(self) -> None:
        """Leave after some answers, with more to be said."""
        call = self.here.channel.stream_stream("/test.Echo/Talk")(given([self.message()] * 50))
        for _ in range(self.dice.randrange(5)):
            await call.read()
        call.cancel()

    async def leave_spread(self) -> None:
        call = self.here.channel.unary_stream("/test.Echo/Flood")(b"")
        for _ in range(self.dice.randrange(5)):
            await call.read()
        call.cancel()

    async def leave_collect(self) -> None:
        call = self.here.channel.stream_unary("/test.Echo/Collect")()
        for _ in range(self.dice.randrange(5)):
            await call.write(self.message())
        call.cancel()

    async def too_late(self) -> None:
        try:
            await self.here.unary("Wait")(b"", timeout=self.dice.choice((0.001, 0.02, 0.1)))
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED, error
        else:
            raise AssertionError("nobody answers these")

    async def cancel(self) -> None:
        call = self.here.unary("Wait")(self.message())
        for _ in range(self.dice.randrange(20)):
            await asyncio.sleep(0)
        assert call.cancel()

    async def fail(self) -> None:
        try:
            await self.here.unary("Say")(b"fail")
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.NOT_FOUND, error
        else:
            raise AssertionError("it was to fail")


async def given(messages: list[bytes]) -> AsyncIterator[bytes]:
    for each in messages:
        yield each


async def conversations(here: World, dice: random.Random) -> None:
    callers = [Caller(here, random.Random(dice.random())) for _ in range(AT_ONCE)]
    await asyncio.gather(*[caller.go(times(10)) for caller in callers])

    async def is_at_rest() -> bool:
        return await here.proxy.metric("gatewright_requests_active") == 0

    await until(is_at_rest, "all calls to end")
    assert "InternalError" not in here.proxy.log() and "Traceback" not in here.proxy.log()
    assert await here.unary("Say")(b"still there") == b"still there"


async def test_random_calls_at_once(dice: random.Random, tmp_path: Path) -> None:
    async with world(tmp_path) as here, asyncio.timeout(PATIENCE):
        await conversations(here, dice)
