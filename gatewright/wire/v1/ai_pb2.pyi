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

class AiProviderKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AI_PROVIDER_KIND_UNSPECIFIED: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_OPENAI: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_ANTHROPIC: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_GEMINI: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_AZURE_OPENAI: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_AZURE_FOUNDRY: _ClassVar[AiProviderKind]
    AI_PROVIDER_KIND_CUSTOM: _ClassVar[AiProviderKind]
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
AI_PROVIDER_KIND_UNSPECIFIED: AiProviderKind
AI_PROVIDER_KIND_OPENAI: AiProviderKind
AI_PROVIDER_KIND_ANTHROPIC: AiProviderKind
AI_PROVIDER_KIND_GEMINI: AiProviderKind
AI_PROVIDER_KIND_AZURE_OPENAI: AiProviderKind
AI_PROVIDER_KIND_AZURE_FOUNDRY: AiProviderKind
AI_PROVIDER_KIND_CUSTOM: AiProviderKind

class BackendAi(_message.Message):
    __slots__ = ("prompt", "defaults", "overrides", "transformations", "model_aliases", "routes", "authorization", "unsupported_fields")
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
    prompt: AiPrompt
    defaults: _containers.RepeatedCompositeFieldContainer[AiField]
    overrides: _containers.RepeatedCompositeFieldContainer[AiField]
    transformations: _containers.RepeatedCompositeFieldContainer[AiTransformation]
    model_aliases: _containers.ScalarMap[str, str]
    routes: _containers.ScalarMap[str, AiRouteType]
    authorization: _traffic_pb2.Authorization
    unsupported_fields: AiUnsupportedFields
    def __init__(self, prompt: _Optional[_Union[AiPrompt, _Mapping]] = ..., defaults: _Optional[_Iterable[_Union[AiField, _Mapping]]] = ..., overrides: _Optional[_Iterable[_Union[AiField, _Mapping]]] = ..., transformations: _Optional[_Iterable[_Union[AiTransformation, _Mapping]]] = ..., model_aliases: _Optional[_Mapping[str, str]] = ..., routes: _Optional[_Mapping[str, AiRouteType]] = ..., authorization: _Optional[_Union[_traffic_pb2.Authorization, _Mapping]] = ..., unsupported_fields: _Optional[_Union[AiUnsupportedFields, str]] = ...) -> None: ...

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
    __slots__ = ("name", "backend", "kind", "model", "path", "path_prefix", "api_version", "project", "formats")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PATH_PREFIX_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    FORMATS_FIELD_NUMBER: _ClassVar[int]
    name: str
    backend: str
    kind: AiProviderKind
    model: str
    path: str
    path_prefix: str
    api_version: str
    project: str
    formats: _containers.RepeatedCompositeFieldContainer[AiProviderFormat]
    def __init__(self, name: _Optional[str] = ..., backend: _Optional[str] = ..., kind: _Optional[_Union[AiProviderKind, str]] = ..., model: _Optional[str] = ..., path: _Optional[str] = ..., path_prefix: _Optional[str] = ..., api_version: _Optional[str] = ..., project: _Optional[str] = ..., formats: _Optional[_Iterable[_Union[AiProviderFormat, _Mapping]]] = ...) -> None: ...

class AiProviderFormat(_message.Message):
    __slots__ = ("type", "path")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    type: AiFormat
    path: str
    def __init__(self, type: _Optional[_Union[AiFormat, str]] = ..., path: _Optional[str] = ...) -> None: ...
