from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTION_UNSPECIFIED: _ClassVar[Action]
    ACTION_ALLOW: _ClassVar[Action]
    ACTION_DENY: _ClassVar[Action]
    ACTION_REQUIRE: _ClassVar[Action]

class Unit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNIT_UNSPECIFIED: _ClassVar[Unit]
    UNIT_SECONDS: _ClassVar[Unit]
    UNIT_MINUTES: _ClassVar[Unit]
    UNIT_HOURS: _ClassVar[Unit]

class CountedUnit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COUNTED_UNIT_UNSPECIFIED: _ClassVar[CountedUnit]
    COUNTED_UNIT_REQUESTS: _ClassVar[CountedUnit]
    COUNTED_UNIT_TOKENS: _ClassVar[CountedUnit]

class CalendarUnit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CALENDAR_UNIT_UNSPECIFIED: _ClassVar[CalendarUnit]
    CALENDAR_UNIT_SECONDS: _ClassVar[CalendarUnit]
    CALENDAR_UNIT_MINUTES: _ClassVar[CalendarUnit]
    CALENDAR_UNIT_HOURS: _ClassVar[CalendarUnit]
    CALENDAR_UNIT_DAYS: _ClassVar[CalendarUnit]
    CALENDAR_UNIT_MONTHS: _ClassVar[CalendarUnit]
    CALENDAR_UNIT_YEARS: _ClassVar[CalendarUnit]

class HostRewriteMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOST_REWRITE_MODE_UNSPECIFIED: _ClassVar[HostRewriteMode]
    HOST_REWRITE_MODE_AUTO: _ClassVar[HostRewriteMode]
    HOST_REWRITE_MODE_NONE: _ClassVar[HostRewriteMode]

class FailureMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAILURE_MODE_UNSPECIFIED: _ClassVar[FailureMode]
    FAILURE_MODE_FAIL_CLOSED: _ClassVar[FailureMode]
    FAILURE_MODE_FAIL_OPEN: _ClassVar[FailureMode]

class BodyMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BODY_MODE_UNSPECIFIED: _ClassVar[BodyMode]
    BODY_MODE_NONE: _ClassVar[BodyMode]
    BODY_MODE_BUFFERED: _ClassVar[BodyMode]
    BODY_MODE_BUFFERED_PARTIAL: _ClassVar[BodyMode]
    BODY_MODE_FULL_DUPLEX_STREAMED: _ClassVar[BodyMode]

class SendMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEND_MODE_UNSPECIFIED: _ClassVar[SendMode]
    SEND_MODE_SEND: _ClassVar[SendMode]
    SEND_MODE_SKIP: _ClassVar[SendMode]
ACTION_UNSPECIFIED: Action
ACTION_ALLOW: Action
ACTION_DENY: Action
ACTION_REQUIRE: Action
UNIT_UNSPECIFIED: Unit
UNIT_SECONDS: Unit
UNIT_MINUTES: Unit
UNIT_HOURS: Unit
COUNTED_UNIT_UNSPECIFIED: CountedUnit
COUNTED_UNIT_REQUESTS: CountedUnit
COUNTED_UNIT_TOKENS: CountedUnit
CALENDAR_UNIT_UNSPECIFIED: CalendarUnit
CALENDAR_UNIT_SECONDS: CalendarUnit
CALENDAR_UNIT_MINUTES: CalendarUnit
CALENDAR_UNIT_HOURS: CalendarUnit
CALENDAR_UNIT_DAYS: CalendarUnit
CALENDAR_UNIT_MONTHS: CalendarUnit
CALENDAR_UNIT_YEARS: CalendarUnit
HOST_REWRITE_MODE_UNSPECIFIED: HostRewriteMode
HOST_REWRITE_MODE_AUTO: HostRewriteMode
HOST_REWRITE_MODE_NONE: HostRewriteMode
FAILURE_MODE_UNSPECIFIED: FailureMode
FAILURE_MODE_FAIL_CLOSED: FailureMode
FAILURE_MODE_FAIL_OPEN: FailureMode
BODY_MODE_UNSPECIFIED: BodyMode
BODY_MODE_NONE: BodyMode
BODY_MODE_BUFFERED: BodyMode
BODY_MODE_BUFFERED_PARTIAL: BodyMode
BODY_MODE_FULL_DUPLEX_STREAMED: BodyMode
SEND_MODE_UNSPECIFIED: SendMode
SEND_MODE_SEND: SendMode
SEND_MODE_SKIP: SendMode

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
    __slots__ = ("codes", "attempts", "backoff_ms", "precondition", "condition")
    CODES_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_MS_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    codes: _containers.RepeatedScalarFieldContainer[int]
    attempts: int
    backoff_ms: int
    precondition: str
    condition: str
    def __init__(self, codes: _Optional[_Iterable[int]] = ..., attempts: _Optional[int] = ..., backoff_ms: _Optional[int] = ..., precondition: _Optional[str] = ..., condition: _Optional[str] = ...) -> None: ...

