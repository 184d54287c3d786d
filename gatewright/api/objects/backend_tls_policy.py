"""BackendTLSPolicy, Gateway API 1.7: how a Service's server is verified."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field, PrivateAttr

from gatewright.api.objects.gateway import AnnotationValue
from gatewright.api.schema.fields import Hostname, PreciseHostname, SectionName
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Broken, RuledModel
from gatewright.api.schema.references import LocalObjectReference

_URI: Final = r"^(([^:/?#]+):)(//([^/?#]*))([^?#]*)(\?([^#]*))?(#(.*))?"
_WELL_KNOWN: Final = (
    r"^(System|([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/"
    r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]))$"
)


class TLSTargetReference(LocalObjectReference):
    """Gateway API LocalPolicyTargetReferenceWithSectionName."""

    section_name: SectionName | None = None


class SubjectAltName(RuledModel):
    """Gateway API SubjectAltName: `type` says which field is set."""

    type: Literal["Hostname", "URI"]
    hostname: Hostname | None = None
    uri: Annotated[str, Field(min_length=1, max_length=253, pattern=_URI)] | None = None

    def broken_rules(self) -> Iterator[Broken]:
        for kind, name, value in (("Hostname", "hostname", self.hostname), ("URI", "uri", self.uri)):
            if self.type == kind and value is None:
                yield Broken((name,), f"is required when type is {kind}")
            if self.type != kind and value is not None:
                yield Broken((name,), f"must be absent when type is {self.type}")


class BackendTLSPolicyValidation(RuledModel):
    """Gateway API BackendTLSPolicyValidation."""

    ca_certificate_refs: Annotated[tuple[LocalObjectReference, ...], Field(min_length=1, max_length=8)] | None = None
    well_known_ca_certificates: Annotated[
        str | None, Field(min_length=1, max_length=253, pattern=_WELL_KNOWN, alias="wellKnownCACertificates")
    ] = None
    hostname: PreciseHostname
    subject_alt_names: Annotated[tuple[SubjectAltName, ...], Field(max_length=5)] = ()

    def broken_rules(self) -> Iterator[Broken]:
        if (self.ca_certificate_refs is None) == (self.well_known_ca_certificates is None):
            yield Broken((), "exactly one of caCertificateRefs, wellKnownCACertificates must be set")


class BackendTLSPolicySpec(RuledModel):
    """Gateway API BackendTLSPolicySpec."""

    target_refs: Annotated[tuple[TLSTargetReference, ...], Field(min_length=1, max_length=16)]
    validation: BackendTLSPolicyValidation
    options: Annotated[dict[str, AnnotationValue], Field(max_length=16)] = Field(default_factory=dict)

    def broken_rules(self) -> Iterator[Broken]:
        """Two references to one target must both name a section, and not the same."""
        seen: dict[tuple[str, str, str], list[str | None]] = {}
        for index, target in enumerate(self.target_refs):
            others = seen.setdefault((target.group, target.kind, target.name), [])
            if target.section_name in others:
                yield Broken(("targetRefs", index), "sectionName must differ from other references to the same target")
            elif others and None in (target.section_name, *others):
                yield Broken(("targetRefs", index), "sectionName must be set in every reference to the same target")
            others.append(target.section_name)


class BackendTLSPolicy(KubeObject):
    """How a Service's server is verified."""

    spec: BackendTLSPolicySpec
    _unread: str = PrivateAttr(default="")

    @property
    def unread(self) -> str:
        """Not "" for what is left of a policy that is not valid (`decode.unread_tls`): what is wrong with it. Nothing
        but its targets means anything then."""
        return self._unread
