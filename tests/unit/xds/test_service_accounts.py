"""Tokens of service accounts: who is let in, who is refused unasked, what is remembered, what fails closed."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
from typing import Any

import pytest

from controlplane.kube.access import ApiError
from controlplane.kube.cluster import proxies_account
from controlplane.kube.reviews import TokenReviews
from controlplane.xds.trust import service_accounts
from controlplane.xds.trust.service_accounts import AGAIN, BAD_FOR, GOOD_FOR, RETRY, Reviewed, ServiceAccounts, claimed

WEB = "system:serviceaccount:shop:web"


def token(subject: object = WEB, audience: object = ("gatewright",), expires: object = 4000.0, mark: str = "") -> str:
    claims = {"sub": subject, "aud": audience, "exp": expires, "mark": mark}
    return of(claims)


def of(claims: object) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({}, claims)]
    return ".".join([*parts, "signature"])


class World:
    """The API server, and the time: the day's clock is 1000 s ahead of the steady one."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked = 0
        self.answer: Reviewed | Exception = Reviewed(WEB)
        self.gate: asyncio.Event | None = None
        self.accounts = ServiceAccounts(self, proxies_account, lambda: self.now + 1000, lambda: self.now)

    async def review(self, token: str, audience: str) -> Reviewed:
        assert audience == "gatewright"
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def world() -> World:
    return World()


async def test_the_account_of_a_gateways_proxies_may_have_it(world: World) -> None:
    found = await world.accounts.check("shop/web", token())
    assert (found.reason, found.until) == ("", AGAIN)


async def test_a_gateway_with_a_long_name_has_an_account_with_a_hash(world: World) -> None:
    gateway = "shop/" + "a" * 200
    world.answer = Reviewed(proxies_account(gateway))
    assert len(world.answer.username.rpartition(":")[2]) <= 63
    assert (await world.accounts.check(gateway, token(world.answer.username))).reason == ""
    assert (await world.accounts.check("shop/" + "a" * 199, token(world.answer.username))).reason != ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", service_accounts.UNREADABLE),
        ("abc", service_accounts.UNREADABLE),
        ("a.b.c", service_accounts.UNREADABLE),
        ("a.\u00e9.c", service_accounts.UNREADABLE),
        (of([]), service_accounts.UNREADABLE),
        (of({}), service_accounts.UNREADABLE),
        (token(expires="soon"), service_accounts.UNREADABLE),
        (token(expires=float("inf")), service_accounts.UNREADABLE),
        (token(expires=float("nan")), service_accounts.UNREADABLE),
        (token(expires=1e12), service_accounts.UNREADABLE),  # in 30,000 years
        (token(expires=-1e12), service_accounts.UNREADABLE),
        (token(expires=10**400), service_accounts.UNREADABLE),  # no float has it
        (token(expires=-(10**400)), service_accounts.UNREADABLE),
        (token(expires=True), service_accounts.EXPIRED),
        (token(subject=7), service_accounts.UNREADABLE),
        (token(mark="x" * service_accounts.LONGEST), service_accounts.UNREADABLE),
        (token(audience="kubernetes"), service_accounts.UNKNOWN),
        (token(audience=[["gatewright"]]), service_accounts.UNKNOWN),
        (token(expires=1000.0), service_accounts.EXPIRED),
        (token("system:serviceaccount:shop:api"), "the token is not of system:serviceaccount:shop:web"),
        (token("system:serviceaccount:other:web"), "the token is not of system:serviceaccount:shop:web"),
        (token("admin"), "the token is not of system:serviceaccount:shop:web"),
    ],
)
async def test_what_cannot_do_is_refused_without_a_question(world: World, text: str, reason: str) -> None:
    found = await world.accounts.check("shop/web", text)
    assert found.reason.startswith(reason) and found.is_final
    assert world.asked == 0


def test_hostile_tokens_are_read_without_harm() -> None:
    deep = base64.urlsafe_b64encode(b"[" * 11_000).decode()
    assert claimed(f"a.{deep}.c") is None


async def test_what_the_api_server_says_counts_not_what_the_token_says(world: World) -> None:
    world.answer = Reviewed("")
    assert (await world.accounts.check("shop/web", token())).reason == service_accounts.UNKNOWN
    world.answer = Reviewed("system:serviceaccount:shop:api")
    found = await world.accounts.check("shop/web", token(mark="another"))
    assert found.reason.startswith("the token is not of") and found.is_final


@pytest.mark.parametrize(("answer", "seconds"), [(Reviewed(WEB), GOOD_FOR), (Reviewed(""), BAD_FOR)])
async def test_answers_are_kept_for_a_while(world: World, answer: Reviewed, seconds: float) -> None:
    world.answer = answer
    await world.accounts.check("shop/web", token())
    world.now = seconds - 1
    await world.accounts.check("shop/web", token())
    assert world.asked == 1
    world.now = seconds
    await world.accounts.check("shop/web", token())
    assert world.asked == 2


async def test_no_answer_outlives_the_token(world: World) -> None:
    short = token(expires=1005.0)
    assert (await world.accounts.check("shop/web", short)).until == 5
    world.now = 5
    assert (await world.accounts.check("shop/web", short)).reason == service_accounts.EXPIRED


async def test_who_cannot_be_asked_is_no_reason_to_let_in(world: World) -> None:
    world.answer = OSError("away")
    found = await world.accounts.check("shop/web", token())
    assert (found.reason, found.is_final, found.until) == (service_accounts.UNCHECKED, False, RETRY)
    world.answer = Reviewed(WEB)  # and that is not remembered
    assert (await world.accounts.check("shop/web", token())).reason == ""


