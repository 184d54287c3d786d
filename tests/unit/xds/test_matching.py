"""Node matchers of client status requests."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from controlplane.xds.node import ProtocolError
from controlplane.xds.protocol.matching import matches_any
from gatewright.wire.external import matcher_pb2, node_pb2

NODE = text_format.Parse(
    """
    id: "shop/web/one"
    metadata {
      fields { key: "zone" value { string_value: "Berlin" } }
      fields { key: "spare" value { bool_value: true } }
      fields { key: "none" value { null_value: NULL_VALUE } }
      fields { key: "in" value { struct_value { fields { key: "deep" value { string_value: "x" } } } } }
    }
    """,
    node_pb2.Node(),
)

MATCHERS = [
    ("", True),
    ("node_id {}", True),
    ('node_id { exact: "shop/web/one" }', True),
    ('node_id { exact: "shop/web" }', False),
    ('node_id { prefix: "shop/" }', True),
    ('node_id { prefix: "web" }', False),
    ('node_id { suffix: "/one" }', True),
    ('node_id { suffix: "/two" }', False),
    ('node_id { contains: "web" }', True),
    ('node_id { contains: "WEB" }', False),
    ('node_id { contains: "WEB" ignore_case: true }', True),
    ('node_id { exact: "SHOP/web/ONE" ignore_case: true }', True),
    ('node_id { safe_regex { regex: "shop/.*/one" } }', True),
    ('node_id { safe_regex { regex: "web" } }', False),
    ('node_metadatas { path { key: "zone" } value { string_match { exact: "Berlin" } } }', True),
    ('node_metadatas { path { key: "zone" } value { string_match { exact: "Paris" } } }', False),
    ('node_metadatas { path { key: "in" } path { key: "deep" } value { string_match { exact: "x" } } }', True),
    ('node_metadatas { path { key: "in" } path { key: "no" } value { string_match { exact: "x" } } }', False),
    ('node_metadatas { path { key: "no" } path { key: "deep" } value { string_match { exact: "x" } } }', False),
    ('node_metadatas { path { key: "spare" } value { bool_match: true } }', True),
    ('node_metadatas { path { key: "spare" } value { bool_match: false } }', False),
    ('node_metadatas { path { key: "zone" } value { bool_match: true } }', False),
    ('node_metadatas { path { key: "zone" } value { present_match: true } }', True),
    ('node_metadatas { path { key: "no" } value { present_match: true } }', False),
    ('node_metadatas { path { key: "no" } value { present_match: false } }', True),
    ('node_metadatas { path { key: "none" } value { null_match {} } }', True),
    ('node_metadatas { path { key: "zone" } value { null_match {} } }', False),
    ('node_metadatas { path { key: "zone" } }', False),
    ('node_id { prefix: "shop" } node_metadatas { path { key: "no" } value { present_match: true } }', False),
]


@pytest.mark.parametrize(("text", "expected"), MATCHERS)
def test_matcher(text: str, expected: bool) -> None:
    assert matches_any([text_format.Parse(text, matcher_pb2.NodeMatcher())], NODE) is expected


def test_matchers_are_alternatives() -> None:
    no, yes = (matcher_pb2.NodeMatcher(node_id={"exact": text}) for text in ("no", "shop/web/one"))
    assert matches_any([no, yes], NODE)
    assert not matches_any([no, no], NODE)
    assert matches_any([], NODE)


def test_bad_expression(capfd: pytest.CaptureFixture[str]) -> None:
    bad = matcher_pb2.NodeMatcher(node_id={"safe_regex": {"regex": "(?=a)" * 100}})
    with pytest.raises(ProtocolError, match="not a regular expression of RE2") as failure:
        matches_any([bad], NODE)
    assert str(failure.value).startswith(f"node matcher: '{'(?=a)' * 40}' is not")
    assert capfd.readouterr().err == "", "a client writes nothing into the controller's log"


def test_slow_expression_is_not_slow() -> None:
    hostile = matcher_pb2.NodeMatcher(node_id={"safe_regex": {"regex": "(a*)*b"}})
    assert not matches_any([hostile], node_pb2.Node(id="a" * 10_000))
