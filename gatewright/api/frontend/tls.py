"""`frontend.tls`: how listeners speak TLS. The lists of names are shared with backends."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.schema.fields import PositiveDuration, TinyString
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.rules import where_set

TLSVersion = Literal["1.2", "1.3"]
CipherSuite = Literal[
    "TLS13_AES_256_GCM_SHA384",
    "TLS13_AES_128_GCM_SHA256",
    "TLS13_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
]
KeyExchangeGroup = Literal["X25519", "P-256", "P-384", "X25519_MLKEM768"]
AlpnProtocols = Annotated[tuple[TinyString, ...], Field(min_length=1, max_length=16)]
KeyExchangeGroups = Annotated[tuple[KeyExchangeGroup, ...], Field(min_length=1, max_length=16)]


class FrontendTLS(RuledModel):
    """TLS settings of listeners."""

    handshake_timeout: PositiveDuration = "15s"
    """How long a handshake may take."""
    alpn_protocols: AlpnProtocols = ("h2", "http/1.1")
    """Protocols offered by ALPN, the preferred one first."""
    min_protocol_version: TLSVersion | None = None
    """The oldest version of TLS; 1.3 where all cipherSuites are of TLS 1.3."""
    max_protocol_version: TLSVersion | None = None
    """The newest version of TLS; 1.2 where all cipherSuites are of TLS 1.2."""
    cipher_suites: tuple[CipherSuite, ...] | None = None
    """Cipher suites, the preferred one first."""
    key_exchange_groups: KeyExchangeGroups | None = None
    """Key exchange groups, the preferred one first."""

    cel_rules = (
        where_set(
            "minProtocolVersion",
            "!has(self.maxProtocolVersion) || self.minProtocolVersion <= self.maxProtocolVersion",
            "must not be newer than maxProtocolVersion",
        ),
        where_set(
            "minProtocolVersion",
            "self.minProtocolVersion != '1.3' || !has(self.cipherSuites) || "
            "self.cipherSuites.size() == 0 || self.cipherSuites.exists(s, s.startsWith('TLS13_'))",
            "must be 1.2 where all cipherSuites are of TLS 1.2",
        ),
        where_set(
            "maxProtocolVersion",
            "self.maxProtocolVersion != '1.2' || !has(self.cipherSuites) || "
            "self.cipherSuites.size() == 0 || self.cipherSuites.exists(s, !s.startsWith('TLS13_'))",
            "must be 1.3 where all cipherSuites are of TLS 1.3",
        ),
    )

    @property
    def oldest(self) -> TLSVersion | None:
        """The oldest version that can be spoken: suites of TLS 1.3 alone exclude 1.2."""
        return "1.3" if self._only_suites_of("1.3") else self.min_protocol_version

    @property
    def newest(self) -> TLSVersion | None:
        """The newest version that can be spoken: suites of TLS 1.2 alone exclude 1.3."""
        return "1.2" if self._only_suites_of("1.2") else self.max_protocol_version

    def _only_suites_of(self, version: TLSVersion) -> bool:
        suites = self.cipher_suites or ()
        return bool(suites) and all(each.startswith("TLS13_") == (version == "1.3") for each in suites)
