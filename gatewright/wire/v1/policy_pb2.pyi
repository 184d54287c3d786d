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
    __slots__ = ("source", "places", "phase", "inheritance", "order", "header_modifiers", "url_rewrite", "request_redirect", "request_mirror", "timeouts", "retry")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    INHERITANCE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    HEADER_MODIFIERS_FIELD_NUMBER: _ClassVar[int]
    URL_REWRITE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_REDIRECT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_MIRROR_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    source: ObjectRef
    places: _containers.RepeatedCompositeFieldContainer[Place]
    phase: Phase
    inheritance: Inheritance
    order: str
    header_modifiers: _traffic_pb2.HeaderModifiers
    url_rewrite: _traffic_pb2.UrlRewrite
    request_redirect: _traffic_pb2.RequestRedirect
    request_mirror: _traffic_pb2.RequestMirror
    timeouts: _traffic_pb2.Timeouts
    retry: _traffic_pb2.Retry
    def __init__(self, source: _Optional[_Union[ObjectRef, _Mapping]] = ..., places: _Optional[_Iterable[_Union[Place, _Mapping]]] = ..., phase: _Optional[_Union[Phase, str]] = ..., inheritance: _Optional[_Union[Inheritance, str]] = ..., order: _Optional[str] = ..., header_modifiers: _Optional[_Union[_traffic_pb2.HeaderModifiers, _Mapping]] = ..., url_rewrite: _Optional[_Union[_traffic_pb2.UrlRewrite, _Mapping]] = ..., request_redirect: _Optional[_Union[_traffic_pb2.RequestRedirect, _Mapping]] = ..., request_mirror: _Optional[_Union[_traffic_pb2.RequestMirror, _Mapping]] = ..., timeouts: _Optional[_Union[_traffic_pb2.Timeouts, _Mapping]] = ..., retry: _Optional[_Union[_traffic_pb2.Retry, _Mapping]] = ...) -> None: ...
