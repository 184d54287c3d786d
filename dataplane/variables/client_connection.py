"""What expressions read of a connection and of the certificate of its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.tls.names import names_of
from dataplane.variables.facts import ExchangeFacts
from dataplane.variables.heads import header, header_map
from gatewright.cel.values import HeaderMap

if TYPE_CHECKING:
    from dataplane.tls.names import Names


class ConnectionVariables(ExchangeFacts):
    """`source.*` and `destination.*`."""

    __slots__ = ()

    @property
    def source_address(self) -> str:
        return self.peer

    @property
    def source_port(self) -> int:
        return self.client.port

    @property
    def source_raw_address(self) -> str:
        return self.client.raw_address or self.client.address

    @property
    def source_raw_port(self) -> int:
        return self.client.raw_port if self.client.raw_address else self.client.port

    @property
    def _client_names(self) -> Names | None:
        """Of a certificate that was verified: one that was not proves nothing, so nothing of it is to be read. Of a
        connection within a tunnel of a mesh its own, or else that of the workload that opened the tunnel."""
        client = self.client
        for tls in (client.tls, client.workload):
            if tls is not None and tls.is_proven:
                return names_of(tls.certificate)
        return None

    @property
    def source_identity(self) -> dict[str, Any] | None:
        return None if self._workload(0) is None else self.whole("source.identity")

    @property
    def source_identity_trust_domain(self) -> str | None:
        return self._workload(0)

    @property
    def source_identity_namespace(self) -> str | None:
        return self._workload(1)

    @property
    def source_identity_service_account(self) -> str | None:
        return self._workload(2)

    def _workload(self, part: int) -> str | None:
        names = self._client_names
        workload = None if names is None else names.workload
        return None if workload is None else workload[part]

    @property
    def source_spiffe_id(self) -> str | None:
        names = self._client_names
        return None if names is None else names.spiffe_id

    @property
    def source_subject_alt_names(self) -> list[str] | None:
        names = self._client_names
        return None if names is None else list(names.alternatives)

    @property
    def source_issuer(self) -> str | None:
        return self._client_names.issuer if self._client_names is not None else None

    @property
    def source_subject(self) -> str | None:
        return self._client_names.subject if self._client_names is not None else None

    @property
    def source_subject_cn(self) -> str | None:
        return (self._client_names.common_name or None) if self._client_names is not None else None

    @property
    def source_certificate(self) -> str | None:
        return self._client_names.pem if self._client_names is not None else None

    @property
    def source_connect_headers(self) -> HeaderMap | None:
        made_by = self.client.connect
        return None if made_by is None else header_map(made_by)

    def source_connect_header(self, name: str) -> str | None:
        made_by = self.client.connect
        return None if made_by is None else header(made_by, name)

    @property
    def destination_hostname(self) -> str | None:
        """The server name of TLS."""
        tls = self.client.tls
        return (tls.sni.decode() or None) if tls is not None else None

    @property
    def destination_address(self) -> str:
        return str(self.client.local.rpartition(b":")[0].strip(b"[]").decode())

    @property
    def destination_port(self) -> int:
        port = self.client.local.rpartition(b":")[2]
        return int(port) if port.isdigit() else 0
