from gatewright.wire.v1 import ai_pb2 as _ai_pb2
from gatewright.wire.v1 import policy_pb2 as _policy_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class McpProtocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MCP_PROTOCOL_UNSPECIFIED: _ClassVar[McpProtocol]
    MCP_PROTOCOL_STREAMABLE_HTTP: _ClassVar[McpProtocol]
    MCP_PROTOCOL_SSE: _ClassVar[McpProtocol]
    MCP_PROTOCOL_STDIO: _ClassVar[McpProtocol]
MCP_PROTOCOL_UNSPECIFIED: McpProtocol
MCP_PROTOCOL_STREAMABLE_HTTP: McpProtocol
MCP_PROTOCOL_SSE: McpProtocol
MCP_PROTOCOL_STDIO: McpProtocol

class Backend(_message.Message):
    __slots__ = ("service", "static", "mcp", "a2a", "ai", "aws", "dynamic_forward_proxy", "inference_pool", "policies", "refused", "fallback", "cloud")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    STATIC_FIELD_NUMBER: _ClassVar[int]
    MCP_FIELD_NUMBER: _ClassVar[int]
    A2A_FIELD_NUMBER: _ClassVar[int]
    AI_FIELD_NUMBER: _ClassVar[int]
    AWS_FIELD_NUMBER: _ClassVar[int]
    DYNAMIC_FORWARD_PROXY_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_POOL_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_FIELD_NUMBER: _ClassVar[int]
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    service: ServiceBackend
    static: StaticBackend
    mcp: McpBackend
    a2a: StaticBackend
    ai: _ai_pb2.AiBackend
    aws: AwsBackend
    dynamic_forward_proxy: DynamicForwardProxyBackend
    inference_pool: InferencePoolBackend
    policies: _containers.RepeatedCompositeFieldContainer[_policy_pb2.Policy]
    refused: str
    fallback: _containers.RepeatedCompositeFieldContainer[_policy_pb2.Policy]
    cloud: CloudPlace
    def __init__(self, service: _Optional[_Union[ServiceBackend, _Mapping]] = ..., static: _Optional[_Union[StaticBackend, _Mapping]] = ..., mcp: _Optional[_Union[McpBackend, _Mapping]] = ..., a2a: _Optional[_Union[StaticBackend, _Mapping]] = ..., ai: _Optional[_Union[_ai_pb2.AiBackend, _Mapping]] = ..., aws: _Optional[_Union[AwsBackend, _Mapping]] = ..., dynamic_forward_proxy: _Optional[_Union[DynamicForwardProxyBackend, _Mapping]] = ..., inference_pool: _Optional[_Union[InferencePoolBackend, _Mapping]] = ..., policies: _Optional[_Iterable[_Union[_policy_pb2.Policy, _Mapping]]] = ..., refused: _Optional[str] = ..., fallback: _Optional[_Iterable[_Union[_policy_pb2.Policy, _Mapping]]] = ..., cloud: _Optional[_Union[CloudPlace, _Mapping]] = ...) -> None: ...

class CloudPlace(_message.Message):
    __slots__ = ("service", "region", "audience")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    service: str
    region: str
    audience: str
    def __init__(self, service: _Optional[str] = ..., region: _Optional[str] = ..., audience: _Optional[str] = ...) -> None: ...

class AwsBackend(_message.Message):
    __slots__ = ("host", "port", "target")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    target: str
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ..., target: _Optional[str] = ...) -> None: ...

class ServiceBackend(_message.Message):
    __slots__ = ("namespace", "name", "port", "app_protocol", "empty", "port_name", "udp")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    APP_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    EMPTY_FIELD_NUMBER: _ClassVar[int]
    PORT_NAME_FIELD_NUMBER: _ClassVar[int]
    UDP_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    port: int
    app_protocol: str
    empty: bool
    port_name: str
    udp: bool
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., port: _Optional[int] = ..., app_protocol: _Optional[str] = ..., empty: _Optional[bool] = ..., port_name: _Optional[str] = ..., udp: _Optional[bool] = ...) -> None: ...

class InferencePoolBackend(_message.Message):
    __slots__ = ("namespace", "name", "app_protocol", "empty")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    APP_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    EMPTY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    app_protocol: str
    empty: bool
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., app_protocol: _Optional[str] = ..., empty: _Optional[bool] = ...) -> None: ...

class StaticBackend(_message.Message):
    __slots__ = ("host", "port", "unix_path", "app_protocol")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    UNIX_PATH_FIELD_NUMBER: _ClassVar[int]
    APP_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    unix_path: str
    app_protocol: str
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ..., unix_path: _Optional[str] = ..., app_protocol: _Optional[str] = ...) -> None: ...

class DynamicForwardProxyBackend(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class McpBackend(_message.Message):
    __slots__ = ("targets", "stateless", "fail_open", "max_answer")
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    STATELESS_FIELD_NUMBER: _ClassVar[int]
    FAIL_OPEN_FIELD_NUMBER: _ClassVar[int]
    MAX_ANSWER_FIELD_NUMBER: _ClassVar[int]
    targets: _containers.RepeatedCompositeFieldContainer[McpTarget]
    stateless: bool
    fail_open: bool
    max_answer: int
    def __init__(self, targets: _Optional[_Iterable[_Union[McpTarget, _Mapping]]] = ..., stateless: _Optional[bool] = ..., fail_open: _Optional[bool] = ..., max_answer: _Optional[int] = ...) -> None: ...

class McpTarget(_message.Message):
    __slots__ = ("name", "backend", "path", "protocol", "selector")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    backend: str
    path: str
    protocol: McpProtocol
    selector: str
    def __init__(self, name: _Optional[str] = ..., backend: _Optional[str] = ..., path: _Optional[str] = ..., protocol: _Optional[_Union[McpProtocol, str]] = ..., selector: _Optional[str] = ...) -> None: ...

class Endpoint(_message.Message):
    __slots__ = ("key", "backend", "address", "port", "zones", "workload")
    KEY_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    ZONES_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    key: str
    backend: str
    address: str
    port: int
    zones: _containers.RepeatedScalarFieldContainer[str]
    workload: str
    def __init__(self, key: _Optional[str] = ..., backend: _Optional[str] = ..., address: _Optional[str] = ..., port: _Optional[int] = ..., zones: _Optional[_Iterable[str]] = ..., workload: _Optional[str] = ...) -> None: ...
