from gatewright.wire.v1 import traffic_pb2 as _traffic_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AiFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AI_FORMAT_UNSPECIFIED: _ClassVar[AiFormat]
    AI_FORMAT_COMPLETIONS: _ClassVar[AiFormat]
    AI_FORMAT_MESSAGES: _ClassVar[AiFormat]
    AI_FORMAT_RESPONSES: _ClassVar[AiFormat]
    AI_FORMAT_EMBEDDINGS: _ClassVar[AiFormat]
    AI_FORMAT_ANTHROPIC_TOKEN_COUNT: _ClassVar[AiFormat]
    AI_FORMAT_REALTIME: _ClassVar[AiFormat]
    AI_FORMAT_RERANK: _ClassVar[AiFormat]

class AiRouteType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AI_ROUTE_TYPE_UNSPECIFIED: _ClassVar[AiRouteType]
    AI_ROUTE_TYPE_COMPLETIONS: _ClassVar[AiRouteType]
    AI_ROUTE_TYPE_MESSAGES: _ClassVar[AiRouteType]
    AI_ROUTE_TYPE_RESPONSES: _ClassVar[AiRouteType]
    AI_ROUTE_TYPE_EMBEDDINGS: _ClassVar[AiRouteType]
    AI_ROUTE_TYPE_ANTHROPIC_TOKEN_COUNT: _ClassVar[AiRouteType]
    AI_ROUTE_TYPE_REALTIME: _ClassVar[AiRouteType]
    AI_ROUTE_TYPE_RERANK: _ClassVar[AiRouteType]
    AI_ROUTE_TYPE_MODELS: _ClassVar[AiRouteType]
    AI_ROUTE_TYPE_PASSTHROUGH: _ClassVar[AiRouteType]
    AI_ROUTE_TYPE_DETECT: _ClassVar[AiRouteType]

