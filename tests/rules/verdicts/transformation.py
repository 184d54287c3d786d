"""Verdicts on transformations (2-policies, Transformation), of traffic and of backends."""

from __future__ import annotations

from tests.rules.verdicts.common import (
    CONNECTION,
    CONNECTION_HEADERS,
    P,
    pseudo_header_name,
    pseudo_header_name_in_full,
)
from tests.rules.verdicts.table import Nested, Rows, Shape, shape
from tests.rules.verdicts.words import (
    entries,
    expression,
    first_of,
    in_list,
    invalid,
    items,
    nested,
    required,
    unknown,
)

_LIMIT = P + "| Transform set / add / remove / metadata | 1 to 16 each |"
_SET = P + "| set | array of `{name: HeaderName, value: CELExpression}` | 1 to 16; set header to value |"
_ADD = P + "| add | same shape | 1 to 16; if the header exists the value is appended as an extra entry |"
_REMOVE = P + "| remove | array of HeaderName | 1 to 16 |"
_BODY = P + "| body | CELExpression | body transformation |"
_METADATA = P + "| metadata | map string to CELExpression | 1 to 16 entries"


def _header(good: str, spec: str) -> Shape:
    return shape(
        {"name": "x-a", "value": good},
        required("name", spec),
        pseudo_header_name("name", spec),
        pseudo_header_name_in_full("name"),
        required("value", spec),
        expression("value", spec, good),
    )


def _list(path: str, spec: str, good: str) -> Rows:
    yield from items(path, 1, 16, _LIMIT, lambda n: {"name": f"h{n}", "value": good})
    yield from (invalid(path, [{"name": name, "value": good}], CONNECTION) for name in CONNECTION_HEADERS)


def _removed() -> Rows:
    yield from items("remove", 1, 16, _LIMIT, lambda n: f"h{n}")
    yield from (invalid("remove", [name], CONNECTION) for name in CONNECTION_HEADERS)
    yield from in_list("remove", pseudo_header_name("remove", _REMOVE))


def _transform(good: str) -> Shape:
    header = _header(good, _SET)
    return shape(
        {},
        _list("set", _SET, good),
        first_of("set", header, _SET),
        _list("add", _ADD, good),
        first_of("add", header, _ADD),
        _removed(),
        expression("body", _BODY, good),
        entries("metadata", 1, 16, _LIMIT, good),
        expression("metadata.k", _METADATA, good),
        unknown("rename", [], _REMOVE),
    )


_SPEC = P + "Transformation (`request` and `response`, each a Transform):"
_REQUEST = _transform("request.path")
_RESPONSE = _transform("response.code")
FIELDS: tuple[Nested, ...] = (nested("request", _REQUEST, _SPEC), nested("response", _RESPONSE, _SPEC))
TRANSFORMATION = shape(
    {}, *FIELDS, unknown("conditional", [], P + "The fields `transformation`, `extProc`, `extAuth`, `rateLimit` and")
)
