"""What the token of one tenant's proxies reads of another tenant's Secrets: `partner` has a client certificate for its
Service, and the Gateway of `shop` sends to that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from controlplane.snapshot import RESOURCE_TYPE
from controlplane.xds import methods
from gatewright.wire.external import discovery_pb2
from tests.cluster.controllers import (
    GATEWAY_API,
    SERVICE,
    SHOP,
    Controller,
    Json,
    apply,
    bundle,
    created,
    get,
    token_of,
)
from tests.cluster.kube import ApiServer
from tests.fakes.certificates import Authority
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.waiting import wait_until

pytestmark = [
    pytest.mark.needs("go"),
    pytest.mark.leaves("gRPC closes what it opened in threads of its own, later"),
]

OURS = "gatewright.dev/v1alpha1"
PARTNER = f"{GATEWAY_API}/namespaces/partner"
CORE = "/api/v1/namespaces/partner"
POLICY = f"/apis/{OURS}/namespaces/partner/gatewaypolicies/client"
SERVERS = f"/apis/{OURS}/namespaces/shop/gatewaybackends/servers"
MADE = (
    f"{SHOP}/httproutes/tools",
    SERVERS,
    f"{PARTNER}/httproutes/tools",
    f"{PARTNER}/gateways/own",
    *(f"{PARTNER}/referencegrants/{name}" for name in ("service", "secret")),
    POLICY,
    f"{CORE}/services/tools",
    f"{CORE}/secrets/client",
)


@pytest.fixture
def controller(server: ApiServer, token: str, tmp_path: Path) -> Iterator[Controller]:
    made = Controller(server, token, tmp_path, "controller", "--xds-service-accounts", "--no-provisioning")
    try:
        yield made.await_ready()
    finally:
        made.process.stop()


@pytest.fixture
def key(server: ApiServer, shop: str) -> Iterator[bytes]:
    """That of `partner`, beside the Service that it is for."""
    space: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "partner"}}
    created(server, "/api/v1/namespaces/partner", space)
    issued = Authority().issue("client", client=True)
    entries = {name: value.decode() for name, value in issued.entries.items()}
    secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "client"}, "stringData": entries}
    created(server, f"{CORE}/secrets/client", secret)
    ports = [{"name": "mcp", "port": 80, "appProtocol": "gatewright.dev/mcp"}]
    apply(server, f"{CORE}/services/tools", "Service", {"ports": ports}, "v1")
    targets = [{"group": "", "kind": "Service", "name": "tools"}]
    backend = {"tls": {"mtlsCertificateRef": [{"name": "client"}]}}
    apply(server, POLICY, "GatewayPolicy", {"targetRefs": targets, "backend": backend}, OURS)
    yield issued.key
    for path in MADE:
        server.request("DELETE", path)


def by_selector(server: ApiServer) -> None:
    labels = {"matchLabels": {"kubernetes.io/metadata.name": "partner"}}
    targets = [{"name": "all", "selector": {"namespaces": labels}}]
    apply(server, SERVERS, "GatewayBackend", {"mcp": {"targets": targets}}, OURS)
    _route(server, SHOP, "web", {"group": "gatewright.dev", "kind": "GatewayBackend", "name": "servers"})


def by_grant(server: ApiServer) -> None:
    grant(server, "service", "HTTPRoute", "Service", "tools")
    _route(server, SHOP, "web", {"name": "tools", "namespace": "partner", "port": 80})


def _route(server: ApiServer, space: str, parent: str, reference: Json) -> None:
    spec = {"parentRefs": [{"name": parent}], "rules": [{"backendRefs": [reference]}]}
    apply(server, f"{space}/httproutes/tools", "HTTPRoute", spec)


def grant(server: ApiServer, name: str, reader: str, to: str, called: str) -> None:
    group = "gatewright.dev" if reader == "GatewayBackend" else "gateway.networking.k8s.io"
    sources = [{"group": group, "kind": reader, "namespace": "shop"}]
    targets = [{"group": "", "kind": to, "name": called}]
    apply(server, f"{PARTNER}/referencegrants/{name}", "ReferenceGrant", {"from": sources, "to": targets})


def read(server: ApiServer, controller: Controller, namespace: str, gateway: str) -> dict[str, bytes]:
    """All resources that the token of a Gateway's account gets."""
    credentials = grpc.ssl_channel_credentials(bundle(server))
    options = [("grpc.ssl_target_name_override", SERVICE)]
    found: dict[str, bytes] = {}
    token = token_of(server, gateway, namespace=namespace)
    with grpc.secure_channel(f"127.0.0.1:{controller.process.port('XDS')}", credentials, options) as channel:
        stream = channel.stream_stream(
            methods.DELTA_AGGREGATED_RESOURCES,
            request_serializer=discovery_pb2.DeltaDiscoveryRequest.SerializeToString,
            response_deserializer=discovery_pb2.DeltaDiscoveryResponse.FromString,
        )
        first = discovery_pb2.DeltaDiscoveryRequest(type_url=RESOURCE_TYPE)
        first.node.id = f"{namespace}/{gateway}/reader"
        call = stream(iter([first]), metadata=(("authorization", f"Bearer {token}"),), timeout=PATIENCE)
        for response in call:
            found.update((each.name, each.resource.value) for each in response.resources)
            if response.system_version_info:
                break
        call.cancel()
    return found


