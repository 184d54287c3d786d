from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Gateway(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Mesh(_message.Message):
    __slots__ = ("secret", "trust_domains")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    TRUST_DOMAINS_FIELD_NUMBER: _ClassVar[int]
    secret: str
    trust_domains: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, secret: _Optional[str] = ..., trust_domains: _Optional[_Iterable[str]] = ...) -> None: ...
