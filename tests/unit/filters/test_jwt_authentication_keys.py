"""JWT authentication with keys that are fetched: who waits, what is refused, what outlives a swap."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import pytest

from dataplane.chain.filter import Env, Filter, Refused
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters.steps import jwt_authentication
from dataplane.table.carryover import Carryover
from gatewright.wire.v1 import authentication_pb2
from tests.fakes.calls import FakeCalls, answered, failed
from tests.fakes.table_state import exchange
from tests.fakes.tokens import ISSUER, Issuer, key_set

ANN, NEXT = Issuer(), Issuer(kid="k2")
BACKEND = "backend/service/default/keys/80"
NOW = 1_000_000.0

Answer = Reply | Awaitable[Reply | None] | None


class Proxy:
    """A worker, as far as the policy sees it. `now` moves both clocks."""

    def __init__(self) -> None:
        self.now = NOW
        self.calls = FakeCalls({BACKEND: answered(200, ANN.key_set().encode())})
        self.tasks: list[asyncio.Task[None]] = []
        self.made: list[asyncio.Task[None]] = []
        """All of them; some still wait for keys that do not come when a test ends."""
        self.env = Env(
            clock=lambda: self.now,
            wall_clock=lambda: self.now,
            random=lambda: 0.0,
            calls=self.calls,
            carryover=Carryover(),
            spawn=self._spawn,
            make_future=lambda: asyncio.get_running_loop().create_future(),
            call_at=self._call_at,
        )

    def _call_at(self, moment: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(moment - self.now, call)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))
        self.made.append(self.tasks[-1])

    def build(self, mode: int = 0, path: str = ".well-known/jwks.json", parameter: str = "") -> Filter:
        """`parameter`: of the query, that has the token; "": it is in the header Authorization."""
        config = authentication_pb2.JwtAuthentication(mode=mode)  # type: ignore[arg-type]
        if parameter:
            config.location.query_parameter.name = parameter
        provider = config.providers.add(issuer=ISSUER)
        provider.jwks.remote.backend, provider.jwks.remote.jwks_path = BACKEND, path
        return jwt_authentication.build(config, self.env)

    async def settle(self) -> None:
        while self.tasks:
            await self.tasks.pop()

    def token(self, issuer: Issuer = ANN, **claims: Any) -> str:
        return issuer.token(**{"exp": self.now + 3600, "sub": "ann", **claims})


def ask(step: Filter, token: str) -> tuple[Exchange, Answer]:
    x = exchange(headers=f"Authorization: Bearer {token}\r\n".encode())
    assert step.request is not None
    return x, step.request(x)


async def awaited(answer: Answer) -> Reply | None:
    assert answer is not None and not isinstance(answer, Reply), "it did not wait"
    return await answer


def reason(answer: Answer) -> str:
    assert answer is None or isinstance(answer, Reply), "it waits"
    return answer.reason if answer else "passes"


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    yield proxy
    for task in proxy.made:
        task.cancel()
    await asyncio.gather(*proxy.made, return_exceptions=True)


@pytest.mark.parametrize("path", [".well-known/jwks.json", "/.well-known/jwks.json"])
async def test_keys_are_fetched_when_the_policy_comes(proxy: Proxy, path: str) -> None:
    step = proxy.build(path=path)
    await proxy.settle()
    (call,) = proxy.calls.received
    assert (call.backend, call.request.method, call.request.target) == (BACKEND, b"GET", b"/.well-known/jwks.json")
    assert (call.seconds, call.max_body) == (10.0, 256 * 1024)
    assert reason(ask(step, proxy.token())[1]) == "passes"


async def test_a_token_that_comes_before_the_keys_waits(proxy: Proxy) -> None:
    proxy.calls.hold = True
    step = proxy.build()
    (x, first), (_, second) = ask(step, proxy.token()), ask(step, proxy.token(exp=NOW - 60))
    waiting = [asyncio.ensure_future(awaited(each)) for each in (first, second)]
    await asyncio.sleep(0)
    proxy.calls.release()
    answers = await asyncio.gather(*waiting)
    assert [reason(each) for each in answers] == ["passes", "JwtInvalid"]
    assert x.request.block == b"\r\nHost: a.example\r\n" and len(proxy.calls.received) == 1


@pytest.mark.parametrize(
    "outcome",
    [failed("timeout"), answered(500), answered(200, b"{}"), answered(200, b"\xff" * 9)],
    ids=["timeout", "500", "no keys", "garbage"],
)
async def test_without_keys_no_token_is_valid(proxy: Proxy, outcome: Any) -> None:
    proxy.calls.on(BACKEND, outcome)
    strict, permissive = proxy.build(), proxy.build(authentication_pb2.AUTHENTICATION_MODE_PERMISSIVE)
    answer = await awaited(ask(strict, proxy.token())[1])
    assert answer is not None and (answer.status, answer.reason) == (401, "JwtKeysUnavailable")
    assert answer.headers == b"www-authenticate: Bearer\r\n"
    assert reason(ask(strict, proxy.token())[1]) == "JwtKeysUnavailable"  # at once, until the next try
    x, passed = ask(permissive, proxy.token())
    assert (reason(passed), x.attributes) == ("passes", None)
    proxy.now += 1
    proxy.calls.on(BACKEND, answered(200, ANN.key_set().encode()))
    assert await awaited(ask(strict, proxy.token())[1]) is None


async def test_a_server_that_comes_with_the_same_change(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Policies are built before the table that knows the server is swapped in."""
    monkeypatch.setattr(jwt_authentication, "PAUSES", (0.0, 0.0))
    proxy.calls.on(BACKEND, failed("unresolved"))
    step = proxy.build()
    await asyncio.sleep(0)
    answer = await awaited(ask(step, proxy.token())[1])
    assert answer is not None and answer.reason == "JwtKeysUnavailable"
    proxy.calls.on(BACKEND, answered(200, ANN.key_set().encode()))
    await proxy.settle()
    assert reason(ask(step, proxy.token())[1]) == "passes" and caplog.text == ""


