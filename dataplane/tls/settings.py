"""What TLS of one side is made of, as values: how it is spoken, by whom it is authenticated, whom it asks for a
certificate. Pure; `contexts` makes OpenSSL's contexts of them.

Names of suites and groups are those of the API; `SUITES` and `GROUPS` say what OpenSSL calls them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

TLS_1_2, TLS_1_3 = 0x0303, 0x0304
"""RFC 8446 4.1.2."""

SUITES_1_3: Final = {
    "TLS13_AES_128_GCM_SHA256": "TLS_AES_128_GCM_SHA256",
    "TLS13_AES_256_GCM_SHA384": "TLS_AES_256_GCM_SHA384",
    "TLS13_CHACHA20_POLY1305_SHA256": "TLS_CHACHA20_POLY1305_SHA256",
}
SUITES_1_2: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""The nine suites of the API, by the version that has them, in the order in which they are preferred where none is
configured. AES of 128 bits comes first: X25519 and P-256 give no more security than that, processors have instructions
for its SHA-256 and few for SHA-384, and a handshake computes some thirty of these hashes (a tenth of its CPU time)."""

GROUPS: Final = {"X25519_MLKEM768": "X25519MLKEM768", "X25519": "X25519", "P-256": "P-256", "P-384": "P-384"}
"""The four groups, in the order in which they are preferred where none is configured."""

HANDSHAKE_TIMEOUT: Final = 15.0
"""Seconds (the default of `frontend.tls.handshakeTimeout`)."""

H2, HTTP_1_1 = b"h2", b"http/1.1"
"""Names of protocols in ALPN (RFC 9113 3.1, RFC 7301 6)."""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How TLS is spoken. Suites and groups are names of the API, in order of preference."""

    handshake_timeout: float = HANDSHAKE_TIMEOUT
    alpn: tuple[bytes, ...] = (H2, HTTP_1_1)
    """Empty: no protocol is negotiated."""
    minimum: int = TLS_1_2
    maximum: int = TLS_1_3
    suites: tuple[str, ...] = (*SUITES_1_3, *SUITES_1_2)
    groups: tuple[str, ...] = tuple(GROUPS)
    refused: str = ""
    """Why no handshake is done."""

    def versions(self) -> tuple[int, int]:
        """Least and greatest; a list of suites of one version alone bounds them. None is left: least > greatest."""
        least, most = self.minimum, self.maximum
        if not any(suite in SUITES_1_3 for suite in self.suites):
            most = min(most, TLS_1_2)
        if not any(suite in SUITES_1_2 for suite in self.suites):
            least = max(least, TLS_1_3)
        return least, most


DEFAULT: Final = TlsSettings()


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate with its chain and its key, each as PEM."""

    chain: bytes
    key: bytes
    staple: bytes = b""
    """The content of `staples.STAPLE`; b"": nothing is presented beside it."""
    authorities: bytes = b""
    """Who signed it, where the chain does not say so, as PEM."""

    def __repr__(self) -> str:
        return "Identity(...)"  # the key is not for showing


class Asks(Enum):
    """What is asked of a peer's certificate."""

    NOTHING = "nothing"
    """It is not asked for, and not looked at."""
    VALID = "valid"
    """Without a valid one the handshake fails."""
    PERHAPS = "perhaps"
    """Asked for; without a valid one the peer has no identity (`AllowInsecureFallback`)."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Which certificates of peers are valid: those of these authorities, PEM, unless a revocation list has them."""

    asks: Asks = Asks.NOTHING
    authorities: tuple[str, ...] | None = ()
    """None: those of the system."""
    revocations: tuple[str, ...] = ()
    """Lists as PEM. Where there are some, every certificate of a chain needs one."""
    trust_domains: tuple[str, ...] = ()
    """Of which the SPIFFE id of a peer's certificate must be; (): it need not have one."""


NOT_ASKED: Final = Verification()


class BadSettings(ValueError):
    """No context can be made of them; the text says which part is wrong, and never has a part of a key."""
