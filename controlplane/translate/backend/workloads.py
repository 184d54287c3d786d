"""Which Pods are workloads of a mesh that take its tunnels, as Istio marks them. Pure.

The annotation is set by the mesh when its proxy of the node takes tunnels for the Pod, the label by who runs a Pod that
takes them itself. The label `istio.io/dataplane-mode` says what somebody wants, not what is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from controlplane.facts import Fact
from controlplane.translate.keys import ObjectKey
from gatewright.api.objects.gateway_parameters import GatewayParameters
from gatewright.api.objects.pod import Pod

REDIRECTION: Final = "ambient.istio.io/redirection"
ENABLED: Final = "enabled"
TUNNEL_LABEL: Final = "networking.istio.io/tunnel"
HBONE: Final = "http"


class WorkloadView(NamedTuple):
    """A Pod that takes tunnels."""

    address: str
    workload: str
    """`namespace/service account`."""
    is_ready: bool


def view(key: ObjectKey, pod: Pod) -> WorkloadView | None:
    """None for a Pod that takes no tunnels, or is nowhere."""
    if not pod.state.pod_ip or not takes_tunnels(pod):
        return None
    account = pod.spec.service_account_name or "default"
    return WorkloadView(pod.state.pod_ip, f"{key.namespace}/{account}", pod.is_ready)


def takes_tunnels(pod: Pod) -> bool:
    marks = pod.metadata
    if marks.annotations.get(REDIRECTION) == ENABLED:
        return True
    return HBONE in (each.strip() for each in marks.labels.get(TUNNEL_LABEL, "").split(","))


def workload_of(found: Iterable[WorkloadView]) -> str:
    """Of the Pods at one address, one of which may have ended and be there still: the one that is ready."""
    return next((each.workload for each in sorted(found, key=lambda each: (not each.is_ready, each.workload))), "")


def asks_for_pods(fact: Fact) -> bool:
    """Whether it takes knowing Pods to do what an object says: parameters that switch a mesh on."""
    mesh = fact.acts.spec.istio if isinstance(fact.acts, GatewayParameters) else None
    return mesh is not None and mesh.enabled is True
