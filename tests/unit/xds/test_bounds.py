"""However much a client says, what is kept of it is bounded."""

from __future__ import annotations

import json

import pytest

from controlplane.snapshot import RESOURCE_TYPE
from controlplane.xds import nacks, subscription
from controlplane.xds.node import ProtocolError
from controlplane.xds.subscription import Subscription
from gatewright.wire.external import discovery_pb2


def request(subscribe: list[str], unsubscribe: list[str] | None = None) -> discovery_pb2.DeltaDiscoveryRequest:
    return discovery_pb2.DeltaDiscoveryRequest(
        type_url=RESOURCE_TYPE, resource_names_subscribe=subscribe, resource_names_unsubscribe=unsubscribe or []
    )


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "MOST_TEXT", 100_000)


def test_names_without_end_are_refused() -> None:
    subscribed = Subscription(request(["*"]))
    with pytest.raises(ProtocolError, match="names of one subscription"):
        for number in range(1000):
            subscribed.update(request([f"{number}/{part}" for part in range(10)]))
    assert len(subscribed.names) < 1000


def test_names_that_are_given_up_without_end_are_refused() -> None:
    subscribed = Subscription(request(["*"]))
    with pytest.raises(ProtocolError):
        for number in range(1000):
            subscribed.update(request([], [f"{number}/{part}" for part in range(10)]))


def test_one_long_name_is_refused() -> None:
    with pytest.raises(ProtocolError):
        Subscription(request(["x" * 200_000]))


def test_the_same_names_again_are_no_more() -> None:
    subscribed = Subscription(request(["*"]))
    for _ in range(1000):
        subscribed.update(request([f"{part}" for part in range(100)]))
    assert len(subscribed.names) == 100


def test_refusals_of_many_nacks() -> None:
    known: dict[str, nacks.Refusal] = {}
    for start in range(0, 5000, 500):
        nacks.note(known, json.dumps([{"key": f"{start + n}", "error": "no"} for n in range(500)]))
    assert len(known) <= nacks.MOST_REFUSALS + 10  # and what counts the others
