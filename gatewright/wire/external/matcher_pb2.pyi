from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeMatcher(_message.Message):
    __slots__ = ("node_id", "node_metadatas")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_METADATAS_FIELD_NUMBER: _ClassVar[int]
    node_id: StringMatcher
    node_metadatas: _containers.RepeatedCompositeFieldContainer[StructMatcher]
    def __init__(self, node_id: _Optional[_Union[StringMatcher, _Mapping]] = ..., node_metadatas: _Optional[_Iterable[_Union[StructMatcher, _Mapping]]] = ...) -> None: ...

class StringMatcher(_message.Message):
    __slots__ = ("exact", "prefix", "suffix", "safe_regex", "contains", "ignore_case")
    EXACT_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    SUFFIX_FIELD_NUMBER: _ClassVar[int]
    SAFE_REGEX_FIELD_NUMBER: _ClassVar[int]
    CONTAINS_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CASE_FIELD_NUMBER: _ClassVar[int]
    exact: str
    prefix: str
    suffix: str
    safe_regex: RegexMatcher
    contains: str
    ignore_case: bool
    def __init__(self, exact: _Optional[str] = ..., prefix: _Optional[str] = ..., suffix: _Optional[str] = ..., safe_regex: _Optional[_Union[RegexMatcher, _Mapping]] = ..., contains: _Optional[str] = ..., ignore_case: _Optional[bool] = ...) -> None: ...

class RegexMatcher(_message.Message):
    __slots__ = ("regex",)
    REGEX_FIELD_NUMBER: _ClassVar[int]
    regex: str
    def __init__(self, regex: _Optional[str] = ...) -> None: ...

class StructMatcher(_message.Message):
    __slots__ = ("path", "value")
    class PathSegment(_message.Message):
        __slots__ = ("key",)
        KEY_FIELD_NUMBER: _ClassVar[int]
        key: str
        def __init__(self, key: _Optional[str] = ...) -> None: ...
    PATH_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedCompositeFieldContainer[StructMatcher.PathSegment]
    value: ValueMatcher
    def __init__(self, path: _Optional[_Iterable[_Union[StructMatcher.PathSegment, _Mapping]]] = ..., value: _Optional[_Union[ValueMatcher, _Mapping]] = ...) -> None: ...

class ValueMatcher(_message.Message):
    __slots__ = ("null_match", "string_match", "bool_match", "present_match")
    class NullMatch(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    NULL_MATCH_FIELD_NUMBER: _ClassVar[int]
    STRING_MATCH_FIELD_NUMBER: _ClassVar[int]
    BOOL_MATCH_FIELD_NUMBER: _ClassVar[int]
    PRESENT_MATCH_FIELD_NUMBER: _ClassVar[int]
    null_match: ValueMatcher.NullMatch
    string_match: StringMatcher
    bool_match: bool
    present_match: bool
    def __init__(self, null_match: _Optional[_Union[ValueMatcher.NullMatch, _Mapping]] = ..., string_match: _Optional[_Union[StringMatcher, _Mapping]] = ..., bool_match: _Optional[bool] = ..., present_match: _Optional[bool] = ...) -> None: ...
