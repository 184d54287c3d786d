"""The gRPC services of the controller as handlers: resources, client status, health, reflection.

Thin shells over pure packages; `server` decides which of them are offered where. Responses of the resource service are
bytes already: its handler has no serialiser, and no parser either, as most requests are known by their bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, Protocol

import grpc
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from controlplane.xds import methods
from controlplane.xds.node import ProtocolError
from controlplane.xds.protocol import csds
from controlplane.xds.protocol.matching import matches_any
from controlplane.xds.session import Call, DeltaCall
from gatewright.wire.external import client_status_pb2
from gatewright.wire.v1 import resource_pb2  # noqa: F401  # in the pool, so that reflection can show resources

PAUSE_EVERY: Final = 200
"""Status entries built (about 10 us each) before others may use the event loop."""

AT_ONCE: Final = 4
"""Requests for client status that are answered at a time: every client that can connect may send them."""

MOST_ENTRIES: Final = 200_000
"""Resources of one answer, of all proxies together: some 100 MB."""

BUSY: Final = f"{AT_ONCE} requests for client status are being answered already; try again"
TOO_MANY: Final = f"the answer would have more than {MOST_ENTRIES} resources: name the proxies by node_matchers"

Clients = Callable[[], tuple[csds.Client, ...]]


class DeltaMethod(Protocol):
    """The delta method, in reading and writing style."""

    def __call__(self, requests: object, call: DeltaCall, /) -> Awaitable[None]: ...


def discovery_handler(delta: DeltaMethod) -> grpc.GenericRpcHandler:
    """The resource service: bytes in, bytes out."""
    method = grpc.stream_stream_rpc_method_handler(delta)
    return grpc.method_handlers_generic_handler(methods.DISCOVERY, {"DeltaAggregatedResources": method})


class ClientStatus:
    """CSDS over the connected proxies."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._under_way = 0

    def handler(self) -> grpc.GenericRpcHandler:
        """The service's two methods."""
        coding = {
            "request_deserializer": client_status_pb2.ClientStatusRequest.FromString,
            "response_serializer": client_status_pb2.ClientStatusResponse.SerializeToString,
        }
        fetch = grpc.unary_unary_rpc_method_handler(self.fetch, **coding)
        stream = grpc.stream_stream_rpc_method_handler(self.stream, **coding)
        both = {"FetchClientStatus": fetch, "StreamClientStatus": stream}
        return grpc.method_handlers_generic_handler(methods.CLIENT_STATUS, both)

    async def fetch(
        self, request: client_status_pb2.ClientStatusRequest, call: Call
    ) -> client_status_pb2.ClientStatusResponse:
        """The status of every proxy that the request's node matchers match."""
        if self._under_way >= AT_ONCE:
            await call.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, BUSY)
        self._under_way += 1
        try:
            return await self._answer(request, call)
        finally:
            self._under_way -= 1

    async def _answer(
        self, request: client_status_pb2.ClientStatusRequest, call: Call
    ) -> client_status_pb2.ClientStatusResponse:
        response = client_status_pb2.ClientStatusResponse()
        try:
            chosen = [client for client in self._clients() if _is_meant(request, client)]
        except ProtocolError as error:
            await call.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        total = 0
        for client in chosen:
            config = response.config.add(node=csds.node(client))
            found = csds.entries(client, exclude_contents=request.exclude_resource_contents)
            for entry in found:
                config.generic_xds_configs.append(entry)
                total += 1
                if total > MOST_ENTRIES:
                    await call.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, TOO_MANY)
                if total % PAUSE_EVERY == 0:
                    await asyncio.sleep(0)
        return response

    async def stream(
        self, requests: AsyncIterator[client_status_pb2.ClientStatusRequest], call: Call
    ) -> AsyncIterator[client_status_pb2.ClientStatusResponse]:
        """One answer for each request."""
        async for request in requests:
            yield await self.fetch(request, call)


def _is_meant(request: client_status_pb2.ClientStatusRequest, client: csds.Client) -> bool:
    # By what is shown: a matcher must not reveal digits of what is not.
    return client.stream.node is not None and matches_any(request.node_matchers, csds.node(client))


def reflection_handlers() -> tuple[grpc.GenericRpcHandler, ...]:
    """Server reflection of the controller's services."""
    return reflection_of((methods.DISCOVERY, methods.CLIENT_STATUS, methods.HEALTH))


def reflection_of(services: tuple[str, ...]) -> tuple[grpc.GenericRpcHandler, ...]:
    """Server reflection, v1alpha and v1: the library has the former only, their messages are the same bytes."""
    method = grpc.stream_stream_rpc_method_handler(
        reflection.aio.ReflectionServicer((*services, methods.REFLECTION_ALPHA)).ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    names = (methods.REFLECTION, methods.REFLECTION_ALPHA)
    return tuple(grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": method}) for name in names)


async def health_servicer() -> health.aio.HealthServicer:
    """The health service, serving: it exists only while the server does."""
    servicer = health.aio.HealthServicer()
    for name in (methods.DISCOVERY, methods.CLIENT_STATUS):
        await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    return servicer
