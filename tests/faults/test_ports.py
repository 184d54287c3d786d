"""Ports in somebody else's hands: listeners wait for theirs and get it without an edit, pages end the start."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.proxy_process import get
from tests.faults import page
from tests.faults.page import fault
from tests.faults.world import (
    PORT,
    Controller,
    Load,
    Proxy,
    configuration,
    governed,
    held_port,
    is_programmed,
    load,
    more,
    proxy,
    started,
    until,
    upstream,
)
from tests.harness.ports import reserve
from tests.harness.saved import save

GIVEN: dict[str, Any] = {"ports": "--port-offset=0", "workers": 1}
"""Here ports are the subject: listeners are where the configuration says."""


@fault("A listener's port is taken")
async def test_listeners_get_their_ports_when_they_are_free(tmp_path: Path) -> None:
    """At the start and after an edit."""
    port, taken, later = reserve(), reserve(), reserve()
    file = tmp_path / "proxy.yaml"
    with ExitStack() as at_start, held_port(later) as _:
        at_start.enter_context(held_port(taken))
        async with upstream() as server:
            save(file, configuration(port, server.port, more=(taken,)))
            async with proxy(tmp_path, "-f", str(file), port=port, **GIVEN) as made, _loaded(made) as traffic:
                await made.agent.says("bind failed: 127.0.0.1")
                (why,) = (await made.dump())["failed"].values()
                assert f"127.0.0.1:{taken} is in use" in why
                at_start.close()
                await until(lambda: _answers(taken), made.agent.log)
                save(file, configuration(port, server.port, more=(taken, later)))
                await until(lambda: f"127.0.0.1:{later} is in use" in made.agent.log(), made.agent.log)
                await more(traffic)
                assert page.count("bind failed: 127.0.0.1", made.agent.log()) == 2
                assert page.count("info dataplane.agent.sockets bind opened", made.agent.log()) == 2
                assert traffic.is_clean(), traffic


@asynccontextmanager
async def _loaded(made: Proxy) -> AsyncIterator[Load]:
    await made.ready()
    async with load(made.port) as traffic:
        yield traffic


async def _answers(port: int) -> bool:
    try:
        return await get(port) == (200, "ok")
    except OSError:
        return False


@fault("A listener's port is taken")
async def test_a_taken_port_is_a_condition_until_it_is_free(tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    async with governed(tmp_path, objects, port=reserve(), **GIVEN) as world, load(world.proxy.port) as traffic:
        taken, file = reserve(), objects / "gateway.yaml"
        with held_port(taken):
            listener = f"listeners: [{{name: more, protocol: HTTP, port: {taken}}}, "
            save(file, file.read_text().replace("listeners: [", listener))
            await until(lambda: _is_said_of(world.controller, taken), world.proxy.agent.log)
        await until(lambda: is_programmed(world.controller), world.proxy.agent.log)
        assert await get(taken) == (200, "ok")
        assert traffic.is_clean(), traffic


async def _is_said_of(control: Controller, port: int) -> bool:
    status, message = await control.programmed()
    return status == "False" and f":{port} is in use by pid" in message


@fault("A port of the pages is taken")
async def test_a_taken_page_ends_the_start_and_names_the_holder(tmp_path: Path) -> None:
    taken = reserve()
    file = tmp_path / "proxy.yaml"
    save(file, configuration(PORT, 9))
    with held_port(taken):
        pages = {"admin": 0, "stats": 0, "readiness": taken}
        async with proxy(tmp_path, "-f", str(file), pages=pages) as made:
            assert await made.agent.ended() == 3
            assert page.said("it is in use by pid", made.agent.log())
        for flag in ("--admin", "--xds"):
            command = [sys.executable, "-m", "controlplane.cli", "controller", str(tmp_path)]
            command += ["--socket", str(tmp_path / "x.sock"), "--admin", "127.0.0.1:0", "--xds", "127.0.0.1:0"]
            async with started(tmp_path, flag, [*command, flag, f"127.0.0.1:{taken}"]) as control:
                assert await control.ended() == 3
                assert page.said("gatewright: 127.0.0.1:", control.log())
        assert not (tmp_path / "x.sock").exists()
