"""What can be read of an object that is not valid, so that its status has a place: whose it is, where it would attach.

Called by decoding. A rest does nothing but carry that: it has no rules, no listeners, no settings. (Of a GatewayPolicy
it also says which security policies refuse, of a BackendTLSPolicy what gets nothing: what these close must not stand
open.) Models are made without validation here, because a valid one is what there is not; what is put in was validated
by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from gatewright.api.decode.unread import unread
from gatewright.api.decode.unread_tls import unread_tls
from gatewright.api.objects.kinds import KINDS
from gatewright.api.objects.listener_set import ParentGatewayReference
from gatewright.api.schema.metadata import KubeObject, ObjectMeta
from gatewright.api.schema.references import ParentReference
from gatewright.api.text.problem import Problem

Document = dict[str, Any]  # Any: JSON

ModelT = TypeVar("ModelT", bound=BaseModel)


def rest(kind: str, document: Document, problems: Iterable[Problem]) -> KubeObject | None:
    """The rest of an invalid object; None when too little of it can be read, or nothing is to be said."""
    made = _RESTS.get(kind)
    return made(document, problems) if made is not None else None


def _route(document: Document, _: Iterable[Problem]) -> KubeObject | None:
    spec = document.get("spec")
    written = spec.get("parentRefs") if isinstance(spec, dict) else None
    found = [_read(each, ParentReference) for each in written] if isinstance(written, list) else []
    parents = tuple(each for each in found if each is not None)
    return _made(document, parent_refs=parents, hostnames=(), rules=()) if parents else None


def _gateway(document: Document, _: Iterable[Problem]) -> KubeObject | None:
    name = _text(document, "gatewayClassName")
    return _made(document, gateway_class_name=name, listeners=()) if name else None


def _listener_set(document: Document, _: Iterable[Problem]) -> KubeObject | None:
    spec = document.get("spec")
    parent = _read(spec.get("parentRef"), ParentGatewayReference) if isinstance(spec, dict) else None
    return _made(document, parent_ref=parent, listeners=()) if parent is not None else None


def _gateway_class(document: Document, _: Iterable[Problem]) -> KubeObject | None:
    name = _text(document, "controllerName")
    return _made(document, controller_name=name) if name else None


_RESTS: Final[dict[str, Callable[[Document, Iterable[Problem]], KubeObject | None]]] = {
    "GatewayPolicy": unread,
    "BackendTLSPolicy": unread_tls,
    "GatewayClass": _gateway_class,
    "Gateway": _gateway,
    "ListenerSet": _listener_set,
    **dict.fromkeys(("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"), _route),
}


def _made(document: Document, **spec: Any) -> KubeObject | None:  # Any: fields of the kind's spec
    metadata = _read(document.get("metadata"), ObjectMeta)
    model = KINDS[document["kind"]].model
    inner = model.model_fields["spec"].annotation
    if metadata is None or inner is None:
        return None
    known = inner.model_fields
    parts = inner.model_construct(**{name: value for name, value in spec.items() if name in known})
    return model.model_construct(
        api_version=document["apiVersion"], kind=document["kind"], metadata=metadata, spec=parts
    )


def _text(document: Document, field: str) -> str:
    spec = document.get("spec")
    value = spec.get(field) if isinstance(spec, dict) else None
    return value if isinstance(value, str) else ""


def _read(value: Any, model: type[ModelT]) -> ModelT | None:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
