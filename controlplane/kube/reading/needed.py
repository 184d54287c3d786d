"""What we need of objects of Kubernetes' own kinds, decoded from JSON: everything else is skipped where it stands, and
never becomes an object of Python. Pure.

A cluster has far more of these than of our kinds, and most of each says nothing to a gateway: who manages which field,
which pod an address belongs to, what else is in a ConfigMap. The models judge what is left as they judge all objects.
What they refuse has no model here, and the caller reads it whole to say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct, field
from pydantic import ValidationError

from controlplane.translate.backend.found_services import PATH_ANNOTATION
from controlplane.translate.backend.workloads import REDIRECTION
from controlplane.translate.certificates import ENTRY, REVOCATIONS
from controlplane.translate.status.api_versions import ANNOTATION as BUNDLE_VERSION
from gatewright.api.objects.endpoint_slice import EndpointConditions, EndpointHints, ForZone
from gatewright.api.objects.kinds import KINDS
from gatewright.api.objects.pod import READY
from gatewright.api.schema.metadata import KubeObject

Json = dict[str, Any]  # Any: JSON
MOST_SHARED: Final = 1024
"""Equal parts of endpoints that are one object, of each form."""


class Annotations(Struct, gc=False):
    """Those that something reads."""

    path: str | None = field(name=PATH_ANNOTATION, default=None)
    release: str | None = field(name=BUNDLE_VERSION, default=None)
    redirection: str | None = field(name=REDIRECTION, default=None)


class Metadata(Struct, gc=False):
    """As `ObjectMeta` has it."""

    name: str
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: Annotations | None = None


class Named(Struct, gc=False):
    """An object of which metadata are all that counts."""

    metadata: Metadata


class Definition(Struct, gc=False):
    """A CustomResourceDefinition: its group, and in its metadata its release."""

    class Spec(Struct, gc=False):
        group: str = ""

    metadata: Metadata
    spec: Spec


class Service(Struct, gc=False):
    """A Service: which ports it has."""

    class Port(Struct, gc=False):
        port: int
        name: str | None = None
        protocol: str | None = None
        targetPort: int | str | None = None
        appProtocol: str | None = None

    class Spec(Struct, gc=False):
        type: str | None = None
        ports: list[Service.Port] | None = None

    metadata: Metadata
    spec: Spec | None = None


class Slice(Struct, gc=False):
    """An EndpointSlice: who may be sent to."""

    class Zone(Struct, gc=False):
        name: str

    class Hints(Struct, gc=False):
        forZones: list[Slice.Zone] | None = None

    class Conditions(Struct, gc=False):
        ready: bool | None = None
        serving: bool | None = None
        terminating: bool | None = None

    class Endpoint(Struct, gc=False):
        addresses: list[str]
        conditions: Slice.Conditions | None = None
        hints: Slice.Hints | None = None

    class Port(Struct, gc=False):
        name: str | None = None
        protocol: str | None = None
        port: int | None = None

    metadata: Metadata
    addressType: str
    endpoints: list[Endpoint] | None = None
    ports: list[Port] | None = None


class Secret(Struct, gc=False):
    """A Secret: any of its values may be named somewhere."""

    metadata: Metadata
    type: str | None = None
    data: dict[str, str] | None = None


class PodMetadata(Metadata, gc=False):
    """The same, and whether it is about to go."""

    deletionTimestamp: str | None = None


class Pod(Struct, gc=False):
    """A Pod: where it is, whether it is ready, and as whom it runs."""

    class Condition(Struct, gc=False):
        type: str
        status: str

    class Status(Struct, gc=False):
        podIP: str | None = None
        conditions: list[Pod.Condition] | None = None

    class Spec(Struct, gc=False):
        serviceAccountName: str | None = None

    metadata: PodMetadata
    spec: Spec | None = None
    status: Status | None = None


class Authorities(Struct, gc=False):
    """A ConfigMap: certificates of authorities."""

    class Data(Struct, gc=False):
        certificates: str | None = field(name=ENTRY, default=None)
        revoked: str | None = field(name=REVOCATIONS, default=None)

    metadata: Metadata
    data: Data | None = None


T = TypeVar("T", bound=Struct)


class Needed(Generic[T]):
    """What of one kind is needed, and the model of it."""

    def __init__(self, kind: str, form: type[T], content: Callable[[T], Json]) -> None:
        info = KINDS[kind]
        self._model = info.model
        self._envelope = {"apiVersion": info.api_versions[0], "kind": kind}
        self._decoder = msgspec.json.Decoder(form)
        self._content = content

    def read(self, raw: bytes | msgspec.Raw) -> KubeObject | None:
        """The model of an object; None where something is wrong with it."""
        try:
            found = self._decoder.decode(raw)
            content = {name: part for name, part in self._content(found).items() if part is not None}
            return self._model.model_validate({**self._envelope, **content})
        except (msgspec.DecodeError, ValidationError, RecursionError):
            return None


def _named(found: Named) -> Json:
    return {"metadata": _metadata(found.metadata)}


def _definition(found: Definition) -> Json:
    return {"metadata": _metadata(found.metadata), "spec": {"group": found.spec.group}}


def _service(found: Service) -> Json:
    spec = found.spec or Service.Spec()
    ports = [_present(msgspec.structs.asdict(each)) for each in spec.ports or ()]
    return {"metadata": _metadata(found.metadata), "spec": _present({"type": spec.type, "ports": ports})}


def _slice(found: Slice) -> Json:
    return {
        "metadata": _metadata(found.metadata),
        "addressType": found.addressType,
        "endpoints": [_endpoint(each) for each in found.endpoints or ()],
        "ports": [_present(msgspec.structs.asdict(each)) for each in found.ports or ()],
    }


def _endpoint(found: Slice.Endpoint) -> Json:
    """Conditions and hints of many endpoints are alike: then they are one object."""
    values: Json = {"addresses": found.addresses}
    if found.conditions is not None:
        state = found.conditions
        values["conditions"] = _conditions(state.ready, state.serving, state.terminating)
    if found.hints is not None and found.hints.forZones:
        values["hints"] = _hints(tuple(each.name for each in found.hints.forZones))
    return values


@lru_cache(MOST_SHARED)
def _conditions(ready: bool | None, serving: bool | None, terminating: bool | None) -> EndpointConditions:
    return EndpointConditions(ready=ready, serving=serving, terminating=terminating)


@lru_cache(MOST_SHARED)
def _hints(zones: tuple[str, ...]) -> EndpointHints:
    return EndpointHints.model_validate({"forZones": tuple(ForZone(name=each) for each in zones)})


def _pod(found: Pod) -> Json:
    status, gone = found.status or Pod.Status(), found.metadata.deletionTimestamp
    spec = found.spec or Pod.Spec()
    ready = [msgspec.structs.asdict(each) for each in status.conditions or () if each.type == READY]
    return {
        "metadata": {**_metadata(found.metadata), **_present({"deletionTimestamp": gone})},
        "spec": _present({"serviceAccountName": spec.serviceAccountName}),
        "status": _present({"podIP": status.podIP, "conditions": ready}),
    }


def _secret(found: Secret) -> Json:
    return {"metadata": _metadata(found.metadata), "type": found.type, "data": found.data}


def _config_map(found: Authorities) -> Json:
    data = found.data or Authorities.Data()
    return {
        "metadata": _metadata(found.metadata),
        "data": _present({ENTRY: data.certificates, REVOCATIONS: data.revoked}),
    }


def _metadata(found: Metadata) -> Json:
    notes = found.annotations or Annotations()
    annotations = _present({PATH_ANNOTATION: notes.path, BUNDLE_VERSION: notes.release, REDIRECTION: notes.redirection})
    return _present(
        {
            "name": found.name,
            "namespace": found.namespace,
            "labels": found.labels,
            "annotations": annotations or None,
        }
    )


def _present(values: Json) -> Json:
    """Null means absent, as in Kubernetes."""
    return {name: part for name, part in values.items() if part is not None}


NEEDED: Final[dict[str, Needed[Any]]] = {  # Any: a form for each kind
    "ConfigMap": Needed("ConfigMap", Authorities, _config_map),
    "CustomResourceDefinition": Needed("CustomResourceDefinition", Definition, _definition),
    "EndpointSlice": Needed("EndpointSlice", Slice, _slice),
    "Namespace": Needed("Namespace", Named, _named),
    "Pod": Needed("Pod", Pod, _pod),
    "Secret": Needed("Secret", Secret, _secret),
    "Service": Needed("Service", Service, _service),
}
"""Kinds of which not all is read. Gatewright writes no status of them, so that their facts say nothing of one."""