async def test_a_server_that_does_not_come(proxy: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    proxy.calls.on(BACKEND, failed("unresolved"))
    step = proxy.build()
    proxy.now += 10
    for _ in range(2):
        answer = await awaited(ask(step, proxy.token())[1])
        assert answer is not None and answer.reason == "JwtKeysUnavailable"
        assert reason(ask(step, proxy.token())[1]) == "JwtKeysUnavailable"
        proxy.now += 2
    assert caplog.text.count("the test's unresolved") == 1


async def test_a_new_key_is_fetched_once(proxy: Proxy) -> None:
    step = proxy.build()
    await proxy.settle()
    proxy.calls.on(BACKEND, answered(200, key_set(ANN.key(), NEXT.key()).encode()))
    assert reason(ask(step, proxy.token(NEXT))[1]) == "JwtInvalid"  # keys were fetched a moment ago
    proxy.now += 10
    assert await awaited(ask(step, proxy.token(NEXT))[1]) is None
    assert reason(ask(step, proxy.token(Issuer(kid="k3")))[1]) == "JwtInvalid"
    assert len(proxy.calls.received) == 2


async def test_a_key_that_is_gone_ends_what_was_remembered(proxy: Proxy) -> None:
    step = proxy.build()
    await proxy.settle()
    token = proxy.token()
    assert [reason(ask(step, token)[1]) for _ in range(2)] == ["passes", "passes"]
    proxy.calls.on(BACKEND, answered(200, NEXT.key_set().encode()))
    proxy.now += 300
    assert reason(ask(step, token)[1]) == "passes"  # old keys count while new ones are fetched
    await proxy.settle()
    assert reason(ask(step, token)[1]) == "JwtInvalid"


async def test_a_remembered_token_expires(proxy: Proxy) -> None:
    step = proxy.build()
    await proxy.settle()
    token = proxy.token(exp=NOW + 60)
    assert reason(ask(step, token)[1]) == "passes"
    proxy.now += 89
    assert reason(ask(step, token)[1]) == "passes"
    proxy.now += 1
    assert reason(ask(step, token)[1]) == "JwtInvalid"


@pytest.mark.parametrize("parameter", ["", "token"], ids=["header", "query"])
async def test_a_verified_token_is_recognised_until_its_time_or_its_keys_are_over(proxy: Proxy, parameter: str) -> None:
    step = proxy.build(parameter=parameter)
    await proxy.settle()
    token = proxy.token(exp=NOW + 60)

    def claims() -> Any:
        """Those that the request got; None for one that was refused."""
        x = exchange(query=f"a=1&{parameter}={token}") if parameter else ask(step, token)[0]
        if parameter:
            assert step.request is not None
            step.request(x)
            assert (token in x.target.decode()) == (x.attributes is None)
        return None if x.attributes is None else x.attributes["jwt"]

    first = claims()
    assert first is not None and first["sub"] == claims()["sub"]
    proxy.now = NOW + 89.5
    assert claims() is first
    proxy.now = NOW + 90
    assert claims() is None
    proxy.now = NOW
    token = proxy.token(exp=NOW + 3600)
    first = claims()
    assert first is not None and claims() is first
    proxy.calls.on(BACKEND, answered(200, NEXT.key_set().encode()))
    proxy.now = NOW + 299
    assert claims() is first
    proxy.now = NOW + 300
    claims()
    await proxy.settle()
    assert claims() is None


@pytest.mark.parametrize(
    ("location", "challenge"),
    [
        ({}, b"Bearer"),
        ({"query_parameter": {"name": "token"}}, b"Bearer"),
        ({"header": {"name": "x-token", "prefix": "JWT"}}, b"JWT"),
        ({"header": {"name": "x-token"}}, b"Bearer"),
    ],
)
def test_the_challenge_names_the_scheme_that_is_configured(location: dict[str, Any], challenge: bytes) -> None:
    config = authentication_pb2.JwtAuthentication(location=authentication_pb2.CredentialLocation(**location))
    config.providers.add(issuer=ISSUER).jwks.inline = ANN.key_set()
    step = jwt_authentication.build(config, Env(clock=lambda: 0.0, random=lambda: 0.0))
    answer = ask(step, "")[1] if location else step.request and step.request(exchange())
    assert isinstance(answer, Reply) and answer.headers == b"www-authenticate: " + challenge + b"\r\n"


async def test_keys_outlive_a_swap_and_are_shared(proxy: Proxy) -> None:
    before = proxy.build()
    await proxy.settle()
    after, other = proxy.build(), proxy.build(authentication_pb2.AUTHENTICATION_MODE_OPTIONAL)
    del before
    assert [reason(ask(step, proxy.token())[1]) for step in (after, other)] == ["passes", "passes"]
    assert len(proxy.calls.received) == 1


def test_what_cannot_be_built() -> None:
    env = Env(clock=lambda: 0.0, random=lambda: 0.0)
    config = authentication_pb2.JwtAuthentication()
    with pytest.raises(Refused, match="providers: none"):
        jwt_authentication.build(config, env)
    provider = config.providers.add(issuer=ISSUER)
    with pytest.raises(Refused, match=r"providers\[0\]\.jwks: neither remote nor inline"):
        jwt_authentication.build(config, env)
    provider.jwks.remote.backend = BACKEND
    with pytest.raises(Refused, match=r"providers\[0\]\.jwks\.remote: there is no way"):
        jwt_authentication.build(config, env)
    provider.jwks.inline = json.dumps({"keys": [ANN.key()]})
    provider.secret = "secret/default/s"
    with pytest.raises(Refused, match=r"providers\[0\]: jwks and a secret"):
        jwt_authentication.build(config, env)
    provider.ClearField("jwks")
    with pytest.raises(Refused, match="secret/default/s"):
        jwt_authentication.build(config, env)


@pytest.mark.parametrize("path", ["a b", "a#b", "a\r\nb", "\u00e4"])
def test_paths_that_cannot_be_asked_for(path: str) -> None:
    with pytest.raises(Refused, match=r"providers\[0\]\.jwks\.remote\.jwksPath: .* is not a path"):
        Proxy().build(path=path)