class SessionPersistence(_message.Message):
    __slots__ = ("cookie", "header", "absolute_timeout_ms")
    COOKIE_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    cookie: SessionCookie
    header: SessionHeader
    absolute_timeout_ms: int
    def __init__(self, cookie: _Optional[_Union[SessionCookie, _Mapping]] = ..., header: _Optional[_Union[SessionHeader, _Mapping]] = ..., absolute_timeout_ms: _Optional[int] = ...) -> None: ...

class SessionCookie(_message.Message):
    __slots__ = ("name", "path", "permanent")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    path: str
    permanent: bool
    def __init__(self, name: _Optional[str] = ..., path: _Optional[str] = ..., permanent: _Optional[bool] = ...) -> None: ...

class SessionHeader(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class HeaderExpression(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Transform(_message.Message):
    __slots__ = ("set", "add", "remove", "body", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SET_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    set: _containers.RepeatedCompositeFieldContainer[HeaderExpression]
    add: _containers.RepeatedCompositeFieldContainer[HeaderExpression]
    remove: _containers.RepeatedScalarFieldContainer[str]
    body: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, set: _Optional[_Iterable[_Union[HeaderExpression, _Mapping]]] = ..., add: _Optional[_Iterable[_Union[HeaderExpression, _Mapping]]] = ..., remove: _Optional[_Iterable[str]] = ..., body: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Transformation(_message.Message):
    __slots__ = ("request", "response", "conditional")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    CONDITIONAL_FIELD_NUMBER: _ClassVar[int]
    request: Transform
    response: Transform
    conditional: _containers.RepeatedCompositeFieldContainer[ConditionalTransformation]
    def __init__(self, request: _Optional[_Union[Transform, _Mapping]] = ..., response: _Optional[_Union[Transform, _Mapping]] = ..., conditional: _Optional[_Iterable[_Union[ConditionalTransformation, _Mapping]]] = ...) -> None: ...

class ConditionalTransformation(_message.Message):
    __slots__ = ("condition", "policy")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    condition: str
    policy: Transformation
    def __init__(self, condition: _Optional[str] = ..., policy: _Optional[_Union[Transformation, _Mapping]] = ...) -> None: ...

class Cors(_message.Message):
    __slots__ = ("allow_origins", "allow_methods", "allow_headers", "expose_headers", "allow_credentials", "max_age")
    ALLOW_ORIGINS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_METHODS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_HEADERS_FIELD_NUMBER: _ClassVar[int]
    EXPOSE_HEADERS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_FIELD_NUMBER: _ClassVar[int]
    allow_origins: _containers.RepeatedScalarFieldContainer[str]
    allow_methods: _containers.RepeatedScalarFieldContainer[str]
    allow_headers: _containers.RepeatedScalarFieldContainer[str]
    expose_headers: _containers.RepeatedScalarFieldContainer[str]
    allow_credentials: bool
    max_age: int
    def __init__(self, allow_origins: _Optional[_Iterable[str]] = ..., allow_methods: _Optional[_Iterable[str]] = ..., allow_headers: _Optional[_Iterable[str]] = ..., expose_headers: _Optional[_Iterable[str]] = ..., allow_credentials: _Optional[bool] = ..., max_age: _Optional[int] = ...) -> None: ...

class Delay(_message.Message):
    __slots__ = ("duration",)
    DURATION_FIELD_NUMBER: _ClassVar[int]
    duration: str
    def __init__(self, duration: _Optional[str] = ...) -> None: ...

class Fault(_message.Message):
    __slots__ = ("delay", "abort")
    DELAY_FIELD_NUMBER: _ClassVar[int]
    ABORT_FIELD_NUMBER: _ClassVar[int]
    delay: FaultDelay
    abort: FaultAbort
    def __init__(self, delay: _Optional[_Union[FaultDelay, _Mapping]] = ..., abort: _Optional[_Union[FaultAbort, _Mapping]] = ...) -> None: ...

class FaultDelay(_message.Message):
    __slots__ = ("duration_ms", "fraction", "condition")
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    duration_ms: int
    fraction: FaultFraction
    condition: str
    def __init__(self, duration_ms: _Optional[int] = ..., fraction: _Optional[_Union[FaultFraction, _Mapping]] = ..., condition: _Optional[str] = ...) -> None: ...

class FaultAbort(_message.Message):
    __slots__ = ("status", "body", "fraction", "condition")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    status: int
    body: str
    fraction: FaultFraction
    condition: str
    def __init__(self, status: _Optional[int] = ..., body: _Optional[str] = ..., fraction: _Optional[_Union[FaultFraction, _Mapping]] = ..., condition: _Optional[str] = ...) -> None: ...

class FaultFraction(_message.Message):
    __slots__ = ("numerator", "denominator")
    NUMERATOR_FIELD_NUMBER: _ClassVar[int]
    DENOMINATOR_FIELD_NUMBER: _ClassVar[int]
    numerator: int
    denominator: int
    def __init__(self, numerator: _Optional[int] = ..., denominator: _Optional[int] = ...) -> None: ...

class Compression(_message.Message):
    __slots__ = ("encodings", "content_types", "min_size")
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPES_FIELD_NUMBER: _ClassVar[int]
    MIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    encodings: _containers.RepeatedScalarFieldContainer[str]
    content_types: _containers.RepeatedScalarFieldContainer[str]
    min_size: int
    def __init__(self, encodings: _Optional[_Iterable[str]] = ..., content_types: _Optional[_Iterable[str]] = ..., min_size: _Optional[int] = ...) -> None: ...

class Csrf(_message.Message):
    __slots__ = ("additional_origins",)
    ADDITIONAL_ORIGINS_FIELD_NUMBER: _ClassVar[int]
    additional_origins: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, additional_origins: _Optional[_Iterable[str]] = ...) -> None: ...

class AuthorizationRule(_message.Message):
    __slots__ = ("match_expressions",)
    MATCH_EXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    match_expressions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, match_expressions: _Optional[_Iterable[str]] = ...) -> None: ...

class Authorization(_message.Message):
    __slots__ = ("policy", "action")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    policy: AuthorizationRule
    action: Action
    def __init__(self, policy: _Optional[_Union[AuthorizationRule, _Mapping]] = ..., action: _Optional[_Union[Action, str]] = ...) -> None: ...

class LocalRateLimit(_message.Message):
    __slots__ = ("requests", "tokens", "unit", "burst", "key")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    requests: int
    tokens: int
    unit: Unit
    burst: int
    key: str
    def __init__(self, requests: _Optional[int] = ..., tokens: _Optional[int] = ..., unit: _Optional[_Union[Unit, str]] = ..., burst: _Optional[int] = ..., key: _Optional[str] = ...) -> None: ...

class RateLimitEntry(_message.Message):
    __slots__ = ("name", "expression")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    expression: str
    def __init__(self, name: _Optional[str] = ..., expression: _Optional[str] = ...) -> None: ...

class RateLimitOverride(_message.Message):
    __slots__ = ("requests_per_unit", "unit")
    REQUESTS_PER_UNIT_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    requests_per_unit: str
    unit: CalendarUnit
    def __init__(self, requests_per_unit: _Optional[str] = ..., unit: _Optional[_Union[CalendarUnit, str]] = ...) -> None: ...

class RateLimitDescriptor(_message.Message):
    __slots__ = ("entries", "unit", "cost", "limit_override")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    LIMIT_OVERRIDE_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[RateLimitEntry]
    unit: CountedUnit
    cost: str
    limit_override: RateLimitOverride
    def __init__(self, entries: _Optional[_Iterable[_Union[RateLimitEntry, _Mapping]]] = ..., unit: _Optional[_Union[CountedUnit, str]] = ..., cost: _Optional[str] = ..., limit_override: _Optional[_Union[RateLimitOverride, _Mapping]] = ...) -> None: ...

class GlobalRateLimit(_message.Message):
    __slots__ = ("backend", "failure_mode", "domain", "descriptors")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    FAILURE_MODE_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTORS_FIELD_NUMBER: _ClassVar[int]
    backend: str
    failure_mode: FailureMode
    domain: str
    descriptors: _containers.RepeatedCompositeFieldContainer[RateLimitDescriptor]
    def __init__(self, backend: _Optional[str] = ..., failure_mode: _Optional[_Union[FailureMode, str]] = ..., domain: _Optional[str] = ..., descriptors: _Optional[_Iterable[_Union[RateLimitDescriptor, _Mapping]]] = ...) -> None: ...

class RateLimit(_message.Message):
    __slots__ = ("local", "remote", "conditional")
    LOCAL_FIELD_NUMBER: _ClassVar[int]
    REMOTE_FIELD_NUMBER: _ClassVar[int]
    CONDITIONAL_FIELD_NUMBER: _ClassVar[int]
    local: _containers.RepeatedCompositeFieldContainer[LocalRateLimit]
    remote: GlobalRateLimit
    conditional: _containers.RepeatedCompositeFieldContainer[ConditionalRateLimit]
    def __init__(self, local: _Optional[_Iterable[_Union[LocalRateLimit, _Mapping]]] = ..., remote: _Optional[_Union[GlobalRateLimit, _Mapping]] = ..., conditional: _Optional[_Iterable[_Union[ConditionalRateLimit, _Mapping]]] = ...) -> None: ...

class ConditionalRateLimit(_message.Message):
    __slots__ = ("condition", "policy")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    condition: str
    policy: RateLimit
    def __init__(self, condition: _Optional[str] = ..., policy: _Optional[_Union[RateLimit, _Mapping]] = ...) -> None: ...

class BufferedBody(_message.Message):
    __slots__ = ("max_bytes",)
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    max_bytes: int
    def __init__(self, max_bytes: _Optional[int] = ...) -> None: ...

class Buffer(_message.Message):
    __slots__ = ("request", "response")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    request: BufferedBody
    response: BufferedBody
    def __init__(self, request: _Optional[_Union[BufferedBody, _Mapping]] = ..., response: _Optional[_Union[BufferedBody, _Mapping]] = ...) -> None: ...

class Upgrades(_message.Message):
    __slots__ = ("protocols",)
    PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    protocols: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, protocols: _Optional[_Iterable[str]] = ...) -> None: ...

