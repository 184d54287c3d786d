"""What the policies of manifests/base/admission.yaml let through: who writes GatewayParameters and Gateways needs the
rights to write what the controller makes of them, and the controller writes objects of Gateways alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from gatewright.api.objects.gateway_parameters import GatewayParametersSpec
from tests.cluster.controllers import GATEWAY_API, MANIFESTS, SYSTEM, created, path_of, provisioned_in
from tests.cluster.kube import Answer, ApiServer
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.needs("go")

Json = dict[str, Any]
SPACE = "tenant"
OURS = "gatewright.dev/v1alpha1"
PARAMETERS = f"/apis/{OURS}/namespaces/{SPACE}/gatewayparameters"
GATEWAYS = f"{GATEWAY_API}/namespaces/{SPACE}/gateways"
RBAC = "rbac.authorization.k8s.io/v1"
OWN_RIGHTS = [
    {"apiGroups": ["gatewright.dev"], "resources": ["gatewayparameters"], "verbs": ["*"]},
    {"apiGroups": ["gateway.networking.k8s.io"], "resources": ["gateways"], "verbs": ["*"]},
]
RESOURCES = {
    "deployments": "apps",
    "services": "",
    "serviceaccounts": "",
    "poddisruptionbudgets": "policy",
    "horizontalpodautoscalers": "autoscaling",
}
"""What is made for Gateways, with the groups."""
NUMBERS = itertools.count()


class Tenant:
    """Somebody who may write GatewayParameters and Gateways in a namespace, and what is granted beside."""

    def __init__(self, server: ApiServer) -> None:
        self._admin = server
        self.name = f"tenant{next(NUMBERS)}"
        account = f"/api/v1/namespaces/{SPACE}/serviceaccounts/{self.name}"
        created(server, account, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self.name}})
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        self.server = server.signed_in(server.request("POST", f"{account}/token", body).body["status"]["token"])
        self._everywhere: list[str] = []
        self.grant()

    def _subjects(self) -> list[Json]:
        return [{"kind": "ServiceAccount", "name": self.name, "namespace": SPACE}]

    def grant(self, *resources: str, verbs: tuple[str, ...] = ("create", "patch")) -> None:
        """In the namespace."""
        rules = [{"apiGroups": [RESOURCES[each]], "resources": [each], "verbs": [*verbs]} for each in resources]
        place = f"/apis/{RBAC}/namespaces/{SPACE}"
        self._bound(place, "Role", [*OWN_RIGHTS, *rules])

    def grant_everywhere(self, *resources: str) -> None:
        rules = [{"apiGroups": [RESOURCES[e]], "resources": [e], "verbs": ["create", "patch"]} for e in resources]
        place = f"/apis/{RBAC}"
        self._bound(place, "ClusterRole", rules)
        self._everywhere = [f"{place}/{kind}/{self.name}" for kind in ("clusterrolebindings", "clusterroles")]

    def _bound(self, place: str, kind: str, rules: list[Json]) -> None:
        metadata = {"name": self.name}
        role = {"apiVersion": RBAC, "kind": kind, "metadata": metadata, "rules": rules}
        created(self._admin, f"{place}/{kind.lower()}s/{self.name}", role)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": self.name}
        binding = {"apiVersion": RBAC, "kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference}
        created(self._admin, f"{place}/{kind.lower()}bindings/{self.name}", {**binding, "subjects": self._subjects()})

    def parameters(self, spec: Json, name: str = "") -> Answer:
        return parameters(self.server, spec, name or self.name)

    def gateway(self, infrastructure: Json | None, class_name: str = "gatewright", name: str = "") -> Answer:
        return gateway(self.server, infrastructure, class_name, name or self.name)

    def removed(self) -> None:
        self.server.close()
        for path in (f"{PARAMETERS}/{self.name}", f"{GATEWAYS}/{self.name}", *self._everywhere):
            self._admin.request("DELETE", path)


def parameters(server: ApiServer, spec: Json, name: str) -> Answer:
    document = {"apiVersion": OURS, "kind": "GatewayParameters", "metadata": {"name": name}, "spec": spec}
    return server.apply(f"{PARAMETERS}/{name}", document)


def gateway(server: ApiServer, infrastructure: Json | None, class_name: str, name: str) -> Answer:
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    spec: Json = {"gatewayClassName": class_name, "listeners": [listener]}
    if infrastructure is not None:
        spec["infrastructure"] = infrastructure
    document = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": name}}
    return server.apply(f"{GATEWAYS}/{name}", {**document, "spec": spec})


@pytest.fixture(scope="module")
def space(server: ApiServer) -> Iterator[ApiServer]:
    """A namespace in which the policies act: the API server takes a moment to learn of them."""
    provisioned_in(server, SPACE)
    tenant = Tenant(server)

    def are_known() -> bool:
        another = {"a": str(next(NUMBERS))}  # what is as it was passes
        answers = (
            tenant.parameters({"deployment": {"metadata": {"labels": another}}}),
            tenant.gateway({"labels": another}),
        )
        return [each.status for each in answers] == [403, 403]

    wait_until(are_known, "policies act")
    tenant.removed()
    yield server
    server.request("DELETE", f"/api/v1/namespaces/{SPACE}")


@pytest.fixture
def tenant(space: ApiServer) -> Iterator[Tenant]:
    made = Tenant(space)
    yield made
    made.removed()


def holds(ask: Any, status: int, text: str = "") -> None:
    """Rights reach the API server's own authorizer a moment after they are written."""
    seen: list[Answer] = []

    def is_so() -> bool:
        seen.append(ask())
        return (seen[-1].status in (200, 201) if status == 200 else seen[-1].status == status) and (
            text in seen[-1].message
        )

    wait_until(is_so, lambda: str(seen[-1:]))


