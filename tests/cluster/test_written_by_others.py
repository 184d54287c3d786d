"""Statuses that others write by hand, on a real API server: theirs stay, what they say in our name goes, and whoever
goes on with it does not keep the controller busy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.controllers import (
    SHOP,
    Controller,
    Json,
    apply,
    conditions,
    gateway,
    get,
    of_route,
    route,
)
from tests.cluster.kube import ApiServer
from tests.harness.ports import reserve
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.needs("go")

OURS, THEIRS = "gatewright.dev/controller", "example.com/controller"
LONGEST = 32_768
"""Characters of a message, by Gateway API."""
POLICIES = "/apis/gatewright.dev/v1alpha1/namespaces/shop/gatewaypolicies"


@pytest.fixture
def forged(server: ApiServer, controller: Controller) -> Iterator[str]:
    """A Gateway and a route of this name, which have their statuses."""
    gateway(server, "forged", reserve())
    route(server, "forged", "forged")
    wait_until(lambda: of_route(server, "forged").get("Accepted") == "True", controller.process.log)
    yield "forged"
    for each in ("httproutes/another", "httproutes/forged", "gateways/forged"):
        server.request("DELETE", f"{SHOP}/{each}")


def said(kind: str, status: str = "False", message: str = "") -> Json:
    moment = "2001-02-03T04:05:06Z"
    return {"type": kind, "status": status, "reason": "Forged", "message": message, "lastTransitionTime": moment}


def parent(controller: str, name: str, *rows: Json) -> Json:
    reference = {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": name,
    }  # as the API server completes it
    return {"controllerName": controller, "parentRef": reference, "conditions": [*rows]}


def write(server: ApiServer, path: str, status: Json) -> None:
    answer = server.request("PATCH", f"{path}/status", {"status": status}, "application/merge-patch+json")
    assert answer.status == 200, answer.message


def parents(server: ApiServer) -> list[Json]:
    found: list[Json] = get(server, f"{SHOP}/httproutes/forged")["status"]["parents"]
    return found


def by(entries: list[Json], controller: str) -> list[tuple[str, dict[str, str]]]:
    """The parents that a controller speaks of, with what it says."""
    return [(each["parentRef"]["name"], conditions(each)) for each in entries if each["controllerName"] == controller]


def test_entries_of_others_stay_and_what_is_said_in_our_name_goes(
    server: ApiServer, controller: Controller, forged: str
) -> None:
    mine, huge = parents(server), "x" * LONGEST
    theirs = [parent(THEIRS, f"g{number}", said("Accepted", message=huge)) for number in range(28)]
    lies = [parent(OURS, "nowhere", said("Accepted", "True")), parent(OURS, forged, said("Accepted"), said("Example"))]
    write(server, f"{SHOP}/httproutes/{forged}", {"parents": [*theirs[:14], *lies, *theirs[14:]]})
    ((_, right),) = by(mine, OURS)
    expected = [(forged, {**right, "Example": "False"})]  # a type that we do not know may be of somebody who does
    wait_until(lambda: by(parents(server), OURS) == expected, controller.process.log)
    assert [each for each in parents(server) if each["controllerName"] == THEIRS] == theirs


def test_a_list_that_others_have_filled_is_left_to_them(server: ApiServer, controller: Controller, forged: str) -> None:
    theirs = [parent(THEIRS, f"g{number}", said("Accepted")) for number in range(32)]
    write(server, f"{SHOP}/httproutes/{forged}", {"parents": theirs})
    route(server, "another", forged)
    wait_until(lambda: of_route(server, "another").get("Accepted") == "True", controller.process.log)
    assert parents(server) == theirs
    assert controller.process.log().count("cannot be written") == 0


def test_a_gateway_says_again_what_is_so(server: ApiServer, controller: Controller, forged: str) -> None:
    path = f"{SHOP}/gateways/{forged}"
    before = wait_until(lambda: counted(server, 1), controller.process.log)
    row = {**before["listeners"][0], "attachedRoutes": 999, "conditions": [said("Programmed", "True")]}
    address = {"type": "IPAddress", "value": "203.0.113.9"}
    lie = {
        "addresses": [address],
        "listeners": [row],
        "conditions": [said("Programmed", "True"), said("Example", "True")],
    }
    write(server, path, lie)
    found = wait_until(lambda: counted(server, 1), controller.process.log)
    assert found["addresses"] == [
        address
    ]  # a controller that starts no proxies assigns none, and leaves them to others
    assert conditions(found) == {**conditions(before), "Example": "True"}
    assert conditions(found["listeners"][0]) == conditions(before["listeners"][0])


def counted(server: ApiServer, routes: int) -> Json | None:
    """The status of the Gateway, when it says that many."""
    status: Json = get(server, f"{SHOP}/gateways/forged").get("status") or {}
    return status if [each["attachedRoutes"] for each in status.get("listeners") or ()] == [routes] else None


def test_a_policy_that_others_speak_of(server: ApiServer, controller: Controller, forged: str) -> None:
    target = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": forged}
    spec: Json = {"targetRefs": [target], "traffic": {"timeouts": {"request": "5s"}}}
    path = f"{POLICIES}/{forged}"
    apply(server, path, "GatewayPolicy", spec, "gatewright.dev/v1alpha1")
    mine = wait_until(lambda: get(server, path).get("status"), controller.process.log)
    reference = {**target, "namespace": "shop"}
    theirs = {"controllerName": THEIRS, "ancestorRef": reference, "conditions": [said("Accepted")]}
    lie = {"controllerName": OURS, "ancestorRef": {**reference, "name": "other"}, "conditions": [said("Accepted")]}
    write(server, path, {"ancestors": [lie, theirs], "conditions": [said("Accepted"), said("Example")]})

    def is_mended() -> Any:
        found = get(server, path)["status"]
        return theirs in found["ancestors"] and conditions(found) == {**conditions(mine), "Example": "False"}

    wait_until(is_mended, controller.process.log)
    assert len(get(server, path)["status"]["ancestors"]) == len(mine["ancestors"]) + 1
    server.request("DELETE", path)


def test_whoever_undoes_a_status_each_time_is_answered_less_and_less_often(
    server: ApiServer, controller: Controller, forged: str
) -> None:
    """As fast as this test can, for three seconds; then what it says is right again, and others never waited."""
    written, end = controller.written, time.monotonic() + 3.0
    undone = 0
    while time.monotonic() < end:
        lie = parent(OURS, forged, said("Accepted", message=f"number {undone}"))
        write(server, f"{SHOP}/httproutes/{forged}", {"parents": [lie]})
        undone += 1
        wait_until(lambda: of_route(server, forged) != {"Accepted": "False"} or time.monotonic() > end)
    assert controller.written - written <= 8
    route(server, "another", forged)
    wait_until(lambda: of_route(server, "another").get("Accepted") == "True", controller.process.log)
    wait_until(lambda: of_route(server, forged).get("Accepted") == "True", controller.process.log)
