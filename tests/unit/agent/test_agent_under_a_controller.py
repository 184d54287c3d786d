"""A proxy in memory under a control plane that says what the test wants: real gRPC, workers without processes."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from dataplane.agent.xds_stream import ENDPOINTS_KEY, QUESTION, STATE_KEY, Request, Response
from dataplane.link.messages import ENDPOINT, RESOURCE
from dataplane.settings import Address, Drain
from tests.fakes import control_plane
from tests.fakes.memory_agent import MemoryAgent, agent, ask, config
from tests.fakes.proxy_process import origin
from tests.harness.ports import reserve
from tests.harness.waiting import until

QUICK = Drain(0.0, 1.0)


async def served(proxy: MemoryAgent, version: str) -> None:
    """Wait until it serves this state."""
    await until(lambda: proxy.agent.xds is not None and proxy.agent.xds.version == version, version)


async def test_a_state_is_served_and_a_refused_part_is_named(tmp_path: Path) -> None:
    path, port = tmp_path / "xds.sock", reserve()
    under = {"xds": Address(path=str(path)), "gateway": "default/web", "drain": QUICK}
    async with origin() as upstream, control_plane.serving(path) as plane:
        async with agent(tmp_path, config(reserve(), upstream), **under) as proxy:
            plane.say("v1", control_plane.gateway(port, upstream))
            assert await plane.answered() == {}
            await served(proxy, "v1")
            assert (await ask(port)).body == "hello"
            broken = control_plane.route("/x")
            broken.min_revision = 99
            plane.say("v2", {"route/httproute/default/all/0": broken})
            assert list(await plane.answered()) == ["route/httproute/default/all/0"]
            assert (await ask(port)).body == "hello"
            dump = await proxy.dump()
            assert dump["xds"] == {"connected": True, "version": "v2"}
            assert list(dump["resources"]["refused"]) == ["route/httproute/default/all/0"]
            assert await proxy.metric("gatewright_xds_connected") == 1
            assert await proxy.metric("gatewright_xds_nacks_total") == 1
            plane.say("v3", {}, ["route/httproute/default/all/0"])
            assert await plane.answered() == {}
            assert (await ask(port)).status == 404
        node = plane.requests[0].node
        assert (node.id, node.cluster) == ("default/web/test", "default/web")


async def test_a_control_plane_that_comes_back_is_told_what_is_held(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path, port = tmp_path / "xds.sock", reserve()
    under = {"xds": Address(path=str(path)), "gateway": "default/web", "drain": QUICK}
    calling = AsyncExitStack()
    plane = await calling.enter_async_context(control_plane.serving(path))
    async with origin() as upstream, agent(tmp_path, config(reserve(), upstream), **under):
        plane.say("v1", control_plane.gateway(port, upstream))
        assert await plane.answered() == {}
        await calling.aclose()
        await until(lambda: "no control plane; serving the last good state" in caplog.text)
        assert (await ask(port)).body == "hello"
        again = control_plane.ControlPlane()
        async with control_plane.serving(path, again):
            await until(lambda: again.requests, "a new stream")
            assert again.requests[0].node.metadata[STATE_KEY] == "v1"
            for type_url in (ENDPOINT, RESOURCE):
                question = Response(type_url=type_url, nonce=QUESTION)
                again.say_bytes(question.SerializeToString())
            await until(lambda: sum(each.response_nonce == QUESTION for each in again.requests) == 2)
            told = {
                each.type_url: dict(each.initial_resource_versions) for each in again.requests if each.response_nonce
            }
            assert told[RESOURCE]["route/httproute/default/all/0"] == "v1" and told[ENDPOINT] == {}


async def test_what_is_no_response_ends_the_stream_and_it_calls_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "xds.sock"
    under = {"xds": Address(path=str(path)), "gateway": "default/web", "drain": QUICK}
    async with control_plane.serving(path) as plane, agent(tmp_path, config(reserve(), 1), **under):
        await until(lambda: plane.streams == 1)
        plane.say_bytes(Response(type_url="type.googleapis.com/other", nonce="1").SerializeToString())
        await until(lambda: any(each.response_nonce == "1" for each in plane.requests))
        (answer,) = (each for each in plane.requests if each.response_nonce == "1")
        assert "unknown type" in answer.error_detail.message
        plane.say_bytes(b"\xff\xff")
        await until(lambda: plane.streams >= 2, "another stream")
    reasons = [record.fields["reason"] for record in caplog.records if "no control plane" in record.message]  # type: ignore[attr-defined]
    assert reasons[0].startswith("a response cannot be read")


async def test_a_bind_of_the_file_that_goes_lets_the_controllers_listen_and_it_is_told(tmp_path: Path) -> None:
    """A stream of its own: an ACK of a state is said once, and what held a bind up was not the control plane's."""
    path, port = tmp_path / "xds.sock", reserve()
    under = {"xds": Address(path=str(path)), "gateway": "default/web", "drain": QUICK}
    async with origin("file") as first, origin("plane") as second:  # noqa: SIM117
        async with (
            control_plane.serving(path) as plane,
            agent(tmp_path, config(port, first, name="file"), **under) as proxy,
        ):
            await proxy.ready()
            plane.say("v1", control_plane.gateway(port, second))
            refused = await plane.answered()
            assert "is claimed by" in refused["bind/default/web/80"]
            assert (await ask(port)).body == "file"
            proxy.file.write_text(config(reserve(), first, name="file"))
            await until(lambda: plane.streams == 2, "news of what is well again")
            await until(lambda: not proxy.agent._journey.workers.without("bind/default/web/80"))
            assert (await ask(port)).body == "plane"


