"""Who may have which Gateway's resources: by the token or the certificate that a proxy brings. Pure but for the files.

The laws:

- Where tokens are configured, a proxy needs one that is known; where an authority is configured, TLS has checked the
  certificate before anything is asked here. With both, both must be right.
- A token or a certificate that names Gateways is for these alone; with both, for those that both allow. A certificate
  names one by a URI of its subject's alternative names, `spiffe://DOMAIN/ns/NAMESPACE/gateway/NAME`. A URI that speaks
  of a gateway in any other form lets its owner have none.
- What is not known, not readable or not of the form is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from controlplane.xds.node import Peer
from controlplane.xds.trust.tokens import Gateways, Tokens

_SCHEME: Final = "bearer "
_NAME: Final = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_GATEWAY: Final = re.compile(rf"spiffe://[^/]+/ns/({_NAME})/gateway/({_NAME})")

NO_TOKEN: Final = "a token is required; start the proxy with --xds-token-file"
WRONG_TOKEN: Final = "the token is not known to this control plane; see --xds-token-file of controller and proxy"
NO_TOKENS: Final = "this control plane cannot read its tokens; see its log"
SEVERAL: Final = "several authorization headers were sent"


@dataclass(frozen=True, slots=True)
class Token:
    """As a peer brings it; it is not checked yet."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Right:
    """What a peer may have: these Gateways ("namespace/name"), or with None all."""

    gateways: Gateways = None

    def allows(self, gateway: str) -> bool:
        return self.gateways is None or gateway in self.gateways

    def narrowed(self, gateways: Gateways) -> Right:
        """What this and another credential allow."""
        if self.gateways is None or gateways is None:
            return Right(gateways if self.gateways is None else self.gateways)
        return Right(self.gateways & gateways)


class Admission:
    """The rule of one listener. Without tokens every client that can connect has what its certificate names."""

    def __init__(self, tokens: Tokens | None = None, *, needs_token: bool = False) -> None:
        """`needs_token`: somebody else knows the tokens, who is asked later; here one must be there."""
        self._tokens = tokens
        self._needs_token = needs_token and tokens is None

    @property
    def generation(self) -> int:
        """Another number when the tokens are others than before."""
        if self._tokens is None:
            return 0
        self._tokens.refresh()
        return self._tokens.generation

    def admit(self, peer: Peer) -> Right | str:
        """What the peer may have, or why it is refused."""
        right = Right().narrowed(named(peer.uris))
        if self._needs_token and not isinstance(token := bearer(peer), Token):
            return token
        return right if self._tokens is None else self._with_token(self._tokens, right, peer)

    def _with_token(self, tokens: Tokens, right: Right, peer: Peer) -> Right | str:
        tokens.refresh()
        if not tokens.is_readable:
            return NO_TOKENS
        token = bearer(peer)
        if not isinstance(token, Token):
            return token
        is_known, gateways = tokens.find(token.text)
        return right.narrowed(gateways) if is_known else WRONG_TOKEN

    def keeps(self, peer: Peer, gateway: str) -> bool:
        """Whether a connected peer may stay. A file that cannot be read takes nothing away from those who are in."""
        if self._tokens is not None and not self._tokens.is_readable:
            return True
        right = self.admit(peer)
        return isinstance(right, Right) and right.allows(gateway)


def bearer(peer: Peer) -> Token | str:
    """The token that a peer brings, or why there is none."""
    headers = [value for name, value in peer.metadata if name == "authorization"]
    if len(headers) > 1:
        return SEVERAL
    header = headers[0] if headers else ""
    if not isinstance(header, str) or header[: len(_SCHEME)].lower() != _SCHEME:  # RFC 9110, 11.1
        return NO_TOKEN
    return Token(header[len(_SCHEME) :])


def named(uris: Iterable[str]) -> Gateways:
    """The Gateways that a certificate's URIs name; None when they speak of none."""
    found: set[str] = set()
    speaks = False
    for uri in uris:
        matched = _GATEWAY.fullmatch(uri)
        speaks = speaks or "/gateway/" in uri
        if matched is not None:
            found.add(f"{matched[1]}/{matched[2]}")
    return frozenset(found) if speaks else None


MOST_NOTED: Final = 1000
"""Hosts and reasons that are remembered, so that the log does not repeat itself."""
QUIET: Final = 60.0
"""Seconds between two lines about one host and reason."""


class Complaints:
    """Which refusals are worth a line: one a minute for each host and reason, however often it tries."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}

    def is_news(self, address: str, reason: str, now: float) -> bool:
        """`address` with its port; `now`: monotonic seconds."""
        key = (address.rpartition(":")[0], reason)
        if now < self._until.get(key, now):
            return False
        if len(self._until) >= MOST_NOTED:
            self._until.clear()
        self._until[key] = now + QUIET
        return True
