"""Basic authentication from the standalone file to the request that an upstream sees; slow checks on a loop."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dataplane.chain.filter import Env, Filter, Origin, Refused
from dataplane.chain.reply import Reply
from dataplane.credentials.fair_queue import MOST, MOST_OF_SOURCE
from dataplane.filters.steps import basic_authentication
from gatewright.wire.v1 import authentication_pb2
from tests.carriers import Carrier, Headers, Request
from tests.carriers.values import Pairs
from tests.fakes.policy_run import example, problems, served
from tests.fakes.table_state import exchange
from tests.harness import yamls

USERS = ["ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "d\u00f6rte:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="]
"""Their password is "password"."""


def policy(users: list[str] = USERS, **fields: Any) -> str:
    return yamls.dump({"policies": {"basicAuthentication": {"users": users, **fields}}})


def basic(user: str, password: str) -> tuple[str, str]:
    return authorization("Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())


def authorization(value: str) -> tuple[str, str]:
    return ("authorization", value)


def get(*headers: tuple[str, str], target: str = "/") -> Request:
    return Request("GET", target, headers)


STRICT = served(policy(), log="{user: basicAuth.username}")
BEARER = authorization("Bearer x")


@pytest.mark.claims("errors: Authentication mode `Strict` with missing or invalid credentials")
@pytest.mark.parametrize(
    "headers", [[], [basic("ann", "wrong")], [basic("bob", "password")], [authorization("Basic a")]]
)
def test_strict_refuses(headers: Pairs, refused: Any, carrier: Carrier) -> None:
    seen = carrier.shared(STRICT).carry(get(*headers))
    refused(seen.answer, case="basic")
    assert seen.reached == () and seen.line.endswith("ms")


@pytest.mark.parametrize("name", ["ann", "d\u00f6rte"])
def test_valid_credentials_pass_and_are_taken_out(name: str, carrier: Carrier) -> None:
    run = carrier.proxy(STRICT)
    for _ in range(2):  # checked, then remembered
        seen = run.carry(get(("a", "1"), basic(name, "password"), ("b", "2")))
        assert (seen.answer.status, seen.received.passed) == (200, {"a": "1", "b": "2"})
        assert seen.line.endswith(f"ms user={name if name.isascii() else json.dumps(name)}")


@pytest.mark.parametrize(
    ("headers", "reason", "cause"),
    [
        ([], "BasicMissing", "no credentials"),
        ([BEARER], "BasicMissing", "no credentials"),
        ([basic("ann", "Password")], "BasicInvalid", "the user or password is wrong"),
        ([basic("Ann", "password")], "BasicInvalid", "the user or password is wrong"),
        ([basic("ann", "password\x00")], "BasicInvalid", "the credentials are malformed"),
        ([basic("ann", "x" * 513)], "BasicInvalid", "the credentials are malformed"),
        ([authorization("Basic YW5u")], "BasicInvalid", "the credentials are malformed"),  # no colon
        ([authorization("Basic YW5u OnBhc3N3b3Jk")], "BasicInvalid", "the credentials are malformed"),
        ([authorization("Basic")], "BasicInvalid", "the credentials are malformed"),
        (
            [basic("ann", "password")] * 2,
            "BasicInvalid",
            "several credentials in one request, or one that is no text",
        ),
    ],
)
def test_refusals(headers: Pairs, reason: str, cause: str, carrier: Carrier) -> None:
    run = carrier.shared(STRICT)
    for _ in range(2):  # decided, then remembered
        seen = run.carry(get(*headers))
        assert (seen.answer.status, seen.reason, seen.error.rpartition(": ")[2]) == (401, reason, cause)
        assert seen.answer.headers["www-authenticate"] == 'Basic realm="Restricted"'
        assert seen.reached == () and seen.line.endswith("ms")


@pytest.mark.parametrize(("headers", "passes"), [([], True), ([BEARER], True), ([basic("ann", "no")], False)])
def test_optional(headers: Pairs, passes: bool, carrier: Carrier) -> None:
    seen = carrier.shared(served(policy(mode="Optional"))).carry(get(*headers))
    assert seen.answer.status == (200 if passes else 401)
    assert [each.passed for each in seen.reached] == ([Headers(headers)] if passes else [])


def test_the_realm_is_quoted(carrier: Carrier) -> None:
    answer = carrier.proxy(served(policy(realm='the "inner" \\ circle'))).carry(get()).answer
    assert answer.headers["www-authenticate"] == 'Basic realm="the \\"inner\\" \\\\ circle"'


@pytest.mark.parametrize(
    ("location", "headers", "query"),
    [
        ({"header": {"name": "x-login"}}, [("x-login", "YW5uOnBhc3N3b3Jk")], ""),
        ({"queryParameter": {"name": "login"}}, [], "?login=YW5uOnBhc3N3b3Jk"),
        ({"cookie": {"name": "login"}}, [("cookie", 'login="YW5uOnBhc3N3b3Jk"')], ""),
    ],
)
def test_locations(location: dict[str, Any], headers: Pairs, query: str, carrier: Carrier) -> None:
    seen = carrier.proxy(served(policy(location=location))).carry(get(*headers, target="/" + query))
    assert (seen.answer.status, seen.received.passed, seen.received.target) == (200, {}, "/")


# What slow hashes do on a loop.

SLOW = [
    "ann:$2y$04$GkHbYqs4mTgHh8C1Dm8hZeJh7m5m9iYw5B3gk8C1nC0c5p3WJ3Q3C",  # of some password
    "bob:$apr1$6sJ4p1aA$5g9yQ4x3VtTq5KeJ7zjUe.",
]


class Threads:
    """`Env.offload` and `Env.spawn` on the test's loop: checks wait until `release`."""

    def __init__(self) -> None:
        self.ran = 0
        self.gate = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()

    async def offload(self, work: Callable[[], Any]) -> Any:
        self.ran += 1
        await self.gate.wait()
        return work()

    def spawn(self, task: Any) -> None:
        self.tasks.add(asyncio.create_task(task))


