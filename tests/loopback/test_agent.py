"""The agent with real workers: from file and control plane to served requests, and its pages, sockets and end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

from dataplane.agent.xds_stream import QUESTION, STATE_KEY, Response
from dataplane.link.messages import ENDPOINT, RESOURCE
from dataplane.net import tcp
from tests.fakes import control_plane
from tests.fakes.proxy_process import get, origin, running
from tests.harness.ports import reserve
from tests.harness.processes import is_alive
from tests.harness.waiting import until

GIVEN = "--port-offset=0"
"""Where ports are the subject, listeners are where the configuration says."""


def file_of(*binds: tuple[int, int], prefix: str = "/") -> str:
    """A standalone file: (port, upstream port) of each bind."""
    return json.dumps(
        {
            "binds": [
                {
                    "port": port,
                    "addresses": ["127.0.0.1"],
                    "listeners": [
                        {
                            "name": f"http-{port}",
                            "routes": [
                                {
                                    "name": f"all-{port}",
                                    "matches": [{"path": {"type": "PathPrefix", "value": prefix}}],
                                    "backends": [{"host": f"127.0.0.1:{upstream}"}],
                                }
                            ],
                        }
                    ],
                }
                for port, upstream in binds
            ]
        }
    )


async def test_it_serves_a_file_shows_its_pages_and_reloads(tmp_path: Path) -> None:
    file, port = tmp_path / "config.yaml", reserve()
    async with origin() as upstream:
        file.write_text(file_of((port, upstream)))
        async with running("-f", str(file), ports=GIVEN, preloaded=False) as proxy:
            await proxy.ready()
            assert await get(port) == (200, "hello")
            line = await proxy.logged("bind opened")
            assert f"address=127.0.0.1:{port}" in line and "source=file" in line

            dump = await proxy.dump()
            assert dump["listening"] == {f"bind/default/standalone/{port}": [f"127.0.0.1:{port}"]}
            assert f"route/httproute/default/all-{port}/0" in dump["resources"]["route"]
            for index in range(2):
                worker = await proxy.dump(f"?worker={index}")
                assert (worker["worker"], worker["state"], worker["refused"]) == (index, 1, {})
                assert list(worker["binds"]) == [f"bind/default/standalone/{port}"]
            admin = await proxy.page("admin")
            assert (await get(admin, "/config_dump?worker=7"))[0] == 404
            assert (await get(admin, "/nothing"))[0] == 404
            assert await get(admin, "/logging?level=off") == (200, "info\n")  # reading changes nothing
            assert await get(admin, "/logging?level=info,xds=off", method="POST") == (200, "info,xds=off\n")
            status, text = await get(admin, "/logging?level=loud", method="POST")
            assert status == 400 and "loud" in text
            assert await get(admin, "/logging") == (200, "info,xds=off\n")

            assert await proxy.metric("gatewright_workers") == 2
            label = f'bind="bind/default/standalone/{port}"'
            assert await proxy.metric(f"gatewright_downstream_connections_total{{{label}}}") == 1
            assert await proxy.metric('gatewright_config_loads_total{outcome="applied"}') == 1

            # A bad file changes nothing but the log; the next good one counts. Written as editors do: by renaming.
            draft = tmp_path / "draft"
            draft.write_text(file_of((port, upstream)).replace('"routes"', '"rotues"'))
            draft.rename(file)
            line = await proxy.logged("rotues")
            assert f"{file}:1" in line and "\terror\t" in line
            assert await get(port) == (200, "hello")
            draft.write_text(file_of((port, upstream), prefix="/new"))
            draft.rename(file)
            line = await proxy.logged("configuration applied.*changed")
            assert f"changed=route/httproute/default/all-{port}/0" in line
            assert (await get(port))[0] == 404
            assert await get(port, "/new") == (200, "hello")

            # A bind that goes away is closed, the address is free again.
            file.write_text(json.dumps({"binds": []}))
            assert f"address=127.0.0.1:{port}" in await proxy.logged("bind closed")
            tcp.probe("127.0.0.1", port)


async def test_a_port_in_use_is_told_with_its_holder_and_taken_when_it_is_free(tmp_path: Path) -> None:
    file, good, bad = tmp_path / "config.yaml", reserve(), reserve()
    with socket.socket() as holder:
        # The nasty case: a socket of the same user that would share its port.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", bad))
        holder.listen()
        async with origin() as upstream:
            file.write_text(file_of((bad, upstream), (good, upstream)))
            async with running("-f", str(file), workers=1, ports=GIVEN) as proxy:
                await proxy.ready()
                line = await proxy.logged("bind failed")
                assert f"127.0.0.1:{bad} is in use by pid {os.getpid()}" in line
                assert await get(good) == (200, "hello")
                assert list((await proxy.dump())["failed"]) == [f"bind/default/standalone/{bad}"]
                holder.close()
                await proxy.logged(f"bind opened.*127.0.0.1:{bad}")
                await until(lambda: proxy.log().count("bind opened") == 2)
                assert await get(bad) == (200, "hello")
                assert (await proxy.dump())["failed"] == {}


async def test_sigterm_ends_readiness_at_once_and_connections_in_order(tmp_path: Path) -> None:
    file, port = tmp_path / "config.yaml", 8080
    times = {"CONNECTION_MIN_TERMINATION_DEADLINE": "1.5", "TERMINATION_GRACE_PERIOD_SECONDS": "4"}
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await answer.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")
        writer.close()

    server = await asyncio.start_server(slow, "127.0.0.1", 0)
    file.write_text(file_of((port, server.sockets[0].getsockname()[1])))
    async with running("-f", str(file), environment=times) as proxy:
        await proxy.ready()
        under_way = asyncio.create_task(get(proxy.at(port)))
        await asked.wait()
        proxy.agent.signal(signal.SIGTERM)
        assert "minimum=1.5 maximum=4.0" in await proxy.logged("SIGTERM: draining")
        status, text = await proxy.readiness()
        assert status == 500 and "end of this process" in text
        late = asyncio.create_task(get(proxy.at(port)))  # within the minimum: still accepted
        await asyncio.sleep(0.1)
        answer.set()
        assert await under_way == (200, "slow")
        assert await late == (200, "slow")
        assert await proxy.ended() == 0
    server.close()


async def test_what_is_open_at_the_maximum_is_cut_and_ctrl_c_does_not_wait_the_minimum(tmp_path: Path) -> None:
    file, port = tmp_path / "config.yaml", 8080

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    file.write_text(file_of((port, server.sockets[0].getsockname()[1])))
    times = {"CONNECTION_MIN_TERMINATION_DEADLINE": "1", "TERMINATION_GRACE_PERIOD_SECONDS": "1"}
    async with running("-f", str(file), environment=times) as proxy:
        await proxy.ready()
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.at(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.sleep(0.1)
        proxy.agent.signal(signal.SIGINT)
        assert await proxy.ended() == 0
        assert "minimum=0.0 maximum=1.0" in await proxy.logged("SIGINT: draining")
        writer.close()
    server.close()


async def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    file, port = tmp_path / "config.yaml", 8080
    async with origin() as upstream:
        file.write_text(file_of((port, upstream)))
        reading, writing = os.pipe()
        async with running("-f", str(file), f"--parent-fd={reading}", pass_fds=[reading]) as proxy:
            os.close(reading)
            await proxy.ready()
            workers = await proxy.workers()
            os.close(writing)
            assert await proxy.ended() == 0
            assert not any(map(is_alive, workers))


async def test_a_start_that_cannot_work_says_why_and_how_it_ended(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("binds:\n- port: 80\n  listenrs: []\n")
    async with running("-f", str(file)) as proxy:
        assert await proxy.ended() == 1
        assert f"{file}:3" in proxy.log() and "listeners" in proxy.log()
        assert "Traceback" not in proxy.log()
    file.write_text("binds: []\n")
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = f"127.0.0.1:{holder.getsockname()[1]}"
        async with running("-f", str(file), f"--admin={taken}") as proxy:
            assert await proxy.ended() == 3
            assert f"cannot listen on {taken}" in proxy.log()
    async with running("-f", str(file), "--log-level=info,dataplane.htp=debug") as proxy:
        assert await proxy.ended() == 2
        assert 'did you mean "dataplane.http"?' in proxy.log()


async def test_states_from_the_control_plane(tmp_path: Path) -> None:
    path, port = tmp_path / "xds.sock", 80
    flags = ("--xds", f"unix:{path}", "--gateway", "default/web", "--instance", "proxy-1")
    async with origin() as upstream, control_plane.serving(path) as plane, running(*flags) as proxy:
        await until(lambda: len(plane.requests) == 2)
        assert [r.node.id for r in plane.requests] == ["default/web/proxy-1", ""]
        assert (await proxy.readiness()) == (500, "not ready, pending: configuration\n")
        # A proxy that refuses everything of its first state is not ready; the reason is told.
        broken = control_plane.route("/x")
        broken.min_revision = 99
        plane.say("v0", {"route/httproute/default/all/0": broken})
        assert "newer proxy" in (await plane.answered())["route/httproute/default/all/0"]
        assert (await proxy.readiness()) == (500, "not ready, pending: configuration\n")

        plane.say("v1", control_plane.gateway(port, upstream))
        assert await plane.answered() == {}
        assert await get(proxy.at(port), "/a") == (200, "hello")  # ACK: workers serve it, the socket is open
        await proxy.ready()

        # A bad route keeps its last good version, the rest of the state applies; the NACK says which and why.
        plane.say("v2", {"route/httproute/default/all/0": broken})
        refused = await plane.answered()
        assert (
            list(refused) == ["route/httproute/default/all/0"]
            and "newer proxy" in refused["route/httproute/default/all/0"]
        )
        assert await get(proxy.at(port), "/a") == (200, "hello")
        assert list((await proxy.dump())["resources"]["refused"]) == ["route/httproute/default/all/0"]

        plane.say("v3", {"route/httproute/default/all/0": control_plane.route("/b")})
        assert await plane.answered() == {}
        assert [(await get(proxy.at(port), p))[0] for p in ("/a", "/b")] == [404, 200]

        plane.say("v4", {}, removed=list(control_plane.gateway(port, upstream)))
        assert await plane.answered() == {}
        await proxy.logged("bind closed")
        assert await proxy.metric("gatewright_xds_nacks_total") == 2
        assert await proxy.metric("gatewright_xds_acks_total") == 3


async def test_a_proxy_outlives_its_control_plane_and_comes_back_with_what_it_has(tmp_path: Path) -> None:
    path, port = tmp_path / "xds.sock", 80
    flags = ("--xds", f"unix:{path}", "--gateway", "default/web")
    async with origin() as upstream, running(*flags) as proxy:
        await proxy.logged("no control plane")  # it waits, and says so once
        async with control_plane.serving(path) as first:
            first.say("v1", control_plane.gateway(port, upstream))
            assert await first.answered() == {}
        await proxy.logged("serving the last good state.*UNAVAILABLE")

        # The control plane is away: a worker that dies comes back complete.
        before = await proxy.workers()
        os.kill(before[0], signal.SIGKILL)
        await proxy.logged("worker ended and is replaced: signal 9")
        await proxy.ready()
        await until(lambda: proxy.log().count("worker serves") == 3)
        assert (await proxy.workers())[1] == before[1]
        for _ in range(20):
            assert await get(proxy.at(port)) == (200, "hello")

        async with control_plane.serving(path) as second:
            # It claims the state that it holds, and tells the versions when it is asked for them.
            await until(lambda: len(second.requests) == 2)
            assert second.requests[0].node.metadata[STATE_KEY] == "v1"
            assert not any(r.initial_resource_versions for r in second.requests)
            assert sum(r.ByteSize() for r in second.requests) < 400
            for type_url in (ENDPOINT, RESOURCE):
                second.say_bytes(Response(type_url=type_url, nonce=QUESTION).SerializeToString())
            await until(lambda: len(second.requests) == 4)
            versions = [dict(r.initial_resource_versions) for r in second.requests[2:]]
            assert versions == [{}, dict.fromkeys(control_plane.gateway(port, upstream), "v1")]
            second.say("v2", {}, removed=["route/httproute/default/all/0"])
            assert await second.answered() == {}
            assert (await get(proxy.at(port)))[0] == 404


async def test_one_port_claimed_by_file_and_control_plane_is_an_error_that_names_both(tmp_path: Path) -> None:
    path, file, port = tmp_path / "xds.sock", tmp_path / "config.yaml", reserve()
    flags = ("--xds", f"unix:{path}", "--gateway", "default/web", "-f", str(file))
    async with origin("file") as one, origin("xds") as other, control_plane.serving(path) as plane:
        file.write_text(file_of((port, one)))
        async with running(*flags, workers=1, ports=GIVEN) as proxy:
            await proxy.ready()
            plane.say("v1", control_plane.gateway(port, other))
            refused = await plane.answered()
            assert list(refused) == ["bind/default/web/80"]
            assert f"bind/default/standalone/{port} (file)" in refused["bind/default/web/80"]
            assert await get(port) == (200, "file")
            file.write_text(json.dumps({"binds": []}))
            await proxy.logged("bind opened.*source=xds")
            await until(lambda: "bind opened" in proxy.log())
            assert await get(port) == (200, "xds")


async def test_the_control_plane_learns_that_a_bind_listens_after_all(tmp_path: Path) -> None:
    path, port = tmp_path / "xds.sock", reserve()
    flags = ("--xds", f"unix:{path}", "--gateway", "default/web")
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", port))
        holder.listen()
        async with (
            origin() as upstream,
            control_plane.serving(path) as plane,
            running(*flags, workers=1, ports=GIVEN) as proxy,
        ):
            plane.say("v1", control_plane.gateway(port, upstream))
            refused = await plane.answered()
            assert list(refused) == ["bind/default/web/80"] and "is in use" in refused["bind/default/web/80"]
            holder.close()
            # A new stream: of what was refused it has no version, so it is sent and acknowledged now.
            await until(lambda: plane.streams == 2)
            await until(lambda: len([r for r in plane.requests if r.resource_names_subscribe]) == 4)
            versions = dict(plane.requests[-1].initial_resource_versions)
            assert (versions["bind/default/web/80"], versions["route/httproute/default/all/0"]) == ("", "v1")
            plane.say("v1", {"bind/default/web/80": control_plane.gateway(port, upstream)["bind/default/web/80"]})
            assert await plane.answered() == {}
            assert await get(port) == (200, "hello")
            await proxy.ready()


async def test_a_control_plane_that_talks_nonsense_is_left_and_tried_again(tmp_path: Path) -> None:
    path, port = tmp_path / "xds.sock", 80
    flags = ("--xds", f"unix:{path}", "--gateway", "default/web")
    async with origin() as upstream, control_plane.serving(path) as plane, running(*flags, workers=1) as proxy:
        plane.say_bytes(b"\xff\xff\xff")
        await proxy.logged("a response cannot be read")
        plane.say_bytes(bytes(40 * 1024 * 1024))
        assert "larger than max" in await proxy.logged("RESOURCE_EXHAUSTED")
        await until(lambda: plane.streams >= 3)
        plane.say("v1", control_plane.gateway(port, upstream))
        assert await plane.answered() == {}
        assert await get(proxy.at(port)) == (200, "hello")
        assert "Traceback" not in proxy.log()


async def test_no_change_is_taken_any_more_while_it_drains(tmp_path: Path) -> None:
    file, port, other = tmp_path / "config.yaml", 8080, 8081
    times = {"CONNECTION_MIN_TERMINATION_DEADLINE": "1.5", "TERMINATION_GRACE_PERIOD_SECONDS": "2"}
    async with origin() as upstream:
        file.write_text(file_of((port, upstream)))
        async with running("-f", str(file), environment=times) as proxy:
            await proxy.ready()
            proxy.agent.signal(signal.SIGTERM)
            await proxy.logged("SIGTERM: draining")
            file.write_text(file_of((port, upstream), (other, upstream)))
            assert await get(proxy.at(port)) == (200, "hello")
            assert await proxy.ended() == 0
            assert proxy.log().count("bind opened") == 1
