"""Endpoints that are not well, over all workers of a proxy: one row for each, and a report of bounded size."""

from __future__ import annotations

import json

import pytest

from dataplane.agent.troubles import MOST_BYTES, MOST_ROWS, merged, report, row
from dataplane.link import codec
from dataplane.link.messages import Trouble, Troubles

SHOP = "backend/service/default/shop/443"
ONE = Trouble(SHOP, "10.0.0.1:443", 30, 0.0, "shop.test", "certificate verify failed", 2, 90.0)
SAME = Trouble(SHOP, "10.0.0.1:443", 51, 120.0, "shop.test", "timed out", 3, 95.0)
OTHER = Trouble("", "10.0.0.2:443", 0, 0.0, "", "Connection refused", 1, 99.0)


def test_workers_that_see_an_endpoint_differently_make_one_row() -> None:
    assert merged([ONE, OTHER, SAME]) == [
        OTHER,
        Trouble(SHOP, "10.0.0.1:443", 51, 120.0, "shop.test", "timed out", 5, 95.0),
    ]
    assert merged([SAME, ONE]) == merged([ONE, SAME])


def test_a_row_has_what_there_is() -> None:
    assert row(SAME, 100.0) == {
        "endpoint": "10.0.0.1:443",
        "backend": SHOP,
        "unhealthy_percent": 51,
        "evicted_for_seconds": 20.0,
        "failures": 3,
        "reason": "timed out",
        "server_name": "shop.test",
        "last_failure_seconds": 5.0,
    }
    assert row(OTHER._replace(failures=0, unhealthy=7), 100.0) == {"endpoint": "10.0.0.2:443", "unhealthy_percent": 7}
    assert "evicted_for_seconds" not in row(SAME, 120.0)
    for now in (94.0, 95.0):  # clocks of workers are read a moment before
        assert row(SAME, now)["last_failure_seconds"] == 0.0


def test_a_report_is_bounded_in_rows_and_bytes_and_has_the_newest() -> None:
    count = 3 * MOST_ROWS
    many = [OTHER._replace(endpoint=f"10.0.0.1:{number}", last_failure=float(number)) for number in range(count)]
    found = json.loads(report(many, 1000.0))
    assert len(found) == MOST_ROWS and found[0]["endpoint"] == f"10.0.0.1:{count - 1}"
    long = [each._replace(reason="\N{EM DASH}" * 256) for each in many]
    text = report(long, 1000.0)
    assert len(text.encode()) <= MOST_BYTES and 0 < len(json.loads(text)) < MOST_ROWS
    assert report([], 1000.0) == "[]"


@pytest.mark.parametrize(("spare", "count"), [(0, MOST_ROWS), (-1, MOST_ROWS - 1)])
def test_a_report_has_all_that_its_bytes_have_room_for(spare: int, count: int) -> None:
    many = [OTHER._replace(endpoint=f"10.0.0.1:{number:03}", reason="x" * 300) for number in range(MOST_ROWS)]
    room = MOST_BYTES - len(report([each._replace(reason="") for each in many], 1000.0)) - spare
    for number, row_of in enumerate(many):
        many[number] = row_of._replace(reason="x" * (room // MOST_ROWS + (number < room % MOST_ROWS)))
    text = report(many, 1000.0)
    assert len(json.loads(text)) == count
    assert len(text) <= MOST_BYTES and (len(text) == MOST_BYTES) == (not spare)


def test_a_report_travels_over_the_link() -> None:
    message = Troubles((ONE, OTHER))
    assert codec.Decoder().feed(codec.encode(message)) == [message]