class AiUnsupportedFields(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AI_UNSUPPORTED_FIELDS_UNSPECIFIED: _ClassVar[AiUnsupportedFields]
    AI_UNSUPPORTED_FIELDS_REJECT: _ClassVar[AiUnsupportedFields]
    AI_UNSUPPORTED_FIELDS_DROP: _ClassVar[AiUnsupportedFields]

class GuardScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GUARD_SCOPE_UNSPECIFIED: _ClassVar[GuardScope]
    GUARD_SCOPE_SYSTEM_PROMPT: _ClassVar[GuardScope]
    GUARD_SCOPE_MESSAGES: _ClassVar[GuardScope]
    GUARD_SCOPE_TOOL_INPUT: _ClassVar[GuardScope]
    GUARD_SCOPE_TOOL_OUTPUT: _ClassVar[GuardScope]

class GuardBuiltin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GUARD_BUILTIN_UNSPECIFIED: _ClassVar[GuardBuiltin]
    GUARD_BUILTIN_SSN: _ClassVar[GuardBuiltin]
    GUARD_BUILTIN_CREDIT_CARD: _ClassVar[GuardBuiltin]
    GUARD_BUILTIN_PHONE_NUMBER: _ClassVar[GuardBuiltin]
    GUARD_BUILTIN_EMAIL: _ClassVar[GuardBuiltin]
    GUARD_BUILTIN_CA_SIN: _ClassVar[GuardBuiltin]

class GuardAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GUARD_ACTION_UNSPECIFIED: _ClassVar[GuardAction]
    GUARD_ACTION_MASK: _ClassVar[GuardAction]
    GUARD_ACTION_REJECT: _ClassVar[GuardAction]

class AiProviderKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AI_PROVIDER_KIND_UNSPECIFIED: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_OPENAI: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_ANTHROPIC: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_GEMINI: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_AZURE_OPENAI: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_AZURE_FOUNDRY: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_CUSTOM: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_BEDROCK: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_VERTEX_AI: _ClassVar[AiProviderKind]
AI_FORMAT_UNSPECIFIED: AiFormat
AI_FORMAT_COMPLETIONS: AiFormat
AI_FORMAT_MESSAGES: AiFormat
AI_FORMAT_RESPONSES: AiFormat
AI_FORMAT_EMBEDDINGS: AiFormat
AI_FORMAT_ANTHROPIC_TOKEN_COUNT: AiFormat
AI_FORMAT_REALTIME: AiFormat
AI_FORMAT_RERANK: AiFormat
AI_ROUTE_TYPE_UNSPECIFIED: AiRouteType
AI_ROUTE_TYPE_COMPLETIONS: AiRouteType
AI_ROUTE_TYPE_MESSAGES: AiRouteType
AI_ROUTE_TYPE_RESPONSES: AiRouteType
AI_ROUTE_TYPE_EMBEDDINGS: AiRouteType
AI_ROUTE_TYPE_ANTHROPIC_TOKEN_COUNT: AiRouteType
AI_ROUTE_TYPE_REALTIME: AiRouteType
AI_ROUTE_TYPE_RERANK: AiRouteType
AI_ROUTE_TYPE_MODELS: AiRouteType
AI_ROUTE_TYPE_PASSTHROUGH: AiRouteType
AI_ROUTE_TYPE_DETECT: AiRouteType
AI_UNSUPPORTED_FIELDS_UNSPECIFIED: AiUnsupportedFields
AI_UNSUPPORTED_FIELDS_REJECT: AiUnsupportedFields
AI_UNSUPPORTED_FIELDS_DROP: AiUnsupportedFields
GUARD_SCOPE_UNSPECIFIED: GuardScope
GUARD_SCOPE_SYSTEM_PROMPT: GuardScope
GUARD_SCOPE_MESSAGES: GuardScope
GUARD_SCOPE_TOOL_INPUT: GuardScope
GUARD_SCOPE_TOOL_OUTPUT: GuardScope
GUARD_BUILTIN_UNSPECIFIED: GuardBuiltin
GUARD_BUILTIN_SSN: GuardBuiltin
GUARD_BUILTIN_CREDIT_CARD: GuardBuiltin
GUARD_BUILTIN_PHONE_NUMBER: GuardBuiltin
GUARD_BUILTIN_EMAIL: GuardBuiltin
GUARD_BUILTIN_CA_SIN: GuardBuiltin
GUARD_ACTION_UNSPECIFIED: GuardAction
GUARD_ACTION_MASK: GuardAction
GUARD_ACTION_REJECT: GuardAction
AI_PROVIDER_KIND_UNSPECIFIED: AiProviderKind
AI_PROVIDER_KIND_OPENAI: AiProviderKind
AI_PROVIDER_KIND_ANTHROPIC: AiProviderKind
AI_PROVIDER_KIND_GEMINI: AiProviderKind
AI_PROVIDER_KIND_AZURE_OPENAI: AiProviderKind
AI_PROVIDER_KIND_AZURE_FOUNDRY: AiProviderKind
AI_PROVIDER_KIND_CUSTOM: AiProviderKind
AI_PROVIDER_KIND_BEDROCK: AiProviderKind
AI_PROVIDER_KIND_VERTEX_AI: AiProviderKind

class BackendAi(_message.Message):
    __slots__ = ("prompt", "defaults", "overrides", "transformations", "model_aliases", "routes", "authorization", "unsupported_fields", "first_event_timeout_ms", "list_provider_models", "prompt_guard", "prompt_caching")
    class ModelAliasesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class RoutesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: AiRouteType
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[AiRouteType, str]] = ...) -> None: ...
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    TRANSFORMATIONS_FIELD_NUMBER: _ClassVar[int]
    MODEL_ALIASES_FIELD_NUMBER: _ClassVar[int]
    ROUTES_FIELD_NUMBER: _ClassVar[int]
    AUTHORIZATION_FIELD_NUMBER: _ClassVar[int]
    UNSUPPORTED_FIELDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_EVENT_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    LIST_PROVIDER_MODELS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_GUARD_FIELD_NUMBER: _ClassVar[int]
    PROMPT_CACHING_FIELD_NUMBER: _ClassVar[int]
    prompt: AiPrompt
    defaults: _containers.RepeatedCompositeFieldContainer[AiField]
    overrides: _containers.RepeatedCompositeFieldContainer[AiField]
    transformations: _containers.RepeatedCompositeFieldContainer[AiTransformation]
    model_aliases: _containers.ScalarMap[str, str]
    routes: _containers.ScalarMap[str, AiRouteType]
    authorization: _traffic_pb2.Authorization
    unsupported_fields: AiUnsupportedFields
    first_event_timeout_ms: int
    list_provider_models: bool
    prompt_guard: AiPromptGuard
    prompt_caching: AiPromptCaching
    def __init__(self, prompt: _Optional[_Union[AiPrompt, _Mapping]] = ..., defaults: _Optional[_Iterable[_Union[AiField, _Mapping]]] = ..., overrides: _Optional[_Iterable[_Union[AiField, _Mapping]]] = ..., transformations: _Optional[_Iterable[_Union[AiTransformation, _Mapping]]] = ..., model_aliases: _Optional[_Mapping[str, str]] = ..., routes: _Optional[_Mapping[str, AiRouteType]] = ..., authorization: _Optional[_Union[_traffic_pb2.Authorization, _Mapping]] = ..., unsupported_fields: _Optional[_Union[AiUnsupportedFields, str]] = ..., first_event_timeout_ms: _Optional[int] = ..., list_provider_models: _Optional[bool] = ..., prompt_guard: _Optional[_Union[AiPromptGuard, _Mapping]] = ..., prompt_caching: _Optional[_Union[AiPromptCaching, _Mapping]] = ...) -> None: ...

