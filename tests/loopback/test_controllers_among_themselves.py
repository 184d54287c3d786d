"""Controllers tell the one that leads what their proxies answered, over TLS that knows them: real calls on loopback."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc
import pytest

from controlplane.answers.fleet import Fleet
from controlplane.xds import hub
from controlplane.xds.answer_messages import METHOD, ORIGIN
from controlplane.xds.hub import Hub
from controlplane.xds.reporter import Reporter
from controlplane.xds.trust import authority as authorities
from controlplane.xds.trust.authority import Authority
from controlplane.xds.trust.issuer import Issuer
from tests.harness.patience import PATIENCE

WEB = "shop/web"


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.005)


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return authorities.created(now())


def issuer(authority: Authority) -> Issuer:
    made = Issuer(now)
    made.use(authority)
    return made


class Controller:
    """Its proxies, and both ends."""

    def __init__(self, name: str, authority: Authority) -> None:
        self.fleet = Fleet(lambda: 0.0, sequence_of=lambda _gateway, version: int(version[1:]), origin=name)
        self.hub = Hub(self.fleet, name)
        self.leader = ""
        self.issuer = issuer(authority)
        self.reporter = Reporter(self.fleet, name, self.issuer, lambda: self.leader)
        self.address = ""

    async def start(self) -> asyncio.Task[None]:
        self.address = f"127.0.0.1:{await self.hub.start('127.0.0.1', 0, self.issuer)}"
        return asyncio.create_task(self.reporter.run())

    def proxy(self, name: str, state: int) -> object:
        proxy = self.fleet.connect(f"{WEB}/{name}", WEB, "")
        self.fleet.acknowledge(proxy, state, f"v{state}")
        return proxy

    def tells(self, address: str) -> None:
        self.leader = address
        self.reporter.look()


@asynccontextmanager
async def controllers(authority: Authority, *names: str) -> AsyncIterator[list[Controller]]:
    made = [Controller(name, authority) for name in names]
    tasks = [await each.start() for each in made]
    try:
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in made:
            await each.hub.stop()


def answered(controller: Controller, state: int) -> tuple[int, int, bool]:
    view = controller.fleet.view(WEB)
    return view.connected, view.answered_by(state), view.complete


async def test_the_leader_knows_the_proxies_of_all(authority: Authority) -> None:
    async with controllers(authority, "one", "two") as (one, two):
        one.proxy("a", 3)
        two.proxy("b", 3)
        one.hub.lead([])
        two.tells(one.address)
        await until(lambda: answered(one, 3) == (2, 2, True))
        late = two.fleet.connect(f"{WEB}/c", WEB, "")
        await until(lambda: answered(one, 3) == (3, 2, True))
        two.fleet.disconnect(late)
        await until(lambda: answered(one, 3) == (2, 2, True))
        assert answered(two, 3) == (1, 1, True)
        assert one.hub.messages == two.reporter.messages >= 3
        assert (one.hub.reporting, one.hub.awaited, two.reporter.failures) == (1, 0, 0)


async def test_who_is_expected_is_waited_for_and_given_up_in_the_end(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "LOST", 0.2)
    async with controllers(authority, "one") as (one,):
        one.proxy("a", 3)
        one.hub.lead(["two"])
        assert answered(one, 3) == (1, 1, False)
        assert (one.hub.reporting, one.hub.awaited) == (0, 1)
        await until(lambda: answered(one, 3) == (1, 1, True))
        one.hub.expect("two")  # as the Lease still names it
        assert answered(one, 3) == (1, 1, True)
        assert one.hub.origins == set()


async def test_one_that_is_lost_leaves_its_answers_until_it_is_given_up(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with controllers(authority, "one", "two") as (one, two):
        two.proxy("b", 3)
        one.hub.lead([])
        two.tells(one.address)
        await until(lambda: answered(one, 3) == (1, 1, True))
        two.tells("")
        await until(lambda: answered(one, 3) == (1, 1, False))
        monkeypatch.setattr(hub, "LOST", 0.0)
        two.fleet.connect(f"{WEB}/x", WEB, "")
        two.tells(one.address)
        await until(lambda: answered(one, 3) == (2, 1, True))
        two.tells("")
        two.proxy("y", 3)
        await until(lambda: answered(one, 3) == (0, 0, True))


async def test_after_a_change_of_the_leader_the_other_one_knows_all(authority: Authority) -> None:
    async with controllers(authority, "one", "two") as (one, two):
        one.proxy("a", 3)
        two.proxy("b", 3)
        one.hub.lead([])
        two.tells(one.address)
        await until(lambda: answered(one, 3) == (2, 2, True))
        one.hub.follow()
        two.hub.lead(["one"])
        assert answered(two, 3) == (1, 1, False)  # nobody guesses
        two.tells("")
        one.tells(two.address)
        await until(lambda: answered(two, 3) == (2, 2, True))
        await until(lambda: answered(one, 3) == (1, 1, True))


async def test_who_does_not_lead_refuses_and_is_asked_again(authority: Authority) -> None:
    async with controllers(authority, "one", "two") as (one, two):
        two.proxy("b", 3)
        two.tells(one.address)
        await until(lambda: "FAILED_PRECONDITION" in two.reporter.trouble)
        one.hub.lead([])
        await until(lambda: answered(one, 3) == (1, 1, True))
        await until(lambda: two.reporter.trouble == "")


async def refused(address: str, credentials: object, *metadata: tuple[str, str]) -> grpc.StatusCode:
    options = [("grpc.ssl_target_name_override", authorities.CONTROLLER)]
    async with grpc.aio.secure_channel(address, credentials, options) as channel:
        call = channel.stream_unary(METHOD)(iter([b"{}"]), metadata=metadata, timeout=PATIENCE)
        try:
            await call
        except grpc.aio.AioRpcError as error:
            return error.code()
    raise AssertionError("it was let in")


async def test_strangers_are_refused(authority: Authority) -> None:
    async with controllers(authority, "one") as (one,):
        one.hub.lead([])
        stranger = issuer(authorities.created(now()))
        identity = stranger.identity()
        foreign = grpc.ssl_channel_credentials(one.issuer.bundle, identity.key, identity.certificate)
        assert await refused(one.address, foreign, (ORIGIN, "two")) is grpc.StatusCode.UNAVAILABLE
        without = grpc.ssl_channel_credentials(one.issuer.bundle)  # as a proxy has them
        assert await refused(one.address, without, (ORIGIN, "two")) is grpc.StatusCode.UNAVAILABLE
        ours = one.issuer.channel_credentials()
        for metadata in ([], [(ORIGIN, "one")], [(ORIGIN, "a b")], [(ORIGIN, "x"), (ORIGIN, "y")]):
            assert await refused(one.address, ours, *metadata) is grpc.StatusCode.INVALID_ARGUMENT
        assert await refused(one.address, ours, (ORIGIN, "two")) is grpc.StatusCode.INVALID_ARGUMENT  # "{}"


async def test_there_is_an_end_to_how_many_are_listened_to(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "MOST_ORIGINS", 1)
    async with controllers(authority, "one") as (one,):
        one.hub.lead(["two", "three"])
        assert one.hub.origins == {"two"}
        code = await refused(one.address, one.issuer.channel_credentials(), (ORIGIN, "three"))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
