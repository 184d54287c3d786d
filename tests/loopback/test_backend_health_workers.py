"""Health and limits of a backend in a real proxy: counted once over its workers."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from tests.fakes.policy_run import text_of
from tests.fakes.proxy_process import get, running
from tests.harness.waiting import until

REQUESTS = 24


async def test_an_endpoint_is_evicted_once_by_all_workers_and_requests_in_flight_count_together(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    held = asyncio.Event()
    waiting = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        status = b"500 Bad"
        if b" /held " in await reader.readuntil(b"\r\n\r\n"):
            waiting += 1
            await held.wait()
            status = b"200 OK"
        writer.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        at = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        health = f"{{eviction: {{duration: 1h, consecutiveFailures: {REQUESTS}}}}}"
        backend = f"{{name: bad, host: '{at}', policies: {{health: {health}, limits: {{maxRequests: 6}}}}}}"
        file.write_text(text_of("backends: [{backend: bad}]", 8080) + f"backends: [{backend}]\n")
        async with running("-f", str(file), workers=2) as proxy:
            await proxy.ready()
            port = proxy.at(8080)
            evictions, unhealthy = (
                f'gatewright_endpoint_{name}_total{{backend="backend/gatewaybackend/default/bad",endpoint="{at}"}}'
                for name in ("evictions", "unhealthy")
            )
            seen = Counter([(await get(port))[0] for _ in range(REQUESTS - 1)])
            assert seen == {500: REQUESTS - 1}
            assert await proxy.metric(unhealthy) == REQUESTS - 1
            assert {(await get(port))[0] for _ in range(10)} == {500}, "the only endpoint is used even so"
            assert await proxy.metric(evictions) == 1
            assert await proxy.metric(unhealthy) == REQUESTS + 9
            summed = [(await proxy.dump(f"?worker={index}"))["health"] for index in (0, 1)]
            (told,) = {
                (each["evictions_in_a_row"], each["failures_in_a_row"])
                for found in summed
                for endpoints in found.values()
                for each in endpoints.values()
            }
            assert told == (1, REQUESTS + 9)

            asked = [asyncio.create_task(get(port, "/held")) for _ in range(20)]
            await until(lambda: sum(task.done() for task in asked) + waiting == 20, "answers, and requests that wait")
            assert waiting in (6, 7), "two workers that look at one moment may both find room"
            held.set()
            counted = Counter([status for status, _ in await asyncio.gather(*asked)])
            assert counted == {200: waiting, 503: 20 - waiting}