class HostRewrite(_message.Message):
    __slots__ = ("mode",)
    MODE_FIELD_NUMBER: _ClassVar[int]
    mode: HostRewriteMode
    def __init__(self, mode: _Optional[_Union[HostRewriteMode, str]] = ...) -> None: ...

class DirectResponse(_message.Message):
    __slots__ = ("status", "body", "body_expression", "headers", "conditional")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    BODY_EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    CONDITIONAL_FIELD_NUMBER: _ClassVar[int]
    status: int
    body: str
    body_expression: str
    headers: _containers.RepeatedCompositeFieldContainer[HeaderExpression]
    conditional: _containers.RepeatedCompositeFieldContainer[ConditionalDirectResponse]
    def __init__(self, status: _Optional[int] = ..., body: _Optional[str] = ..., body_expression: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[HeaderExpression, _Mapping]]] = ..., conditional: _Optional[_Iterable[_Union[ConditionalDirectResponse, _Mapping]]] = ...) -> None: ...

class ConditionalDirectResponse(_message.Message):
    __slots__ = ("condition", "policy")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    condition: str
    policy: DirectResponse
    def __init__(self, condition: _Optional[str] = ..., policy: _Optional[_Union[DirectResponse, _Mapping]] = ...) -> None: ...

class ExtAuthHttp(_message.Message):
    __slots__ = ("path", "redirect", "allowed_request_headers", "add_request_headers", "allowed_response_headers", "response_metadata", "all_response_headers")
    class AddRequestHeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ResponseMetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PATH_FIELD_NUMBER: _ClassVar[int]
    REDIRECT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_REQUEST_HEADERS_FIELD_NUMBER: _ClassVar[int]
    ADD_REQUEST_HEADERS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_RESPONSE_HEADERS_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_METADATA_FIELD_NUMBER: _ClassVar[int]
    ALL_RESPONSE_HEADERS_FIELD_NUMBER: _ClassVar[int]
    path: str
    redirect: str
    allowed_request_headers: _containers.RepeatedScalarFieldContainer[str]
    add_request_headers: _containers.ScalarMap[str, str]
    allowed_response_headers: _containers.RepeatedScalarFieldContainer[str]
    response_metadata: _containers.ScalarMap[str, str]
    all_response_headers: bool
    def __init__(self, path: _Optional[str] = ..., redirect: _Optional[str] = ..., allowed_request_headers: _Optional[_Iterable[str]] = ..., add_request_headers: _Optional[_Mapping[str, str]] = ..., allowed_response_headers: _Optional[_Iterable[str]] = ..., response_metadata: _Optional[_Mapping[str, str]] = ..., all_response_headers: _Optional[bool] = ...) -> None: ...

