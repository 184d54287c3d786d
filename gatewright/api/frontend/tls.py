"""`frontend.tls` (spec 2): how listeners speak TLS. The lists of names are shared with backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.schema.fields import PositiveDuration, TinyString
from gatewright.api.schema.model import Broken, RuledModel

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
    """The oldest version of TLS."""
    max_protocol_version: TLSVersion | None = None
    """The newest version of TLS."""
    cipher_suites: tuple[CipherSuite, ...] | None = None
    """Cipher suites, the preferred one first."""
    key_exchange_groups: KeyExchangeGroups | None = None
    """Key exchange groups, the preferred one first."""

    def broken_rules(self) -> Iterator[Broken]:
        low, high = self.min_protocol_version, self.max_protocol_version
        if low is not None and high is not None and low > high:
            yield Broken(("minProtocolVersion",), f"must not be newer than maxProtocolVersion ({high})")