class AiPromptCaching(_message.Message):
    __slots__ = ("cache_system", "cache_messages", "cache_tools", "min_tokens", "cache_message_offset")
    CACHE_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    CACHE_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    CACHE_TOOLS_FIELD_NUMBER: _ClassVar[int]
    MIN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_MESSAGE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    cache_system: bool
    cache_messages: bool
    cache_tools: bool
    min_tokens: int
    cache_message_offset: int
    def __init__(self, cache_system: _Optional[bool] = ..., cache_messages: _Optional[bool] = ..., cache_tools: _Optional[bool] = ..., min_tokens: _Optional[int] = ..., cache_message_offset: _Optional[int] = ...) -> None: ...

class AiPromptGuard(_message.Message):
    __slots__ = ("request", "response", "hold_back")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    HOLD_BACK_FIELD_NUMBER: _ClassVar[int]
    request: _containers.RepeatedCompositeFieldContainer[Guard]
    response: _containers.RepeatedCompositeFieldContainer[Guard]
    hold_back: int
    def __init__(self, request: _Optional[_Iterable[_Union[Guard, _Mapping]]] = ..., response: _Optional[_Iterable[_Union[Guard, _Mapping]]] = ..., hold_back: _Optional[int] = ...) -> None: ...

class Guard(_message.Message):
    __slots__ = ("regex", "webhook", "openai_moderation", "bedrock_guardrails", "google_model_armor", "response", "scope")
    REGEX_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_FIELD_NUMBER: _ClassVar[int]
    OPENAI_MODERATION_FIELD_NUMBER: _ClassVar[int]
    BEDROCK_GUARDRAILS_FIELD_NUMBER: _ClassVar[int]
    GOOGLE_MODEL_ARMOR_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    regex: RegexGuard
    webhook: WebhookGuard
    openai_moderation: ModerationGuard
    bedrock_guardrails: BedrockGuard
    google_model_armor: ModelArmorGuard
    response: GuardRejection
    scope: _containers.RepeatedScalarFieldContainer[GuardScope]
    def __init__(self, regex: _Optional[_Union[RegexGuard, _Mapping]] = ..., webhook: _Optional[_Union[WebhookGuard, _Mapping]] = ..., openai_moderation: _Optional[_Union[ModerationGuard, _Mapping]] = ..., bedrock_guardrails: _Optional[_Union[BedrockGuard, _Mapping]] = ..., google_model_armor: _Optional[_Union[ModelArmorGuard, _Mapping]] = ..., response: _Optional[_Union[GuardRejection, _Mapping]] = ..., scope: _Optional[_Iterable[_Union[GuardScope, str]]] = ...) -> None: ...

