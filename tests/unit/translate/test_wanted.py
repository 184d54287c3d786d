"""The third output: what a Gateway of our class wants to exist, with a toy deployer that makes it so."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from controlplane.derive import Change
from controlplane.translate.keys import ObjectKey
from controlplane.translate.wanted import Owner, Wanted, WantedAddress, WantedKey, WantedProxies, object_name
from tests.unit.translate.golden import World, objects
from tests.unit.translate.test_program import CLASS, FOREIGN_CLASS, GATEWAY

GW = ObjectKey("default", "gw")
DEPLOYMENT, SERVICE = WantedKey("Deployment", "default", "gw"), WantedKey("Service", "default", "gw")


class Deployer:
    """A toy cluster, and who fills it: what was made, and each call that this took."""

    def __init__(self) -> None:
        self.cluster: dict[WantedKey, Wanted] = {}
        self.calls: list[str] = []
        self.order: list[str] = []

    def __call__(self, changes: Sequence[Change[WantedKey, Wanted]]) -> None:
        self.order.append("wanted")
        for key, old, new in changes:
            assert self.cluster.get(key) == old
            if new is None:
                del self.cluster[key]
            else:
                self.cluster[key] = new
            self.calls.append(f"{'make' if old is None else 'mend' if new is not None else 'remove'} {key.kind}")


def deployed(*texts: str) -> tuple[World, Deployer]:
    made, deployer = World(), Deployer()
    made.program.wanted.subscribe(deployer)
    made.put("".join(texts))
    return made, deployer


def test_a_gateway_wants_proxies_and_an_address_with_its_ports() -> None:
    more = GATEWAY.replace("  listeners:\n", "  listeners:\n    - {name: more, protocol: HTTP, port: 8080}\n")
    made, deployer = deployed(CLASS, GATEWAY)
    owner = Owner(GW, "")
    assert deployer.cluster == {
        DEPLOYMENT: WantedProxies(owner, "gatewright", ""),
        SERVICE: WantedAddress(owner, (80,)),
    }
    made.put(more)
    assert deployer.cluster[SERVICE] == WantedAddress(owner, (80, 8080))
    assert deployer.calls == ["make Deployment", "make Service", "mend Service"]


def test_what_a_gateway_no_longer_wants_is_removed() -> None:
    made, deployer = deployed(CLASS, GATEWAY)
    made.put(GATEWAY.replace("protocol: HTTP", "protocol: example.com/quic"))
    assert deployer.cluster.keys() == {DEPLOYMENT}
    made.put(FOREIGN_CLASS)
    assert deployer.cluster == {}
    made.put(CLASS + GATEWAY)
    made.apply([(kind, key, None) for kind, key, _ in objects(GATEWAY)])
    assert deployer.cluster == {}


def test_a_late_deployer_gets_all_that_is_wanted_and_a_change_of_nothing_calls_nobody() -> None:
    made, _ = deployed(CLASS, GATEWAY)
    late = Deployer()
    made.program.wanted.subscribe(late)
    assert late.cluster == dict(made.program.wanted.present()) and len(late.cluster) == 2
    made.put(GATEWAY.replace("name: gw,", "name: gw, labels: {a: b},"))
    assert late.calls == ["make Deployment", "make Service"]


def test_resources_leave_before_the_deployer_is_called() -> None:
    made, deployer = World(), Deployer()
    made.program.resources.subscribe(lambda _: deployer.order.append("resources"))
    made.program.wanted.subscribe(deployer)
    made.put(CLASS + GATEWAY)
    assert deployer.order == ["resources", "wanted"]


@pytest.mark.parametrize("name", ["a.b", "9a", "x" * 64, "a" + ".b" * 120])
def test_a_name_that_no_service_can_have_is_made_one_that_it_can(name: str) -> None:
    made = object_name(name)
    assert len(made) <= 63 and made.replace("-", "").isalnum() and made[0].isalpha() and made[-1].isalnum()
    assert made != object_name(name + "c")


def test_names_of_two_gateways_never_meet() -> None:
    names = ["a.b", "a-b", object_name("a.b"), "gw", "x" * 64, "x" * 65]
    assert len({object_name(name) for name in names}) == len(names)
