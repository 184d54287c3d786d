from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
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
PROTOCOL_UNSPECIFIED: Protocol
PROTOCOL_HTTP: Protocol
PROTOCOL_HTTPS: Protocol
PROTOCOL_TLS: Protocol
PROTOCOL_TCP: Protocol
PROTOCOL_UDP: Protocol

class Listener(_message.Message):
    __slots__ = ("bind", "name", "protocol", "hostname")
    BIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    bind: str
    name: str
    protocol: Protocol
    hostname: str
    def __init__(self, bind: _Optional[str] = ..., name: _Optional[str] = ..., protocol: _Optional[_Union[Protocol, str]] = ..., hostname: _Optional[str] = ...) -> None: ...
