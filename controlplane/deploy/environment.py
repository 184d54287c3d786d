"""The environment of the proxy's container. Pure.

Generated variables come first, in the order of the table below, then those that users add, in theirs: `$(NAME)` means
variables before it alone. One that a user gives in place of a generated one stands where that one stood.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.deploy.names import SESSION_KEY_SUFFIX
from controlplane.deploy.parameters import Parameters
from gatewright.api.objects.gateway_parameters import EnvVar, MeshSpec

Json = dict[str, Any]  # Any: JSON

SESSION_KEY = "SESSION_KEY"
SECRET_ENTRY = "key"
"""Of the Secret that has a Gateway's session key."""
MESH_AUTHORITY = "https://istiod.istio-system.svc:15012"
MESH_DOMAIN = "cluster.local"


def needs_session_key(found: Parameters) -> bool:
    """Whether the Gateway has a Secret for it: users who give a key of their own have none."""
    return all(each.name != SESSION_KEY for each in found.env)


def environment(name: str, found: Parameters) -> list[Json]:
    """`name`: of the Gateway's objects."""
    variables = {str(each["name"]): each for each in _generated(name, found)}
    variables |= {each.name: _variable(each) for each in found.env}
    return [*variables.values()]


def _generated(name: str, found: Parameters) -> Iterator[Json]:
    yield _from_field("POD_NAME", "metadata.name")
    yield _from_field("POD_NAMESPACE", "metadata.namespace")
    # Empty where the cluster does not label its pods with zones.
    yield _from_field("GATEWRIGHT_ZONE", "metadata.labels['topology.kubernetes.io/zone']")
    yield {"name": "CONNECTION_MIN_TERMINATION_DEADLINE", "value": f"{found.minimum}s"}
    yield {"name": "TERMINATION_GRACE_PERIOD_SECONDS", "value": str(found.maximum)}
    if needs_session_key(found):
        reference = {"name": f"{name}{SESSION_KEY_SUFFIX}", "key": SECRET_ENTRY}
        yield {"name": SESSION_KEY, "valueFrom": {"secretKeyRef": reference}}
    if found.mesh is not None:
        yield from _of_mesh(found.mesh)


def _from_field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _of_mesh(mesh: MeshSpec) -> Iterator[Json]:
    yield _from_field("SERVICE_ACCOUNT", "spec.serviceAccountName")
    values = {
        "CA_ADDRESS": mesh.ca_address or MESH_AUTHORITY,
        "TRUST_DOMAIN": mesh.trust_domain or MESH_DOMAIN,
        "ADDITIONAL_TRUST_DOMAINS": ",".join(mesh.additional_trust_domains or ()),
        "CLUSTER_ID": mesh.cluster_id,
        "NETWORK": mesh.network,
    }
    yield from ({"name": name, "value": value} for name, value in values.items())


def _variable(given: EnvVar) -> Json:
    if given.value_from is not None:
        return {"name": given.name, "valueFrom": given.value_from}
    return {"name": given.name, "value": given.value or ""}
