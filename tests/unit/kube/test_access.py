"""What becomes of a request whose credentials are refused, with a client library of one page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.kube import access
from controlplane.kube.access import Access, ApiError, Found, NoCluster


class Answer:
    def __init__(self, status: int) -> None:
        self.status = status
        self.content = self
        self.is_released = False

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield b'{"message": "no"}' if self.status == 401 else b"{}"

    def release(self) -> None:
        self.is_released = True


class Configuration(SimpleNamespace):
    """As the library has it, of what is used."""

    def __init__(self, token: str = "", certificate: str | None = None) -> None:
        api_key = {"BearerToken": f"Bearer {token}"} if token else {}
        super().__init__(host="https://server", api_key=api_key, cert_file=certificate, refresh_api_key_hook=None)


class Client:
    """The API server takes `accepted`, a token or a certificate."""

    accepted = "new"
    asked: list[str]

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.rest_client = self
        self.is_closed = False

    async def update_params_for_auth(self, headers: dict[str, str], _: object, settings: list[str]) -> None:
        if "BearerToken" in self.configuration.api_key:
            headers["authorization"] = self.configuration.api_key["BearerToken"]

    async def request(self, method: str, url: str, *, headers: dict[str, str], **_: Any) -> Answer:
        assert not self.is_closed
        assert not (self.configuration.cert_file and "authorization" in headers)
        used = self.configuration.cert_file or headers.get("authorization", "").removeprefix("Bearer ")
        self.asked.append(used)
        return Answer(200 if used == self.accepted else 401)

    async def close(self) -> None:
        self.is_closed = True


class World:
    def __init__(self, had: Configuration, *found: Configuration | NoCluster) -> None:
        self.asked: list[str] = []
        Client.asked = self.asked
        self.first = Client(had)
        self._found = list(found)
        self.access = Access(self.first, "", self.look)

    async def look(self) -> Found:
        await asyncio.sleep(0)
        found = self._found.pop(0)
        if isinstance(found, NoCluster):
            raise found
        return Found(found, "")


async def test_another_token_is_used_on_the_same_connections() -> None:
    world = World(Configuration("old"), Configuration("new"))
    assert await world.access.read("/api") == b"{}"
    assert world.asked == ["old", "new"]
    assert not world.first.is_closed
    await world.access.read("/api")
    assert world.asked == ["old", "new", "new"]


async def test_another_certificate_is_used_on_others() -> None:
    world = World(Configuration(certificate="old"), Configuration(certificate="new"))
    assert await world.access.read("/api") == b"{}"
    assert world.asked == ["old", "new"]
    assert world.first.is_closed


async def test_a_token_is_not_sent_beside_the_certificate_that_replaces_it() -> None:
    world = World(Configuration("old"), Configuration(certificate="new"))
    assert await world.access.read("/api") == b"{}"
    assert world.asked == ["old", "new"]


@pytest.mark.parametrize("found", [Configuration("old"), Configuration("other"), NoCluster("log in first")])
async def test_where_there_is_nothing_better_the_refusal_counts_and_is_not_asked_about_at_once(
    found: Configuration | NoCluster,
) -> None:
    world = World(Configuration("old"), found)
    for _ in range(3):
        with pytest.raises(ApiError, match="401"):
            await world.access.read("/api")
    assert len(world.asked) <= 4


@pytest.mark.parametrize("found", [Configuration("new"), Configuration(certificate="new")])
async def test_requests_that_are_refused_together_ask_for_credentials_once(found: Configuration) -> None:
    world = World(Configuration("old"), found)
    assert await asyncio.gather(*(world.access.read("/api") for _ in range(5))) == [b"{}"] * 5
    assert world.asked.count("new") == 5


async def test_what_renews_a_token_belongs_to_the_configuration_that_it_came_from() -> None:
    """Of a Pod's token: the one before would bring back what was refused."""
    found = Configuration("new")
    found.refresh_api_key_hook = print
    world = World(Configuration("old"), found)
    await world.access.read("/api")
    assert world.first.configuration.refresh_api_key_hook is print


