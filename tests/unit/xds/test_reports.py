"""Reports of proxies about endpoints: read with suspicion, bounded, and about the proxy's own Gateway alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.answers.fleet import Fleet
from controlplane.xds.protocol import reports
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.reports import KEY, MOST_ROWS, MOST_TEXT, EndpointTrouble
from controlplane.xds.protocol.stream import Stream
from gatewright.wire.external import discovery_pb2, node_pb2

SHOP = "backend/service/default/shop/443"
ROW = {
    "endpoint": "10.0.0.1:443",
    "backend": SHOP,
    "unhealthy_percent": 51,
    "evicted_for_seconds": 20.0,
    "failures": 3,
    "reason": "certificate verify failed",
    "server_name": "shop.test",
    "last_failure_seconds": 5.0,
}


def read(*rows: object) -> tuple[EndpointTrouble, ...]:
    return reports.read(json.dumps(rows), 1000.0, lambda backend: backend == SHOP)


def node(text: str) -> node_pb2.Node:
    made = node_pb2.Node(id="default/web/one")
    made.metadata[KEY] = text
    return made


def test_a_row_in_full_with_moments_instead_of_ages() -> None:
    assert read(ROW) == (
        EndpointTrouble("10.0.0.1:443", SHOP, 51, 1020.0, 3, "certificate verify failed", "shop.test", 995.0),
    )


def test_moments_are_known_to_a_tenth_of_a_second() -> None:
    (row,) = read({**ROW, "evicted_for_seconds": 20.26, "last_failure_seconds": 5.26})
    assert (row.evicted_until, row.last_failure) == (1020.3, 994.7)
    (row,) = read({**ROW, "evicted_for_seconds": 0, "failures": 1})
    assert (row.evicted_until, row.last_failure) == (0.0, 995.0)


def test_a_row_that_says_little() -> None:
    assert read({"endpoint": "10.0.0.1:443"}) == (EndpointTrouble("10.0.0.1:443", "", 0, 0.0, 0, "", "", 0.0),)
    (row,) = reports.read(json.dumps([{"endpoint": "e", "backend": "b" * 2000}]), 0.0, lambda _: True)
    assert row.backend == "b" * 1024


def test_a_proxy_speaks_of_backends_of_its_own_gateway_alone() -> None:
    assert read({**ROW, "backend": "backend/service/other/bank/443"}) == ()
    assert [each.backend for each in read({**ROW, "backend": ""}, ROW)] == ["", SHOP]


@pytest.mark.parametrize(
    "text",
    ["", "[", "{}", "null", "7", '"x"', "[" * 100_000, '[1, null, [], {}, {"endpoint": 7}]', '[{"endpoint": ""}]'],
    ids=lambda text: text[:12],
)
def test_what_is_no_report_says_nothing(text: str) -> None:
    assert reports.read(text, 1000.0, lambda _: True) == ()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"failures": "3"}, {"failures": 0, "last_failure": 0.0}),
        ({"failures": True}, {"failures": 0}),
        ({"failures": -1}, {"failures": 0}),
        ({"failures": 10**300}, {"failures": reports.MOST_NUMBER}),
        ({"failures": float("nan")}, {"failures": 0}),
        ({"evicted_for_seconds": float("inf")}, {"evicted_until": 1000.0 + reports.MOST_NUMBER}),
        ({"unhealthy_percent": 9999}, {"unhealthy_percent": 100}),
        ({"reason": "a\x1b[31m\nb\u2028c"}, {"reason": "a [31m b c"}),
        ({"reason": "x" * 1000}, {"reason": "x" * reports.LONGEST}),
        ({"server_name": None}, {"server_name": ""}),
    ],
    ids=str,
)
def test_values_that_cannot_be(changed: dict[str, Any], found: dict[str, Any]) -> None:
    (row,) = read({**ROW, **changed})
    assert {name: getattr(row, name) for name in found} == found


def test_rows_without_end_are_cut_and_a_text_that_is_too_long_says_nothing() -> None:
    assert len(read(*[ROW] * (MOST_ROWS + 50))) == MOST_ROWS
    assert reports.written(node("x" * MOST_TEXT)) == "x" * MOST_TEXT
    assert reports.written(node("x" * (MOST_TEXT + 1))) == "[]"
    assert reports.written(node("")) == "[]", "a proxy takes back what it said"
    assert reports.written(node_pb2.Node(id="default/web/one")) == ""
    other = node_pb2.Node(id="default/web/one")
    other.metadata["other"] = "x"
    assert reports.written(other) == ""


def test_a_report_answers_nothing_and_changes_no_subscription() -> None:
    stream = Stream(Library(), lambda: 0.0)
    first = discovery_pb2.DeltaDiscoveryRequest(
        node=node_pb2.Node(id="default/web/one"), type_url="t", resource_names_subscribe=["*"]
    )
    stream.receive(first)
    before = repr(stream)
    for text in ("[1]", "[2]"):
        stream.take(discovery_pb2.DeltaDiscoveryRequest(node=node(text), type_url="t").SerializeToString())
        assert stream.report == text
    stream.take(discovery_pb2.DeltaDiscoveryRequest(type_url="t").SerializeToString())
    assert stream.report == "[2]", "a request without one takes nothing back"
    assert repr(stream) == before and stream.take_outcomes() == ()


def test_the_fleet_keeps_the_newest_of_each_proxy_while_it_is_connected() -> None:
    now = [100.0]
    fleet = Fleet(lambda: now[0])
    one, other = (fleet.connect(f"default/web/{name}", "default/web", "") for name in ("one", "other"))
    fleet.hear_report(one, "[1]")
    now[0] = 200.0
    fleet.hear_report(one, "[2]")
    rows = {row.node_id: (row.report, row.reported_at) for row in fleet.proxies(lambda _: 0)}
    assert rows == {"default/web/one": ("[2]", 200.0), "default/web/other": ("", 0.0)}
    fleet.disconnect(one)
    assert [row.report for row in fleet.proxies(lambda _: 0)] == [""]
    fleet.disconnect(other)