class GuardRejection(_message.Message):
    __slots__ = ("message", "status_code")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STATUS_CODE_FIELD_NUMBER: _ClassVar[int]
    message: str
    status_code: int
    def __init__(self, message: _Optional[str] = ..., status_code: _Optional[int] = ...) -> None: ...

class RegexGuard(_message.Message):
    __slots__ = ("matches", "builtins", "action")
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    BUILTINS_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    matches: _containers.RepeatedScalarFieldContainer[str]
    builtins: _containers.RepeatedScalarFieldContainer[GuardBuiltin]
    action: GuardAction
    def __init__(self, matches: _Optional[_Iterable[str]] = ..., builtins: _Optional[_Iterable[_Union[GuardBuiltin, str]]] = ..., action: _Optional[_Union[GuardAction, str]] = ...) -> None: ...

class WebhookGuard(_message.Message):
    __slots__ = ("backend", "forward_header_matches", "failure_mode")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    FORWARD_HEADER_MATCHES_FIELD_NUMBER: _ClassVar[int]
    FAILURE_MODE_FIELD_NUMBER: _ClassVar[int]
    backend: str
    forward_header_matches: _containers.RepeatedCompositeFieldContainer[GuardHeaderMatch]
    failure_mode: _traffic_pb2.FailureMode
    def __init__(self, backend: _Optional[str] = ..., forward_header_matches: _Optional[_Iterable[_Union[GuardHeaderMatch, _Mapping]]] = ..., failure_mode: _Optional[_Union[_traffic_pb2.FailureMode, str]] = ...) -> None: ...

class GuardHeaderMatch(_message.Message):
    __slots__ = ("name", "exact", "regex")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    name: str
    exact: str
    regex: str
    def __init__(self, name: _Optional[str] = ..., exact: _Optional[str] = ..., regex: _Optional[str] = ...) -> None: ...

class ModerationGuard(_message.Message):
    __slots__ = ("backend", "model", "failure_mode")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    FAILURE_MODE_FIELD_NUMBER: _ClassVar[int]
    backend: str
    model: str
    failure_mode: _traffic_pb2.FailureMode
    def __init__(self, backend: _Optional[str] = ..., model: _Optional[str] = ..., failure_mode: _Optional[_Union[_traffic_pb2.FailureMode, str]] = ...) -> None: ...

class BedrockGuard(_message.Message):
    __slots__ = ("backend", "identifier", "version", "failure_mode")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FAILURE_MODE_FIELD_NUMBER: _ClassVar[int]
    backend: str
    identifier: str
    version: str
    failure_mode: _traffic_pb2.FailureMode
    def __init__(self, backend: _Optional[str] = ..., identifier: _Optional[str] = ..., version: _Optional[str] = ..., failure_mode: _Optional[_Union[_traffic_pb2.FailureMode, str]] = ...) -> None: ...

class ModelArmorGuard(_message.Message):
    __slots__ = ("backend", "template_id", "project_id", "location", "failure_mode")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    FAILURE_MODE_FIELD_NUMBER: _ClassVar[int]
    backend: str
    template_id: str
    project_id: str
    location: str
    failure_mode: _traffic_pb2.FailureMode
    def __init__(self, backend: _Optional[str] = ..., template_id: _Optional[str] = ..., project_id: _Optional[str] = ..., location: _Optional[str] = ..., failure_mode: _Optional[_Union[_traffic_pb2.FailureMode, str]] = ...) -> None: ...

class AiPrompt(_message.Message):
    __slots__ = ("prepend", "append")
    PREPEND_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    prepend: _containers.RepeatedCompositeFieldContainer[AiMessage]
    append: _containers.RepeatedCompositeFieldContainer[AiMessage]
    def __init__(self, prepend: _Optional[_Iterable[_Union[AiMessage, _Mapping]]] = ..., append: _Optional[_Iterable[_Union[AiMessage, _Mapping]]] = ...) -> None: ...

