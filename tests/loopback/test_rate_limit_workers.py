"""A local rate limit in a real proxy: counted once over its workers, their deaths and changes of the configuration."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

from tests.fakes.policy_run import text_of
from tests.fakes.proxy_process import get, origin, running
from tests.harness.waiting import until

LIMIT = 30
CLIENTS = 5


async def answers(port: int, count: int) -> Counter[tuple[int, str]]:
    """Of requests at the same time, each on a connection of its own: the system spreads them over the workers."""
    return Counter(await asyncio.gather(*(get(port) for _ in range(count))))


async def test_a_limit_counts_once_for_all_workers(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    refused = (429, "rate limit exceeded")
    async with origin() as upstream:
        text = text_of(
            f"""
            policies: {{rateLimit: {{local: [{{requests: 20, unit: Hours, burst: {LIMIT - 20}}}]}}}}
            backends: [{{host: "127.0.0.1:{upstream}"}}]
            """,
            8080,
        )
        file.write_text(text)
        async with running("-f", str(file), workers=2) as proxy:
            await proxy.ready()
            port = proxy.at(8080)
            assert await answers(port, LIMIT - 1) == {(200, "hello"): LIMIT - 1}
            assert await answers(port, 20) == {(200, "hello"): 1, refused: 19}

            (first, _) = await proxy.workers()
            os.kill(first, signal.SIGKILL)
            await until(lambda: proxy.log().count("worker serves") == 3, "a new worker")
            assert await answers(port, 20) == {refused: 20}

            matches = "matches: [{path: {type: Exact, value: /elsewhere}}]"
            file.write_text(text + f"    - name: other\n      {matches}\n      backends: [{{host: '127.0.0.1:1'}}]\n")

            async def is_there() -> bool:
                return (await get(port, "/elsewhere"))[0] == 503  # nobody listens there

            await until(is_there, "the new route")
            assert await answers(port, 20) == {refused: 20}


async def test_each_key_counts_once_for_all_workers(tmp_path: Path) -> None:
    """Over a worker's death and a change of the configuration, as limits without a key."""
    file = tmp_path / "config.yaml"
    paths = [f"/{client}" for client in range(CLIENTS)]
    async with origin() as upstream:
        text = text_of(
            f"""
            policies: {{rateLimit: {{local: [{{requests: 6, unit: Hours, key: request.path}}]}}}}
            backends: [{{host: "127.0.0.1:{upstream}"}}]
            """,
            8080,
        )
        file.write_text(text)
        async with running("-f", str(file), workers=2) as proxy:
            await proxy.ready()
            port = proxy.at(8080)

            async def statuses(times: int) -> dict[str, Counter[int]]:
                asked = [path for path in paths for _ in range(times)]
                found = await asyncio.gather(*(get(port, path) for path in asked))
                answers = list(zip(asked, found, strict=True))
                return {path: Counter(status for at, (status, _) in answers if at == path) for path in paths}

            assert await statuses(4) == {path: {200: 4} for path in paths}
            assert await statuses(4) == {path: {200: 2, 429: 2} for path in paths}

            (first, _) = await proxy.workers()
            os.kill(first, signal.SIGKILL)
            await until(lambda: proxy.log().count("worker serves") == 3, "a new worker")
            assert await statuses(3) == {path: {429: 3} for path in paths}

            matches = "matches: [{path: {type: Exact, value: /elsewhere}}]"
            file.write_text(text + f"    - name: other\n      {matches}\n      backends: [{{host: '127.0.0.1:1'}}]\n")

            async def is_there() -> bool:
                return (await get(port, "/elsewhere"))[0] == 503  # nobody listens there

            await until(is_there, "the new route")
            assert await statuses(3) == {path: {429: 3} for path in paths}
