"""The controller's account has each right that it uses, and none that it does not: what the API server noted is what
manifests/base grants."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from controlplane.kube import access
from controlplane.kube.authority_secret import AuthoritySecret
from controlplane.kube.leadership import NAME as LEASE
from controlplane.settings import Cluster
from controlplane.xds.trust.authority import LIFETIME
from tests.cluster.controllers import (
    BASE,
    CRDS,
    GATEWAY_API,
    SECRET,
    SHOP,
    SYSTEM,
    Controller,
    apply,
    bundle,
    created,
    define,
    get,
    proxy,
    token_of,
)
from tests.cluster.kube import ApiServer
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.needs("go")

Json = dict[str, Any]
OURS = "gatewright.dev/v1alpha1"
MINE = f"/apis/{OURS}/namespaces/shop"
NAME = "rights"
PARAMETERS = f"{MINE}/gatewayparameters/{NAME}"
ASKED_BY_ADMISSION = {("gatewright-provisioner", "gateway.networking.k8s.io", "gateways/finalizers", "update")}
"""Rights that a plugin of the API server looks for, which the tests have switched on: it notes nothing."""


class Right(NamedTuple):
    role: str
    group: str
    resource: str
    verb: str


class Asked(NamedTuple):
    """One request, as the API server noted it."""

    group: str
    resource: str
    verb: str
    namespace: str
    name: str
    code: int


def noted(server: ApiServer, since: int) -> list[Asked]:
    return [*_asked(server.audit.read_bytes()[since:].splitlines())]


def _asked(lines: Iterable[bytes]) -> Iterator[Asked]:
    for line in lines:
        event = json.loads(line)
        about = event.get("objectRef") or {}
        resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
        code = (event.get("responseStatus") or {}).get("code", 0)
        found = Asked(
            *(about.get("apiGroup", ""), resource, event["verb"], about.get("namespace", ""), about.get("name", "")),
            code,
        )
        yield found
        if found.verb == "patch" and code == 201:  # applied, and not there before: that takes both rights
            yield found._replace(verb="create")


def granted() -> dict[Right, tuple[str, ...]]:
    """Rights of all roles, with the names that they are about; none: any."""
    found: dict[Right, tuple[str, ...]] = {}
    for file in ("rbac.yaml", "provisioner.yaml"):
        for role in yaml.load_all((BASE / file).read_text(), yaml.CSafeLoader):
            for rule in role.get("rules", ()):
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        for verb in rule["verbs"]:
                            name = f"{role['metadata']['name']}{' here' if role['kind'] == 'Role' else ''}"
                            found[Right(name, group, resource, verb)] = tuple(rule.get("resourceNames", ()))
    return found


def is_used(right: Right, names: tuple[str, ...], asked: Iterable[Asked]) -> bool:
    """By something that no other role allows."""
    is_here = right.role.endswith(" here")
    return any(
        (each.group, each.resource, each.verb) == right[1:]
        and (each.namespace == SYSTEM) >= is_here
        and (not names or each.name in names)
        and (right.role != "gatewright-provisioner" or each.namespace != SYSTEM)
        for each in asked
    )


def test_each_right_is_used_and_none_is_missing(server: ApiServer, token: str, shop: str, tmp_path: Path) -> None:
    if not server.audit.exists():
        pytest.skip("the API server is not one whose notes can be read")
    since = server.audit.stat().st_size
    for path in (SECRET, f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{LEASE}"):
        server.request("DELETE", path)
    pools_are_defined(server)
    controller = Controller(server, token, tmp_path, "controller", "--xds-service-accounts")
    try:
        controller.await_ready()
        everything(server)
        for path in STATUSES:
            wait_until(lambda path=path: get(server, path).get("status"), controller.process.log)  # type: ignore[misc]
        provisioned(server, controller)
        with proxy(tmp_path, controller, bundle(server), token_of(server, shop)) as started:
            wait_until(lambda: "connected from" in controller.process.log(), started.log)
    finally:
        controller.end()
        for path in [*STATUSES, *WITHOUT_STATUS, f"{CRDS}/{DEFINITION}"]:
            server.request("DELETE", path)
    asyncio.run(_replace_authority(tmp_path / "kubeconfig"))
    asked = noted(server, since)
    assert [each for each in asked if each.code == 403] == []
    unused = {right for right, names in granted().items() if not is_used(right, names, asked)}
    assert unused == ASKED_BY_ADMISSION
    rights = {right[1:] for right in granted()}
    assert {each[:3] for each in asked if each.resource} <= rights


async def _replace_authority(kubeconfig: Path) -> None:
    """As the controller that leads does it when its year comes to an end."""
    reached = await access.opened(Cluster(kubeconfig=kubeconfig, namespace=SYSTEM))
    try:
        later = dt.datetime.now(dt.UTC) + LIFETIME - dt.timedelta(days=30)
        await AuthoritySecret(reached, SYSTEM, lambda _: None, lambda: later).look(replace=True)
    finally:
        await reached.close()


PARENT: Json = {"parentRefs": [{"name": NAME}]}
TARGET: Json = {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": NAME}]}
LISTENER: Json = {"name": "http", "port": 80, "protocol": "HTTP"}
CLASS = f"{GATEWAY_API}/gatewayclasses/{NAME}"
SERVICE = f"/api/v1/namespaces/shop/services/{NAME}-backend"
POOLS = "inference.networking.k8s.io"
POOL = f"/apis/{POOLS}/v1/namespaces/shop/inferencepools/{NAME}"
DEFINITION = f"inferencepools.{POOLS}"
OBJECTS: list[tuple[str, str, Json]] = [
    (CLASS, "GatewayClass", {"controllerName": "gatewright.dev/controller"}),
    (
        f"{SHOP}/gateways/{NAME}",
        "Gateway",
        {
            "gatewayClassName": NAME,
            "listeners": [LISTENER],
            "infrastructure": {
                "parametersRef": {"group": "gatewright.dev", "kind": "GatewayParameters", "name": NAME},
            },
            "allowedListeners": {"namespaces": {"from": "Same"}},
        },
    ),
    (
        f"{SHOP}/listenersets/{NAME}",
        "ListenerSet",
        {"parentRef": {"name": NAME}, "listeners": [{"name": "more", "port": 81, "protocol": "HTTP"}]},
    ),
    (
        f"{SHOP}/httproutes/{NAME}",
        "HTTPRoute",
        {
            **PARENT,
            "rules": [
                {"backendRefs": [{"name": f"{NAME}-backend", "port": 80}]},
                {"backendRefs": [{"group": POOLS, "kind": "InferencePool", "name": NAME}]},
            ],
        },
    ),
    (f"{SHOP}/grpcroutes/{NAME}", "GRPCRoute", {**PARENT, "rules": [{}]}),
    (f"{SHOP}/tcproutes/{NAME}", "TCPRoute", {**PARENT, "rules": [{"backendRefs": [{"name": "x", "port": 80}]}]}),
    (f"{SHOP}/udproutes/{NAME}", "UDPRoute", {**PARENT, "rules": [{"backendRefs": [{"name": "x", "port": 80}]}]}),
    (
        f"{SHOP}/tlsroutes/{NAME}",
        "TLSRoute",
        {**PARENT, "hostnames": ["a.example"], "rules": [{"backendRefs": [{"name": "x", "port": 80}]}]},
    ),
    (
        f"{SHOP}/backendtlspolicies/{NAME}",
        "BackendTLSPolicy",
        {
            "targetRefs": [{"group": "", "kind": "Service", "name": f"{NAME}-backend"}],
            "validation": {"hostname": "a.example", "wellKnownCACertificates": "System"},
        },
    ),
    (f"{MINE}/gatewaybackends/{NAME}", "GatewayBackend", {"static": {"host": "a.example", "port": 80}}),
    (f"{MINE}/gatewaypolicies/{NAME}", "GatewayPolicy", {**TARGET, "traffic": {"timeouts": {"request": "9s"}}}),
    (PARAMETERS, "GatewayParameters", {"podDisruptionBudget": {}, "horizontalPodAutoscaler": {}}),
    (
        POOL,
        "InferencePool",
        {
            "selector": {"matchLabels": {"app": NAME}},
            "targetPorts": [{"number": 8000}],
            "endpointPickerRef": {"name": f"{NAME}-backend", "port": {"number": 80}},
        },
    ),
]
"""One of each kind that has a status."""
STATUSES = [path for path, *_ in OBJECTS]
WITHOUT_STATUS = [SERVICE]


def everything(server: ApiServer) -> None:
    metadata: Json = {"name": f"{NAME}-backend"}
    document = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}
    created(server, SERVICE, document)
    for path, kind, spec in OBJECTS:
        group, _, version = path.removeprefix("/apis/").partition("/")
        apply(server, path, kind, spec, f"{group}/{version.partition('/')[0]}")


def pools_are_defined(server: ApiServer) -> None:
    """With as little of a schema as there can be: the extension is others'."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}},
    }
    names = {"kind": "InferencePool", "plural": "inferencepools"}
    # The API server asks all who define something in its groups for this.
    metadata = {"name": DEFINITION, "annotations": {"api-approved.kubernetes.io": "unapproved, test"}}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}
    define(server, [{**kind, "spec": {"group": POOLS, "scope": "Namespaced", "names": names, "versions": [version]}}])