class AiMessage(_message.Message):
    __slots__ = ("role", "content")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class AiField(_message.Message):
    __slots__ = ("field", "value")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    field: str
    value: str
    def __init__(self, field: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class AiTransformation(_message.Message):
    __slots__ = ("field", "expression")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    field: str
    expression: str
    def __init__(self, field: _Optional[str] = ..., expression: _Optional[str] = ...) -> None: ...

class Prices(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[ModelPrices]
    def __init__(self, models: _Optional[_Iterable[_Union[ModelPrices, _Mapping]]] = ...) -> None: ...

class ModelPrices(_message.Message):
    __slots__ = ("model", "prices", "tiers")
    class TiersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: TokenPrices
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[TokenPrices, _Mapping]] = ...) -> None: ...
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    model: str
    prices: TokenPrices
    tiers: _containers.MessageMap[str, TokenPrices]
    def __init__(self, model: _Optional[str] = ..., prices: _Optional[_Union[TokenPrices, _Mapping]] = ..., tiers: _Optional[_Mapping[str, TokenPrices]] = ...) -> None: ...

class TokenPrices(_message.Message):
    __slots__ = ("input", "output", "cache_read", "cache_write", "reasoning", "input_audio", "output_audio")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    CACHE_READ_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    INPUT_AUDIO_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_AUDIO_FIELD_NUMBER: _ClassVar[int]
    input: str
    output: str
    cache_read: str
    cache_write: str
    reasoning: str
    input_audio: str
    output_audio: str
    def __init__(self, input: _Optional[str] = ..., output: _Optional[str] = ..., cache_read: _Optional[str] = ..., cache_write: _Optional[str] = ..., reasoning: _Optional[str] = ..., input_audio: _Optional[str] = ..., output_audio: _Optional[str] = ...) -> None: ...

class AiBackend(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[AiGroup]
    def __init__(self, groups: _Optional[_Iterable[_Union[AiGroup, _Mapping]]] = ...) -> None: ...

class AiGroup(_message.Message):
    __slots__ = ("providers",)
    PROVIDERS_FIELD_NUMBER: _ClassVar[int]
    providers: _containers.RepeatedCompositeFieldContainer[AiProvider]
    def __init__(self, providers: _Optional[_Iterable[_Union[AiProvider, _Mapping]]] = ...) -> None: ...

class AiProvider(_message.Message):
    __slots__ = ("name", "backend", "kind", "model", "path", "path_prefix", "api_version", "project", "formats", "region", "guardrail")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PATH_PREFIX_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    FORMATS_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    GUARDRAIL_FIELD_NUMBER: _ClassVar[int]
    name: str
    backend: str
    kind: AiProviderKind
    model: str
    path: str
    path_prefix: str
    api_version: str
    project: str
    formats: _containers.RepeatedCompositeFieldContainer[AiProviderFormat]
    region: str
    guardrail: AiProviderGuardrail
    def __init__(self, name: _Optional[str] = ..., backend: _Optional[str] = ..., kind: _Optional[_Union[AiProviderKind, str]] = ..., model: _Optional[str] = ..., path: _Optional[str] = ..., path_prefix: _Optional[str] = ..., api_version: _Optional[str] = ..., project: _Optional[str] = ..., formats: _Optional[_Iterable[_Union[AiProviderFormat, _Mapping]]] = ..., region: _Optional[str] = ..., guardrail: _Optional[_Union[AiProviderGuardrail, _Mapping]] = ...) -> None: ...

class AiProviderGuardrail(_message.Message):
    __slots__ = ("identifier", "version")
    IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    identifier: str
    version: str
    def __init__(self, identifier: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class AiProviderFormat(_message.Message):
    __slots__ = ("type", "path")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    type: AiFormat
    path: str
    def __init__(self, type: _Optional[_Union[AiFormat, str]] = ..., path: _Optional[str] = ...) -> None: ...
