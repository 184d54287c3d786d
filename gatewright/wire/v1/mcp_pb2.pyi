from gatewright.wire.v1 import authentication_pb2 as _authentication_pb2
from gatewright.wire.v1 import traffic_pb2 as _traffic_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class McpPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MCP_PHASE_UNSPECIFIED: _ClassVar[McpPhase]
    MCP_PHASE_OFF: _ClassVar[McpPhase]
    MCP_PHASE_REQUEST: _ClassVar[McpPhase]
    MCP_PHASE_RESPONSE: _ClassVar[McpPhase]
    MCP_PHASE_FULL: _ClassVar[McpPhase]
MCP_PHASE_UNSPECIFIED: McpPhase
MCP_PHASE_OFF: McpPhase
MCP_PHASE_REQUEST: McpPhase
MCP_PHASE_RESPONSE: McpPhase
MCP_PHASE_FULL: McpPhase

class BackendMcp(_message.Message):
    __slots__ = ("authorization", "guardrails", "authentication", "keep_alive_ms")
    AUTHORIZATION_FIELD_NUMBER: _ClassVar[int]
    GUARDRAILS_FIELD_NUMBER: _ClassVar[int]
    AUTHENTICATION_FIELD_NUMBER: _ClassVar[int]
    KEEP_ALIVE_MS_FIELD_NUMBER: _ClassVar[int]
    authorization: _traffic_pb2.Authorization
    guardrails: McpGuardrails
    authentication: _authentication_pb2.JwtAuthentication
    keep_alive_ms: int
    def __init__(self, authorization: _Optional[_Union[_traffic_pb2.Authorization, _Mapping]] = ..., guardrails: _Optional[_Union[McpGuardrails, _Mapping]] = ..., authentication: _Optional[_Union[_authentication_pb2.JwtAuthentication, _Mapping]] = ..., keep_alive_ms: _Optional[int] = ...) -> None: ...

class McpGuardrails(_message.Message):
    __slots__ = ("processors",)
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    processors: _containers.RepeatedCompositeFieldContainer[McpProcessor]
    def __init__(self, processors: _Optional[_Iterable[_Union[McpProcessor, _Mapping]]] = ...) -> None: ...

class McpProcessor(_message.Message):
    __slots__ = ("backend", "failure_mode", "metadata", "allowed_request_headers", "disallowed_request_headers", "methods")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class MethodsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: McpPhase
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[McpPhase, str]] = ...) -> None: ...
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    FAILURE_MODE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_REQUEST_HEADERS_FIELD_NUMBER: _ClassVar[int]
    DISALLOWED_REQUEST_HEADERS_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    backend: str
    failure_mode: _traffic_pb2.FailureMode
    metadata: _containers.ScalarMap[str, str]
    allowed_request_headers: _containers.RepeatedScalarFieldContainer[str]
    disallowed_request_headers: _containers.RepeatedScalarFieldContainer[str]
    methods: _containers.ScalarMap[str, McpPhase]
    def __init__(self, backend: _Optional[str] = ..., failure_mode: _Optional[_Union[_traffic_pb2.FailureMode, str]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., allowed_request_headers: _Optional[_Iterable[str]] = ..., disallowed_request_headers: _Optional[_Iterable[str]] = ..., methods: _Optional[_Mapping[str, McpPhase]] = ...) -> None: ...
