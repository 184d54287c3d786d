"""TLS toward a backend (BackendTLS): authorities, names, our own certificate, ALPN, groups.

A value of `upstream/settings`; the connector makes handshakes with it. One that cannot be built covers what it covers
all the same: nothing is sent there, and never in plain text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dataplane.chain.filter import Env, Refused
from dataplane.tls.client import CHAIN, NOTHING, BadSettings, ClientSecurity, security
from dataplane.upstream.settings import Tls
from gatewright.wire.v1 import backend_policy_pb2, tls_pb2

AUTHORITIES: Final = ("ca.cert", "ca.crt")
"""Entries of a Secret that verify the server, the one that counts first."""

GROUPS: Final = {
    tls_pb2.KEY_EXCHANGE_GROUP_X25519: "X25519",
    tls_pb2.KEY_EXCHANGE_GROUP_P_256: "P-256",
    tls_pb2.KEY_EXCHANGE_GROUP_P_384: "P-384",
    tls_pb2.KEY_EXCHANGE_GROUP_X25519_MLKEM768: "X25519_MLKEM768",
}
"""Of the wire, as users write them."""


def secrets(config: backend_policy_pb2.BackendTls) -> Iterable[str]:
    """Keys of the Secrets that a policy reads."""
    return dict.fromkeys(key for key in (config.certificate, config.authorities_secret) if key)


def build(config: backend_policy_pb2.BackendTls, env: Env) -> Tls:
    """Raises `Refused`: a Secret that is not there, entries that are no certificates, a key of another certificate."""
    unknown = [group for group in config.key_exchange_groups if group not in GROUPS]
    if unknown or config.insecure_skip_verify not in backend_policy_pb2.SkipVerify.values():
        raise Refused("a key exchange group or way to verify that this proxy does not know")
    skips_all = config.insecure_skip_verify == backend_policy_pb2.SKIP_VERIFY_ALL
    unset = Tls()
    return Tls(
        _security(config, env, NOTHING if skips_all else CHAIN),
        sni=config.sni,
        names=tuple(config.verify_subject_alt_names),
        verifies_names=config.insecure_skip_verify == backend_policy_pb2.SKIP_VERIFY_UNSPECIFIED,
        alpn=tuple(config.alpn_protocols) or unset.alpn,
    )


def _security(config: backend_policy_pb2.BackendTls, env: Env, verifies: str) -> ClientSecurity:
    """One object for equal material, over swaps as well: equal `Tls` share their connections."""
    certificate = key = b""
    if config.certificate:
        own = env.secret(config.certificate)
        certificate, key = _entry(own, "tls.crt"), _entry(own, "tls.key")
    authorities = [text.encode() for text in config.authorities]
    if not authorities and config.authorities_secret:
        held = env.secret(config.authorities_secret)
        authorities = [held[name] for name in AUTHORITIES if name in held][:1]
    groups = [GROUPS[group] for group in config.key_exchange_groups]
    try:
        return security(env.kept, certificate, key, authorities, groups, verifies)
    except BadSettings as error:
        raise Refused(str(error)) from None


def _entry(held: Mapping[str, bytes], name: str) -> bytes:
    found = held.get(name)
    if not found:
        raise Refused(f"the Secret of mtlsCertificateRef has no entry {name}")
    return found