class ExtAuthGrpc(_message.Message):
    __slots__ = ("context_extensions", "request_metadata", "allowed_headers")
    class ContextExtensionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class RequestMetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONTEXT_EXTENSIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_METADATA_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_HEADERS_FIELD_NUMBER: _ClassVar[int]
    context_extensions: _containers.ScalarMap[str, str]
    request_metadata: _containers.ScalarMap[str, str]
    allowed_headers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, context_extensions: _Optional[_Mapping[str, str]] = ..., request_metadata: _Optional[_Mapping[str, str]] = ..., allowed_headers: _Optional[_Iterable[str]] = ...) -> None: ...

class ExtAuthBody(_message.Message):
    __slots__ = ("max_size",)
    MAX_SIZE_FIELD_NUMBER: _ClassVar[int]
    max_size: int
    def __init__(self, max_size: _Optional[int] = ...) -> None: ...

class ExtAuthCache(_message.Message):
    __slots__ = ("key", "ttl", "max_entries")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    key: _containers.RepeatedScalarFieldContainer[str]
    ttl: str
    max_entries: int
    def __init__(self, key: _Optional[_Iterable[str]] = ..., ttl: _Optional[str] = ..., max_entries: _Optional[int] = ...) -> None: ...

class ExtAuth(_message.Message):
    __slots__ = ("backend", "failure_mode", "http", "grpc", "forward_body", "cache", "conditional")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    FAILURE_MODE_FIELD_NUMBER: _ClassVar[int]
    HTTP_FIELD_NUMBER: _ClassVar[int]
    GRPC_FIELD_NUMBER: _ClassVar[int]
    FORWARD_BODY_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    CONDITIONAL_FIELD_NUMBER: _ClassVar[int]
    backend: str
    failure_mode: FailureMode
    http: ExtAuthHttp
    grpc: ExtAuthGrpc
    forward_body: ExtAuthBody
    cache: ExtAuthCache
    conditional: _containers.RepeatedCompositeFieldContainer[ConditionalExtAuth]
    def __init__(self, backend: _Optional[str] = ..., failure_mode: _Optional[_Union[FailureMode, str]] = ..., http: _Optional[_Union[ExtAuthHttp, _Mapping]] = ..., grpc: _Optional[_Union[ExtAuthGrpc, _Mapping]] = ..., forward_body: _Optional[_Union[ExtAuthBody, _Mapping]] = ..., cache: _Optional[_Union[ExtAuthCache, _Mapping]] = ..., conditional: _Optional[_Iterable[_Union[ConditionalExtAuth, _Mapping]]] = ...) -> None: ...

