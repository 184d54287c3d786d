from gatewright.wire.v1 import authentication_pb2 as _authentication_pb2
from gatewright.wire.v1 import ai_pb2 as _ai_pb2
from gatewright.wire.v1 import backend_policy_pb2 as _backend_policy_pb2
from gatewright.wire.v1 import connection_pb2 as _connection_pb2
from gatewright.wire.v1 import frontend_pb2 as _frontend_pb2
from gatewright.wire.v1 import mcp_pb2 as _mcp_pb2
from gatewright.wire.v1 import traffic_pb2 as _traffic_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PHASE_UNSPECIFIED: _ClassVar[Phase]
    PHASE_PRE_ROUTING: _ClassVar[Phase]
    PHASE_POST_ROUTING: _ClassVar[Phase]

class Inheritance(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INHERITANCE_UNSPECIFIED: _ClassVar[Inheritance]
    INHERITANCE_DEFAULT: _ClassVar[Inheritance]
    INHERITANCE_OVERRIDE: _ClassVar[Inheritance]
PHASE_UNSPECIFIED: Phase
PHASE_PRE_ROUTING: Phase
PHASE_POST_ROUTING: Phase
INHERITANCE_UNSPECIFIED: Inheritance
INHERITANCE_DEFAULT: Inheritance
INHERITANCE_OVERRIDE: Inheritance

class ObjectRef(_message.Message):
    __slots__ = ("kind", "namespace", "name")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    kind: str
    namespace: str
    name: str
    def __init__(self, kind: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Place(_message.Message):
    __slots__ = ("object", "section")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    SECTION_FIELD_NUMBER: _ClassVar[int]
    object: ObjectRef
    section: str
    def __init__(self, object: _Optional[_Union[ObjectRef, _Mapping]] = ..., section: _Optional[str] = ...) -> None: ...

class Policy(_message.Message):
    __slots__ = ("source", "places", "phase", "inheritance", "order", "invalid", "header_modifiers", "url_rewrite", "request_redirect", "request_mirror", "timeouts", "retry", "transformation", "cors", "csrf", "jwt_authentication", "basic_authentication", "api_key_authentication", "ext_auth", "authorization", "rate_limit", "buffer", "host_rewrite", "direct_response", "ext_proc", "upgrades", "delay", "session_persistence", "fault", "compression", "access_log", "frontend_http", "limits", "frontend_tls", "frontend_tcp", "network_authorization", "proxy_protocol", "connect", "tracing", "metrics", "backend_http", "backend_tcp", "backend_tls", "health", "backend_limits", "backend_mcp", "backend_ai", "backend_client_certificate", "backend_auth", "backend_tunnel", "backend_transformation", "backend_ext_auth", "backend_hash", "endpoint_picker")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    INHERITANCE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    INVALID_FIELD_NUMBER: _ClassVar[int]
    HEADER_MODIFIERS_FIELD_NUMBER: _ClassVar[int]
    URL_REWRITE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_REDIRECT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_MIRROR_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    TRANSFORMATION_FIELD_NUMBER: _ClassVar[int]
    CORS_FIELD_NUMBER: _ClassVar[int]
    CSRF_FIELD_NUMBER: _ClassVar[int]
    JWT_AUTHENTICATION_FIELD_NUMBER: _ClassVar[int]
    BASIC_AUTHENTICATION_FIELD_NUMBER: _ClassVar[int]
    API_KEY_AUTHENTICATION_FIELD_NUMBER: _ClassVar[int]
    EXT_AUTH_FIELD_NUMBER: _ClassVar[int]
    AUTHORIZATION_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    HOST_REWRITE_FIELD_NUMBER: _ClassVar[int]
    DIRECT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    EXT_PROC_FIELD_NUMBER: _ClassVar[int]
    UPGRADES_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    SESSION_PERSISTENCE_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    COMPRESSION_FIELD_NUMBER: _ClassVar[int]
    ACCESS_LOG_FIELD_NUMBER: _ClassVar[int]
    FRONTEND_HTTP_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    FRONTEND_TLS_FIELD_NUMBER: _ClassVar[int]
    FRONTEND_TCP_FIELD_NUMBER: _ClassVar[int]
    NETWORK_AUTHORIZATION_FIELD_NUMBER: _ClassVar[int]
    PROXY_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    CONNECT_FIELD_NUMBER: _ClassVar[int]
    TRACING_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_HTTP_FIELD_NUMBER: _ClassVar[int]
    BACKEND_TCP_FIELD_NUMBER: _ClassVar[int]
    BACKEND_TLS_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    BACKEND_LIMITS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_MCP_FIELD_NUMBER: _ClassVar[int]
    BACKEND_AI_FIELD_NUMBER: _ClassVar[int]
    BACKEND_CLIENT_CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    BACKEND_AUTH_FIELD_NUMBER: _ClassVar[int]
    BACKEND_TUNNEL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_TRANSFORMATION_FIELD_NUMBER: _ClassVar[int]
    BACKEND_EXT_AUTH_FIELD_NUMBER: _ClassVar[int]
    BACKEND_HASH_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_PICKER_FIELD_NUMBER: _ClassVar[int]
    source: ObjectRef
    places: _containers.RepeatedCompositeFieldContainer[Place]
    phase: Phase
    inheritance: Inheritance
    order: str
    invalid: str
    header_modifiers: _traffic_pb2.HeaderModifiers
    url_rewrite: _traffic_pb2.UrlRewrite
    request_redirect: _traffic_pb2.RequestRedirect
    request_mirror: _traffic_pb2.RequestMirror
    timeouts: _traffic_pb2.Timeouts
    retry: _traffic_pb2.Retry
    transformation: _traffic_pb2.Transformation
    cors: _traffic_pb2.Cors
    csrf: _traffic_pb2.Csrf
    jwt_authentication: _authentication_pb2.JwtAuthentication
    basic_authentication: _authentication_pb2.BasicAuthentication
    api_key_authentication: _authentication_pb2.ApiKeyAuthentication
    ext_auth: _traffic_pb2.ExtAuth
    authorization: _traffic_pb2.Authorization
    rate_limit: _traffic_pb2.RateLimit
    buffer: _traffic_pb2.Buffer
    host_rewrite: _traffic_pb2.HostRewrite
    direct_response: _traffic_pb2.DirectResponse
    ext_proc: _traffic_pb2.ExtProc
    upgrades: _traffic_pb2.Upgrades
    delay: _traffic_pb2.Delay
    session_persistence: _traffic_pb2.SessionPersistence
    fault: _traffic_pb2.Fault
    compression: _traffic_pb2.Compression
    access_log: _frontend_pb2.AccessLog
    frontend_http: _frontend_pb2.FrontendHttp
    limits: _frontend_pb2.Limits
    frontend_tls: _connection_pb2.FrontendTls
    frontend_tcp: _connection_pb2.FrontendTcp
    network_authorization: _traffic_pb2.Authorization
    proxy_protocol: _connection_pb2.FrontendProxyProtocol
    connect: _connection_pb2.FrontendConnect
    tracing: _frontend_pb2.Tracing
    metrics: _frontend_pb2.Metrics
    backend_http: _backend_policy_pb2.BackendHttp
    backend_tcp: _backend_policy_pb2.BackendTcp
    backend_tls: _backend_policy_pb2.BackendTls
    health: _backend_policy_pb2.Health
    backend_limits: _backend_policy_pb2.BackendLimits
    backend_mcp: _mcp_pb2.BackendMcp
    backend_ai: _ai_pb2.BackendAi
    backend_client_certificate: _backend_policy_pb2.BackendClientCertificate
    backend_auth: _backend_policy_pb2.BackendAuth
    backend_tunnel: _backend_policy_pb2.BackendTunnel
    backend_transformation: _traffic_pb2.Transformation
    backend_ext_auth: _traffic_pb2.ExtAuth
    backend_hash: _backend_policy_pb2.BackendHash
    endpoint_picker: _traffic_pb2.EndpointPicker
    def __init__(self, source: _Optional[_Union[ObjectRef, _Mapping]] = ..., places: _Optional[_Iterable[_Union[Place, _Mapping]]] = ..., phase: _Optional[_Union[Phase, str]] = ..., inheritance: _Optional[_Union[Inheritance, str]] = ..., order: _Optional[str] = ..., invalid: _Optional[str] = ..., header_modifiers: _Optional[_Union[_traffic_pb2.HeaderModifiers, _Mapping]] = ..., url_rewrite: _Optional[_Union[_traffic_pb2.UrlRewrite, _Mapping]] = ..., request_redirect: _Optional[_Union[_traffic_pb2.RequestRedirect, _Mapping]] = ..., request_mirror: _Optional[_Union[_traffic_pb2.RequestMirror, _Mapping]] = ..., timeouts: _Optional[_Union[_traffic_pb2.Timeouts, _Mapping]] = ..., retry: _Optional[_Union[_traffic_pb2.Retry, _Mapping]] = ..., transformation: _Optional[_Union[_traffic_pb2.Transformation, _Mapping]] = ..., cors: _Optional[_Union[_traffic_pb2.Cors, _Mapping]] = ..., csrf: _Optional[_Union[_traffic_pb2.Csrf, _Mapping]] = ..., jwt_authentication: _Optional[_Union[_authentication_pb2.JwtAuthentication, _Mapping]] = ..., basic_authentication: _Optional[_Union[_authentication_pb2.BasicAuthentication, _Mapping]] = ..., api_key_authentication: _Optional[_Union[_authentication_pb2.ApiKeyAuthentication, _Mapping]] = ..., ext_auth: _Optional[_Union[_traffic_pb2.ExtAuth, _Mapping]] = ..., authorization: _Optional[_Union[_traffic_pb2.Authorization, _Mapping]] = ..., rate_limit: _Optional[_Union[_traffic_pb2.RateLimit, _Mapping]] = ..., buffer: _Optional[_Union[_traffic_pb2.Buffer, _Mapping]] = ..., host_rewrite: _Optional[_Union[_traffic_pb2.HostRewrite, _Mapping]] = ..., direct_response: _Optional[_Union[_traffic_pb2.DirectResponse, _Mapping]] = ..., ext_proc: _Optional[_Union[_traffic_pb2.ExtProc, _Mapping]] = ..., upgrades: _Optional[_Union[_traffic_pb2.Upgrades, _Mapping]] = ..., delay: _Optional[_Union[_traffic_pb2.Delay, _Mapping]] = ..., session_persistence: _Optional[_Union[_traffic_pb2.SessionPersistence, _Mapping]] = ..., fault: _Optional[_Union[_traffic_pb2.Fault, _Mapping]] = ..., compression: _Optional[_Union[_traffic_pb2.Compression, _Mapping]] = ..., access_log: _Optional[_Union[_frontend_pb2.AccessLog, _Mapping]] = ..., frontend_http: _Optional[_Union[_frontend_pb2.FrontendHttp, _Mapping]] = ..., limits: _Optional[_Union[_frontend_pb2.Limits, _Mapping]] = ..., frontend_tls: _Optional[_Union[_connection_pb2.FrontendTls, _Mapping]] = ..., frontend_tcp: _Optional[_Union[_connection_pb2.FrontendTcp, _Mapping]] = ..., network_authorization: _Optional[_Union[_traffic_pb2.Authorization, _Mapping]] = ..., proxy_protocol: _Optional[_Union[_connection_pb2.FrontendProxyProtocol, _Mapping]] = ..., connect: _Optional[_Union[_connection_pb2.FrontendConnect, _Mapping]] = ..., tracing: _Optional[_Union[_frontend_pb2.Tracing, _Mapping]] = ..., metrics: _Optional[_Union[_frontend_pb2.Metrics, _Mapping]] = ..., backend_http: _Optional[_Union[_backend_policy_pb2.BackendHttp, _Mapping]] = ..., backend_tcp: _Optional[_Union[_backend_policy_pb2.BackendTcp, _Mapping]] = ..., backend_tls: _Optional[_Union[_backend_policy_pb2.BackendTls, _Mapping]] = ..., health: _Optional[_Union[_backend_policy_pb2.Health, _Mapping]] = ..., backend_limits: _Optional[_Union[_backend_policy_pb2.BackendLimits, _Mapping]] = ..., backend_mcp: _Optional[_Union[_mcp_pb2.BackendMcp, _Mapping]] = ..., backend_ai: _Optional[_Union[_ai_pb2.BackendAi, _Mapping]] = ..., backend_client_certificate: _Optional[_Union[_backend_policy_pb2.BackendClientCertificate, _Mapping]] = ..., backend_auth: _Optional[_Union[_backend_policy_pb2.BackendAuth, _Mapping]] = ..., backend_tunnel: _Optional[_Union[_backend_policy_pb2.BackendTunnel, _Mapping]] = ..., backend_transformation: _Optional[_Union[_traffic_pb2.Transformation, _Mapping]] = ..., backend_ext_auth: _Optional[_Union[_traffic_pb2.ExtAuth, _Mapping]] = ..., backend_hash: _Optional[_Union[_backend_policy_pb2.BackendHash, _Mapping]] = ..., endpoint_picker: _Optional[_Union[_traffic_pb2.EndpointPicker, _Mapping]] = ...) -> None: ...
