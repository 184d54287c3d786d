"""One table, two sources: whose resource is in effect, who has a port, what fills a new worker."""

from __future__ import annotations

from dataplane.agent.resources import FILE, XDS, Resources
from dataplane.link.messages import ENDPOINT, RESOURCE, Record
from gatewright.wire.v1 import bind_pb2, resource_pb2


def route(name: str, value: bytes | None = b"1") -> Record:
    return Record(RESOURCE, f"route/{name}", value)


def bind(name: str, port: int, *addresses: str) -> Record:
    message = resource_pb2.Resource(key=f"bind/{name}", bind=bind_pb2.Bind(port=port, addresses=addresses))
    return Record(RESOURCE, f"bind/{name}", message.SerializeToString())


def gone(record: Record) -> Record:
    return record._replace(value=None)


def test_only_differences_reach_the_workers() -> None:
    table = Resources()
    assert table.update(XDS, [route("a"), route("b")]) == [route("a"), route("b")]
    assert table.update(XDS, [route("a"), route("b", b"2"), gone(route("c"))]) == [route("b", b"2")]
    assert table.update(XDS, [gone(route("a"))]) == [gone(route("a"))]


def test_a_source_does_not_remove_what_the_other_gave() -> None:
    table = Resources()
    table.update(XDS, [route("a")])
    table.update(FILE, [route("b")])
    assert table.replace(FILE, []) == [gone(route("b"))]
    assert table.update(FILE, [gone(route("a"))]) == []
    table.judge(set())
    assert list(table.good()) == [route("a")]


def test_the_control_plane_wins_a_key_and_the_file_gets_it_back() -> None:
    table = Resources()
    table.update(FILE, [route("a", b"file")])
    assert table.update(XDS, [route("a", b"xds")]) == [route("a", b"xds")]
    assert table.update(FILE, [route("a", b"file 2")]) == []
    assert table.source_of(RESOURCE, "route/a") == XDS
    assert table.update(XDS, [gone(route("a"))]) == [route("a", b"file 2")]
    assert table.source_of(RESOURCE, "route/a") == FILE


def test_replace_removes_what_is_not_named_any_more() -> None:
    table = Resources()
    table.replace(FILE, [route("a"), route("b")])
    assert table.replace(FILE, [route("b", b"2"), route("c")]) == [route("b", b"2"), route("c"), gone(route("a"))]


def test_a_port_that_both_claim_stays_with_who_has_it_and_the_error_names_both() -> None:
    table = Resources()
    table.update(FILE, [bind("file", 8080)])
    assert table.update(XDS, [bind("web", 8080), route("a")]) == [route("a")]
    (reason,) = table.conflicts(XDS).values()
    assert all(word in reason for word in ("8080", "bind/file", "bind/web", "(file)", "(xds)"))
    assert table.conflicts(FILE) == {}
    # A restart of the stream does not turn it round.
    assert table.update(XDS, [bind("web", 8080)]) == []
    assert table.replace(FILE, []) == [gone(bind("file", 8080)), bind("web", 8080)]
    assert table.conflicts(XDS) == {}


def test_the_file_cannot_take_a_port_from_the_control_plane() -> None:
    table = Resources()
    table.update(XDS, [bind("web", 8080)])
    assert table.replace(FILE, [bind("file", 8080), bind("other", 8081)]) == [bind("other", 8081)]
    assert list(table.conflicts(FILE)) == ["bind/file"]
    assert table.update(XDS, [bind("web", 9090)]) == [bind("web", 9090), bind("file", 8080)]


def test_one_port_on_different_addresses_is_no_conflict() -> None:
    table = Resources()
    table.update(XDS, [bind("web", 8080, "127.0.0.1")])
    assert len(table.replace(FILE, [bind("file", 8080, "127.0.0.2")])) == 1
    assert table.conflicts(FILE) == {}
    table.replace(FILE, [bind("file", 8080, "127.0.0.2", "127.0.0.1")])
    assert list(table.conflicts(FILE)) == ["bind/file"]


