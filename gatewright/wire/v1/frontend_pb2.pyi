from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RequestId(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REQUEST_ID_UNSPECIFIED: _ClassVar[RequestId]
    REQUEST_ID_KEEP: _ClassVar[RequestId]
    REQUEST_ID_REPLACE: _ClassVar[RequestId]
    REQUEST_ID_KEEP_FROM_TRUSTED: _ClassVar[RequestId]

class HeaderUnderscores(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HEADER_UNDERSCORES_UNSPECIFIED: _ClassVar[HeaderUnderscores]
    HEADER_UNDERSCORES_DROP: _ClassVar[HeaderUnderscores]
    HEADER_UNDERSCORES_REJECT: _ClassVar[HeaderUnderscores]
    HEADER_UNDERSCORES_KEEP: _ClassVar[HeaderUnderscores]

class PathAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PATH_ACTION_UNSPECIFIED: _ClassVar[PathAction]
    PATH_ACTION_KEEP: _ClassVar[PathAction]
    PATH_ACTION_REJECT: _ClassVar[PathAction]
    PATH_ACTION_DECODE: _ClassVar[PathAction]
    PATH_ACTION_REMOVE: _ClassVar[PathAction]
    PATH_ACTION_MERGE: _ClassVar[PathAction]
    PATH_ACTION_LOWER: _ClassVar[PathAction]

class Http1HeaderCase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HTTP1_HEADER_CASE_UNSPECIFIED: _ClassVar[Http1HeaderCase]
    HTTP1_HEADER_CASE_LOWERCASE: _ClassVar[Http1HeaderCase]
    HTTP1_HEADER_CASE_PRESERVE: _ClassVar[Http1HeaderCase]

class OtlpProtocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OTLP_PROTOCOL_UNSPECIFIED: _ClassVar[OtlpProtocol]
    OTLP_PROTOCOL_GRPC: _ClassVar[OtlpProtocol]
    OTLP_PROTOCOL_HTTP: _ClassVar[OtlpProtocol]
REQUEST_ID_UNSPECIFIED: RequestId
REQUEST_ID_KEEP: RequestId
REQUEST_ID_REPLACE: RequestId
REQUEST_ID_KEEP_FROM_TRUSTED: RequestId
HEADER_UNDERSCORES_UNSPECIFIED: HeaderUnderscores
HEADER_UNDERSCORES_DROP: HeaderUnderscores
HEADER_UNDERSCORES_REJECT: HeaderUnderscores
HEADER_UNDERSCORES_KEEP: HeaderUnderscores
PATH_ACTION_UNSPECIFIED: PathAction
PATH_ACTION_KEEP: PathAction
PATH_ACTION_REJECT: PathAction
PATH_ACTION_DECODE: PathAction
PATH_ACTION_REMOVE: PathAction
PATH_ACTION_MERGE: PathAction
PATH_ACTION_LOWER: PathAction
HTTP1_HEADER_CASE_UNSPECIFIED: Http1HeaderCase
HTTP1_HEADER_CASE_LOWERCASE: Http1HeaderCase
HTTP1_HEADER_CASE_PRESERVE: Http1HeaderCase
OTLP_PROTOCOL_UNSPECIFIED: OtlpProtocol
OTLP_PROTOCOL_GRPC: OtlpProtocol
OTLP_PROTOCOL_HTTP: OtlpProtocol

class Attribute(_message.Message):
    __slots__ = ("name", "expression")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    expression: str
    def __init__(self, name: _Optional[str] = ..., expression: _Optional[str] = ...) -> None: ...

class Attributes(_message.Message):
    __slots__ = ("remove", "add")
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    remove: _containers.RepeatedScalarFieldContainer[str]
    add: _containers.RepeatedCompositeFieldContainer[Attribute]
    def __init__(self, remove: _Optional[_Iterable[str]] = ..., add: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ...) -> None: ...

class TrustedHops(_message.Message):
    __slots__ = ("count", "cidrs")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    CIDRS_FIELD_NUMBER: _ClassVar[int]
    count: int
    cidrs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, count: _Optional[int] = ..., cidrs: _Optional[_Iterable[str]] = ...) -> None: ...

class HeaderNames(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class PathSpellings(_message.Message):
    __slots__ = ("repeated_slashes", "escaped_slashes", "escaped_backslashes", "parameters", "case")
    REPEATED_SLASHES_FIELD_NUMBER: _ClassVar[int]
    ESCAPED_SLASHES_FIELD_NUMBER: _ClassVar[int]
    ESCAPED_BACKSLASHES_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    CASE_FIELD_NUMBER: _ClassVar[int]
    repeated_slashes: PathAction
    escaped_slashes: PathAction
    escaped_backslashes: PathAction
    parameters: PathAction
    case: PathAction
    def __init__(self, repeated_slashes: _Optional[_Union[PathAction, str]] = ..., escaped_slashes: _Optional[_Union[PathAction, str]] = ..., escaped_backslashes: _Optional[_Union[PathAction, str]] = ..., parameters: _Optional[_Union[PathAction, str]] = ..., case: _Optional[_Union[PathAction, str]] = ...) -> None: ...

class FrontendHttp(_message.Message):
    __slots__ = ("trusted_hops", "owned_headers", "request_id", "max_query_parameters", "header_underscores", "path", "max_json_keys", "max_buffer_size", "http1_max_headers", "http1_idle_timeout_ms", "http1_header_case", "http2_window_size", "http2_connection_window_size", "http2_frame_size", "http2_max_header_size", "http2_keepalive_interval_ms", "http2_keepalive_timeout_ms", "max_connection_duration_ms")
    TRUSTED_HOPS_FIELD_NUMBER: _ClassVar[int]
    OWNED_HEADERS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_QUERY_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    HEADER_UNDERSCORES_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MAX_JSON_KEYS_FIELD_NUMBER: _ClassVar[int]
    MAX_BUFFER_SIZE_FIELD_NUMBER: _ClassVar[int]
    HTTP1_MAX_HEADERS_FIELD_NUMBER: _ClassVar[int]
    HTTP1_IDLE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    HTTP1_HEADER_CASE_FIELD_NUMBER: _ClassVar[int]
    HTTP2_WINDOW_SIZE_FIELD_NUMBER: _ClassVar[int]
    HTTP2_CONNECTION_WINDOW_SIZE_FIELD_NUMBER: _ClassVar[int]
    HTTP2_FRAME_SIZE_FIELD_NUMBER: _ClassVar[int]
    HTTP2_MAX_HEADER_SIZE_FIELD_NUMBER: _ClassVar[int]
    HTTP2_KEEPALIVE_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    HTTP2_KEEPALIVE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONNECTION_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    trusted_hops: TrustedHops
    owned_headers: HeaderNames
    request_id: RequestId
    max_query_parameters: int
    header_underscores: HeaderUnderscores
    path: PathSpellings
    max_json_keys: int
    max_buffer_size: int
    http1_max_headers: int
    http1_idle_timeout_ms: int
    http1_header_case: Http1HeaderCase
    http2_window_size: int
    http2_connection_window_size: int
    http2_frame_size: int
    http2_max_header_size: int
    http2_keepalive_interval_ms: int
    http2_keepalive_timeout_ms: int
    max_connection_duration_ms: int
    def __init__(self, trusted_hops: _Optional[_Union[TrustedHops, _Mapping]] = ..., owned_headers: _Optional[_Union[HeaderNames, _Mapping]] = ..., request_id: _Optional[_Union[RequestId, str]] = ..., max_query_parameters: _Optional[int] = ..., header_underscores: _Optional[_Union[HeaderUnderscores, str]] = ..., path: _Optional[_Union[PathSpellings, _Mapping]] = ..., max_json_keys: _Optional[int] = ..., max_buffer_size: _Optional[int] = ..., http1_max_headers: _Optional[int] = ..., http1_idle_timeout_ms: _Optional[int] = ..., http1_header_case: _Optional[_Union[Http1HeaderCase, str]] = ..., http2_window_size: _Optional[int] = ..., http2_connection_window_size: _Optional[int] = ..., http2_frame_size: _Optional[int] = ..., http2_max_header_size: _Optional[int] = ..., http2_keepalive_interval_ms: _Optional[int] = ..., http2_keepalive_timeout_ms: _Optional[int] = ..., max_connection_duration_ms: _Optional[int] = ...) -> None: ...

class Tracing(_message.Message):
    __slots__ = ("backend", "protocol", "path", "attributes", "resources", "random_sampling", "client_sampling")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SAMPLING_FIELD_NUMBER: _ClassVar[int]
    CLIENT_SAMPLING_FIELD_NUMBER: _ClassVar[int]
    backend: str
    protocol: OtlpProtocol
    path: str
    attributes: Attributes
    resources: _containers.RepeatedCompositeFieldContainer[Attribute]
    random_sampling: str
    client_sampling: str
    def __init__(self, backend: _Optional[str] = ..., protocol: _Optional[_Union[OtlpProtocol, str]] = ..., path: _Optional[str] = ..., attributes: _Optional[_Union[Attributes, _Mapping]] = ..., resources: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ..., random_sampling: _Optional[str] = ..., client_sampling: _Optional[str] = ...) -> None: ...

class Otlp(_message.Message):
    __slots__ = ("backend", "protocol", "path", "interval_ms")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    backend: str
    protocol: OtlpProtocol
    path: str
    interval_ms: int
    def __init__(self, backend: _Optional[str] = ..., protocol: _Optional[_Union[OtlpProtocol, str]] = ..., path: _Optional[str] = ..., interval_ms: _Optional[int] = ...) -> None: ...

class AccessLog(_message.Message):
    __slots__ = ("filter", "attributes", "otlp")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    OTLP_FIELD_NUMBER: _ClassVar[int]
    filter: str
    attributes: Attributes
    otlp: Otlp
    def __init__(self, filter: _Optional[str] = ..., attributes: _Optional[_Union[Attributes, _Mapping]] = ..., otlp: _Optional[_Union[Otlp, _Mapping]] = ...) -> None: ...

class Metrics(_message.Message):
    __slots__ = ("labels", "otlp")
    LABELS_FIELD_NUMBER: _ClassVar[int]
    OTLP_FIELD_NUMBER: _ClassVar[int]
    labels: _containers.RepeatedCompositeFieldContainer[Attribute]
    otlp: Otlp
    def __init__(self, labels: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ..., otlp: _Optional[_Union[Otlp, _Mapping]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_connections", "max_connections_per_address", "max_requests", "max_held_bytes", "max_request_bytes", "stream_idle_timeout_ms", "max_password_checks", "max_password_checks_per_address")
    MAX_CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONNECTIONS_PER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MAX_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    MAX_HELD_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    STREAM_IDLE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_PASSWORD_CHECKS_FIELD_NUMBER: _ClassVar[int]
    MAX_PASSWORD_CHECKS_PER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    max_connections: int
    max_connections_per_address: int
    max_requests: int
    max_held_bytes: int
    max_request_bytes: int
    stream_idle_timeout_ms: int
    max_password_checks: int
    max_password_checks_per_address: int
    def __init__(self, max_connections: _Optional[int] = ..., max_connections_per_address: _Optional[int] = ..., max_requests: _Optional[int] = ..., max_held_bytes: _Optional[int] = ..., max_request_bytes: _Optional[int] = ..., stream_idle_timeout_ms: _Optional[int] = ..., max_password_checks: _Optional[int] = ..., max_password_checks_per_address: _Optional[int] = ...) -> None: ...
