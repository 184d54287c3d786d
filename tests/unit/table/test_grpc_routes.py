"""Matching and precedence of GRPCRoutes, and their place beside HTTPRoutes (Gateway API GRPCRouteRule)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dataplane.table.store import Change
from gatewright.wire.v1 import resource_pb2
from tests.fakes.table_state import TableRun, bind, exchange, gone, listener, match, route, route_key

CALL = b"content-type: application/grpc\r\n"
KIND = "GRPCRoute"


def grpc(name: str, service: str = "", method: str = "", **others: Any) -> Change:  # fields of `match` or `route`
    fields = {key: others.pop(key) for key in ("headers",) if key in others}
    matches = [match(grpc=(service, method), **fields)] if service or method or fields else []
    return route(name, *matches, kind=KIND, **others)


def table(*changes: Change) -> TableRun:
    run = TableRun()
    run.apply(bind(), listener(), *changes)
    assert run.refused == {}
    return run


def call(run: TableRun, path: str, headers: bytes = b"", host: str = "a.example") -> str | None:
    return run.find(host, path, method="POST", headers=CALL + headers)


MATCHES = {
    # service and method of the match, path, whether it matches
    "service and method": ("shop.Cart", "Get", "/shop.Cart/Get", True),
    "another method": ("shop.Cart", "Get", "/shop.Cart/Put", False),
    "another service": ("shop.Cart", "Get", "/shop.Other/Get", False),
    "case counts": ("shop.Cart", "Get", "/shop.cart/get", False),
    "a service alone": ("shop.Cart", "", "/shop.Cart/Put", True),
    "whole services": ("shop.Cart", "", "/shop.CartX/Put", False),
    "a leading dot": (".shop.Cart", "Get", "/.shop.Cart/Get", True),
    "a method alone": ("", "Get", "/any.Service/Get", True),
    "whole methods": ("", "Get", "/any.Service/GetAll", False),
    "a method is the second segment": ("", "Get", "/Get", False),
    "a method is the last segment": ("", "Get", "/any.Service/Get/More", False),
    "two regular expressions": ("~shop[.].*", "~Get|Put", "/shop.Cart/Put", True),
    "both must match": ("~shop[.].*", "~Get|Put", "/shop.Cart/Delete", False),
    "a whole service": ("~shop", "", "/shop.Cart/Put", False),
    "a service by regular expression": ("~shop[.].*", "", "/shop.Cart/Put", True),
    "an alternative": ("~shop|store", "", "/store/Put", True),
    "anchors": ("~^shop$", "~^Get$", "/shop/Get", True),
    "a service does not span segments": ("~.*", "", "/a/b/Get", False),
    "a method by regular expression": ("", "~Get.*", "/any.Service/GetAll", True),
    "a whole method": ("", "~Get", "/any.Service/GetAll", False),
    "without a match": ("", "", "/any.Service/Any", True),
}


@pytest.mark.parametrize("row", MATCHES.values(), ids=MATCHES)
def test_a_match(row: tuple[str, str, str, bool]) -> None:
    service, method, path, matches = row
    assert (call(table(grpc("it", service, method)), path) == "it") is matches


def test_headers_must_match_too() -> None:
    run = table(grpc("it", "shop.Cart", "", headers={"version": "2", "tier": "~gold|silver"}))
    assert call(run, "/shop.Cart/Get", b"version: 2\r\ntier: gold\r\n") == "it"
    assert call(run, "/shop.Cart/Get", b"version: 2\r\n") is None
    assert call(run, "/shop.Cart/Get", b"version: 2\r\ntier: golden\r\n") is None


def test_headers_alone() -> None:
    run = table(grpc("it", headers={"version": "2"}), grpc("all"))
    assert call(run, "/shop.Cart/Get", b"version: 2\r\n") == "it"
    assert call(run, "/shop.Cart/Get") == "all"


# The first of these that is there gets a call of /shop.Cart/Get with both headers.
PRECEDENCE = (
    grpc("host", hosts=["a.example"]),
    grpc("wildcard", hosts=["*.example"]),
    grpc("exact-2-headers", "shop.Cart", "Get", headers={"a": "1", "b": "1"}),
    grpc("exact-1-header", "shop.Cart", "Get", headers={"b": "1"}),
    grpc("exact-older", "shop.Cart", "Get", order="2025"),
    grpc("exact-by-name", "shop.Cart", "Get", order="2026 a"),
    grpc("exact", "shop.Cart", "Get", order="2026 b"),
    grpc("exact-later-rule", "shop.Cart", "Get", order="2026 b", rule=1),
    grpc("both-longer-regex", "~shop[.]Car.", "~G.*", headers={"a": "1"}),
    grpc("both-regex-header", "~s.*", "~G.*", headers={"a": "1"}),
    grpc("both-regex", "~s.*", "~G.*"),
    grpc("service-header", "shop.Cart", headers={"a": "1"}),
    grpc("service", "shop.Cart"),
    grpc("service-longer-regex", "~shop[.].*"),
    grpc("service-regex-header", "~s.*", headers={"a": "1"}),
    grpc("service-regex", "~s.*"),
    grpc("method-header", "", "Get", headers={"a": "1"}),
    grpc("method", "", "Get"),
    grpc("method-longer-regex", "", "~G[a-z]*"),
    grpc("method-regex", "", "~G.*"),
    grpc("all-2-headers", headers={"a": "1", "b": "1"}),
    grpc("all-header", headers={"a": "1"}),
    grpc("all-older", order="2025"),
    grpc("all", order="2026"),
    route("http", prefix="/shop.Cart"),
)


def name_of(change: Change) -> str:
    return resource_pb2.Resource.FromString(change.value or b"").route.source.name


def test_precedence(dice: Random) -> None:
    """In whatever order the routes come and go."""
    rows, run = list(PRECEDENCE), TableRun()
    run.apply(bind(), listener(), *dice.sample(rows, len(rows)))
    while rows:
        assert call(run, "/shop.Cart/Get", b"a: 1\r\nb: 1\r\n") == name_of(rows[0])
        run.apply(gone(rows.pop(0).name))
    assert call(run, "/shop.Cart/Get") is None


def test_the_second_of_two_matches_of_a_rule() -> None:
    run = table(route("it", match(grpc=("a.A", "One")), match(grpc=("b.B", "")), kind=KIND))
    assert [call(run, path) for path in ("/a.A/One", "/b.B/Any", "/a.A/Two")] == ["it", "it", None]


# --- beside HTTPRoutes of the same host


BESIDE = {
    "each its own": ([grpc("calls"), route("pages", prefix="/")], "calls", "pages"),
    "a call is looked for among HTTPRoutes, too": (
        [grpc("calls", "b.B"), route("pages", prefix="/")],
        "pages",
        "pages",
    ),
    "others are looked for among GRPCRoutes, too": ([grpc("calls"), route("pages", prefix="/x")], "calls", "calls"),
    "a longer path of the other kind": ([grpc("calls"), route("pages", prefix="/a.A/One")], "calls", "pages"),
    "the host goes before the kind": (
        [grpc("calls", hosts=["*.example"]), route("pages", hosts=["a.example"], prefix="/")],
        "pages",
        "pages",
    ),
    "a GRPCRoute alone": ([grpc("calls")], "calls", "calls"),
}


@pytest.mark.parametrize("row", BESIDE.values(), ids=BESIDE)
def test_beside_http_routes(row: tuple[list[Change], str, str]) -> None:
    changes, of_calls, of_others = row
    run = table(*changes)
    assert call(run, "/a.A/One") == of_calls
    assert run.find(path="/a.A/One") == of_others


@pytest.mark.parametrize(
    ("headers", "method", "expected"),
    [
        (b"content-type: application/grpc+proto\r\n", "POST", "calls"),
        (b"content-type: application/grpc-web\r\n", "POST", "calls"),
        (b"content-type: application/grpc-web-text+proto\r\n", "POST", "calls"),
        (b"content-type: application/json\r\n", "POST", "pages"),
        (b"content-type: application/grpcx\r\n", "POST", "pages"),
        (b"accept: application/grpc\r\n", "POST", "pages"),
        (b"Access-Control-Request-Headers: content-type,X-Grpc-Web\r\n", "OPTIONS", "calls"),
        (b"Access-Control-Request-Headers: content-type\r\n", "OPTIONS", "pages"),
        (b"content-type: application/grpc\r\n", "OPTIONS", "pages"),
    ],
)
def test_what_is_a_call(headers: bytes, method: str, expected: str) -> None:
    run = table(grpc("calls"), route("pages", prefix="/"))
    assert run.find(path="/a.A/One", headers=headers, method=method) == expected


def test_routes_of_one_name_and_two_kinds() -> None:
    run = table(grpc("same"), route("same", prefix="/"))
    assert run.plan(exchange(headers=CALL)).key == route_key("same", kind=KIND)  # type: ignore[union-attr]
    assert run.plan(exchange()).key == route_key("same")  # type: ignore[union-attr]
    run.apply(gone(route_key("same", kind=KIND)))
    assert run.plan(exchange(headers=CALL)).key == route_key("same")  # type: ignore[union-attr]
    run.apply(gone(route_key("same")))
    assert run.plan(exchange()) is None
    assert not run.listeners()["http"].router.any


def test_a_table_that_exchanges_use_stays_as_it_is() -> None:
    run = table(grpc("one", "a.A"))
    router = run.listeners()["http"].router
    run.apply(grpc("two", "b.B"), gone(route_key("one", kind=KIND)))
    x = exchange(path="/a.A/One", headers=CALL)
    assert router.match(x.host, x.path, x).key == route_key("one", kind=KIND)  # type: ignore[union-attr]
    assert call(run, "/a.A/One") is None and call(run, "/b.B/One") == "two"


def test_a_bad_regular_expression_is_refused() -> None:
    run = TableRun()
    run.apply(bind(), listener(), grpc("bad", "~["))
    assert "regular expression '['" in run.refused[route_key("bad", kind=KIND)]