ROWS: list[tuple[str, str, object]] = [
    ("deployment", "deployments", {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "any"}]}}}}),
    ("image", "deployments", {"repository": "any"}),
    ("env", "deployments", [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "theirs", "key": "a"}}}]),
    ("rawConfig", "deployments", {"binds": []}),
    ("istio", "deployments", {"enabled": True, "caAddress": "https://mine.example"}),
    ("service", "services", {"spec": {"externalIPs": ["203.0.113.1"]}}),
    ("serviceAccount", "serviceaccounts", {"metadata": {"annotations": {"eks.amazonaws.com/role-arn": "admin"}}}),
    ("podDisruptionBudget", "poddisruptionbudgets", {}),
    ("horizontalPodAutoscaler", "horizontalpodautoscalers", {}),
]


def test_the_rows_are_all_fields_that_reach_objects(space: ApiServer) -> None:
    """What is in no row only says how much a proxy logs, needs and waits."""
    fields = {field.alias or name for name, field in GatewayParametersSpec.model_fields.items()}
    assert fields - {field for field, *_ in ROWS} == {"logging", "resources", "shutdown"}


@pytest.mark.parametrize(("field", "resource", "value"), ROWS, ids=[row[0] for row in ROWS])
def test_a_field_is_written_by_who_may_write_what_it_is_about(
    tenant: Tenant, space: ApiServer, field: str, resource: str, value: object
) -> None:
    others = [each for each in RESOURCES if each != resource]
    group = f".{RESOURCES[resource]}" if RESOURCES[resource] else ""
    plain: Json = {"logging": {"level": "info"}}
    holds(lambda: tenant.parameters(plain), 200)
    tenant.grant(*others)
    why = f"may not create and patch {resource}{group} in namespace {SPACE}"
    holds(lambda: tenant.parameters({field: value}), 403, why)
    assert f"spec.{field}: system:serviceaccount:{SPACE}:{tenant.name}" in tenant.parameters({field: value}).message
    tenant.grant(*RESOURCES, verbs=("patch",))
    holds(lambda: tenant.parameters({field: value}), 403, why)
    tenant.grant(resource)
    holds(lambda: tenant.parameters({field: value}), 200)
    # What an administrator wrote stays as it is for who may not write it, and is not taken away either.
    kept = {**plain, field: value}
    tenant.grant(*others)
    holds(lambda: parameters(space, kept, tenant.name) and tenant.parameters(plain), 403, f"spec.{field}: ")
    louder = {**kept, "logging": {"level": "debug"}}
    assert tenant.parameters(louder).status == 200


def test_parameters_of_a_class_need_the_rights_in_all_namespaces(tenant: Tenant, space: ApiServer) -> None:
    place = f"{GATEWAY_API}/gatewayclasses/{tenant.name}"
    reference = {"group": "gatewright.dev", "kind": "GatewayParameters", "name": tenant.name, "namespace": SPACE}
    document: Json = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass"}
    document |= {"metadata": {"name": tenant.name}}
    spec = {"controllerName": "gatewright.dev/controller", "parametersRef": reference}
    created(space, place, {**document, "spec": spec})
    try:
        tenant.grant(*RESOURCES)
        for field, _, value in ROWS:
            holds(partial(tenant.parameters, {field: value}), 403, f"in all namespaces, as GatewayClass {tenant.name}")
        tenant.grant_everywhere(*RESOURCES)
        for field, _, value in ROWS:
            holds(partial(tenant.parameters, {field: value}), 200)
    finally:
        space.request("DELETE", place)


