"""Envoy's NodeMatcher: which proxies a CSDS request is about.

Pure. Several matchers are alternatives; within one, the id and all metadata must match. An unset matcher matches
everything. Regular expressions are RE2: they take linear time, whatever their author wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import re2
from google.protobuf.struct_pb2 import Struct, Value

from controlplane.xds.node import ProtocolError
from gatewright.wire.external import matcher_pb2, node_pb2

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False

_TEXT: Final[dict[str, Callable[[str, str], bool]]] = {
    "exact": str.__eq__,
    "prefix": str.startswith,
    "suffix": str.endswith,
    "contains": str.__contains__,
}


def matches_any(matchers: Iterable[matcher_pb2.NodeMatcher], node: node_pb2.Node) -> bool:
    """Whether a request with these matchers is about this node; without matchers it is about all.

    Raises:
        ProtocolError: a regular expression is not RE2.
    """
    matchers = tuple(matchers)
    return not matchers or any(_matches(matcher, node) for matcher in matchers)


def _matches(matcher: matcher_pb2.NodeMatcher, node: node_pb2.Node) -> bool:
    if matcher.HasField("node_id") and not _matches_text(matcher.node_id, node.id):
        return False
    return all(_matches_struct(part, node.metadata) for part in matcher.node_metadatas)


def _matches_text(matcher: matcher_pb2.StringMatcher, text: str) -> bool:
    kind = matcher.WhichOneof("match_pattern")
    if kind is None:
        return True
    if kind == "safe_regex":  # ignore_case does not apply to it, as Envoy documents
        return _compiled(matcher.safe_regex.regex).fullmatch(text) is not None
    pattern: str = getattr(matcher, kind)
    if matcher.ignore_case:
        pattern, text = pattern.lower(), text.lower()
    return _TEXT[kind](text, pattern)


def _compiled(regex: str) -> re2._Regexp:
    try:
        return re2.compile(regex, _OPTIONS)
    except re2.error as error:
        raise ProtocolError(f"node matcher: {regex[:200]!r} is not a regular expression of RE2: {error}") from None


def _matches_struct(matcher: matcher_pb2.StructMatcher, metadata: Struct) -> bool:
    value: Value | None = Value(struct_value=metadata)
    for segment in matcher.path:
        fields = value.struct_value.fields if value is not None else {}
        value = fields.get(segment.key)
    return _matches_value(matcher.value, value)


def _matches_value(matcher: matcher_pb2.ValueMatcher, value: Value | None) -> bool:
    kind = matcher.WhichOneof("match_pattern")
    if kind == "present_match":
        return (value is not None) is matcher.present_match
    if value is None or kind is None:
        return False
    held = value.WhichOneof("kind")
    if kind == "string_match":
        return held == "string_value" and _matches_text(matcher.string_match, value.string_value)
    if kind == "bool_match":
        return held == "bool_value" and value.bool_value is matcher.bool_match
    return held == "null_value"
