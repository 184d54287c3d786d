from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Bind(_message.Message):
    __slots__ = ("gateway", "port", "addresses")
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    gateway: str
    port: int
    addresses: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, gateway: _Optional[str] = ..., port: _Optional[int] = ..., addresses: _Optional[_Iterable[str]] = ...) -> None: ...