def build(
    threads: Threads | None = None,
    users: list[str] = SLOW,
    bounds: Callable[[], tuple[int | None, int | None]] = lambda: (None, None),
    **fields: Any,
) -> Filter:
    message = authentication_pb2.BasicAuthentication(secret="secret/default/users", **fields)
    env = Env(
        clock=time.monotonic,
        random=lambda: 0.0,
        origin=Origin("GatewayPolicy default/p", "basicAuthentication"),
        offload=None if threads is None else threads.offload,
        spawn=None if threads is None else threads.spawn,
        make_future=lambda: asyncio.get_running_loop().create_future(),
        secret=lambda key: {".htaccess": "\n".join(users).encode()},
        password_checks=bounds,
    )
    return basic_authentication.build(message, env)


def ask(step: Filter, header: tuple[str, str], address: str = "192.0.2.1") -> Reply | Awaitable[Reply | None] | None:
    assert step.request is not None
    x = exchange(headers="{}: {}\r\n".format(*header).encode())
    x.peer = address
    return step.request(x)


async def test_a_slow_check_leaves_the_loop_and_is_remembered() -> None:
    threads = Threads()
    step = build(threads)
    waiting = ask(step, basic("ann", "wrong"))
    assert waiting is not None and not isinstance(waiting, Reply)
    threads.gate.set()
    first = await waiting
    assert first is not None and first.reason == "BasicInvalid"
    assert ask(step, basic("ann", "wrong")) == first and threads.ran == 1


