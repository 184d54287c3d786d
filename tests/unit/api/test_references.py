"""Which references are whole: what the core group asks for, and what other groups do not."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from gatewright.api.schema import references
from gatewright.api.schema.model import BROKEN_RULES, RuledModel

OTHER = "example.com"


@pytest.mark.parametrize(
    ("model", "fields", "message"),
    [
        *(
            row
            for model in (references.BackendObjectReference, references.LocalBackendObjectReference)
            for row in (
                (model, {}, "is required for a Service"),
                (model, {"port": 80}, ""),
                (model, {"kind": "Pod"}, ""),
                (model, {"group": OTHER}, ""),  # a Service of another group is not Kubernetes' own
                (model, {"group": OTHER, "kind": "Pool"}, ""),
            )
        ),
        (references.LocalSecretObjectRef, {}, ""),
        (references.LocalSecretObjectRef, {"kind": "Secret"}, ""),
        (references.LocalSecretObjectRef, {"kind": "Vault"}, "must be Secret in the core group"),
        (references.LocalSecretObjectRef, {"group": OTHER}, "is required with group"),
        (references.LocalSecretObjectRef, {"group": OTHER, "kind": "Vault"}, ""),
        (references.LocalServiceReference, {}, ""),
        (references.LocalServiceReference, {"group": OTHER}, "must be a Service"),
        (references.LocalServiceReference, {"kind": "Pod"}, "must be a Service"),
        (references.ConfigMapReference, {}, ""),
        (references.ConfigMapReference, {"group": OTHER}, "must be a ConfigMap"),
        (references.ConfigMapReference, {"kind": "Secret"}, "must be a ConfigMap"),
        (references.PolicyBackendReference, {"port": 80}, ""),
        (references.PolicyBackendReference, {"group": "gatewright.dev", "kind": "GatewayBackend"}, ""),
        (references.PolicyBackendReference, {"group": OTHER, "port": 80}, "must be Service, or GatewayBackend"),
    ],
)
def test_reference(model: type[RuledModel], fields: dict[str, Any], message: str) -> None:
    found = broken(model, fields)
    assert len(found) == bool(message) and all(each.startswith(message) for each in found), found


def broken(model: type[RuledModel], fields: dict[str, Any]) -> list[str]:
    """The rules that a reference breaks."""
    try:
        model.model_validate({"name": "a", **fields})
    except pydantic.ValidationError as refused:
        return [rule.message for error in refused.errors() for rule in error["ctx"][BROKEN_RULES]]
    return []