def test_labels_and_annotations_of_a_gateway_s_objects_need_the_right_to_write_them(
    tenant: Tenant, space: ApiServer
) -> None:
    """An annotation of an account can be a role of a cloud."""
    role: Json = {"annotations": {"eks.amazonaws.com/role-arn": "admin"}}
    holds(lambda: tenant.gateway(None), 200)
    holds(lambda: tenant.gateway(role), 403, "spec.infrastructure.annotations: system:serviceaccount")
    holds(lambda: tenant.gateway({"labels": {"app": "other"}}), 403, "spec.infrastructure.labels: ")
    tenant.grant("deployments", "services")
    holds(lambda: tenant.gateway(role), 403, "may not create and patch serviceaccounts")
    tenant.grant("deployments", "services", "serviceaccounts")
    holds(lambda: tenant.gateway(role), 200)
    tenant.grant()
    written = partial(gateway, space, role, "gatewright", tenant.name)
    holds(lambda: written() and tenant.gateway(None), 403, "spec.infrastructure.annotations")
    # Gateways of other controllers are not ours to judge, until they come to a class of ours.
    moved = f"{tenant.name}-moved"
    holds(lambda: tenant.gateway(role, tenant.name, moved), 200)
    holds(lambda: tenant.gateway(role, "gatewright", moved), 403, "spec.infrastructure.annotations")
    space.request("DELETE", f"{GATEWAYS}/{moved}")


PLACES = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Service": "/api/v1/namespaces/{}/services",
}
LABELS = {"app.kubernetes.io/managed-by": "gatewright"}
OWNER = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "Gateway",
    "name": "web",
    "uid": "6f1b8c2e-0000-4000-8000-000000000000",
    "controller": True,
}


def made(kind: str, name: str, **metadata: object) -> Json:
    spec = {"spec": {"ports": [{"port": 80}]}} if kind == "Service" else {}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}, **spec}


@pytest.mark.parametrize("kind", PLACES)
def test_the_controller_writes_and_removes_objects_of_gateways_alone(space: ApiServer, token: str, kind: str) -> None:
    """Whatever its roles allow: one that is in the hands of somebody else reaches no other object."""
    controller, place = space.signed_in(token), PLACES[kind].format(SPACE)
    theirs = f"{place}/{kind.lower()}-theirs"
    why = "only what it made for a Gateway"
    ours = {"labels": LABELS, "ownerReferences": [OWNER]}
    created(space, theirs, made(kind, theirs.rpartition("/")[2]))
    marker = {"metadata": {"annotations": {"a": "b"}}}
    merge = "application/merge-patch+json"
    try:
        for metadata in ({}, {"labels": LABELS}, {"ownerReferences": [OWNER]}):
            document = made(kind, "mine", **metadata)
            holds(partial(controller.request, "POST", place, document), 403, why)
        if kind != "Secret":
            # Also where it would make it its own by this very write.
            holds(partial(controller.request, "PATCH", theirs, {"metadata": ours}, merge), 403, why)
        holds(partial(controller.request, "DELETE", theirs), 403, why)
        assert controller.request("POST", place, made(kind, "mine", **ours)).status == 201
        if kind != "Secret":
            assert controller.request("PATCH", f"{place}/mine", marker, merge).status == 200
        assert controller.request("DELETE", f"{place}/mine").status == 200
    finally:
        controller.close()
        space.request("DELETE", theirs)


def test_the_controller_makes_nothing_in_namespaces_of_kubernetes_also_where_it_may_everywhere(
    space: ApiServer, token: str, everywhere: None
) -> None:
    controller = space.signed_in(token)
    ours = {"labels": LABELS, "ownerReferences": [OWNER]}
    try:
        for kind, place in PLACES.items():
            document = made(kind, f"gatewright-{kind.lower()}", **ours)
            holds(partial(controller.request, "POST", place.format("kube-system"), document), 403, "nothing in names")
            answer = controller.request("POST", place.format("default"), document)
            assert answer.status == 201, answer.message
            name = document["metadata"]["name"]
            assert controller.request("DELETE", f"{place.format('default')}/{name}").status == 200
    finally:
        controller.close()


@pytest.fixture
def everywhere(space: ApiServer) -> Iterator[None]:
    """The choice of manifests/everywhere."""
    document = yaml.safe_load((MANIFESTS / "everywhere" / "clusterrolebinding.yaml").read_text())
    created(space, path_of(document), document)
    yield
    space.request("DELETE", path_of(document))


def test_without_a_binding_the_controller_may_make_nothing(space: ApiServer, token: str) -> None:
    controller = space.signed_in(token)
    ours = {"labels": LABELS, "ownerReferences": [OWNER]}
    try:
        for space_ in ("default", "kube-system", SYSTEM):
            for kind, place in PLACES.items():
                if (space_, kind) == (SYSTEM, "Secret"):  # its authority is one
                    continue
                answer = controller.request("POST", place.format(space_), made(kind, "x", **ours))
                assert (answer.status, "cannot create resource" in answer.message) == (403, True), answer.message
    finally:
        controller.close()