async def test_one_check_for_all_who_send_the_same() -> None:
    threads = Threads()
    step = build(threads)
    waiting = [asyncio.ensure_future(_awaited(ask(step, basic("ann", "x")))) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # that client went away
    threads.gate.set()
    answers = await asyncio.gather(*waiting[1:])
    assert threads.ran == 1 and {answer.reason for answer in answers if answer} == {"BasicInvalid"}


async def _awaited(answer: Any) -> Reply | None:
    found: Reply | None = answer if answer is None or isinstance(answer, Reply) else await answer
    return found


def flood(step: Filter, address: str, number: int) -> list[asyncio.Future[Reply | None]]:
    """Invented passwords, each another one."""
    answers = [ask(step, basic("ann", f"{address} {each}"), address) for each in range(number)]
    return [asyncio.ensure_future(_awaited(answer)) for answer in answers]


async def test_a_flood_of_new_passwords_is_answered_at_once() -> None:
    threads = Threads()
    step = build(threads)
    waiting = flood(step, "192.0.2.1", MOST_OF_SOURCE + 1)  # one of them runs
    await asyncio.sleep(0)
    answer = ask(step, basic("ann", "one more"))
    assert isinstance(answer, Reply) and (answer.status, answer.reason) == (503, "AuthenticationBusy")
    assert answer.headers == b"retry-after: 1\r\n"
    threads.gate.set()
    await asyncio.gather(*waiting)
    await _awaited(ask(step, basic("ann", "one more")))
    assert threads.ran == MOST_OF_SOURCE + 2


async def test_how_many_checks_wait_is_what_limits_say_now() -> None:
    threads, bounds = Threads(), [(2, None)]
    step = build(threads, bounds=lambda: bounds[0])
    waiting = flood(step, "192.0.2.1", 5)  # one runs, two wait
    await asyncio.sleep(0)
    bounds[0] = (None, 3)
    waiting += flood(step, "192.0.2.2", 3)
    threads.gate.set()
    reasons = [answer.reason for answer in await asyncio.gather(*waiting) if answer]
    assert reasons == ["BasicInvalid"] * 3 + ["AuthenticationBusy"] * 2 + ["BasicInvalid"] + ["AuthenticationBusy"] * 2


async def test_a_flood_locks_nobody_else_out() -> None:
    """A login from elsewhere has its turn after the check that runs, and one of the flood."""
    threads = Threads()
    step = build(threads)
    waiting = flood(step, "2001:db8::1", 3) + flood(step, "2001:db8::2", 3 * MOST_OF_SOURCE)  # of one network
    login = asyncio.ensure_future(_awaited(ask(step, basic("bob", "x"), "192.0.2.9")))
    threads.gate.set()
    for _ in range(100):
        await asyncio.sleep(0)
        if login.done():
            break
    assert (await login or Reply(0, "")).reason == "BasicInvalid" and threads.ran <= 4
    answers = await asyncio.gather(*waiting)
    assert {answer.reason for answer in answers if answer} == {"BasicInvalid", "AuthenticationBusy"}
    assert threads.ran == MOST_OF_SOURCE + 2


async def test_many_sources_take_places_of_who_has_most() -> None:
    threads = Threads()
    step = build(threads, SLOW[:1])
    sources = MOST // MOST_OF_SOURCE + 1
    crowd = [each for number in range(sources) for each in flood(step, f"192.0.2.{number}", MOST_OF_SOURCE)]
    login = asyncio.ensure_future(_awaited(ask(step, basic("bob", "x"), "198.51.100.1")))
    await asyncio.sleep(0)
    threads.gate.set()
    assert (await login or Reply(0, "")).reason == "BasicInvalid" and threads.ran <= sources + 3
    assert {answer.reason for answer in await asyncio.gather(*crowd) if answer} == {
        "BasicInvalid",
        "AuthenticationBusy",
    }


async def test_a_client_that_leaves_before_its_turn_keeps_nobody_waiting() -> None:
    threads = Threads()
    step = build(threads)
    for number in range(MOST_OF_SOURCE):
        answer = ask(step, basic("ann", str(number)))
        assert inspect.iscoroutine(answer)
        answer.close()
    last = asyncio.ensure_future(_awaited(ask(step, basic("ann", "last"))))
    threads.gate.set()
    assert (await last or Reply(0, "")).reason == "BasicInvalid"


async def test_a_check_that_breaks_refuses() -> None:
    threads = Threads()

    async def broken(work: Callable[[], Any]) -> Any:
        raise MemoryError

    threads.offload = broken  # type: ignore[method-assign]
    answer = await _awaited(ask(build(threads), basic("ann", "x")))
    assert answer is not None and answer.reason == "BasicInvalid"
    (task,) = threads.tasks
    assert isinstance(task.exception(), MemoryError)


@pytest.mark.parametrize(
    ("user", "text"), [(b"ann", "ann"), ("\u00e4nn".encode(), "\u00e4nn"), (b"\xe4nn", "\u00e4nn")]
)
async def test_names_are_utf_8_where_they_can_be(user: bytes, text: str) -> None:
    """RFC 7617 2.1 leaves the encoding open."""
    hashed = b"{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="
    message = authentication_pb2.BasicAuthentication(secret="secret/default/users")
    env = Env(lambda: 0.0, lambda: 0.0, secret=lambda _key: {".htaccess": user + b":" + hashed})
    step = basic_authentication.build(message, env)
    credentials = base64.b64encode(user + b":password").decode()
    x = exchange(headers=f"Authorization: Basic {credentials}\r\n".encode())
    assert step.request is not None and step.request(x) is None
    assert x.attributes is not None and x.attributes["basicAuth"] == {"username": text}


async def test_names_that_are_not_there_are_checked_too() -> None:
    threads = Threads()
    threads.gate.set()
    answer = await _awaited(ask(build(threads), basic("nobody", "x")))
    assert answer is not None and answer.reason == "BasicInvalid" and threads.ran == 1


def test_the_right_password_under_a_wrong_name_is_wrong() -> None:
    """The hash of some user is checked for a name that is not there."""
    step = build(users=["ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="])
    answer = ask(step, basic("nobody", "password"))
    assert isinstance(answer, Reply) and answer.reason == "BasicInvalid"


def test_invented_passwords_push_no_good_one_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basic_authentication, "KNOWN", 4)
    step = build(users=USERS)
    check = step.request.__self__  # type: ignore[union-attr]
    assert ask(step, basic("ann", "password")) is None
    for number in range(9):
        ask(step, basic("ann", f"x{number}"))
    assert (len(check._good), len(check._bad)) == (1, 4)


