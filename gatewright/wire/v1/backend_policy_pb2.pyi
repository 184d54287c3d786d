from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HttpVersion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HTTP_VERSION_UNSPECIFIED: _ClassVar[HttpVersion]
    HTTP_VERSION_HTTP1: _ClassVar[HttpVersion]
    HTTP_VERSION_HTTP2: _ClassVar[HttpVersion]
HTTP_VERSION_UNSPECIFIED: HttpVersion
HTTP_VERSION_HTTP1: HttpVersion
HTTP_VERSION_HTTP2: HttpVersion

class BackendHttp(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: HttpVersion
    def __init__(self, version: _Optional[_Union[HttpVersion, str]] = ...) -> None: ...
