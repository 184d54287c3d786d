"""References in the standalone file, in place of `backendRef`: a host, or the name of a top-level backend.

Used by the table in file_parts and by the file's own models. Whether the name exists is standalone_file's to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from gatewright.api.backend.auth import BackendAuth
from gatewright.api.backend.http import BackendHTTP
from gatewright.api.backend.simple import BackendSimple
from gatewright.api.backend.tcp import BackendTCP
from gatewright.api.backend.tls import BackendTLS
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.fields import SectionName
from gatewright.api.schema.model import Broken, Model, RuledModel, one_of
from gatewright.api.schema.targets import HostText


class NamesBackend(RuledModel):
    """A part that may name an item of the top-level `backends`."""

    static_only: ClassVar[bool] = False
    """Whether that must be one with a `host`, because nothing else can be asked there."""

    backend: SectionName | None = None
    """Name of a top-level backend."""


class FileReference(NamedTuple):
    """What is written in place of a `backendRef`: a host, or the name of a top-level backend."""

    host: str | None
    backend: str | None
    policies: BackendSimple | None


def _reference(part: Any) -> FileReference | None:  # Any: a Reference
    if part.host is None and part.backend is None:
        return None
    return FileReference(part.host, part.backend, part.policies)


class OptionalReference(NamesBackend):
    """The file's form of an optional `backendRef`."""

    host: HostText | None = None
    """HOST:PORT, [IPV6]:PORT or unix:/PATH."""
    policies: BackendSimple | None = None
    """Policies for connecting to it."""

    backend_ref: ClassVar[Any] = property(_reference)
    """The two fields as one value, under the CRD's name."""

    def reference_rules(self) -> Iterator[Broken]:
        """At most one of the two; inline policies belong to it."""
        if self.host is not None and self.backend is not None:
            yield Broken(("backend",), "only one of host and backend may be set")
        if self.backend_ref is None and self.policies is not None:
            yield Broken(("policies",), "is valid only with host or backend")


class Reference(OptionalReference):
    """The file's form of a required `backendRef`; a conditional policy has its references in its items."""

    in_file_alone: ClassVar[tuple[str, ...]] = ("host", "backend", "policies")
    """Attributes that the CRD's form lacks."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from (rule for rule in super().broken_rules() if rule.path != ("backendRef",))
        if getattr(self, "conditional", None) is None:
            yield from one_of(self, "host", "backend")
            yield from (rule for rule in self.reference_rules() if rule.path != ("backend",))
            return
        for name in sorted(self.model_fields_set & {*self.in_file_alone}):
            yield Broken((to_camel(name),), "must be absent when conditional is set")


class StaticReference(Reference):
    """The same where the CRD asks for a Service or a static GatewayBackend."""

    static_only = True


class ProxyPolicies(Model):
    """Policies for connecting to a tunnel's proxy: BackendSimple without a tunnel of its own."""

    tcp: BackendTCP | None = None
    """TCP settings of connections."""
    tls: BackendTLS | None = None
    """When set, even to {}, TLS is spoken with the proxy."""
    http: BackendHTTP | None = None
    """HTTP settings of requests."""
    auth: BackendAuth | None = None
    """Credentials toward the proxy."""


class ProxyReference(StaticReference):
    """The file's form of a tunnel's `backendRef`."""

    policies: ProxyPolicies | None = None  # type: ignore[assignment]  # fewer than others have
    """Policies for connecting to it."""
