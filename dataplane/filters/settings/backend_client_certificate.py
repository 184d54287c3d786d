"""A Gateway's own certificate for the servers of its backends (Gateway API, `spec.tls.backend.clientCertificateRef`).

A value of `upstream/settings`: TLS to a backend that has no certificate of its own presents it. One that cannot be
built refuses that TLS: a server that takes clients without a certificate would not know who connects.
"""

from __future__ import annotations

from collections.abc import Iterable

from dataplane.chain.filter import Env, Refused
from dataplane.tls.client import BadSettings, security
from dataplane.upstream.settings import ClientCertificate
from gatewright.wire.v1 import backend_policy_pb2


def secrets(config: backend_policy_pb2.BackendClientCertificate) -> Iterable[str]:
    """Keys of the Secrets that it reads."""
    return (config.certificate,) if config.certificate else ()


def build(config: backend_policy_pb2.BackendClientCertificate, env: Env) -> ClientCertificate:
    """Raises `Refused`: a Secret that is not there, entries that are no certificate, a key of another certificate."""
    held = env.secret(config.certificate)
    certificate, key = held.get("tls.crt", b""), held.get("tls.key", b"")
    if not (certificate and key):
        raise Refused("the Secret of clientCertificateRef has no entry tls.crt or tls.key")
    try:
        security(env.kept, certificate, key)  # once more for each backend's own authorities: it fails here or never
    except BadSettings as error:
        raise Refused(str(error)) from None
    return ClientCertificate(certificate, key, kept=env.kept)
