"""PROXY protocol: whether connections begin with a header. Its value is a `net/proxy_rules.ProxyRules`."""

from __future__ import annotations

from typing import Final

from dataplane.chain.filter import Env, Refused
from dataplane.net.proxy_header import V1, V2, Reader
from dataplane.net.proxy_rules import ProxyRules
from gatewright.wire.v1 import connection_pb2

_SIGNATURES: Final = {
    connection_pb2.PROXY_PROTOCOL_VERSION_UNSPECIFIED: (V2,),
    connection_pb2.PROXY_PROTOCOL_VERSION_V1: (V1,),
    connection_pb2.PROXY_PROTOCOL_VERSION_V2: (V2,),
    connection_pb2.PROXY_PROTOCOL_VERSION_ALL: (V2, V1),
}

_STRICT: Final = {
    connection_pb2.PROXY_PROTOCOL_MODE_UNSPECIFIED: True,
    connection_pb2.PROXY_PROTOCOL_MODE_STRICT: True,
    connection_pb2.PROXY_PROTOCOL_MODE_OPTIONAL: False,
}


def build(config: connection_pb2.FrontendProxyProtocol, env: Env) -> ProxyRules:
    """Raises `Refused` for what is of a newer language."""
    if config.version not in _SIGNATURES:
        raise Refused(f"version: {config.version} is unknown to this proxy")
    if config.mode not in _STRICT:
        raise Refused(f"mode: {config.mode} is unknown to this proxy")
    return ProxyRules(Reader(_SIGNATURES[config.version]), _STRICT[config.mode])


def closed(why: str) -> ProxyRules:
    """In place of a policy that cannot be applied: no client may connect, for its address is not known."""
    return ProxyRules(Reader((V2, V1)), refused=why)
