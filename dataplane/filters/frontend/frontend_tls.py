"""`frontend.tls`: how listeners speak TLS. Its value is a `tls/settings.TlsSettings`, for a listener's plan; carried
out by `table/security` (contexts) and `server/entry` (time)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from dataplane.chain.filter import Refused
from dataplane.tls.settings import DEFAULT, GROUPS, SUITES_1_2, SUITES_1_3, TLS_1_2, TLS_1_3, TlsSettings
from gatewright.wire.v1 import tls_pb2

if TYPE_CHECKING:
    from dataplane.chain.filter import Env
    from gatewright.wire.v1 import connection_pb2

_VERSIONS: Final = {tls_pb2.TLS_VERSION_1_2: TLS_1_2, tls_pb2.TLS_VERSION_1_3: TLS_1_3}

_SUITES: Final = {tls_pb2.CipherSuite.Value(f"CIPHER_SUITE_{name}"): name for name in (*SUITES_1_3, *SUITES_1_2)}

_GROUPS: Final = {
    tls_pb2.KeyExchangeGroup.Value(f"KEY_EXCHANGE_GROUP_{name.replace('-', '_')}"): name for name in GROUPS
}

MAX_PROTOCOL: Final = 255
"""Bytes of a name in ALPN (RFC 7301 3.1)."""


def build(config: connection_pb2.FrontendTls, env: Env) -> TlsSettings:
    """Raises `Refused` for what leaves no version of TLS, and for values of a newer language."""
    settings = TlsSettings(
        config.handshake_timeout_ms / 1000 or DEFAULT.handshake_timeout,
        tuple(map(_protocol, config.alpn_protocols)) or DEFAULT.alpn,
        _version(config.min_protocol_version, "minProtocolVersion", DEFAULT.minimum),
        _version(config.max_protocol_version, "maxProtocolVersion", DEFAULT.maximum),
        tuple(_named(_SUITES, suite, "cipherSuites") for suite in config.cipher_suites) or DEFAULT.suites,
        groups_of(config.key_exchange_groups),
    )
    least, most = settings.versions()
    if least > most:
        raise Refused("minProtocolVersion, maxProtocolVersion and cipherSuites leave no version of TLS")
    return settings


def closed(why: str) -> TlsSettings:
    """In place of a policy that cannot be applied: no handshake is done."""
    return TlsSettings(refused=why)


def groups_of(groups: Iterable[tls_pb2.KeyExchangeGroup]) -> tuple[str, ...]:
    """Names of key exchange groups; those of the default for none. Raises `Refused`."""
    return tuple(_named(_GROUPS, group, "keyExchangeGroups") for group in groups) or DEFAULT.groups


def _version(value: tls_pb2.TlsVersion, field: str, default: int) -> int:
    if value == tls_pb2.TLS_VERSION_UNSPECIFIED:
        return default
    found = _VERSIONS.get(value)
    if found is None:
        raise Refused(f"{field}: {value} is unknown to this proxy")
    return found


def _named(names: Mapping[int, str], value: int, field: str) -> str:
    found = names.get(value)
    if found is None:
        raise Refused(f"{field}: {value} is unknown to this proxy")
    return found


def _protocol(name: str) -> bytes:
    encoded = name.encode()
    if not 0 < len(encoded) <= MAX_PROTOCOL:
        raise Refused(f"alpnProtocols: {name!r} is no name of a protocol")
    return encoded
