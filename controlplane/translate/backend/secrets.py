"""Secrets that policies read: which entries there are, and their wire form.

Policies see names of entries and labels alone, so that a new value translates nothing but itself. Values are in no
view, message of a condition or repr; they leave through `resource` only, to the Gateways whose policies read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.derive import Collection, Context, Index
from controlplane.translate import wire
from controlplane.translate.backend.backends import unresolved
from controlplane.translate.conditions import Condition
from controlplane.translate.keys import ObjectKey, secret_resource
from gatewright.api.objects.secret import Secret
from gatewright.api.schema.references import LocalSecretObjectRef
from gatewright.wire.v1 import secret_pb2

Label = tuple[str, str, str]
"""Namespace, label, value."""

NOT_FOUND = "SecretNotFound"


@dataclass(frozen=True, slots=True)
class SecretView:
    """A Secret as policies see it."""

    entries: frozenset[str]
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Secrets:
    """The collections that references to Secrets are resolved with."""

    views: Collection[ObjectKey, SecretView]
    labelled: Index[Label, ObjectKey, SecretView]


def view(secret: Secret) -> SecretView:
    return SecretView(
        frozenset(secret.data) | frozenset(secret.string_data), tuple(sorted(secret.metadata.labels.items()))
    )


def labels(key: ObjectKey, secret: SecretView) -> list[Label]:
    """The groups of a Secret in the index that selectors use."""
    return [(key.namespace, name, value) for name, value in secret.labels]


def named(
    context: Context, secrets: Secrets, namespace: str, reference: LocalSecretObjectRef, *entries: str
) -> tuple[ObjectKey, ...] | Condition:
    """The Secret of a reference, which must have these entries; or the `ResolvedRefs` condition."""
    if reference.group or reference.kind not in ("", "Secret"):
        return unresolved("InvalidKind", f"{reference.kind} {reference.name}: credentials are in Secrets")
    key = ObjectKey(namespace, reference.name)
    found = context.fetch(secrets.views, key)
    if found is None:
        return unresolved(NOT_FOUND, f"Secret {key} does not exist")
    for entry in entries:
        if entry not in found.entries:
            return unresolved("InvalidSecret", f"Secret {key} has no entry {entry}")
    return (key,)


def selected(
    context: Context, secrets: Secrets, namespace: str, wanted: Mapping[str, str]
) -> tuple[ObjectKey, ...] | Condition:
    """All Secrets of the namespace that carry the labels. No labels select nothing: what else is in the namespace was
    not meant to let clients in (the name in a service account's Secret, for example)."""
    if not wanted:
        return unresolved(NOT_FOUND, "a selector without labels selects no Secret")
    groups = [set(context.fetch_keys(secrets.labelled, (namespace, *pair))) for pair in sorted(wanted.items())]
    found = sorted(set.intersection(*groups))
    if not found:
        shown = ", ".join(f"{name}={value}" for name, value in sorted(wanted.items()))
        return unresolved(NOT_FOUND, f"no Secret with labels {shown} in namespace {namespace}")
    return tuple(found)


def resource(key: ObjectKey, values: Mapping[str, bytes], name: str = "") -> bytes:
    """The Secret resource of an object's values; `name` is the resource's, when it is not the object's."""
    message = secret_pb2.Secret(namespace=key.namespace, name=key.name, data=dict(values))
    return wire.resource(name or secret_resource(key), secret=message)
