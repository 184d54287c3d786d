"""`backend.tls`: TLS toward a backend."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.frontend.tls import AlpnProtocols, KeyExchangeGroups
from gatewright.api.schema.fields import ShortString, Sni
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.references import ConfigMapReference, LocalSecretObjectRef
from gatewright.api.schema.rules import not_both


class BackendTLS(RuledModel):
    """TLS to a backend. Without settings of its own the system's trusted authorities validate the server."""

    mtls_certificate_ref: Annotated[tuple[LocalSecretObjectRef, ...], Field(max_length=1)] | None = None
    """A Secret with the client's certificate and key (`tls.crt`, `tls.key`) and optionally `ca.cert`, which verifies
    the server unless caCertificateRefs does."""
    ca_certificate_refs: Annotated[tuple[ConfigMapReference, ...], Field(max_length=1)] | None = None
    """A ConfigMap with the authorities (`ca.crt`) that the server is verified with; default is the system's."""
    insecure_skip_verify: Literal["All", "Hostname"] | None = None
    """`All` verifies nothing; `Hostname` verifies the certificate but not that it is the server's name."""
    sni: Sni | None = None
    """The name sent in the handshake; default is the destination's host name."""
    verify_subject_alt_names: Annotated[tuple[ShortString, ...], Field(min_length=1, max_length=16)] | None = None
    """Names of which the certificate must carry one; default is the destination's host name."""
    alpn_protocols: AlpnProtocols = ("h2", "http/1.1")
    """Protocols offered by ALPN, the preferred one first."""
    key_exchange_groups: KeyExchangeGroups | None = None
    """Key exchange groups, the preferred one first."""

    cel_rules = (not_both("verifySubjectAltNames", "insecureSkipVerify"),)
