"""Proxies that make the controller keep as much as they can, over real gRPC: its memory stays, others are served."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE
from dataplane.agent.xds_stream import METHOD
from gatewright.wire.external import discovery_pb2, node_pb2
from tests.fakes.web_objects import OBJECTS
from tests.faults.page import fault, said
from tests.harness.patience import PATIENCE
from tests.harness.processes import Program, running

Request, Response = discovery_pb2.DeltaDiscoveryRequest, discovery_pb2.DeltaDiscoveryResponse

OTHER = node_pb2.Node(id="default/other/one")
"""A proxy of another Gateway than the one that is served."""

STREAMS = 20
MORE = 200 << 10
"""KiB that 20 streams may cost the controller at their most: 64 MiB are kept, what is parsed comes on top."""


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Program]:
    objects = tmp_path / "objects"
    objects.mkdir()
    (objects / "web.yaml").write_text(OBJECTS.format(port=8080, upstream=9))
    command = [sys.executable, "-m", "controlplane", str(objects), "--socket", str(tmp_path / "xds.sock")]
    command += ["--xds", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    with running(tmp_path, "controller", command) as program:
        program.await_ready()
        yield program


class Client:
    """One stream."""

    def __init__(self, socket: Path) -> None:
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        self.channel = grpc.insecure_channel(f"unix:{socket}", options)
        self._requests: SimpleQueue[Any] = SimpleQueue()
        method = self.channel.stream_stream(METHOD, Request.SerializeToString, Response.FromString)
        self.call = method(iter(self._requests.get, None), timeout=PATIENCE)

    def say(self, request: Any) -> None:
        self._requests.put(request)

    def outcome(self) -> grpc.StatusCode:
        """OK: it was served; else how it ended."""
        try:
            next(self.call)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
        return grpc.StatusCode.OK

    def close(self) -> None:
        self._requests.put(None)
        self.call.cancel()
        self.channel.close()


@contextmanager
def clients(socket: Path, count: int) -> Iterator[list[Client]]:
    made = [Client(socket) for _ in range(count)]
    try:
        yield made
    finally:
        for client in made:
            client.close()


def peak_kib(program: Program) -> int:
    """The most memory that the process has had."""
    rows = Path(f"/proc/{program.pid}/status").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("VmHWM:")).split()[1])


def versions(count: int, length: int) -> Any:
    held = {f"{number:0{length}}": "1" * 8 for number in range(count)}
    return Request(type_url=RESOURCE_TYPE, node=OTHER, initial_resource_versions=held)


def metadata() -> Any:
    node = node_pb2.Node(id="default/other/one")
    node.metadata["x"] = [0.0] * 300_000
    return Request(type_url=RESOURCE_TYPE, node=node)


OK, EXHAUSTED = grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED

HEAVY = {
    "versions of 12 MB": (lambda: versions(120_000, 80), {EXHAUSTED}),
    "versions of 4 MB": (lambda: versions(38_000, 80), {OK, EXHAUSTED}),
    "versions of 2 MB, tiny ones": (lambda: versions(120_000, 6), {EXHAUSTED}),
    "names of 2 MB, tiny ones": (
        lambda: Request(type_url=RESOURCE_TYPE, node=OTHER, resource_names_subscribe=["x"] * 700_000),
        {EXHAUSTED},
    ),
    "metadata of 3 MB": (metadata, {EXHAUSTED}),
}
"""What each stream says, and what becomes of it."""


@fault("A proxy makes the controller keep too much")
@pytest.mark.parametrize("kind", HEAVY)
def test_twenty_heavy_streams_cost_little_and_hold_up_nobody(controller: Program, tmp_path: Path, kind: str) -> None:
    socket, before = tmp_path / "xds.sock", peak_kib(controller)
    make, outcomes = HEAVY[kind]
    request = make()
    with clients(socket, STREAMS) as heavy, clients(socket, 1) as (other,):
        for client in heavy:
            client.say(request)
        for type_url in (RESOURCE_TYPE, ENDPOINT_TYPE):
            other.say(Request(type_url=type_url, node=node_pb2.Node(id="default/web/one")))
        assert "bind/default/web/8080" in _names(other)
        found = {client.outcome() for client in heavy}
        assert found <= outcomes
        if kind == "versions of 2 MB, tiny ones":
            assert said("initial_resource_versions of one subscription", controller.log())
        text = (tmp_path / "objects" / "web.yaml").read_text()
        (tmp_path / "objects" / "web.yaml").write_text(text.replace("8080", "8081"))
        while "bind/default/web/8081" not in _names(other):
            pass  # a state that came before the edit
    assert peak_kib(controller) - before < MORE


def _names(client: Client) -> set[str]:
    """The resources of the next state, which is answered."""
    names: set[str] = set()
    for response in client.call:
        names.update(resource.name for resource in response.resources)
        client.say(Request(type_url=response.type_url, response_nonce=response.nonce))
        if response.system_version_info:
            break
    return names
