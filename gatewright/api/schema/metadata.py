"""Object metadata, object keys, and the envelope that every kind shares.

Used by all kinds. Other metadata fields than these are tolerated: they are Kubernetes' business.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

from pydantic import ConfigDict, Field, PrivateAttr

from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.fields import SUBDOMAIN_PATTERN, Integer, NamespaceName
from gatewright.api.schema.model import Model, RuledModel


class ObjectKey(NamedTuple):
    """What names an object; `namespace` is "" for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class ObjectMeta(Model):
    """Kubernetes ObjectMeta, as far as we read it. Timestamps stay text (RFC 3339 in UTC sorts as text)."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, hide_input_in_errors=True)

    name: Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
    namespace: NamespaceName | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    generation: Integer = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    uid: str = ""
    resource_version: str = ""


class KubeObject(RuledModel):
    """The envelope: apiVersion, kind, metadata; subclasses add `spec` or their own fields. `status` is no part of
    it: a source that has statuses gives them beside the object."""

    secret: ClassVar[bool] = False
    """True: values of this kind appear in no message."""
    tolerant: ClassVar[bool] = False
    """True: Kubernetes owns the kind and adds fields to it; an unknown one is a warning, not an error."""

    reads_status: ClassVar[bool] = False
    """True: what others wrote into `status` is a part of it; others' is no setting, and not read."""

    api_version: str
    """Group and version of the API, for example gatewright.dev/v1alpha1."""
    kind: str
    """Kind of the object."""
    metadata: ObjectMeta
    """Metadata of the object."""

    _newer: tuple[str, ...] = PrivateAttr(default=())

    @property
    def newer(self) -> tuple[str, ...]:
        """What is said of parts that this version does not know (`decode.newer`)."""
        return self._newer

    @property
    def key(self) -> ObjectKey:
        """Kind, namespace ("" when cluster-scoped) and name."""
        return ObjectKey(self.kind, self.metadata.namespace or "", self.metadata.name)