class ConditionalExtAuth(_message.Message):
    __slots__ = ("condition", "policy")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    condition: str
    policy: ExtAuth
    def __init__(self, condition: _Optional[str] = ..., policy: _Optional[_Union[ExtAuth, _Mapping]] = ...) -> None: ...

class ProcessingOptions(_message.Message):
    __slots__ = ("request_body_mode", "response_body_mode", "request_header_mode", "response_header_mode", "request_trailer_mode", "response_trailer_mode", "allow_mode_override")
    REQUEST_BODY_MODE_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_BODY_MODE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_HEADER_MODE_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_HEADER_MODE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_TRAILER_MODE_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_TRAILER_MODE_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MODE_OVERRIDE_FIELD_NUMBER: _ClassVar[int]
    request_body_mode: BodyMode
    response_body_mode: BodyMode
    request_header_mode: SendMode
    response_header_mode: SendMode
    request_trailer_mode: SendMode
    response_trailer_mode: SendMode
    allow_mode_override: bool
    def __init__(self, request_body_mode: _Optional[_Union[BodyMode, str]] = ..., response_body_mode: _Optional[_Union[BodyMode, str]] = ..., request_header_mode: _Optional[_Union[SendMode, str]] = ..., response_header_mode: _Optional[_Union[SendMode, str]] = ..., request_trailer_mode: _Optional[_Union[SendMode, str]] = ..., response_trailer_mode: _Optional[_Union[SendMode, str]] = ..., allow_mode_override: _Optional[bool] = ...) -> None: ...

