"""The life of one proxy without a process: it starts, serves, takes and refuses files, loses workers, drains, ends."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
from pathlib import Path

import pytest

from dataplane import worker
from dataplane.agent.workers import Pace
from dataplane.link import messages
from dataplane.settings import Address, Drain, Pages
from tests.fakes.memory_agent import MemoryAgent, agent, ask, config, log_levels_restored, settings, until
from tests.fakes.moved_loop import moved
from tests.fakes.proxy_process import origin
from tests.harness.ports import reserve


@moved
async def test_a_proxy_serves_tells_what_it_serves_and_ends(tmp_path: Path) -> None:
    port = reserve()
    async with origin() as upstream, agent(tmp_path, config(port, upstream), ahead=2) as proxy:
        await proxy.ready()
        assert [(await ask(port)).body for _ in range(8)] == ["hello"] * 8
        assert [life.first_states for life in proxy.launch.born] == [1, 1]

        found = await proxy.dump()
        assert found["listening"] == {f"bind/default/standalone/{port}": [f"127.0.0.1:{port}"]}
        assert [row["pid"] for row in found["workers"]] == [life.pid for life in proxy.launch.born]
        assert found["xds"] is None and found["pending"] == [] and found["failed"] == {}
        told = await proxy.dump("?worker=1")
        assert told["worker"] == 1 and told["state"] == 1 and told["refused"] == {}
        assert [plan["port"] for plan in told["binds"].values()] == [port]

        taken = f'gatewright_downstream_connections_total{{bind="bind/default/standalone/{port}"}}'
        assert await proxy.metric(taken) == 8
        assert await proxy.metric("gatewright_workers") == 2
        page = (await proxy.page("stats", "/metrics")).body
        (row,) = (line for line in page.splitlines() if line.startswith("gatewright_build_info{"))
        assert float(row.rpartition(" ")[2]) == 1
    lines = b"".join(line for life in proxy.launch.born for line in life.lines)
    assert lines.count(b"\n") == 8


@moved
async def test_pages_answer_what_cannot_be_asked(tmp_path: Path) -> None:
    async with agent(tmp_path, config(reserve(), 1)) as proxy:
        await proxy.ready()
        for query, status in (("?worker=2", 404), ("?worker=x", 404), ("?worker=1", 200)):
            assert (await proxy.page("admin", f"/config_dump{query}")).status == status
        assert (await proxy.page("admin", "/metrics")).status == 404
        assert (await proxy.page("stats", "/stats/prometheus", "HEAD")).body == ""
        assert (await proxy.page("stats", "/metrics", "PUT")).status == 405


@moved
async def test_a_worker_that_says_nothing_of_itself_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with agent(tmp_path, config(reserve(), 1)) as proxy:
        await proxy.ready()
        monkeypatch.setitem(worker.AT_ONCE, messages.DumpRequest, lambda *_: None)
        silent = await proxy.page("admin", "/config_dump?worker=1")
        assert (silent.status, silent.body) == (504, "worker 1 does not answer\n")
        absent = await proxy.page("admin", "/config_dump?worker=2")
        assert absent.body == "there is no worker 2 now; this proxy has 2, counted from 0\n"


@moved
async def test_a_page_that_has_no_descriptor_left_to_accept_with_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with agent(tmp_path, config(reserve(), 1)) as proxy:
        await proxy.ready()
        for _ in range(2):  # the loop tries again each second
            trouble = {"message": "accept", "exception": OSError(errno.EMFILE, "Too many open files"), "socket": None}
            asyncio.get_running_loop().call_exception_handler(trouble)
        assert caplog.text.count("no file descriptors left") == 1
        await asyncio.sleep(2)
        assert caplog.text.count("file descriptors are free again") == 1


@moved
async def test_log_levels_are_those_of_every_worker_also_of_later_ones(tmp_path: Path) -> None:
    with log_levels_restored():
        async with agent(tmp_path, config(reserve(), 1)) as proxy:
            await proxy.ready()
            await _change_levels(proxy)


async def _change_levels(proxy: MemoryAgent) -> None:
    assert (await proxy.page("admin", "/logging?level=loud", "POST")).status == 400
    nothing = await proxy.page("admin", "/logging", "POST")
    assert nothing.status == 400 and "'x'" not in nothing.body
    answer = await proxy.page("admin", "/logging?level=warn,dataplane.http=debug", "POST")
    assert answer.body == (await proxy.page("admin", "/logging")).body == "warn,dataplane.http=debug\n"
    first, second = proxy.launch.born
    told = ("warn", {"dataplane.http": "debug"})
    await until(lambda: first.levels[-1] == second.levels[-1] == told)
    first.die(1)
    await until(lambda: len(proxy.launch.born) == 3 and proxy.launch.born[2].levels == [told])
    assert logging.getLogger("dataplane.http").level == logging.DEBUG


@moved
async def test_a_changed_file_is_served_by_all_and_a_bad_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = reserve()
    async with origin() as upstream, agent(tmp_path, config(port, upstream)) as proxy:
        await proxy.ready()
        proxy.file.write_text("binds: [{port: none}]")
        await until(lambda: "the last good configuration stays" in caplog.text, step=0.01)
        assert (await ask(port)).status == 200 and (await proxy.page("readiness", "/healthz/ready")).status == 200

        other = reserve()
        proxy.file.write_text(config(other, upstream, prefix="/x"))
        await until(
            lambda: proxy.agent._sockets.listening() == {f"bind/default/standalone/{other}": [f"127.0.0.1:{other}"]},
            step=0.01,
        )
        with pytest.raises(ConnectionRefusedError):
            while True:  # the workers' own copies are closed when what waited in them was taken
                await ask(port)
        await until(lambda: not proxy.agent._journey.workers.without(f"bind/default/standalone/{other}"))
        assert [(await ask(other, path)).status for path in ("/", "/x")] == [404, 200]
        assert await proxy.metric('gatewright_config_loads_total{outcome="refused"}') == 1


# The end.


@moved
async def test_a_second_signal_ends_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    port, loop = reserve(), asyncio.get_running_loop()
    async with agent(tmp_path, config(port, 1)) as proxy:
        await proxy.ready()
        began = loop.time()
        ending = asyncio.create_task(proxy.end())
        await asyncio.sleep(1)
        assert await proxy.end(signal.SIGINT) == await ending == 0
        assert loop.time() - began < 2.0 and "SIGINT: ending at once" in caplog.text
        assert [await life.wait() for life in proxy.launch.born] == [-signal.SIGKILL] * 2


@moved
async def test_a_worker_that_does_not_end_in_time_is_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with agent(tmp_path, config(reserve(), 1), drain=Drain(0.0, 5.0)) as proxy:
        await proxy.ready()
        stuck, other = proxy.launch.born
        stuck.worker._finish = lambda *_: None  # type: ignore[method-assign]  # its loop stands still
        assert await proxy.end() == 0
        assert [await stuck.wait(), await other.wait()] == [-signal.SIGKILL, 0]
        assert caplog.text.count("worker did not end in time and is killed") == 1


@moved
async def test_a_page_on_an_address_that_is_not_here(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pages = Pages(None, Address("203.0.113.1", 1), None)
    async with agent(tmp_path, config(reserve(), 1), pages=pages) as proxy:
        assert await proxy.task == 3
        assert "cannot listen on 203.0.113.1:1: Cannot assign requested address" in caplog.text


@moved
async def test_pages_may_be_unix_sockets(tmp_path: Path) -> None:
    path = tmp_path / "ready.sock"
    pages = settings().pages
    pages = Pages(pages.admin, None, Address(path=str(path)))
    async with agent(tmp_path, config(reserve(), 1), pages=pages) as proxy:
        await proxy.listening()
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"GET /healthz/ready HTTP/1.1\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 ")
        writer.close()


@moved
async def test_workers_that_cannot_be_started_are_tried_again_with_pauses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with agent(tmp_path, config(reserve(), 1), workers=1, pace=Pace(restart_first=1.0)) as proxy:
        proxy.launch.failing = 4
        await proxy.listening()
        await asyncio.sleep(0.5)
        assert (await proxy.page("readiness", "/healthz/ready")).status == 500
        assert proxy.launch.born == []
        await asyncio.sleep(8)
        assert len(proxy.launch.born) == 1
        assert caplog.text.count("worker 0 cannot be started: [Errno 2] No such file or directory") == 4
        await proxy.ready()
