"""Whom a worker serves, as its agent reads it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dataplane.link import last_served
from dataplane.link.last_served import LOST, NAME_BYTES, ROWS, SECTIONS, LastServed
from dataplane.link.shared import Region


@pytest.fixture
def region() -> Iterator[Region]:
    made = Region.create("test", SECTIONS)
    yield made
    made.close()


def test_the_agent_reads_what_the_worker_says(region: Region) -> None:
    served = LastServed.of(Region.attach(region.fd))
    assert last_served.read(region) == ""
    client = served.enter("client", "HTTP/1.1", "192.0.2.7", "bind/8080")
    endpoint = served.enter("endpoint", "HTTP/2", "10.0.0.5:80")
    assert last_served.read(region) == "", "nothing came of them yet"
    served.now[0] = client
    assert last_served.read(region) == "client HTTP/1.1 192.0.2.7 bind=bind/8080"
    served.now[0] = endpoint
    assert last_served.read(region) == "endpoint HTTP/2 10.0.0.5:80"


def test_a_successor_begins_anew(region: Region) -> None:
    served = LastServed.of(region)
    served.now[0] = served.enter("client", "HTTP/1.1", "of the dead one")
    last_served.forget(region)
    assert last_served.read(region) == ""


def test_names_of_the_newest_connections_are_kept(region: Region) -> None:
    served = LastServed.of(region)
    numbers = [served.enter("client", "HTTP/1.1", str(number)) for number in range(ROWS + 1)]
    served.now[0] = numbers[0]
    assert last_served.read(region) == LOST
    for number in (1, ROWS - 1, ROWS):
        served.now[0] = numbers[number]
        assert last_served.read(region) == f"client HTTP/1.1 {number}"


def test_long_names_are_cut_also_within_a_character(region: Region) -> None:
    served = LastServed.of(region)
    served.now[0] = served.enter("client", "HTTP/2", "é" * 200)
    read = last_served.read(region)
    assert read.startswith("client HTTP/2 éé") and len(read.encode()) <= NAME_BYTES + 2