class ExtProc(_message.Message):
    __slots__ = ("backend", "processing_options", "request_attributes", "conditional")
    class RequestAttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    PROCESSING_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    CONDITIONAL_FIELD_NUMBER: _ClassVar[int]
    backend: str
    processing_options: ProcessingOptions
    request_attributes: _containers.ScalarMap[str, str]
    conditional: _containers.RepeatedCompositeFieldContainer[ConditionalExtProc]
    def __init__(self, backend: _Optional[str] = ..., processing_options: _Optional[_Union[ProcessingOptions, _Mapping]] = ..., request_attributes: _Optional[_Mapping[str, str]] = ..., conditional: _Optional[_Iterable[_Union[ConditionalExtProc, _Mapping]]] = ...) -> None: ...

class EndpointPicker(_message.Message):
    __slots__ = ("backend", "fail_open", "any_tls")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    FAIL_OPEN_FIELD_NUMBER: _ClassVar[int]
    ANY_TLS_FIELD_NUMBER: _ClassVar[int]
    backend: str
    fail_open: bool
    any_tls: bool
    def __init__(self, backend: _Optional[str] = ..., fail_open: _Optional[bool] = ..., any_tls: _Optional[bool] = ...) -> None: ...

class ConditionalExtProc(_message.Message):
    __slots__ = ("condition", "policy")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    condition: str
    policy: ExtProc
    def __init__(self, condition: _Optional[str] = ..., policy: _Optional[_Union[ExtProc, _Mapping]] = ...) -> None: ...