def reported(plane: control_plane.ControlPlane) -> list[list[dict[str, object]]]:
    """What was reported of endpoints, in order."""
    texts = [each.node.metadata.fields[ENDPOINTS_KEY] for each in plane.requests if _is_report(each)]
    return [json.loads(each.string_value) for each in texts]


def _is_report(request: Request) -> bool:
    return ENDPOINTS_KEY in request.node.metadata.fields


async def test_endpoints_in_trouble_are_reported_and_again_on_a_new_stream_and_when_they_are_well(
    tmp_path: Path,
) -> None:
    path, port, upstream = tmp_path / "xds.sock", reserve(), reserve()
    under = {"xds": Address(path=str(path)), "gateway": "default/web", "drain": QUICK}
    calling = AsyncExitStack()
    plane = await calling.enter_async_context(control_plane.serving(path))
    async with agent(tmp_path, config(reserve(), 1), **under) as proxy:
        plane.say("v1", control_plane.gateway(port, upstream))
        assert await plane.answered() == {}
        await served(proxy, "v1")
        assert (await ask(port)).status == 503
        await until(lambda: reported(plane), "a report")
        ((row,),) = reported(plane)
        assert (row["endpoint"], row["failures"], row["server_name"]) == (f"127.0.0.1:{upstream}", 1, "")
        assert row["reason"] == "Connection refused" and str(row["backend"]).startswith("backend/")
        (request,) = (each for each in plane.requests if _is_report(each))
        assert not request.response_nonce and not request.resource_names_subscribe and not request.node.id
        assert plane.requests.index(request) >= 2, "behind the first requests of both types"
        await calling.aclose()
        again = control_plane.ControlPlane()
        async with control_plane.serving(path, again):
            await until(lambda: reported(again), "the same on a new stream")
            assert [each["endpoint"] for each in reported(again)[0]] == [row["endpoint"]]
            async with await asyncio.start_server(answer_once, "127.0.0.1", upstream):
                await until(partial(is_well, again, port), "that it is well")


async def is_well(plane: control_plane.ControlPlane, port: int) -> bool:
    """Ask anew each time: it is the worker which failed whose connection has to come."""
    assert (await ask(port)).status == 200
    return reported(plane)[-1] == []


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    writer.close()


async def test_while_endpoints_are_well_nothing_is_reported(tmp_path: Path) -> None:
    path, port = tmp_path / "xds.sock", reserve()
    under = {"xds": Address(path=str(path)), "gateway": "default/web", "drain": QUICK}
    async with origin() as upstream, control_plane.serving(path) as plane:
        async with agent(tmp_path, config(reserve(), upstream), **under) as proxy:
            plane.say("v1", control_plane.gateway(port, upstream))
            assert await plane.answered() == {}
            await served(proxy, "v1")
            assert (await ask(port)).status == 200
            assert (await proxy.dump())["endpoints_in_trouble"] == []
            plane.say("v2", control_plane.gateway(port, upstream))
            assert await plane.answered() == {}
        assert not any(map(_is_report, plane.requests))
