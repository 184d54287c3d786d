"""Basic authentication from the standalone file to the request that an upstream sees; slow checks on a loop."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dataplane.chain.filter import Env, Filter, Origin, Refused
from dataplane.chain.reply import Reply
from dataplane.filters import basic_authentication
from gatewright.wire.v1 import authentication_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import PolicyRun, example, problems, text_of
from tests.fakes.table_state import exchange

USERS = ["ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "d\u00f6rte:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="]
"""Their password is "password"."""


def policy(users: list[str] = USERS, **fields: Any) -> str:
    return yaml.safe_dump({"policies": {"basicAuthentication": {"users": users, **fields}}})


def basic(user: str, password: str) -> bytes:
    return b"Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()) + b"\r\n"


STRICT = PolicyRun(policy())


@pytest.mark.claims("errors: Authentication mode `Strict` with missing or invalid credentials")
@pytest.mark.parametrize(
    "headers", [b"", basic("ann", "wrong"), basic("bob", "password"), b"Authorization: Basic a\r\n"]
)
def test_strict_refuses(headers: bytes, refused: Any) -> None:
    refused(STRICT.request(exchange(headers=headers)), case="basic")


@pytest.mark.parametrize("name", ["ann", "d\u00f6rte"])
def test_valid_credentials_pass_and_are_taken_out(name: str) -> None:
    run = PolicyRun(policy())
    for _ in range(2):  # checked, then remembered
        x = exchange(headers=b"a: 1\r\n" + basic(name, "password") + b"b: 2\r\n")
        assert run.request(x) is None
        assert x.request.block == b"\r\nHost: a.example\r\na: 1\r\nb: 2\r\n"
        assert (x.basic_auth_username, x.request.low) == (name, x.request.block.lower())


@pytest.mark.parametrize(
    ("headers", "reason", "cause"),
    [
        (b"", "BasicMissing", "no credentials"),
        (b"Authorization: Bearer x\r\n", "BasicMissing", "no credentials"),
        (basic("ann", "Password"), "BasicInvalid", "the user or password is wrong"),
        (basic("Ann", "password"), "BasicInvalid", "the user or password is wrong"),
        (basic("ann", "password\x00"), "BasicInvalid", "the credentials are malformed"),
        (basic("ann", "x" * 513), "BasicInvalid", "the credentials are malformed"),
        (b"Authorization: Basic YW5u\r\n", "BasicInvalid", "the credentials are malformed"),  # no colon
        (b"Authorization: Basic YW5u OnBhc3N3b3Jk\r\n", "BasicInvalid", "the credentials are malformed"),
        (b"Authorization: Basic\r\n", "BasicInvalid", "the credentials are malformed"),
        (basic("ann", "password") * 2, "BasicInvalid", "several credentials in one request, or one that is no text"),
    ],
)
def test_refusals(headers: bytes, reason: str, cause: str) -> None:
    x = exchange(headers=headers)
    for _ in range(2):  # decided, then remembered
        answer = STRICT.request(x)
        assert answer is not None and (answer.reason, answer.detail.rpartition(": ")[2]) == (reason, cause)
        assert answer.headers == b'www-authenticate: Basic realm="Restricted"\r\n'
    assert headers in x.request.block and x.attributes is None


@pytest.mark.parametrize(
    ("headers", "passes"), [(b"", True), (b"Authorization: Bearer x\r\n", True), (basic("ann", "no"), False)]
)
def test_optional(headers: bytes, passes: bool) -> None:
    x = exchange(headers=headers)
    assert (PolicyRun(policy(mode="Optional")).request(x) is None) is passes
    assert headers in x.request.block


def test_the_realm_is_quoted() -> None:
    answer = PolicyRun(policy(realm='the "inner" \\ circle')).request(exchange())
    assert answer is not None
    assert answer.headers == b'www-authenticate: Basic realm="the \\"inner\\" \\\\ circle"\r\n'


@pytest.mark.parametrize(
    ("location", "headers", "query"),
    [
        ({"header": {"name": "x-login"}}, b"X-Login: YW5uOnBhc3N3b3Jk\r\n", ""),
        ({"queryParameter": {"name": "login"}}, b"", "login=YW5uOnBhc3N3b3Jk"),
        ({"cookie": {"name": "login"}}, b'Cookie: login="YW5uOnBhc3N3b3Jk"\r\n', ""),
    ],
)
def test_locations(location: dict[str, Any], headers: bytes, query: str) -> None:
    x = exchange(headers=headers, query=query)
    assert PolicyRun(policy(location=location)).request(x) is None
    assert (x.request.block, x.target) == (b"\r\nHost: a.example\r\n", b"/")


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


def build(threads: Threads | None = None, users: list[str] = SLOW, **fields: Any) -> Filter:
    message = authentication_pb2.BasicAuthentication(secret="secret/default/users", **fields)
    env = Env(
        clock=time.monotonic,
        random=lambda: 0.0,
        origin=Origin("GatewayPolicy default/p", "basicAuthentication"),
        offload=None if threads is None else threads.offload,
        spawn=None if threads is None else threads.spawn,
        secret=lambda key: {".htaccess": "\n".join(users).encode()},
    )
    return basic_authentication.build(message, env)


def ask(step: Filter, headers: bytes) -> Reply | Awaitable[Reply | None] | None:
    assert step.request is not None
    return step.request(exchange(headers=headers))


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


async def test_a_flood_of_new_passwords_is_answered_at_once() -> None:
    threads = Threads()
    step = build(threads)
    waiting = [
        asyncio.ensure_future(_awaited(ask(step, basic("ann", f"x{number}"))))
        for number in range(basic_authentication.CHECKS)
    ]
    await asyncio.sleep(0)
    answer = ask(step, basic("ann", "one more"))
    assert isinstance(answer, Reply) and (answer.status, answer.reason) == (503, "AuthenticationBusy")
    threads.gate.set()
    await asyncio.gather(*waiting)
    await _awaited(ask(step, basic("ann", "one more")))
    assert threads.ran == basic_authentication.CHECKS + 1


async def test_a_check_that_breaks_refuses() -> None:
    threads = Threads()

    async def broken(work: Callable[[], Any]) -> Any:
        raise MemoryError

    threads.offload = broken  # type: ignore[method-assign]
    answer = await _awaited(ask(build(threads), basic("ann", "x")))
    assert answer is not None and answer.reason == "BasicInvalid"
    (task,) = threads.tasks
    assert isinstance(task.exception(), MemoryError)


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


def test_the_example_of_the_page(root: Path) -> None:
    run = PolicyRun(example(root / "docs/policies/basic_authentication.md"))
    for headers, passes in (
        (basic("ann", "password"), True),
        (basic("bob", "secret"), True),
        (basic("bob", "x"), False),
    ):
        assert (run.request(exchange(headers=headers)) is None) is passes


def test_over_the_wire() -> None:
    proxy = MemoryProxy(text_of(policy() + "backends: [{host: '127.0.0.1:9000'}]"))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + basic("ann", "password") + b"\r\n")
    assert b"uthorization" not in proxy.upstream.take()
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    client.take()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + basic("ann", "hunter2") + b"\r\n")
    assert b'\r\nwww-authenticate: Basic realm="Restricted"\r\n' in client.take()
    (line,) = [line for line in proxy.log_lines() if "401" in line]
    assert "reason=BasicInvalid" in line and "hunter2" not in line
