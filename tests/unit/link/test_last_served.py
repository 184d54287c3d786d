"""Whom a worker serves, as its agent reads it."""

from __future__ import annotations

from dataplane.link import last_served
from dataplane.link.last_served import NAME_BYTES, SECTIONS, LastServed, Served, named
from dataplane.link.shared import Region


def test_the_agent_reads_what_the_worker_says() -> None:
    region = Region.create("test", SECTIONS)
    attached = Region.attach(region.fd)
    served = LastServed.of(attached)
    assert last_served.read(region) == Served(0, "")
    served.now(named("client", "HTTP/1.1", "192.0.2.7", "bind/8080"))
    assert last_served.read(region) == Served(1, "client HTTP/1.1 192.0.2.7 bind=bind/8080")
    served.now(b"x")
    assert last_served.read(region) == Served(2, "x"), "nothing of a longer name is left"
    region.close()


def test_a_successor_begins_anew() -> None:
    region = Region.create("test", SECTIONS)
    LastServed.of(region).now(b"of the dead one")
    last_served.forget(region)
    assert last_served.read(region) == Served(0, "")
    region.close()


def test_long_names_are_cut_also_within_a_character() -> None:
    region = Region.create("test", SECTIONS)
    LastServed.of(region).now(named("client", "HTTP/2", "é" * 200))
    read = last_served.read(region).name
    assert read.startswith("client HTTP/2 éé") and len(read.encode()) <= NAME_BYTES + 2
    region.close()
