from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AuthenticationMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUTHENTICATION_MODE_UNSPECIFIED: _ClassVar[AuthenticationMode]
    AUTHENTICATION_MODE_STRICT: _ClassVar[AuthenticationMode]
    AUTHENTICATION_MODE_OPTIONAL: _ClassVar[AuthenticationMode]
    AUTHENTICATION_MODE_PERMISSIVE: _ClassVar[AuthenticationMode]
AUTHENTICATION_MODE_UNSPECIFIED: AuthenticationMode
AUTHENTICATION_MODE_STRICT: AuthenticationMode
AUTHENTICATION_MODE_OPTIONAL: AuthenticationMode
AUTHENTICATION_MODE_PERMISSIVE: AuthenticationMode

class HeaderLocation(_message.Message):
    __slots__ = ("name", "prefix")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    name: str
    prefix: str
    def __init__(self, name: _Optional[str] = ..., prefix: _Optional[str] = ...) -> None: ...

class NamedLocation(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class CredentialLocation(_message.Message):
    __slots__ = ("header", "query_parameter", "cookie", "expression")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    QUERY_PARAMETER_FIELD_NUMBER: _ClassVar[int]
    COOKIE_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    header: HeaderLocation
    query_parameter: NamedLocation
    cookie: NamedLocation
    expression: str
    def __init__(self, header: _Optional[_Union[HeaderLocation, _Mapping]] = ..., query_parameter: _Optional[_Union[NamedLocation, _Mapping]] = ..., cookie: _Optional[_Union[NamedLocation, _Mapping]] = ..., expression: _Optional[str] = ...) -> None: ...

class RemoteJwks(_message.Message):
    __slots__ = ("backend", "jwks_path", "cache_duration_ms")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    JWKS_PATH_FIELD_NUMBER: _ClassVar[int]
    CACHE_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    backend: str
    jwks_path: str
    cache_duration_ms: int
    def __init__(self, backend: _Optional[str] = ..., jwks_path: _Optional[str] = ..., cache_duration_ms: _Optional[int] = ...) -> None: ...

class DiscoveredJwks(_message.Message):
    __slots__ = ("backend", "cache_duration_ms")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    CACHE_DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    backend: str
    cache_duration_ms: int
    def __init__(self, backend: _Optional[str] = ..., cache_duration_ms: _Optional[int] = ...) -> None: ...

class Jwks(_message.Message):
    __slots__ = ("remote", "inline", "discovery")
    REMOTE_FIELD_NUMBER: _ClassVar[int]
    INLINE_FIELD_NUMBER: _ClassVar[int]
    DISCOVERY_FIELD_NUMBER: _ClassVar[int]
    remote: RemoteJwks
    inline: str
    discovery: DiscoveredJwks
    def __init__(self, remote: _Optional[_Union[RemoteJwks, _Mapping]] = ..., inline: _Optional[str] = ..., discovery: _Optional[_Union[DiscoveredJwks, _Mapping]] = ...) -> None: ...

class JwtProvider(_message.Message):
    __slots__ = ("issuer", "audiences", "jwks", "secret")
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    AUDIENCES_FIELD_NUMBER: _ClassVar[int]
    JWKS_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    issuer: str
    audiences: _containers.RepeatedScalarFieldContainer[str]
    jwks: Jwks
    secret: str
    def __init__(self, issuer: _Optional[str] = ..., audiences: _Optional[_Iterable[str]] = ..., jwks: _Optional[_Union[Jwks, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class JwtAuthentication(_message.Message):
    __slots__ = ("mode", "providers", "location", "mcp")
    MODE_FIELD_NUMBER: _ClassVar[int]
    PROVIDERS_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    MCP_FIELD_NUMBER: _ClassVar[int]
    mode: AuthenticationMode
    providers: _containers.RepeatedCompositeFieldContainer[JwtProvider]
    location: CredentialLocation
    mcp: JwtMcp
    def __init__(self, mode: _Optional[_Union[AuthenticationMode, str]] = ..., providers: _Optional[_Iterable[_Union[JwtProvider, _Mapping]]] = ..., location: _Optional[_Union[CredentialLocation, _Mapping]] = ..., mcp: _Optional[_Union[JwtMcp, _Mapping]] = ...) -> None: ...

class JwtMcp(_message.Message):
    __slots__ = ("resource_metadata", "provider", "client_id")
    RESOURCE_METADATA_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    resource_metadata: str
    provider: str
    client_id: str
    def __init__(self, resource_metadata: _Optional[str] = ..., provider: _Optional[str] = ..., client_id: _Optional[str] = ...) -> None: ...

class BasicAuthentication(_message.Message):
    __slots__ = ("mode", "secret", "realm", "location")
    MODE_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    REALM_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    mode: AuthenticationMode
    secret: str
    realm: str
    location: CredentialLocation
    def __init__(self, mode: _Optional[_Union[AuthenticationMode, str]] = ..., secret: _Optional[str] = ..., realm: _Optional[str] = ..., location: _Optional[_Union[CredentialLocation, _Mapping]] = ...) -> None: ...

class ApiKeyAuthentication(_message.Message):
    __slots__ = ("mode", "secrets", "location")
    MODE_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    mode: AuthenticationMode
    secrets: _containers.RepeatedScalarFieldContainer[str]
    location: CredentialLocation
    def __init__(self, mode: _Optional[_Union[AuthenticationMode, str]] = ..., secrets: _Optional[_Iterable[str]] = ..., location: _Optional[_Union[CredentialLocation, _Mapping]] = ...) -> None: ...
