"""What a TLS listener of a cluster's controller shows: a certificate that it issued to itself by the common authority.

gRPC asks for it at each handshake, in threads of its own. `kube.authority_secret` brings the authority.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Sequence
from typing import Any

import grpc

from controlplane.xds.trust import authority as authorities
from controlplane.xds.trust.authority import Authority, Identity


class Issuer:
    """`now` gives the time of day in UTC."""

    wants_client_certificate = False

    def __init__(self, now: Callable[[], dt.datetime]) -> None:
        self._names: tuple[str, ...] = ()
        self._now = now
        self._authority: Authority | None = None
        self._identity: Identity | None = None
        self._lock = threading.Lock()
        self.listeners: list[Callable[[], None]] = []
        """Called when what proxies have to trust is something else than before."""

    @property
    def bundle(self) -> bytes:
        """The certificates that proxies trust, as PEM; empty until `use` was called."""
        return b"" if self._authority is None else self._authority.bundle

    def name(self, names: Sequence[str]) -> None:
        """By which names this controller is reached; before `use`."""
        self._names = tuple(names)

    def use(self, authority: Authority) -> None:
        """What the Secret holds now."""
        before = self.bundle
        with self._lock:
            self._authority = authority
        if self.bundle != before:
            for listener in tuple(self.listeners):
                listener()

    def identity(self) -> Identity:
        """The certificate of the next handshakes. Raises RuntimeError before `use`."""
        with self._lock:
            if self._authority is None:
                raise RuntimeError("there is no authority yet")
            now = self._now()
            if self._identity is None or not authorities.is_current(self._identity, self._authority, now):
                self._identity = authorities.issued(self._authority, self._names, now)
            return self._identity

    def credentials(self) -> Any:  # Any: grpc is not typed
        """For `add_secure_port`: for proxies, which show a token."""
        return self._credentials(mutual=False)

    def mutual_credentials(self) -> Any:  # Any: grpc is not typed
        """For `add_secure_port`: for other controllers, which show a certificate of the same authority."""
        return self._credentials(mutual=True)

    def channel_credentials(self) -> Any:  # Any: grpc is not typed
        """For calls to other controllers."""
        identity = self.identity()
        return grpc.ssl_channel_credentials(identity.bundle, identity.key, identity.certificate)

    def _credentials(self, *, mutual: bool) -> Any:  # Any: grpc is not typed
        shown = self.identity()

        def fetch() -> Any:  # Any: grpc is not typed
            nonlocal shown
            newest = self.identity()
            if newest is shown:
                return None  # as before
            shown = newest
            return _configuration(newest, mutual=mutual)

        first = _configuration(shown, mutual=mutual)
        return grpc.dynamic_ssl_server_credentials(first, fetch, require_client_authentication=mutual)


def _configuration(identity: Identity, *, mutual: bool) -> Any:  # Any: grpc is not typed
    pair = [(identity.key, identity.certificate)]
    return grpc.ssl_server_certificate_configuration(pair, identity.bundle if mutual else None)
