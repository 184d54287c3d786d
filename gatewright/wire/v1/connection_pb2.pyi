from gatewright.wire.v1 import tls_pb2 as _tls_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProxyProtocolVersion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROXY_PROTOCOL_VERSION_UNSPECIFIED: _ClassVar[ProxyProtocolVersion]
    PROXY_PROTOCOL_VERSION_V1: _ClassVar[ProxyProtocolVersion]
    PROXY_PROTOCOL_VERSION_V2: _ClassVar[ProxyProtocolVersion]
    PROXY_PROTOCOL_VERSION_ALL: _ClassVar[ProxyProtocolVersion]

class ProxyProtocolMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROXY_PROTOCOL_MODE_UNSPECIFIED: _ClassVar[ProxyProtocolMode]
    PROXY_PROTOCOL_MODE_STRICT: _ClassVar[ProxyProtocolMode]
    PROXY_PROTOCOL_MODE_OPTIONAL: _ClassVar[ProxyProtocolMode]

class ConnectMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONNECT_MODE_UNSPECIFIED: _ClassVar[ConnectMode]
    CONNECT_MODE_DENY: _ClassVar[ConnectMode]
    CONNECT_MODE_ROUTE: _ClassVar[ConnectMode]
    CONNECT_MODE_TUNNEL: _ClassVar[ConnectMode]
PROXY_PROTOCOL_VERSION_UNSPECIFIED: ProxyProtocolVersion
PROXY_PROTOCOL_VERSION_V1: ProxyProtocolVersion
PROXY_PROTOCOL_VERSION_V2: ProxyProtocolVersion
PROXY_PROTOCOL_VERSION_ALL: ProxyProtocolVersion
PROXY_PROTOCOL_MODE_UNSPECIFIED: ProxyProtocolMode
PROXY_PROTOCOL_MODE_STRICT: ProxyProtocolMode
PROXY_PROTOCOL_MODE_OPTIONAL: ProxyProtocolMode
CONNECT_MODE_UNSPECIFIED: ConnectMode
CONNECT_MODE_DENY: ConnectMode
CONNECT_MODE_ROUTE: ConnectMode
CONNECT_MODE_TUNNEL: ConnectMode

class Keepalive(_message.Message):
    __slots__ = ("retries", "time_ms", "interval_ms")
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    retries: int
    time_ms: int
    interval_ms: int
    def __init__(self, retries: _Optional[int] = ..., time_ms: _Optional[int] = ..., interval_ms: _Optional[int] = ...) -> None: ...

class FrontendTcp(_message.Message):
    __slots__ = ("keepalive",)
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    keepalive: Keepalive
    def __init__(self, keepalive: _Optional[_Union[Keepalive, _Mapping]] = ...) -> None: ...

class FrontendTls(_message.Message):
    __slots__ = ("handshake_timeout_ms", "alpn_protocols", "min_protocol_version", "max_protocol_version", "cipher_suites", "key_exchange_groups")
    HANDSHAKE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    ALPN_PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    MIN_PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    CIPHER_SUITES_FIELD_NUMBER: _ClassVar[int]
    KEY_EXCHANGE_GROUPS_FIELD_NUMBER: _ClassVar[int]
    handshake_timeout_ms: int
    alpn_protocols: _containers.RepeatedScalarFieldContainer[str]
    min_protocol_version: _tls_pb2.TlsVersion
    max_protocol_version: _tls_pb2.TlsVersion
    cipher_suites: _containers.RepeatedScalarFieldContainer[_tls_pb2.CipherSuite]
    key_exchange_groups: _containers.RepeatedScalarFieldContainer[_tls_pb2.KeyExchangeGroup]
    def __init__(self, handshake_timeout_ms: _Optional[int] = ..., alpn_protocols: _Optional[_Iterable[str]] = ..., min_protocol_version: _Optional[_Union[_tls_pb2.TlsVersion, str]] = ..., max_protocol_version: _Optional[_Union[_tls_pb2.TlsVersion, str]] = ..., cipher_suites: _Optional[_Iterable[_Union[_tls_pb2.CipherSuite, str]]] = ..., key_exchange_groups: _Optional[_Iterable[_Union[_tls_pb2.KeyExchangeGroup, str]]] = ...) -> None: ...

class FrontendProxyProtocol(_message.Message):
    __slots__ = ("version", "mode")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    version: ProxyProtocolVersion
    mode: ProxyProtocolMode
    def __init__(self, version: _Optional[_Union[ProxyProtocolVersion, str]] = ..., mode: _Optional[_Union[ProxyProtocolMode, str]] = ...) -> None: ...

class FrontendConnect(_message.Message):
    __slots__ = ("mode",)
    MODE_FIELD_NUMBER: _ClassVar[int]
    mode: ConnectMode
    def __init__(self, mode: _Optional[_Union[ConnectMode, str]] = ...) -> None: ...
