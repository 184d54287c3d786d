"""The mesh's authority, as it is asked for a certificate (`istio.v1.auth.IstioCertificateService`): gRPC over TLS, with
the token of the proxy's service account. Files are read at each try, so what was replaced acts from the next one on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # why a handshake failed is in our own line, once

import grpc
from google.protobuf.message import DecodeError

from dataplane.agent import xds_access
from dataplane.agent.mesh.certificate import NotIssued
from dataplane.settings import MeshSettings, XdsAccess
from gatewright.wire.external import workload_certificate_pb2

METHOD: Final = "/istio.v1.auth.IstioCertificateService/CreateCertificate"
TIMEOUT: Final = 10.0
"""Seconds for one try."""
MAX_MESSAGE: Final = 1024 * 1024
MOST_DETAIL: Final = 200
"""Characters of what an authority writes that are repeated."""
OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
)


@dataclass(frozen=True, slots=True)
class Authority:
    """Of one mesh."""

    settings: MeshSettings

    async def issue(self, request: bytes) -> list[str]:
        """The chain for a signing request, PEM. Raises `NotIssued`."""
        settings = self.settings
        access = XdsAccess(True, settings.ca_file, settings.token_file, server_name=settings.server_name)
        life = int(settings.life)
        message = workload_certificate_pb2.WorkloadCertificateRequest(csr=request.decode(), validity_duration=life)
        try:
            token = xds_access.metadata(access)["metadata"]
            metadata = (*token, ("clusterid", settings.cluster_id))
            async with xds_access.channel(settings.authority, access, OPTIONS) as channel:
                call = channel.unary_unary(METHOD, message.__class__.SerializeToString)
                answer: bytes = await call(message, metadata=metadata, timeout=TIMEOUT)
        except xds_access.Unusable as error:
            raise NotIssued(str(error)) from None
        except grpc.aio.AioRpcError as error:
            detail = "".join(each for each in str(error.details() or "") if each.isprintable())[:MOST_DETAIL]
            raise NotIssued(f"{settings.authority} answered {error.code().name}: {detail}") from None
        try:
            return [*workload_certificate_pb2.WorkloadCertificateResponse.FromString(answer).cert_chain]
        except DecodeError:
            raise NotIssued(f"{settings.authority} sent no answer that can be read") from None
