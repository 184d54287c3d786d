"""Rate limits among programs of others: Envoy's own rate limit server behind us, a real Envoy before our server, and
both servers asked the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from gatewright.wire.external.rate_limit_pb2 import DAY, RateLimitDescriptor, RateLimitRequest, RateLimitResponse
from tests.fakes.envoy import HTTP2, TYPE, bootstrap, cluster, envoy, listener, opens, virtual_host
from tests.fakes.rate_limits import BY_USER, PAID, asked, asking, counting, statuses
from tests.fakes.socket_proxy import SocketProxy
from tests.harness.ports import reserve
from tests.harness.processes import started
from tests.harness.waiting import until

LIMITS = """
domain: d
descriptors:
- key: user
  rate_limit: {unit: year, requests_per_unit: 3}
- key: user
  value: gold
  rate_limit: {unit: year, requests_per_unit: 5}
- key: user
  value: free*
  rate_limit: {unlimited: true}
- key: all
  rate_limit: {unit: year, requests_per_unit: 10}
- key: watched
  shadow_mode: true
  rate_limit: {unit: year, requests_per_unit: 1}
- key: team
  descriptors:
  - key: model
    value: small*
    rate_limit: {unit: year, requests_per_unit: 2}
"""


@asynccontextmanager
async def envoys_server(tool: Callable[[str], str], folder: Path) -> AsyncIterator[int]:
    """Envoy's own rate limit server, on a Valkey."""
    config = folder / "runtime" / "ratelimit" / "config"
    config.mkdir(parents=True)
    (config / "d.yaml").write_text(LIMITS)
    socket, port, debug, http = folder / "valkey.sock", reserve(), reserve(), reserve()
    store = [tool("valkey-server"), "--port", "0", "--unixsocket", str(socket), "--save", ""]
    environment = {
        "RUNTIME_ROOT": str(folder / "runtime"),
        "RUNTIME_SUBDIRECTORY": "ratelimit",
        "RUNTIME_WATCH_ROOT": "false",
        "REDIS_SOCKET_TYPE": "unix",
        "REDIS_URL": str(socket),
        "USE_STATSD": "false",
        "LOG_LEVEL": "warn",
        "HOST": "127.0.0.1",
        "GRPC_HOST": "127.0.0.1",
        "DEBUG_HOST": "127.0.0.1",
        "PORT": str(http),
        "GRPC_PORT": str(port),
        "DEBUG_PORT": str(debug),
    }
    variables = [f"{name}={value}" for name, value in environment.items()]
    async with started(folder, "valkey", store):
        await until(socket.exists, "Valkey listens")
        async with started(folder, "ratelimit", ["env", *variables, tool("envoy-ratelimit")]):
            await until(lambda: opens(port), "it listens")
            yield port


@pytest.mark.needs("envoy-ratelimit")
@pytest.mark.needs("valkey-server")
async def test_the_server_of_envoy_behind_us(tool: Callable[[str], str], tmp_path: Path) -> None:
    async with envoys_server(tool, tmp_path) as port, asking(port, BY_USER) as a, asking(port, BY_USER) as b:
        assert await statuses([a, b] * 4, "X-User: ann\r\n") == [200] * 3 + [429] * 5
        assert await statuses([a, b] * 4, "X-User: gold\r\n") == [200] * 5 + [429] * 3
        assert await statuses([a, b] * 4, "X-User: freeman\r\n") == [200] * 8
        answer = (await a.ask("GET", "/", headers="X-User: ann\r\n")).lower()
        assert b"x-ratelimit-limit: 3\r\n" in answer and b"retry-after: " in answer
        async with asking(port, PAID) as paid:
            assert await statuses([paid], "X-Cost: 10\r\n") == [200]

            async def is_spent() -> bool:
                return await statuses([paid], "X-Cost: 1\r\n") == [429]

            await until(is_spent, "the costs were reported")


Entries = tuple[tuple[str, str], ...]
OK, OVER = RateLimitResponse.OK, RateLimitResponse.OVER_LIMIT


def request(*descriptors: Entries, hits: int | None = None, override: int | None = None) -> RateLimitRequest:
    made = RateLimitRequest(domain="d")
    for entries in descriptors:
        each = RateLimitDescriptor(entries=[{"key": key, "value": value} for key, value in entries])
        if hits is not None:
            each.hits_addend.value = hits
        if override is not None:
            each.limit.requests_per_unit, each.limit.unit = override, DAY
        made.descriptors.append(each)
    return made


def user(name: str) -> Entries:
    return (("user", name),)