def test_binds_of_one_source_are_not_set_against_each_other() -> None:
    """What two binds of one source mean is the workers' to say: they may be listeners of one port."""
    table = Resources()
    assert table.update(XDS, [bind("a", 80), bind("b", 80)]) == [bind("a", 80), bind("b", 80)]
    assert table.conflicts(XDS) == table.conflicts(FILE) == {}


def test_a_bind_that_cannot_be_read_claims_nothing() -> None:
    table = Resources()
    broken = Record(RESOURCE, "bind/broken", b"\xff\xff")
    assert table.update(XDS, [broken]) == [broken]
    assert len(table.replace(FILE, [bind("file", 8080)])) == 1


def test_a_new_worker_is_filled_with_endpoints_first() -> None:
    table = Resources()
    endpoint = Record(ENDPOINT, "default/shop/80/127.0.0.1:1", b"e")
    table.update(XDS, [route("a"), endpoint])
    assert list(table.unjudged()) == [endpoint, route("a")]
    table.judge(set())
    assert list(table.good()) == [endpoint, route("a")]


def test_what_is_refused_stays_beside_its_last_good_version() -> None:
    table = Resources()
    table.update(XDS, [route("a", b"good"), route("b", b"good")])
    table.judge(set())
    table.update(XDS, [route("a", b"bad"), route("new", b"bad")])
    table.judge({"route/a", "route/new"})
    assert sorted(table.good()) == [route("a", b"good"), route("b", b"good")]
    assert sorted(table.unjudged()) == [route("a", b"bad"), route("new", b"bad")]
    # Worse does not replace good, and changes of other resources change nothing.
    table.update(XDS, [route("a", b"worse")])
    table.judge({"route/a", "route/new"})
    table.update(XDS, [route("b", b"better")])
    table.judge({"route/a", "route/new"})
    assert sorted(table.good()) == [route("a", b"good"), route("b", b"better")]
    assert sorted(table.unjudged()) == [route("a", b"worse"), route("new", b"bad")]
    # Mended, removed: nothing is left.
    table.update(XDS, [route("a", b"mended"), gone(route("new"))])
    table.judge(set())
    assert sorted(table.good()) == [route("a", b"mended"), route("b", b"better")]
    assert list(table.unjudged()) == [] and not table.is_refused("route/new")


def test_what_is_not_refused_any_more_is_good_though_it_did_not_change() -> None:
    """A listener with a hostname that another has on the same port, when the other one goes."""
    table = Resources()
    table.update(XDS, [route("first"), route("rival")])
    table.judge({"route/rival"})
    assert list(table.good()) == [route("first")]
    table.update(XDS, [gone(route("first"))])
    table.judge(set())
    assert list(table.good()) == [route("rival")] and list(table.unjudged()) == []


def test_a_worker_that_is_born_amid_a_state_hears_first_what_the_others_had_judged() -> None:
    table = Resources()
    table.update(XDS, [route("a", b"good"), route("b", b"good"), route("c", b"good"), route("d", b"good")])
    table.judge(set())
    table.update(XDS, [route("c", b"bad")])
    table.judge({"route/c"})
    table.update(XDS, [route("a", b"unjudged"), route("new", b"unjudged"), route("c", b"worse"), gone(route("d"))])
    # A first version that is refused would leave nothing in its place, while the others serve the last good one.
    assert sorted(table.good()) == [route("a", b"good"), route("b", b"good"), route("c", b"good")]
    assert sorted(table.unjudged()) == [route("a", b"unjudged"), route("c", b"worse"), route("new", b"unjudged")]


def test_a_worker_may_be_born_while_what_is_refused_is_removed() -> None:
    table = Resources()
    table.update(XDS, [route("a", b"bad")])
    table.judge({"route/a"})
    table.update(XDS, [gone(route("a"))])
    assert (list(table.good()), list(table.unjudged())) == ([], [])
    table.judge(set())
    assert not table.is_refused("route/a")


def test_it_knows_who_gave_what() -> None:
    table = Resources()
    table.update(XDS, [route("a")])
    assert (table.has(XDS, "route/a"), table.has(FILE, "route/a")) == (True, False)
    assert (table.count(XDS), table.count(FILE)) == (1, 0)
    assert table.source_of(RESOURCE, "route/b") == ""
