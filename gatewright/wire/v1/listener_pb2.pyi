from gatewright.wire.v1 import policy_pb2 as _policy_pb2
from gatewright.wire.v1 import tls_pb2 as _tls_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Protocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROTOCOL_UNSPECIFIED: _ClassVar[Protocol]
    PROTOCOL_HTTP: _ClassVar[Protocol]
    PROTOCOL_HTTPS: _ClassVar[Protocol]
    PROTOCOL_TLS: _ClassVar[Protocol]
    PROTOCOL_TCP: _ClassVar[Protocol]
    PROTOCOL_UDP: _ClassVar[Protocol]
    PROTOCOL_HBONE: _ClassVar[Protocol]
PROTOCOL_UNSPECIFIED: Protocol
PROTOCOL_HTTP: Protocol
PROTOCOL_HTTPS: Protocol
PROTOCOL_TLS: Protocol
PROTOCOL_TCP: Protocol
PROTOCOL_UDP: Protocol
PROTOCOL_HBONE: Protocol

class Listener(_message.Message):
    __slots__ = ("bind", "name", "protocol", "hostname", "source", "admits", "tls")
    BIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    ADMITS_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    bind: str
    name: str
    protocol: Protocol
    hostname: str
    source: _policy_pb2.ObjectRef
    admits: Admission
    tls: _tls_pb2.ListenerTls
    def __init__(self, bind: _Optional[str] = ..., name: _Optional[str] = ..., protocol: _Optional[_Union[Protocol, str]] = ..., hostname: _Optional[str] = ..., source: _Optional[_Union[_policy_pb2.ObjectRef, _Mapping]] = ..., admits: _Optional[_Union[Admission, _Mapping]] = ..., tls: _Optional[_Union[_tls_pb2.ListenerTls, _Mapping]] = ...) -> None: ...

class Admission(_message.Message):
    __slots__ = ("kinds", "all_namespaces", "namespaces")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    ALL_NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[str]
    all_namespaces: bool
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, kinds: _Optional[_Iterable[str]] = ..., all_namespaces: _Optional[bool] = ..., namespaces: _Optional[_Iterable[str]] = ...) -> None: ...