ANN, ALL = user("ann"), (("all", "all"),)
ELSEWHERE = RateLimitRequest(domain="other", descriptors=request(ANN).descriptors)
ASKED: Final = [
    *[request(ANN)] * 5,
    *[request(user("gold"))] * 7,
    *[request(user("freeman"))] * 2,
    *[request((("watched", "x"),))] * 3,
    *[request((("team", "a"), ("model", "small-1")))] * 3,
    *[request((("team", "a"), ("model", "large")))] * 2,
    *(request((("team", "a"),)), request((("unknown", "a"),)), ELSEWHERE),
    *[request(ALL, hits=4)] * 2,
    *[request(ALL, user("bob"))] * 2,
    request(ALL, hits=0),
    *[request(user("eve"), override=2)] * 3,
    request(user("bob"), user("bob")),
    *[request(ALL, user("carl"))] * 5,
    request(user("carl")),
]
DIFFERENCES: Final = {
    29: "at exactly the limit nothing is left for ours; Envoy's lets one more begin",
}
"""Indexes of requests that the two servers answer differently, and why."""


@pytest.mark.needs("envoy-ratelimit")
@pytest.mark.needs("valkey-server")
async def test_both_servers_answer_the_same(tool: Callable[[str], str], tmp_path: Path) -> None:
    assert len(ASKED) == 40
    limits = tmp_path / "limits.yaml"
    limits.write_text(LIMITS)
    async with envoys_server(tool, tmp_path) as theirs, counting(tmp_path / "db", limits) as ours:
        found = {}
        for index, each in enumerate(ASKED):
            said = [shown(await asked(port, each)) for port in (theirs, ours.port)]
            if said[0] != said[1]:
                found[index] = said
        assert found.keys() == DIFFERENCES.keys(), found


def shown(answer: RateLimitResponse) -> Any:
    rows = [
        (each.code, each.current_limit.requests_per_unit, each.current_limit.unit, each.limit_remaining)
        for each in answer.statuses
    ]
    return answer.overall_code, rows


# --- a real Envoy before our server


def by_user(port: int, origin: int, limits: int) -> dict[str, Any]:
    limiting = {
        "@type": f"{TYPE}.filters.http.ratelimit.v3.RateLimit",
        "domain": "d",
        "timeout": "2s",
        "failure_mode_deny": True,
        "rate_limit_service": {
            "transport_api_version": "V3",
            "grpc_service": {"envoy_grpc": {"cluster_name": "limits"}, "timeout": "2s"},
        },
    }
    action = {"request_headers": {"header_name": "x-user", "descriptor_key": "user"}}
    host = virtual_host({"route": {"cluster": "origin"}}, rate_limits=[{"actions": [action]}])
    answering = virtual_host({"direct_response": {"status": 200, "body": {"inline_string": "ok"}}})
    return bootstrap(
        [
            listener("limited", port, host, {"name": "envoy.filters.http.ratelimit", "typed_config": limiting}),
            listener("origin", origin, answering),
        ],
        [cluster("limits", limits, typed_extension_protocol_options=HTTP2), cluster("origin", origin)],
    )


HEADERS: Final = {
    "x-envoy-ratelimited": "Envoy names itself where it refused",
    "retry-after": "ours says when to come again",
    "x-ratelimit-limit": "ours says what the service answered; Envoy does where it is told to, in another form",
    "x-ratelimit-remaining": "the same",
    "x-ratelimit-reset": "the same",
}
"""Headers of a refusal that only one of the two proxies has."""
OTHERS: Final = {
    "date",
    "server",
    "content-length",
    "content-type",
    "connection",
    "x-request-id",
    "x-envoy-upstream-service-time",
}


@pytest.mark.needs("envoy")
async def test_a_real_envoy_and_we_before_our_server(tool: Callable[[str], str], tmp_path: Path) -> None:
    """Forty requests, each proxy with users of its own of the same kinds; then the server goes away."""
    limits = tmp_path / "limits.yaml"
    limits.write_text(LIMITS)
    port = reserve()
    users = ["ann", "bob", "", "freeman"] * 10
    async with (
        counting(tmp_path / "theirs", limits) as theirs,
        counting(tmp_path / "ours", limits) as ours,
        envoy(tool, tmp_path, by_user(port, reserve(), theirs.port), port) as url,
        asking(ours.port, BY_USER) as proxy,
        aiohttp.ClientSession() as session,
    ):
        found = [(await by_envoy(session, url, name), await by_us(proxy, name)) for name in users]
    assert [theirs_ for (theirs_, _), _ in found] == [ours_ for _, (ours_, _) in found]
    assert [status for _, (status, _) in found].count(429) == 14, "all but three of ann's and three of bob's"
    for (status, seen), (_, own) in found:
        assert (seen ^ own) - OTHERS == (HEADERS.keys() if status == 429 else set())


async def by_envoy(session: aiohttp.ClientSession, url: str, user: str) -> tuple[int, set[str]]:
    async with session.get(url, headers={"x-user": user} if user else {}) as answer:
        return answer.status, {each.lower() for each in answer.headers}


async def by_us(proxy: SocketProxy, user: str) -> tuple[int, set[str]]:
    answer = await proxy.ask("GET", "/", headers=f"X-User: {user}\r\n" if user else "")
    first, *lines = answer.lower().partition(b"\r\n\r\n")[0].decode().split("\r\n")
    return int(first.split()[1]), {line.partition(":")[0] for line in lines}
