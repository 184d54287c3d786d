"""TLS of listeners: from a listener's message, its Gateway's settings and its Secrets to contexts. Made while a state
is applied; a plan whose ingredients are the same is the same plan, so that sessions outlive swaps.

What cannot be used is left out where something is left without being less safe: one of several certificates. All else
makes a plan without a context: handshakes of the listener fail, and nothing is served that was meant to be checked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dataplane.chain.filter import Refused
from dataplane.table.store import digest
from dataplane.tls.settings import Asks, BadSettings, Identity, TlsSettings, Verification
from gatewright.wire.v1 import listener_pb2, tls_pb2

if TYPE_CHECKING:
    from OpenSSL import SSL

    from dataplane.table.store import Store
    from dataplane.tls.contexts import Loaded

log = logging.getLogger("dataplane.table")

RENEWED: Final = 12 * 3600.0
"""Seconds after which a context is made anew: the keys that seal tickets of sessions are not older."""

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Entries of a Secret of the type kubernetes.io/tls."""
AUTHORITIES: Final = "ca.crt"
"""The entry with who signed the certificate, that cert-manager writes."""
STAPLE: Final = "tls.ocsp-staple"
"""As `tls.staples.STAPLE`, which loads OpenSSL."""

SECURE: Final = frozenset((listener_pb2.PROTOCOL_HTTPS, listener_pb2.PROTOCOL_TLS, listener_pb2.PROTOCOL_HBONE))

_ASKS: Final = {
    tls_pb2.CLIENT_VALIDATION_MODE_UNSPECIFIED: Asks.VALID,
    tls_pb2.CLIENT_VALIDATION_MODE_ALLOW_VALID_ONLY: Asks.VALID,
    tls_pb2.CLIENT_VALIDATION_MODE_ALLOW_INSECURE_FALLBACK: Asks.PERHAPS,
}


class TlsPlan:
    """TLS of one listener."""

    __slots__ = (
        "_born",
        "_clock",
        "_context",
        "_identities",
        "_settings",
        "_verification",
        "asks",
        "is_passthrough",
        "made_of",
        "refused",
    )

    def __init__(self, made_of: tuple[object, ...], is_passthrough: bool, clock: Callable[[], float]) -> None:
        self.made_of = made_of
        """A digest of all that it was made of."""
        self.is_passthrough = is_passthrough
        """What a client sends is not decrypted."""
        self.asks = b""
        """A digest of what is asked of clients' certificates; b"": nothing."""
        self.refused = ""
        """What of it cannot be used, and why."""
        self._clock = clock
        self._born = 0.0
        self._settings: TlsSettings | None = None
        self._identities: tuple[Loaded, ...] = ()
        self._verification = Verification()
        self._context: SSL.Context | None = None

    def __repr__(self) -> str:
        return f"TlsPlan({len(self._identities)} certificates{', ' + self.refused if self.refused else ''})"

    def prepare(self, settings: TlsSettings, identities: tuple[Loaded, ...], verification: Verification) -> None:
        """Make the first context. Raises `BadSettings`; there is none then."""
        self._settings, self._identities, self._verification = settings, identities, verification
        self._renew()

    def context(self) -> SSL.Context | None:
        """For a connection that begins; None: there is none, its handshake fails."""
        if self._context is not None and self._clock() - self._born >= RENEWED:
            self._renew()
        return self._context

    @property
    def staple_ends(self) -> float:
        """When the first OCSP response that it presents is not valid any more, in seconds since the epoch; 0: it
        presents none, or one of those that it was given cannot be used."""
        if any(identity.unstapled for identity in self._identities):
            return 0.0
        return min((each.staple.ends for each in self._identities if each.staple is not None), default=0.0)

    @property
    def expires(self) -> float | None:
        """When the first of its certificates is not valid any more, in seconds since the epoch; None: it has none."""
        return min((identity.expires for identity in self._identities), default=None)

    def _renew(self) -> None:
        from dataplane.tls.contexts import server_context  # here: most workers do without OpenSSL

        assert self._settings is not None  # `prepare` had them
        self._context = server_context(self._settings, self._identities, self._verification)
        self._born = self._clock()


def is_secure(message: listener_pb2.Listener) -> bool:
    """Whether a listener speaks TLS."""
    return message.protocol in SECURE


def plan_of(
    message: listener_pb2.Listener,
    settings: TlsSettings,
    store: Store,
    old: TlsPlan | None,
    clock: Callable[[], float],
) -> TlsPlan:
    """The plan of a listener that `is_secure`; `old`, where it was made of the same."""
    tls = message.tls
    secrets = tuple(store.secret_digest(key) for key in tls.certificates)
    made_of = (tls.SerializeToString(deterministic=True), settings, secrets)
    if old is not None and old.made_of == made_of:
        return old
    plan = TlsPlan(made_of, tls.mode == tls_pb2.TLS_MODE_PASSTHROUGH, clock)
    if tls.HasField("client_validation"):
        plan.asks = digest(tls.client_validation.SerializeToString(deterministic=True))
    if plan.is_passthrough or not tls.certificates:  # none: its controller says why, and its handshakes fail
        return plan
    if settings.refused:  # the policy says why, and handshakes fail
        return plan
    identities, wrong = _identities(message, store)
    try:
        plan.prepare(settings, identities, _verification(tls))
    except BadSettings as error:
        wrong.append(str(error))
    except Exception as error:  # a bug must cost the proxy one listener; the error's text may repeat a secret
        log.exception("TLS of listener %s cannot be made", message.name)
        wrong.append(f"internal error: {type(error).__name__}; the proxy's log says more")
    plan.refused = "; ".join(wrong)
    return plan


def _identities(message: listener_pb2.Listener, store: Store) -> tuple[tuple[Loaded, ...], list[str]]:
    """Certificates that can be used, and what is wrong with the others."""
    from dataplane.tls.contexts import load  # as above

    found, wrong = [], []
    for key in message.tls.certificates:
        try:
            entries = store.secret(key)
            written = (entries.get(name, b"") for name in (CERTIFICATE, KEY, STAPLE, AUTHORITIES))
            loaded = load(Identity(*written), time.time())
            found.append(loaded)
            if loaded.unstapled:
                log.warning(
                    "listener %s: the %s of %s is not presented: %s", message.name, STAPLE, key, loaded.unstapled
                )
        except Refused as error:
            wrong.append(str(error))
        except BadSettings as error:
            wrong.append(f"{key}: {error}")
    return tuple(found), wrong


def _verification(tls: tls_pb2.ListenerTls) -> Verification:
    """Raises `BadSettings`."""
    if not tls.HasField("client_validation"):
        return Verification()
    validation = tls.client_validation
    asks = _ASKS.get(validation.mode)
    if asks is None:
        raise BadSettings(f"mode {validation.mode} of client validation is unknown to this proxy")
    domains = tuple(validation.trust_domains)
    return Verification(asks, tuple(validation.authorities), tuple(validation.revocations), domains)
