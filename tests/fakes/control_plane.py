"""A control plane that says what a test wants: delta ADS on a Unix socket, every request recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from dataplane.agent.xds_stream import METHOD, Request, Response
from dataplane.link.messages import RESOURCE
from gatewright.revisions import resource
from gatewright.wire.v1 import backend_pb2, bind_pb2, listener_pb2, policy_pb2, resource_pb2, route_pb2
from tests.harness.waiting import until

Talk = Callable[[AsyncIterator[Request], "grpc.aio.ServicerContext[Request, bytes]"], AsyncIterator[bytes]]
SERVICE, _, NAME = METHOD.removeprefix("/").partition("/")


class ControlPlane:
    """Made by `serving`. `requests` of all streams, in order; `streams` counts them."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.streams = 0
        self._send: asyncio.Queue[bytes] = asyncio.Queue()
        self._nonce = 0

    def say(
        self, version: str, changed: Mapping[str, resource_pb2.Resource | bytes], removed: Sequence[str] = ()
    ) -> None:
        """Send a whole state in one response; resources have the state's version."""
        self._nonce += 1
        response = Response(
            type_url=RESOURCE, nonce=str(self._nonce), removed_resources=removed, system_version_info=version
        )
        for name, content in changed.items():
            value = content if isinstance(content, bytes) else content.SerializeToString()
            resource = response.resources.add(name=name, version=version)
            resource.resource.type_url, resource.resource.value = RESOURCE, value
        self.say_bytes(response.SerializeToString())

    def say_bytes(self, response: bytes) -> None:
        """Send what may not be a response."""
        self._send.put_nowait(response)

    async def answered(self) -> dict[str, str]:
        """Wait for the answer to what was said last: nothing for an ACK, name -> reason for a NACK."""
        nonce = str(self._nonce)
        await until(lambda: any(r.response_nonce == nonce for r in self.requests), f"an answer to {nonce}")
        request = next(r for r in self.requests if r.response_nonce == nonce)
        if not request.HasField("error_detail"):
            return {}
        return {row["key"]: row["error"] for row in json.loads(request.error_detail.message)}

    async def talk(
        self, incoming: AsyncIterator[Request], _context: grpc.aio.ServicerContext[Request, bytes]
    ) -> AsyncIterator[bytes]:
        self.streams += 1

        async def listen() -> None:
            async for request in incoming:
                self.requests.append(request)

        listening = asyncio.ensure_future(listen())
        try:
            while True:
                yield await self._send.get()
        finally:
            listening.cancel()


@asynccontextmanager
async def ads(socket: Path, talk: Talk) -> AsyncIterator[None]:
    """A server of delta ADS at this socket until the block ends. `talk` has one stream: requests in, responses out."""
    handler = grpc.stream_stream_rpc_method_handler(talk, request_deserializer=Request.FromString)
    # A client measures with pings while much comes; on a busy machine the library would take them for too many.
    options = (("grpc.max_send_message_length", -1), ("grpc.http2.max_ping_strikes", 0))
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {NAME: handler}),))
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


@asynccontextmanager
async def serving(socket: Path, plane: ControlPlane | None = None) -> AsyncIterator[ControlPlane]:
    """A control plane at this socket until the block ends; then it is gone at once."""
    plane = plane or ControlPlane()
    async with ads(socket, plane.talk):
        yield plane


_WEB = policy_pb2.ObjectRef(kind="Gateway", namespace="default", name="web")


def gateway(port: int, upstream: int) -> dict[str, resource_pb2.Resource | bytes]:
    """Resources of a Gateway with one listener, whose one route forwards everything."""
    return {
        "bind/default/web/80": resource(
            "bind/default/web/80", bind=bind_pb2.Bind(gateway="gateway/default/web", port=port, addresses=["127.0.0.1"])
        ),
        "listener/gateway/default/web/http": resource(
            "listener/gateway/default/web/http",
            listener=listener_pb2.Listener(
                bind="bind/default/web/80",
                name="http",
                protocol=listener_pb2.PROTOCOL_HTTP,
                source=_WEB,
                admits=listener_pb2.Admission(kinds=["HTTPRoute"], all_namespaces=True),
            ),
        ),
        "backend/gatewaybackend/default/origin": resource(
            "backend/gatewaybackend/default/origin",
            backend=backend_pb2.Backend(static=backend_pb2.StaticBackend(host="127.0.0.1", port=upstream)),
        ),
        "route/httproute/default/all/0": route("/"),
    }


def route(prefix: str) -> resource_pb2.Resource:
    """The one route, matching a path prefix."""
    return resource(
        "route/httproute/default/all/0",
        route=route_pb2.Route(
            source=policy_pb2.ObjectRef(kind="HTTPRoute", namespace="default", name="all"),
            parents=[route_pb2.Parent(object=_WEB)],
            matches=[route_pb2.RouteMatch(path=route_pb2.PathMatch(prefix=prefix))],
            backends=[route_pb2.RouteBackend(weight=1, backend="backend/gatewaybackend/default/origin")],
        ),
    )
