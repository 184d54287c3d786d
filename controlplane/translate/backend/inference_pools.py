"""InferencePools: what routes and proxies see of one, the Pods that are its endpoints, its wire form, and its status
(Gateway API Inference Extension).

What is wrong with the reference to the picker refuses all requests to the pool, whatever `failureMode` says: that is
for a picker that gives no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.derive import Collection, Context
from controlplane.translate import wire
from controlplane.translate.backend.endpoints import Address
from controlplane.translate.backend.service_views import PortView, ServiceView
from controlplane.translate.conditions import Condition, StatusBody, rendered
from controlplane.translate.fleet import rejected
from controlplane.translate.keys import POOL, BackendKey, ObjectKey
from gatewright.api.objects.inference_pool import InferencePool
from gatewright.api.objects.pod import Pod
from gatewright.api.schema.names import CONTROLLER_NAME, GATEWAY_API_GROUP, INFERENCE_POOL
from gatewright.wire.v1 import backend_pb2, policy_pb2, traffic_pb2

INVALID_REF: Final = "InvalidExtensionRef"
"""The reason for a reference to a picker that cannot be asked."""
MOST_PARENTS: Final = 32
_ACCEPTED: Final = Condition("Accepted", True, "Accepted", "")
_RESOLVED: Final = Condition("ResolvedRefs", True, "ResolvedRefs", "")
_SAYS_HOW: Final = frozenset({"https", "kubernetes.io/wss", "http", "kubernetes.io/h2c", "kubernetes.io/ws", "grpc"})
"""Application protocols that say whether TLS is spoken. Pickers make a certificate for themselves by default, so others
mean TLS with whatever certificate."""

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PodView:
    """A Pod that may be sent to."""

    labels: Labels
    address: str


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool as routes and proxies see it."""

    labels: Labels
    """That its Pods have."""
    ports: tuple[int, ...]
    app_protocol: str
    fails_open: bool
    picker: BackendKey | None = None
    """None: it cannot be asked (`unresolved`)."""
    any_tls: bool = False
    """As `EndpointPicker.any_tls` of the wire."""
    unresolved: Condition | None = None


def pod_view(pod: Pod) -> PodView | None:
    """None for one that may not be sent to."""
    if not pod.is_ready or not pod.state.pod_ip:
        return None
    return PodView(tuple(sorted(pod.metadata.labels.items())), pod.state.pod_ip)


def pool_view(
    context: Context, services: Collection[ObjectKey, ServiceView], key: ObjectKey, pool: InferencePool
) -> PoolView:
    spec, reference = pool.spec, pool.spec.endpoint_picker_ref
    found = _picker(context, services, key, pool)
    picker, why = (found, None) if isinstance(found, PortView) else (None, found)
    return PoolView(
        tuple(sorted(spec.selector.match_labels.items())),
        tuple(port.number for port in spec.target_ports),
        spec.app_protocol,
        reference.failure_mode == "FailOpen",
        None if picker is None else BackendKey("service", key.namespace, reference.name, picker.port),
        picker is not None and picker.app_protocol.lower() not in _SAYS_HOW,
        None if why is None else Condition("ResolvedRefs", False, INVALID_REF, why),
    )


def _picker(
    context: Context, services: Collection[ObjectKey, ServiceView], key: ObjectKey, pool: InferencePool
) -> PortView | str:
    """The port of the Service, or why there is none."""
    reference = pool.spec.endpoint_picker_ref
    name = ObjectKey(key.namespace, reference.name)
    if (reference.group, reference.kind) != ("", "Service"):
        shown = f"{reference.group}/{reference.kind}" if reference.group else reference.kind
        return f"endpointPickerRef: {shown} {reference.name}: pickers are Services"
    service = context.fetch(services, name)
    if service is None:
        return f"endpointPickerRef: Service {name} does not exist"
    if service.external:
        return f"endpointPickerRef: Service {name} is of type ExternalName, which has no endpoints"
    number = None if reference.port is None else reference.port.number
    port = service.port(number)
    return port if port is not None else f"endpointPickerRef: Service {name} has no TCP port {number}"


def group(namespace: str, labels: Labels) -> tuple[str, str, str]:
    """Of the Pods of a namespace the group in which those with these labels are looked for."""
    return (namespace, *labels[0])


def addresses(view: PoolView, pods: Iterable[PodView]) -> tuple[Address, ...]:
    """Each port of each Pod that has all labels is an endpoint, each once, in order."""
    wanted = set(view.labels)
    hosts = sorted({pod.address for pod in pods if wanted <= set(pod.labels)})
    return tuple(Address(host, port) for host in hosts for port in view.ports)


def resource(key: BackendKey, view: PoolView, *, empty: bool) -> bytes:
    """The Backend of a pool. `empty`: proxies need not wait for endpoints."""
    pool = backend_pb2.InferencePoolBackend(
        namespace=key.namespace, name=key.name, app_protocol=view.app_protocol, empty=empty
    )
    if view.picker is None:
        refused = view.unresolved.message if view.unresolved is not None else "it has no picker"
        return wire.resource(key.resource, backend=backend_pb2.Backend(inference_pool=pool, refused=refused))
    picker = traffic_pb2.EndpointPicker(backend=view.picker.resource, fail_open=view.fails_open, any_tls=view.any_tls)
    source = policy_pb2.ObjectRef(kind=INFERENCE_POOL, namespace=key.namespace, name=key.name)
    policy = policy_pb2.Policy(source=source, endpoint_picker=picker)
    return wire.resource(key.resource, backend=backend_pb2.Backend(inference_pool=pool, policies=[policy]))


def status(view: PoolView, refusals: dict[ObjectKey, list[str]], generation: int) -> StatusBody | None:
    """An entry for each Gateway that sends to the pool, with what its proxies refuse of it; None: none does."""
    if not refusals:
        return None
    return {"parents": [_entry(view, *each, generation) for each in sorted(refusals.items())[:MOST_PARENTS]]}


def _entry(view: PoolView, gateway: ObjectKey, texts: Sequence[str], generation: int) -> StatusBody:
    conditions = [_ACCEPTED, view.unresolved or _RESOLVED, rejected([*texts]) if texts else None]
    return {
        "parentRef": {
            "group": GATEWAY_API_GROUP,
            "kind": "Gateway",
            "namespace": gateway.namespace,
            "name": gateway.name,
        },
        "controllerName": CONTROLLER_NAME,
        "conditions": rendered(conditions, generation),
    }


def backend_key(key: ObjectKey) -> BackendKey:
    return BackendKey(POOL, *key)
