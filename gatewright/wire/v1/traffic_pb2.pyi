from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HeaderValue(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class HeaderFilter(_message.Message):
    __slots__ = ("set", "add", "remove")
    SET_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    set: _containers.RepeatedCompositeFieldContainer[HeaderValue]
    add: _containers.RepeatedCompositeFieldContainer[HeaderValue]
    remove: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, set: _Optional[_Iterable[_Union[HeaderValue, _Mapping]]] = ..., add: _Optional[_Iterable[_Union[HeaderValue, _Mapping]]] = ..., remove: _Optional[_Iterable[str]] = ...) -> None: ...

class HeaderModifiers(_message.Message):
    __slots__ = ("request", "response")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    request: HeaderFilter
    response: HeaderFilter
    def __init__(self, request: _Optional[_Union[HeaderFilter, _Mapping]] = ..., response: _Optional[_Union[HeaderFilter, _Mapping]] = ...) -> None: ...

class PathModifier(_message.Message):
    __slots__ = ("replace_full_path", "replace_prefix_match")
    REPLACE_FULL_PATH_FIELD_NUMBER: _ClassVar[int]
    REPLACE_PREFIX_MATCH_FIELD_NUMBER: _ClassVar[int]
    replace_full_path: str
    replace_prefix_match: str
    def __init__(self, replace_full_path: _Optional[str] = ..., replace_prefix_match: _Optional[str] = ...) -> None: ...

class UrlRewrite(_message.Message):
    __slots__ = ("hostname", "path")
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    hostname: str
    path: PathModifier
    def __init__(self, hostname: _Optional[str] = ..., path: _Optional[_Union[PathModifier, _Mapping]] = ...) -> None: ...

class RequestRedirect(_message.Message):
    __slots__ = ("scheme", "hostname", "path", "port", "status")
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    scheme: str
    hostname: str
    path: PathModifier
    port: int
    status: int
    def __init__(self, scheme: _Optional[str] = ..., hostname: _Optional[str] = ..., path: _Optional[_Union[PathModifier, _Mapping]] = ..., port: _Optional[int] = ..., status: _Optional[int] = ...) -> None: ...

class RequestMirror(_message.Message):
    __slots__ = ("backend", "numerator", "denominator")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    NUMERATOR_FIELD_NUMBER: _ClassVar[int]
    DENOMINATOR_FIELD_NUMBER: _ClassVar[int]
    backend: str
    numerator: int
    denominator: int
    def __init__(self, backend: _Optional[str] = ..., numerator: _Optional[int] = ..., denominator: _Optional[int] = ...) -> None: ...

class Timeouts(_message.Message):
    __slots__ = ("request_ms", "backend_request_ms")
    REQUEST_MS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_REQUEST_MS_FIELD_NUMBER: _ClassVar[int]
    request_ms: int
    backend_request_ms: int
    def __init__(self, request_ms: _Optional[int] = ..., backend_request_ms: _Optional[int] = ...) -> None: ...

class Retry(_message.Message):
    __slots__ = ("codes", "attempts", "backoff_ms")
    CODES_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_MS_FIELD_NUMBER: _ClassVar[int]
    codes: _containers.RepeatedScalarFieldContainer[int]
    attempts: int
    backoff_ms: int
    def __init__(self, codes: _Optional[_Iterable[int]] = ..., attempts: _Optional[int] = ..., backoff_ms: _Optional[int] = ...) -> None: ...
