"""What workers get of the mesh, as resources of the agent's own: the certificate as a Secret, who is believed, and the
listener that ends tunnels. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dataplane.agent.mesh.certificate import Issued
from dataplane.link.messages import RESOURCE, Record
from dataplane.settings import MeshSettings
from gatewright.wire.v1 import bind_pb2, gateway_pb2, listener_pb2, resource_pb2, secret_pb2, tls_pb2

PORT: Final = 15008
"""On which workloads of a mesh take tunnels."""
NAMESPACE, NAME = "mesh", "workload"
SECRET: Final = f"secret/{NAMESPACE}/{NAME}"
MESH: Final = f"mesh/{NAME}"
SECTION: Final = "hbone"
"""Name of the listener, as logs and metrics have it."""
ALONE: Final = "default/standalone"
"""The Gateway of a proxy that has a file alone."""


def records(settings: MeshSettings, gateway: str, issued: Issued | None) -> Iterator[Record]:
    """All of them; `issued` None: there is no certificate now, so that no tunnel is opened, and none is taken."""
    domains = settings.trust_domains
    secret = "" if issued is None else SECRET
    yield _record(MESH, mesh=gateway_pb2.Mesh(secret=secret, trust_domains=domains))
    if issued is None:
        return
    data = {"tls.crt": issued.chain, "tls.key": issued.key, "ca.crt": issued.authorities}
    yield _record(SECRET, secret=secret_pb2.Secret(namespace=NAMESPACE, name=NAME, data=data))
    namespace, _, name = (gateway or ALONE).partition("/")
    bind = f"bind/{namespace}/{name}/{PORT}"
    yield _record(bind, bind=bind_pb2.Bind(gateway=f"gateway/{namespace}/{name}", port=PORT))
    validation = tls_pb2.ClientValidation(authorities=[issued.authorities.decode()], trust_domains=domains)
    listener = listener_pb2.Listener(
        bind=bind,
        name=SECTION,
        protocol=listener_pb2.PROTOCOL_HBONE,
        tls=tls_pb2.ListenerTls(certificates=[SECRET], client_validation=validation),
    )
    listener.source.kind, listener.source.namespace, listener.source.name = "Gateway", namespace, name
    yield _record(f"listener/gateway/{namespace}/{name}/{SECTION}", listener=listener)


def _record(key: str, **kind: object) -> Record:
    message = resource_pb2.Resource(key=key, **kind)  # type: ignore[arg-type]  # one field of the oneof
    return Record(RESOURCE, key, message.SerializeToString(deterministic=True))