def has(found: dict[str, bytes], text: bytes) -> bool:
    return any(text in content for content in found.values())


def of_shop(server: ApiServer) -> list[tuple[str, str]]:
    """Reason and message of `ResolvedRefs` of the policy at the Gateway of `shop`."""
    ancestors = (get(server, POLICY).get("status") or {}).get("ancestors") or ()
    return [
        (row["reason"], row["message"])
        for each in ancestors
        if each["ancestorRef"]["namespace"] == "shop"
        for row in each["conditions"]
        if row["type"] == "ResolvedRefs"
    ]


@pytest.mark.parametrize(
    ("reached", "reader"), [(by_selector, "GatewayBackend"), (by_grant, "HTTPRoute")], ids=["selector", "grant"]
)
def test_a_foreign_key_comes_with_a_grant_for_it_alone(
    server: ApiServer, controller: Controller, key: bytes, reached: object, reader: str
) -> None:
    assert callable(reached)
    reached(server)
    why = f"no ReferenceGrant in namespace partner permits {reader}s or Gateways of namespace shop to use it"
    told = [("RefNotPermitted", f"Secret partner/client is kept from Gateway shop/web: {why}")]
    wait_until(lambda: of_shop(server) == told, controller.process.log)
    found = read(server, controller, "shop", "web")
    assert not has(found, key)
    assert why.encode() in found["policy/partner/client/backend_tls"]

    grant(server, "secret", reader, "Secret", "client")
    wait_until(lambda: of_shop(server) == [("ResolvedRefs", "")], controller.process.log)
    wait_until(lambda: has(read(server, controller, "shop", "web"), key), controller.process.log)

    server.request("DELETE", f"{PARTNER}/referencegrants/secret")
    wait_until(lambda: of_shop(server) == told, controller.process.log)
    wait_until(lambda: not has(read(server, controller, "shop", "web"), key), controller.process.log)


def test_the_gateway_of_its_own_namespace_gets_the_key(server: ApiServer, controller: Controller, key: bytes) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "own"}}
    created(server, f"{CORE}/serviceaccounts/own", account)
    listeners = [{"name": "http", "port": reserve(), "protocol": "HTTP"}]
    apply(server, f"{PARTNER}/gateways/own", "Gateway", {"gatewayClassName": "gatewright", "listeners": listeners})
    _route(server, PARTNER, "own", {"name": "tools", "port": 80})
    wait_until(lambda: has(read(server, controller, "partner", "own"), key), controller.process.log)
    by_selector(server)
    wait_until(lambda: bool(of_shop(server)), controller.process.log)
    assert not has(read(server, controller, "shop", "web"), key)
    assert has(read(server, controller, "partner", "own"), key)