PLACES = (
    "/api/v1/namespaces/shop/serviceaccounts",
    "/api/v1/namespaces/shop/configmaps",
    "/api/v1/namespaces/shop/services",
    "/apis/apps/v1/namespaces/shop/deployments",
    "/apis/policy/v1/namespaces/shop/poddisruptionbudgets",
    "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers",
)
SESSION_KEY = f"/api/v1/namespaces/shop/secrets/{NAME}-session-key"


def provisioned(server: ApiServer, controller: Controller) -> None:
    """All that is made for a Gateway is made, changed, and removed."""
    made = [*(f"{place}/{NAME}" for place in PLACES), SESSION_KEY]

    def have(label: str) -> bool:
        found = [server.request("GET", path) for path in made[:-1]]
        return all(each.status == 200 and label in each.body["metadata"]["labels"] for each in found)

    wait_until(lambda: have("app.kubernetes.io/name"), controller.process.log)
    spec: Json = OBJECTS[1][2]
    infrastructure = {**spec["infrastructure"], "labels": {"later": "yes"}}
    apply(server, f"{SHOP}/gateways/{NAME}", "Gateway", {**spec, "infrastructure": infrastructure})
    wait_until(lambda: have("later"), controller.process.log)
    other = f"{GATEWAY_API}/gatewayclasses/{NAME}-other"
    apply(server, other, "GatewayClass", {"controllerName": "example.com/other"})
    apply(server, f"{SHOP}/gateways/{NAME}", "Gateway", {**spec, "gatewayClassName": f"{NAME}-other"})
    wait_until(lambda: all(server.request("GET", path).status == 404 for path in made), controller.process.log)
    server.request("DELETE", other)
