from gatewright.wire.v1 import authentication_pb2 as _authentication_pb2
from gatewright.wire.v1 import connection_pb2 as _connection_pb2
from gatewright.wire.v1 import tls_pb2 as _tls_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HttpVersion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HTTP_VERSION_UNSPECIFIED: _ClassVar[HttpVersion]
    HTTP_VERSION_HTTP1: _ClassVar[HttpVersion]
    HTTP_VERSION_HTTP2: _ClassVar[HttpVersion]

class SkipVerify(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SKIP_VERIFY_UNSPECIFIED: _ClassVar[SkipVerify]
    SKIP_VERIFY_ALL: _ClassVar[SkipVerify]
    SKIP_VERIFY_HOSTNAME: _ClassVar[SkipVerify]

class GcpTokenType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GCP_TOKEN_TYPE_UNSPECIFIED: _ClassVar[GcpTokenType]
    GCP_TOKEN_TYPE_ACCESS_TOKEN: _ClassVar[GcpTokenType]
    GCP_TOKEN_TYPE_ID_TOKEN: _ClassVar[GcpTokenType]
HTTP_VERSION_UNSPECIFIED: HttpVersion
HTTP_VERSION_HTTP1: HttpVersion
HTTP_VERSION_HTTP2: HttpVersion
SKIP_VERIFY_UNSPECIFIED: SkipVerify
SKIP_VERIFY_ALL: SkipVerify
SKIP_VERIFY_HOSTNAME: SkipVerify
GCP_TOKEN_TYPE_UNSPECIFIED: GcpTokenType
GCP_TOKEN_TYPE_ACCESS_TOKEN: GcpTokenType
GCP_TOKEN_TYPE_ID_TOKEN: GcpTokenType

class BackendHttp(_message.Message):
    __slots__ = ("version", "request_timeout_ms")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    version: HttpVersion
    request_timeout_ms: int
    def __init__(self, version: _Optional[_Union[HttpVersion, str]] = ..., request_timeout_ms: _Optional[int] = ...) -> None: ...

class BackendTcp(_message.Message):
    __slots__ = ("keepalive", "connect_timeout_ms", "proxy_protocol")
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    CONNECT_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PROXY_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    keepalive: _connection_pb2.Keepalive
    connect_timeout_ms: int
    proxy_protocol: _connection_pb2.ProxyProtocolVersion
    def __init__(self, keepalive: _Optional[_Union[_connection_pb2.Keepalive, _Mapping]] = ..., connect_timeout_ms: _Optional[int] = ..., proxy_protocol: _Optional[_Union[_connection_pb2.ProxyProtocolVersion, str]] = ...) -> None: ...

class BackendTls(_message.Message):
    __slots__ = ("certificate", "authorities", "authorities_secret", "insecure_skip_verify", "sni", "verify_subject_alt_names", "alpn_protocols", "key_exchange_groups")
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    AUTHORITIES_FIELD_NUMBER: _ClassVar[int]
    AUTHORITIES_SECRET_FIELD_NUMBER: _ClassVar[int]
    INSECURE_SKIP_VERIFY_FIELD_NUMBER: _ClassVar[int]
    SNI_FIELD_NUMBER: _ClassVar[int]
    VERIFY_SUBJECT_ALT_NAMES_FIELD_NUMBER: _ClassVar[int]
    ALPN_PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    KEY_EXCHANGE_GROUPS_FIELD_NUMBER: _ClassVar[int]
    certificate: str
    authorities: _containers.RepeatedScalarFieldContainer[str]
    authorities_secret: str
    insecure_skip_verify: SkipVerify
    sni: str
    verify_subject_alt_names: _containers.RepeatedScalarFieldContainer[str]
    alpn_protocols: _containers.RepeatedScalarFieldContainer[str]
    key_exchange_groups: _containers.RepeatedScalarFieldContainer[_tls_pb2.KeyExchangeGroup]
    def __init__(self, certificate: _Optional[str] = ..., authorities: _Optional[_Iterable[str]] = ..., authorities_secret: _Optional[str] = ..., insecure_skip_verify: _Optional[_Union[SkipVerify, str]] = ..., sni: _Optional[str] = ..., verify_subject_alt_names: _Optional[_Iterable[str]] = ..., alpn_protocols: _Optional[_Iterable[str]] = ..., key_exchange_groups: _Optional[_Iterable[_Union[_tls_pb2.KeyExchangeGroup, str]]] = ...) -> None: ...

class BackendClientCertificate(_message.Message):
    __slots__ = ("certificate",)
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    certificate: str
    def __init__(self, certificate: _Optional[str] = ...) -> None: ...

class BackendTunnel(_message.Message):
    __slots__ = ("backend", "absolute_form")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_FORM_FIELD_NUMBER: _ClassVar[int]
    backend: str
    absolute_form: bool
    def __init__(self, backend: _Optional[str] = ..., absolute_form: _Optional[bool] = ...) -> None: ...

class Passthrough(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AwsRole(_message.Message):
    __slots__ = ("role_arn",)
    ROLE_ARN_FIELD_NUMBER: _ClassVar[int]
    role_arn: str
    def __init__(self, role_arn: _Optional[str] = ...) -> None: ...

class AwsAuth(_message.Message):
    __slots__ = ("secret", "assume_role", "service_name")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    ASSUME_ROLE_FIELD_NUMBER: _ClassVar[int]
    SERVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    secret: str
    assume_role: AwsRole
    service_name: str
    def __init__(self, secret: _Optional[str] = ..., assume_role: _Optional[_Union[AwsRole, _Mapping]] = ..., service_name: _Optional[str] = ...) -> None: ...

class AzureManagedIdentity(_message.Message):
    __slots__ = ("client_id", "object_id", "resource_id")
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    client_id: str
    object_id: str
    resource_id: str
    def __init__(self, client_id: _Optional[str] = ..., object_id: _Optional[str] = ..., resource_id: _Optional[str] = ...) -> None: ...

class AzureAuth(_message.Message):
    __slots__ = ("secret", "managed_identity")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    MANAGED_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    secret: str
    managed_identity: AzureManagedIdentity
    def __init__(self, secret: _Optional[str] = ..., managed_identity: _Optional[_Union[AzureManagedIdentity, _Mapping]] = ...) -> None: ...

class GcpAuth(_message.Message):
    __slots__ = ("type", "secret", "audience")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    type: GcpTokenType
    secret: str
    audience: str
    def __init__(self, type: _Optional[_Union[GcpTokenType, str]] = ..., secret: _Optional[str] = ..., audience: _Optional[str] = ...) -> None: ...

class BackendAuth(_message.Message):
    __slots__ = ("secret", "passthrough", "aws", "azure", "gcp", "location")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    PASSTHROUGH_FIELD_NUMBER: _ClassVar[int]
    AWS_FIELD_NUMBER: _ClassVar[int]
    AZURE_FIELD_NUMBER: _ClassVar[int]
    GCP_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    secret: str
    passthrough: Passthrough
    aws: AwsAuth
    azure: AzureAuth
    gcp: GcpAuth
    location: _authentication_pb2.CredentialLocation
    def __init__(self, secret: _Optional[str] = ..., passthrough: _Optional[_Union[Passthrough, _Mapping]] = ..., aws: _Optional[_Union[AwsAuth, _Mapping]] = ..., azure: _Optional[_Union[AzureAuth, _Mapping]] = ..., gcp: _Optional[_Union[GcpAuth, _Mapping]] = ..., location: _Optional[_Union[_authentication_pb2.CredentialLocation, _Mapping]] = ...) -> None: ...

class Eviction(_message.Message):
    __slots__ = ("duration_ms", "restore_health", "consecutive_failures", "health_threshold")
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    RESTORE_HEALTH_FIELD_NUMBER: _ClassVar[int]
    CONSECUTIVE_FAILURES_FIELD_NUMBER: _ClassVar[int]
    HEALTH_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    duration_ms: int
    restore_health: int
    consecutive_failures: int
    health_threshold: int
    def __init__(self, duration_ms: _Optional[int] = ..., restore_health: _Optional[int] = ..., consecutive_failures: _Optional[int] = ..., health_threshold: _Optional[int] = ...) -> None: ...

class Health(_message.Message):
    __slots__ = ("unhealthy_condition", "eviction")
    UNHEALTHY_CONDITION_FIELD_NUMBER: _ClassVar[int]
    EVICTION_FIELD_NUMBER: _ClassVar[int]
    unhealthy_condition: str
    eviction: Eviction
    def __init__(self, unhealthy_condition: _Optional[str] = ..., eviction: _Optional[_Union[Eviction, _Mapping]] = ...) -> None: ...

class BackendHash(_message.Message):
    __slots__ = ("header", "cookie", "source", "expression", "max_load")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    COOKIE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    MAX_LOAD_FIELD_NUMBER: _ClassVar[int]
    header: str
    cookie: str
    source: str
    expression: str
    max_load: int
    def __init__(self, header: _Optional[str] = ..., cookie: _Optional[str] = ..., source: _Optional[str] = ..., expression: _Optional[str] = ..., max_load: _Optional[int] = ...) -> None: ...

class BackendLimits(_message.Message):
    __slots__ = ("max_connections", "max_pending", "max_requests", "retry_budget", "idle_timeout_ms", "max_connection_duration_ms")
    MAX_CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_PENDING_FIELD_NUMBER: _ClassVar[int]
    MAX_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    RETRY_BUDGET_FIELD_NUMBER: _ClassVar[int]
    IDLE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONNECTION_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    max_connections: int
    max_pending: int
    max_requests: int
    retry_budget: int
    idle_timeout_ms: int
    max_connection_duration_ms: int
    def __init__(self, max_connections: _Optional[int] = ..., max_pending: _Optional[int] = ..., max_requests: _Optional[int] = ..., retry_budget: _Optional[int] = ..., idle_timeout_ms: _Optional[int] = ..., max_connection_duration_ms: _Optional[int] = ...) -> None: ...