async def test_many_that_ask_the_same_ask_once_and_others_take_turns(world: World) -> None:
    world.gate = asyncio.Event()
    same = [asyncio.create_task(world.accounts.check("shop/web", token())) for _ in range(50)]
    others = [asyncio.create_task(world.accounts.check("shop/web", token(mark=str(n)))) for n in range(2000)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.asked == service_accounts.AT_ONCE
    world.gate.set()
    assert {found.reason for found in await asyncio.gather(*same)} == {""}
    refused = [found for found in await asyncio.gather(*others) if found.reason]
    assert {found.reason for found in refused} == {service_accounts.UNCHECKED}
    assert len(refused) == 2001 - service_accounts.WAITING
    assert world.asked == service_accounts.WAITING


async def test_what_is_kept_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_accounts, "MOST", 10)
    for n in range(20):
        await world.accounts.check("shop/web", token(mark=str(n)))
    for n in range(10, 20):
        await world.accounts.check("shop/web", token(mark=str(n)))
    assert world.asked == 20
    await world.accounts.check("shop/web", token(mark="0"))
    assert world.asked == 21


async def test_an_answer_that_was_asked_for_again_is_the_newest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_accounts, "MOST", 2)
    one, two, three = (token(mark=mark) for mark in ("one", "two", "three"))
    await world.accounts.check("shop/web", one)
    world.now = GOOD_FOR - 1
    await world.accounts.check("shop/web", two)
    world.now = GOOD_FOR
    await world.accounts.check("shop/web", one)
    await world.accounts.check("shop/web", three)
    assert (world.asked, world.accounts.kept) == (4, 2)
    await world.accounts.check("shop/web", one)
    assert world.asked == 4
    await world.accounts.check("shop/web", two)
    assert world.asked == 5


async def test_what_waits_and_what_is_kept_is_known(world: World) -> None:
    world.gate = asyncio.Event()
    asking = [asyncio.create_task(world.accounts.check("shop/web", token(mark=mark))) for mark in "ab"]
    await asyncio.sleep(0)
    assert (world.accounts.pending, world.accounts.kept) == (2, 0)
    world.gate.set()
    await asyncio.gather(*asking)
    assert (world.accounts.pending, world.accounts.kept) == (0, 2)


@pytest.mark.parametrize("is_closed", [False, True])
async def test_who_left_before_the_answer_makes_no_noise(is_closed: bool, world: World) -> None:
    noise: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    world.gate, world.answer = asyncio.Event(), OSError("away")
    task = asyncio.create_task(world.accounts.check("shop/web", token()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    del task  # or what it was cancelled with would keep the question
    if is_closed:
        await world.accounts.close()
    world.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert (noise, world.accounts.pending) == ([], 0)


async def test_a_token_counts_to_its_last_moment(world: World) -> None:
    found = await world.accounts.check("shop/web", token(expires=1000.5))
    assert (found.reason, found.until) == ("", 0.5)


def test_tokens_of_any_length_are_read() -> None:
    for length in range(20):
        head, claims, _ = token(mark="x" * length).split(".")
        found = claimed(f"{head}.{claims}.{'s' * 8}")
        assert found is not None and found.subject == WEB
    text = token()
    longest = text + "s" * (service_accounts.LONGEST - len(text))
    assert claimed(longest) is not None and claimed(longest + "s") is None


async def test_the_end_leaves_no_question_behind(world: World) -> None:
    world.gate = asyncio.Event()
    task = asyncio.create_task(world.accounts.check("shop/web", token()))
    await asyncio.sleep(0)
    await world.accounts.close()
    with pytest.raises(asyncio.CancelledError):
        await task


class Server:
    def __init__(self, status: Any) -> None:
        self.status = status

    async def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        assert (method, path) == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
        assert body["spec"] == {"token": "the token", "audiences": ["gatewright"]}
        return {"status": self.status}


@pytest.mark.parametrize(
    ("status", "username"),
    [
        ({"authenticated": True, "audiences": ["gatewright"], "user": {"username": WEB}}, WEB),
        ({"authenticated": False, "audiences": ["gatewright"], "user": {"username": WEB}}, ""),
        ({"authenticated": True, "user": {"username": WEB}}, ""),  # a server that knows no audiences
        ({"authenticated": True, "audiences": ["kubernetes"], "user": {"username": WEB}}, ""),
        ({"authenticated": "true", "audiences": ["gatewright"], "user": {"username": WEB}}, ""),
        ({"authenticated": True, "audiences": ["gatewright"]}, ""),
        (None, ""),
    ],
)
async def test_answers_of_the_api_server(status: Any, username: str) -> None:
    reviews = TokenReviews(lambda: Server(status))
    assert await reviews.review("the token", "gatewright") == Reviewed(username)
    assert (reviews.accepted, reviews.refused, reviews.failures) == (int(bool(username)), int(not username), 0)


async def test_a_question_without_an_answer_is_a_failure() -> None:
    class Silent:
        async def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
            raise ApiError(503, "ServiceUnavailable", "the token") if body else TimeoutError

    reviews = TokenReviews(Silent)
    with pytest.raises(OSError, match="503") as failure:
        await reviews.review("the token", "gatewright")
    assert "the token" not in str(failure.value)
    assert (reviews.accepted, reviews.refused, reviews.failures) == (0, 0, 1)
