from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Attribute(_message.Message):
    __slots__ = ("name", "expression")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    expression: str
    def __init__(self, name: _Optional[str] = ..., expression: _Optional[str] = ...) -> None: ...

class Attributes(_message.Message):
    __slots__ = ("remove", "add")
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    remove: _containers.RepeatedScalarFieldContainer[str]
    add: _containers.RepeatedCompositeFieldContainer[Attribute]
    def __init__(self, remove: _Optional[_Iterable[str]] = ..., add: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ...) -> None: ...

class AccessLog(_message.Message):
    __slots__ = ("filter", "attributes")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    filter: str
    attributes: Attributes
    def __init__(self, filter: _Optional[str] = ..., attributes: _Optional[_Union[Attributes, _Mapping]] = ...) -> None: ...