class Long(Answer):
    """An event that does not end for long."""

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield b"{}\n"
        for _ in range(100):
            yield b"x" * 100

    def close(self) -> None:
        self.is_released = True


async def test_an_event_that_is_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "LONGEST_LINE", 1000)
    answer = Long(200)

    async def request(*_: Any, **__: Any) -> Long:
        return answer

    world = World(Configuration("new"))
    monkeypatch.setattr(world.first, "request", request)
    found = []
    with pytest.raises(ValueError, match="an event of more than 1000 bytes"):
        async for lines in world.access.lines("/api"):
            found += lines
    assert found == [b"{}"] and answer.is_released


class Said(Answer):
    """An answer with this content, in two pieces."""

    def __init__(self, status: int, raw: bytes) -> None:
        super().__init__(status)
        self.raw = raw

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield self.raw[:3]
        yield self.raw[3:]

    def close(self) -> None:
        self.is_released = True


def answering(monkeypatch: pytest.MonkeyPatch, status: int, raw: bytes) -> tuple[Access, Said]:
    world, answer = World(Configuration("new")), Said(status, raw)

    async def request(*_: Any, **__: Any) -> Said:
        return answer

    monkeypatch.setattr(world.first, "request", request)
    return world.access, answer


REFUSALS = [
    (400, b'{"reason": "BadRequest", "message": "no"}', "BadRequest", "no"),
    (404, b'{"reason": "NotFound"}', "NotFound", '{"reason": "NotFound"}'),
    (403, b'{"message": "quota"}', "", "quota"),
    (502, b"<html>" + b"x" * 500, "", "<html>" + "x" * 250),
    (500, b"[1]", "", "[1]"),
    (500, b"", "", ""),
    (500, b"\xff\xfe", "", "\ufffd\ufffd"),
]


@pytest.mark.parametrize(("status", "raw", "reason", "message"), REFUSALS)
async def test_a_refusal_has_the_words_of_the_server(
    monkeypatch: pytest.MonkeyPatch, status: int, raw: bytes, reason: str, message: str
) -> None:
    found, answer = answering(monkeypatch, status, raw)
    for ask in (found.read("/api"), found.request("PATCH", "/api", {}), anext(found.lines("/api"))):
        with pytest.raises(ApiError) as refused:
            await ask
        assert (refused.value.status, refused.value.reason) == (status, reason)
        assert str(refused.value).endswith(message)
        assert answer.is_released


@pytest.mark.parametrize(
    ("raw", "expected"), [(b'{"a": 1}', {"a": 1}), (b"[1]", {}), (b"null", None), (b"text", None), (b"", None)]
)
async def test_an_answer_is_an_object(
    monkeypatch: pytest.MonkeyPatch, raw: bytes, expected: dict[str, int] | None
) -> None:
    found, answer = answering(monkeypatch, 200, raw)
    if expected is None:
        with pytest.raises(ApiError, match="the answer is no JSON object"):
            await found.request("GET", "/api")
    else:
        assert await found.request("GET", "/api") == expected
    assert answer.is_released
    assert await found.read("/api") == raw


@pytest.mark.parametrize("over", [0, 1])
async def test_an_answer_that_no_list_has_is_given_up(monkeypatch: pytest.MonkeyPatch, over: int) -> None:
    monkeypatch.setattr(access, "LONGEST_ANSWER", 1000)
    found, answer = answering(monkeypatch, 200, b"x" * (1000 + over))
    if over:
        with pytest.raises(ApiError, match="the answer has more than 1000 bytes"):
            await found.read("/api")
    else:
        assert len(await found.read("/api")) == 1000
    assert answer.is_released


async def test_lines_come_as_they_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    found, answer = answering(monkeypatch, 200, b"a\nbcd\nef\nrest")
    assert [lines async for lines in found.lines("/api")] == [[b"a"], [b"bcd", b"ef"]]
    assert answer.is_released
