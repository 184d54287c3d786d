"""Matches and filters as wire messages."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from gatewright.api import to_wire
from gatewright.api.http_route import HTTPRouteMatch, HTTPRouteRule
from gatewright.api.references import BackendObjectReference
from gatewright.wire.v1 import route_pb2, traffic_pb2


def match(**fields: Any) -> dict[str, Any]:
    return as_dict(to_wire.route_match(HTTPRouteMatch.model_validate(fields)))


def as_dict(message: Any) -> dict[str, Any]:
    result: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return result


def key(reference: BackendObjectReference) -> str | None:
    return f"backend/service/default/{reference.name}/{reference.port}" if reference.name != "nowhere" else None


def policies(**fields: Any) -> list[dict[str, Any]]:
    rule = HTTPRouteRule.model_validate(fields)
    lowered = to_wire.rule_policies(rule.filters, rule.timeouts, rule.retry, mirror_target=key)
    return [as_dict(policy) for policy in lowered]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"path": {"prefix": "/"}}),
        ({"path": {"value": "/"}}, {"path": {"prefix": "/"}}),
        ({"path": {"value": "/api"}}, {"path": {"prefix": "/api"}}),
        ({"path": {"value": "/api/"}}, {"path": {"prefix": "/api"}}),
        ({"path": {"type": "Exact", "value": "/api/"}}, {"path": {"exact": "/api/"}}),
        ({"path": {"type": "RegularExpression", "value": "/a.*"}}, {"path": {"regex": "/a.*"}}),
        ({"method": "GET"}, {"path": {"prefix": "/"}, "method": "GET"}),
        (
            {"headers": [{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}, {"name": "b", "value": "3"}]},
            {"path": {"prefix": "/"}, "headers": [{"name": "x-a", "exact": "1"}, {"name": "b", "exact": "3"}]},
        ),
        (
            {"headers": [{"name": "a", "type": "RegularExpression", "value": ".+"}]},
            {"path": {"prefix": "/"}, "headers": [{"name": "a", "regex": ".+"}]},
        ),
        (
            {"queryParams": [{"name": "Q", "value": "1"}, {"name": "q", "type": "RegularExpression", "value": "x"}]},
            {"path": {"prefix": "/"}, "query": [{"name": "Q", "exact": "1"}, {"name": "q", "regex": "x"}]},
        ),
    ],
)
def test_match(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert match(**fields) == expected


def test_request_and_response_modifiers_are_one_policy() -> None:
    header_filter = {"set": [{"name": "X-A", "value": "1"}], "add": [{"name": "b", "value": "2"}], "remove": ["c"]}
    assert policies(
        filters=[
            {"type": "RequestHeaderModifier", "requestHeaderModifier": header_filter},
            {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["server"]}},
        ]
    ) == [{"header_modifiers": {"request": header_filter, "response": {"remove": ["server"]}}}]


def test_an_empty_modifier_is_still_one() -> None:
    filters = [{"type": "ResponseHeaderModifier", "responseHeaderModifier": {}}]
    assert policies(filters=filters) == [{"header_modifiers": {"response": {}}}]


@pytest.mark.parametrize(
    ("rewrite", "expected"),
    [
        ({"hostname": "a.com"}, {"hostname": "a.com"}),
        ({"path": {"type": "ReplaceFullPath", "replaceFullPath": "/x"}}, {"path": {"replace_full_path": "/x"}}),
        ({"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": ""}}, {"path": {"replace_prefix_match": ""}}),
    ],
)
def test_rewrite(rewrite: dict[str, Any], expected: dict[str, Any]) -> None:
    assert policies(filters=[{"type": "URLRewrite", "urlRewrite": rewrite}]) == [{"url_rewrite": expected}]


@pytest.mark.parametrize(
    ("redirect", "expected"),
    [
        ({}, {"status": 302}),
        ({"scheme": "https", "statusCode": 301}, {"scheme": "https", "status": 301}),
        (
            {"hostname": "a", "port": 8443, "path": {"type": "ReplaceFullPath", "replaceFullPath": "/"}},
            {"hostname": "a", "port": 8443, "path": {"replace_full_path": "/"}, "status": 302},
        ),
    ],
)
def test_redirect(redirect: dict[str, Any], expected: dict[str, Any]) -> None:
    filters = [{"type": "RequestRedirect", "requestRedirect": redirect}]
    assert policies(filters=filters) == [{"request_redirect": expected}]


@pytest.mark.parametrize(
    ("share", "numerator", "denominator"),
    [
        ({}, 100, 100),
        ({"percent": 0}, 0, 100),
        ({"percent": 42}, 42, 100),
        ({"fraction": {"numerator": 5}}, 5, 100),
        ({"fraction": {"numerator": 1, "denominator": 1000}}, 1, 1000),
    ],
)
def test_mirror(share: dict[str, Any], numerator: int, denominator: int) -> None:
    mirror = {"backendRef": {"name": "m", "port": 80}, **share}
    rule = HTTPRouteRule.model_validate({"filters": [{"type": "RequestMirror", "requestMirror": mirror}] * 2})
    one, two = to_wire.rule_policies(rule.filters, mirror_target=key)
    assert one == two
    assert one.request_mirror == traffic_pb2.RequestMirror(
        backend="backend/service/default/m/80", numerator=numerator, denominator=denominator
    )


def test_a_mirror_to_nowhere_is_left_out() -> None:
    mirror = {"backendRef": {"name": "nowhere", "port": 80}}
    assert policies(filters=[{"type": "RequestMirror", "requestMirror": mirror}]) == []


@pytest.mark.parametrize(
    ("timeouts", "expected"),
    [
        ({}, {}),
        ({"request": "1s"}, {"request_ms": "1000"}),
        ({"request": "0s", "backendRequest": "10ms"}, {"backend_request_ms": "10"}),
    ],
)
def test_timeouts(timeouts: dict[str, Any], expected: dict[str, Any]) -> None:
    assert policies(timeouts=timeouts) == [{"timeouts": expected}]


@pytest.mark.parametrize(
    ("retry", "expected"),
    [
        ({}, {"attempts": 1}),
        ({"attempts": 0}, {"attempts": 0}),
        ({"codes": [502, 503], "backoff": "25ms"}, {"codes": [502, 503], "attempts": 1, "backoff_ms": "25"}),
    ],
)
def test_retry(retry: dict[str, Any], expected: dict[str, Any]) -> None:
    assert policies(retry=retry) == [{"retry": expected}]


def test_exceptions_name_fields_that_exist() -> None:
    messages = {
        **route_pb2.DESCRIPTOR.message_types_by_name,
        **traffic_pb2.DESCRIPTOR.message_types_by_name,
    }
    wrong = [row for row in to_wire.EXCEPTIONS if row[1] not in messages[row[0]].fields_by_name]
    assert wrong == []
