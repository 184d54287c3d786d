from gatewright.wire.v1 import policy_pb2 as _policy_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Route(_message.Message):
    __slots__ = ("source", "rule", "rule_index", "parents", "hostnames", "matches", "backends", "policies", "order")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    RULE_INDEX_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    HOSTNAMES_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    source: _policy_pb2.ObjectRef
    rule: str
    rule_index: int
    parents: _containers.RepeatedCompositeFieldContainer[Parent]
    hostnames: _containers.RepeatedScalarFieldContainer[str]
    matches: _containers.RepeatedCompositeFieldContainer[RouteMatch]
    backends: _containers.RepeatedCompositeFieldContainer[RouteBackend]
    policies: _containers.RepeatedCompositeFieldContainer[_policy_pb2.Policy]
    order: str
    def __init__(self, source: _Optional[_Union[_policy_pb2.ObjectRef, _Mapping]] = ..., rule: _Optional[str] = ..., rule_index: _Optional[int] = ..., parents: _Optional[_Iterable[_Union[Parent, _Mapping]]] = ..., hostnames: _Optional[_Iterable[str]] = ..., matches: _Optional[_Iterable[_Union[RouteMatch, _Mapping]]] = ..., backends: _Optional[_Iterable[_Union[RouteBackend, _Mapping]]] = ..., policies: _Optional[_Iterable[_Union[_policy_pb2.Policy, _Mapping]]] = ..., order: _Optional[str] = ...) -> None: ...

class Parent(_message.Message):
    __slots__ = ("object", "section", "port")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    SECTION_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    object: _policy_pb2.ObjectRef
    section: str
    port: int
    def __init__(self, object: _Optional[_Union[_policy_pb2.ObjectRef, _Mapping]] = ..., section: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class RouteMatch(_message.Message):
    __slots__ = ("path", "method", "headers", "query")
    PATH_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    path: PathMatch
    method: str
    headers: _containers.RepeatedCompositeFieldContainer[ValueMatch]
    query: _containers.RepeatedCompositeFieldContainer[ValueMatch]
    def __init__(self, path: _Optional[_Union[PathMatch, _Mapping]] = ..., method: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[ValueMatch, _Mapping]]] = ..., query: _Optional[_Iterable[_Union[ValueMatch, _Mapping]]] = ...) -> None: ...

class PathMatch(_message.Message):
    __slots__ = ("exact", "prefix", "regex", "grpc")
    EXACT_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    GRPC_FIELD_NUMBER: _ClassVar[int]
    exact: str
    prefix: str
    regex: str
    grpc: GrpcMethodMatch
    def __init__(self, exact: _Optional[str] = ..., prefix: _Optional[str] = ..., regex: _Optional[str] = ..., grpc: _Optional[_Union[GrpcMethodMatch, _Mapping]] = ...) -> None: ...

class GrpcMethodMatch(_message.Message):
    __slots__ = ("service", "method", "regex")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    service: str
    method: str
    regex: bool
    def __init__(self, service: _Optional[str] = ..., method: _Optional[str] = ..., regex: _Optional[bool] = ...) -> None: ...

class ValueMatch(_message.Message):
    __slots__ = ("name", "exact", "regex")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    name: str
    exact: str
    regex: str
    def __init__(self, name: _Optional[str] = ..., exact: _Optional[str] = ..., regex: _Optional[str] = ...) -> None: ...

class RouteBackend(_message.Message):
    __slots__ = ("weight", "backend", "invalid", "policies")
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    INVALID_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    weight: int
    backend: str
    invalid: InvalidBackend
    policies: _containers.RepeatedCompositeFieldContainer[_policy_pb2.Policy]
    def __init__(self, weight: _Optional[int] = ..., backend: _Optional[str] = ..., invalid: _Optional[_Union[InvalidBackend, _Mapping]] = ..., policies: _Optional[_Iterable[_Union[_policy_pb2.Policy, _Mapping]]] = ...) -> None: ...

class InvalidBackend(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class TcpRoute(_message.Message):
    __slots__ = ("source", "parents", "hostnames", "backends", "order", "rule")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    HOSTNAMES_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    source: _policy_pb2.ObjectRef
    parents: _containers.RepeatedCompositeFieldContainer[Parent]
    hostnames: _containers.RepeatedScalarFieldContainer[str]
    backends: _containers.RepeatedCompositeFieldContainer[RouteBackend]
    order: str
    rule: str
    def __init__(self, source: _Optional[_Union[_policy_pb2.ObjectRef, _Mapping]] = ..., parents: _Optional[_Iterable[_Union[Parent, _Mapping]]] = ..., hostnames: _Optional[_Iterable[str]] = ..., backends: _Optional[_Iterable[_Union[RouteBackend, _Mapping]]] = ..., order: _Optional[str] = ..., rule: _Optional[str] = ...) -> None: ...

class UdpRoute(_message.Message):
    __slots__ = ("source", "parents", "backends", "order", "rule")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    source: _policy_pb2.ObjectRef
    parents: _containers.RepeatedCompositeFieldContainer[Parent]
    backends: _containers.RepeatedCompositeFieldContainer[RouteBackend]
    order: str
    rule: str
    def __init__(self, source: _Optional[_Union[_policy_pb2.ObjectRef, _Mapping]] = ..., parents: _Optional[_Iterable[_Union[Parent, _Mapping]]] = ..., backends: _Optional[_Iterable[_Union[RouteBackend, _Mapping]]] = ..., order: _Optional[str] = ..., rule: _Optional[str] = ...) -> None: ...