@pytest.mark.parametrize(
    ("users", "fields", "reason"),
    [
        (["ann:plain"], {}, "no user with a hash of a known kind"),
        ([""], {}, "no user with a hash of a known kind"),
        (USERS, {"realm": "a\r\nb"}, "realm: control characters"),
        (USERS, {"mode": authentication_pb2.AUTHENTICATION_MODE_PERMISSIVE}, "mode: "),
    ],
)
def test_what_cannot_be_built(users: list[str], fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        build(users=users, **fields)


def test_a_secret_without_users_is_refused() -> None:
    env = Env(clock=time.monotonic, random=lambda: 0.0, secret=lambda key: {"users": b"a"})
    with pytest.raises(Refused, match=r"no entry \.htaccess"):
        basic_authentication.build(authentication_pb2.BasicAuthentication(secret="s"), env)


@pytest.mark.claims("limits: Basic auth inline users")
def test_limits() -> None:
    assert (problems(policy(USERS[:1] * 256)), bool(problems(policy(USERS[:1] * 257)))) == ([], True)
    assert problems(policy([]))


def test_the_example_of_the_page(root: Path, carrier: Carrier) -> None:
    run = carrier.proxy(served(example(root / "docs/policies/basic_authentication.md")))
    for header, status in (
        (basic("ann", "password"), 200),
        (basic("bob", "secret"), 200),
        (basic("bob", "x"), 401),
    ):
        assert run.carry(get(header)).answer.status == status


def test_no_password_is_logged(carrier: Carrier) -> None:
    seen = carrier.shared(STRICT).carry(get(basic("ann", "hunter2")))
    assert seen.answer.headers["www-authenticate"] == 'Basic realm="Restricted"'
    assert seen.reason == "BasicInvalid" and " http.status=401 " in seen.line and "hunter2" not in seen.line
