"""What Gateways want is made, mended and removed: once, and never over what is somebody else's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from controlplane.deploy.names import MANAGED_BY, PRODUCT
from controlplane.deploy.render import rendered
from controlplane.deploy.request import Defaults, Layer, Request, ServicePort, WantedKey
from controlplane.derive import Change, Outlet
from controlplane.kube.access import APPLY, ApiError
from controlplane.kube.writing.deployer import Deployer
from controlplane.kube.writing.owned import KINDS, owner
from controlplane.translate.gateway.wanted import Outcome, Wanted
from controlplane.translate.keys import ObjectKey
from gatewright.api.objects.gateway_parameters import GatewayParametersSpec
from tests.fakes.api_server import ApiServer
from tests.harness.waiting import cancelled, until

WEB = ObjectKey("shop", "web")
SERVICE = WantedKey("Service", "shop", "web")
PATHS = {
    kind: f"/{'apis' if info.group else 'api'}/{info.group + '/' if info.group else ''}{info.versions[0]}"
    f"/namespaces/shop/{info.plural}"
    for kind, info in KINDS.items()
}
LISTS = {kind: path.replace("/namespaces/shop", "") for kind, path in PATHS.items()}


class Server(ApiServer):
    """Lists and watches of all namespaces are those of the one that there is."""

    def _everywhere(self, path: str) -> str:
        return next((PATHS[kind] for kind, each in LISTS.items() if each == path), path)

    async def read(self, path: str, **query: object) -> bytes:
        return await super().read(self._everywhere(path), **query)

    def lines(self, path: str, **query: object) -> AsyncIterator[list[bytes]]:
        return super().lines(self._everywhere(path), **query)


class World:
    def __init__(self, server: Server | None = None) -> None:
        self.server: Server = server or Server()
        for path in PATHS.values():
            self.server.define(path)
        self.feed: Outlet[ObjectKey, Wanted] = Outlet()
        self.outcomes: dict[str, Outcome | None] = {}
        self.elsewhere: set[ObjectKey] = set()
        self.deployer = Deployer(self.server, self.feed, self._report, self.elsewhere.__contains__, lambda: 0.9)

    async def _report(self, outcomes: Mapping[str, Outcome | None]) -> None:
        self.outcomes.update(outcomes)

    def want(self, wanted: Wanted | None) -> None:
        self.feed.put([Change(WEB, self.feed.present().get(WEB), wanted)])

    def has(self, kind: str, name: str = "web") -> bool:
        return name in self.server.objects[PATHS[kind]]

    @property
    def failure(self) -> str:
        found = self.outcomes.get(str(WEB))
        if found is None or found.failure is None:
            return ""
        condition = found.failure.condition
        return f"{condition.type} {condition.reason}: {condition.message}"

    async def holds(self, condition: Callable[[], bool]) -> None:
        await until(condition, lambda: f"{self.failure} {self.server.asked[-30:]}")

    async def idle(self) -> None:
        await self.holds(lambda: len(self.deployer) == 0)

    def writes(self) -> list[tuple[str, str]]:
        return [each for each in self.server.asked if each[0] not in ("GET", "WATCH")]


def wanted(*ports: int, uid: str = "1", name: str = "web") -> Wanted:
    request = Request("shop", name, uid, "gatewright", tuple(ServicePort(port, "TCP") for port in ports))
    return Wanted(uid, rendered(request, Defaults("1"), "c"))


@contextlib.asynccontextmanager
async def leading(world: World | None = None) -> AsyncIterator[World]:
    world = world or World()
    running = [asyncio.create_task(world.deployer.follow()), asyncio.create_task(world.deployer.lead())]
    try:
        yield world
    finally:
        for each in running:
            await cancelled(each)


async def test_everything_is_made_in_order_and_then_nothing_is_written() -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
        kinds = [path.rpartition("/")[0] if method == "PATCH" else path for method, path in world.writes()]
        assert kinds == [PATHS[kind] for kind in ("ServiceAccount", "ConfigMap", "Secret", "Service", "Deployment")]
        assert world.deployer.numbers()["provisioning_writes_total"] == {
            ("written",): 5,
            ("removed",): 0,
            ("failed",): 0,
        }
        before = world.writes()
        key = world.server.objects[PATHS["Secret"]]["web-session-key"]["stringData"]["key"]
        assert len(bytes.fromhex(key)) == 32
        assert key not in repr(world.deployer.live.objects)
        world.want(wanted(80))
        await asyncio.sleep(0)
        await world.idle()
        assert world.writes() == before


class Slow(Server):
    """Answers a read when as many as it is told are asked for at a time."""

    def __init__(self, together: int) -> None:
        super().__init__()
        self.together = together
        self._asked = 0
        self._all = asyncio.Event()

    async def request(self, method: str, path: str, body: Any = None, content: str = "", query: Any = None) -> Any:
        if method == "GET" and not self._all.is_set():
            self._asked += 1
            if self._asked == self.together:
                self._all.set()
            await self._all.wait()
        return await super().request(method, path, body, content, query)


async def test_what_a_pod_needs_is_made_at_a_time_and_before_it() -> None:
    """All are looked for at a time, the Pod's Deployment too."""
    async with leading(World(Slow(5))) as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
        assert world.writes()[-1] == ("PATCH", f"{PATHS['Deployment']}/web")
        assert len(world.writes()) == 5


class Asked(Server):
    """Notes how it was asked to apply."""

    def __init__(self) -> None:
        super().__init__()
        self.forced: list[tuple[str, str]] = []

    async def request(self, method: str, path: str, body: Any = None, content: str = "", query: Any = None) -> Any:
        if content == APPLY:
            assert (query["fieldManager"], query["fieldValidation"]) == ("gatewright", "Strict")
            self.forced.append((path.rpartition("/")[0], query["force"]))
        return await super().request(method, path, body, content, query)


async def test_fields_of_others_are_taken_from_them_only_where_the_object_is_ours() -> None:
    """What somebody makes in the moment between our look and our write is refused by the API server, not taken over."""
    server = Asked()
    async with leading(World(server)) as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
        assert [force for _, force in server.forced] == ["false"] * 4
        world.want(wanted(80, 81))
        await world.holds(lambda: len(server.forced) == 5)
        assert server.forced[-1] == (PATHS["Service"], "true")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, WEB),
        ({"controller": False}, None),
        ({"kind": "HTTPRoute"}, None),
        ({"apiVersion": "example.com/v1"}, None),
        ({"apiVersion": "gateway.networking.k8s.io/v2"}, WEB),
        ({"name": "other"}, ObjectKey("shop", "other")),
    ],
)
def test_an_object_belongs_to_the_gateway_that_controls_it(change: dict[str, Any], expected: ObjectKey | None) -> None:
    body = wanted().objects[0].body
    (reference,) = body["metadata"]["ownerReferences"]
    metadata = {**body["metadata"], "ownerReferences": [{"kind": "Pod", "controller": False}, {**reference, **change}]}
    assert owner({**body, "metadata": metadata}) == expected


async def test_it_is_known_when_every_gateway_was_looked_at() -> None:
    async with leading() as empty:
        await empty.holds(empty.deployer.looked.is_set)
    world = World()
    world.want(wanted(80))
    async with leading(world):
        await world.holds(world.deployer.looked.is_set)
        assert world.has("Deployment")
    assert not world.deployer.looked.is_set(), "by whoever leads, and it leads no more"


async def test_who_begins_to_lead_looks_at_what_is_there_already() -> None:
    """Nothing is wanted of a Gateway that has moved to somebody else meanwhile: what was made for it goes. Only then it
    is known how Gateways are."""
    async with leading() as before:
        before.want(wanted(80))
        await before.holds(lambda: before.has("Deployment"))
        await before.idle()
    world = World()
    world.deployer = Deployer(before.server, world.feed, world._report, lambda _: True, lambda: 0.9)
    world.server = before.server
    looked: list[bool] = []

    async def refused(*asked: Any, **rest: Any) -> Any:
        looked.append(world.deployer.looked.is_set())
        return await Server.request(before.server, *asked, **rest)

    before.server.request = refused  # type: ignore[method-assign]
    async with leading(world):
        await world.holds(lambda: not any(world.has(kind) for kind in PATHS))
        await world.holds(world.deployer.looked.is_set)
    assert looked and not any(looked)


async def test_who_leads_again_looks_at_everything_again() -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
    world.elsewhere.add(WEB)
    world.want(None)
    async with leading(world):
        await world.holds(lambda: not any(world.has(kind) for kind in PATHS))


async def test_who_leads_no_more_does_nothing_and_waits_for_nothing() -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
        world.server.refuse.append(ApiError(403, "Forbidden", "quota"))
        world.want(wanted(80, 81))
        await world.holds(lambda: world.deployer.failures == 1)
        assert len(world.deployer) == 1
    assert len(world.deployer) == 0
    world.want(wanted(80, 82))
    assert len(world.deployer) == 0
    assert world.deployer.numbers()["provisioning_writes_total"][("failed",)] == 1


async def test_what_somebody_changes_is_put_back_and_what_is_removed_is_made_again() -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        found = world.server.objects[PATHS["Service"]]["web"]
        world.server.put(PATHS["Service"], {**found, "spec": {**found["spec"], "ports": []}})
        await world.holds(lambda: bool(world.server.objects[PATHS["Service"]]["web"]["spec"]["ports"]))
        world.server.delete(PATHS["ConfigMap"], "web")
        await world.holds(lambda: world.has("ConfigMap"))


class Stubborn(Server):
    """Somebody takes the ports of a Service away as often as they are applied."""

    applied = 0

    def put(self, path: str, value: Any) -> None:
        super().put(path, value)
        if path == PATHS["Service"] and value["spec"]["ports"]:
            self.applied += 1
            undone = {**value, "spec": {**value["spec"], "ports": []}}
            asyncio.get_running_loop().call_later(0.002, super().put, path, undone)  # behind the answer


async def test_what_somebody_changes_each_time_is_put_back_less_and_less_often() -> None:
    async with leading(World(Stubborn())) as world:
        world.want(wanted(80))
        await world.holds(lambda: "changed by somebody else each time" in world.failure)
        assert world.failure.startswith("Programmed Pending: Service shop/web ")
        assert world.server.applied in (5, 6)  # after 50, 100, 200 and 400 ms
        assert world.has("Deployment")
        world.want(wanted(80, 81))  # what is new is applied at once
        await world.holds(lambda: world.server.applied > 6)


async def test_what_is_no_longer_wanted_is_removed() -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        world.want(wanted())
        await world.holds(lambda: not world.has("Service"))
        assert world.has("Deployment")
        world.elsewhere.add(WEB)
        world.want(None)
        await world.holds(lambda: not any(world.has(kind) for kind in PATHS))


class Removing(Server):
    """Notes what it was asked to remove."""

    def __init__(self) -> None:
        super().__init__()
        self.removed: list[tuple[str, Any]] = []

    async def request(self, method: str, path: str, body: Any = None, content: str = "", query: Any = None) -> Any:
        if method == "DELETE":
            self.removed.append((path, body["preconditions"]))
        return await super().request(method, path, body, content, query)


@pytest.mark.parametrize(
    ("labels", "more"),
    [({}, {}), ({MANAGED_BY: PRODUCT}, {"deletionTimestamp": "2026-01-01T00:00:00Z"})],
    ids=["its label was taken away", "it is being removed"],
)
async def test_what_was_let_go_or_is_going_is_not_removed_again(labels: dict[str, str], more: dict[str, str]) -> None:
    server = Removing()
    async with leading(World(server)) as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
        found = server.objects[PATHS["Service"]]["web"]
        world.want(None)
        await world.idle()
        server.put(PATHS["Service"], {**found, "metadata": {**found["metadata"], "labels": labels, **more}})
        await world.holds(lambda: world.deployer.live.objects[SERVICE]["metadata"]["labels"] == labels)
        world.elsewhere.add(WEB)
        world.deployer.look_for_moved()
        await world.holds(lambda: not any(world.has(kind) for kind in PATHS if kind != "Service"))
        await world.idle()
        assert world.has("Service") and f"{PATHS['Service']}/web" not in [path for path, _ in server.removed]


async def test_what_is_removed_is_what_was_seen() -> None:
    """Another object of that name, or another content, is not."""
    server = Removing()
    async with leading(World(server)) as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        found = server.objects[PATHS["Service"]]["web"]
        server.put(PATHS["Service"], {**found, "metadata": {**found["metadata"], "uid": "5"}})
        version = server.objects[PATHS["Service"]]["web"]["metadata"]["resourceVersion"]
        await world.holds(lambda: world.deployer.live.of(WEB)[SERVICE]["metadata"].get("uid") == "5")
        await world.idle()
        world.want(wanted())
        await world.holds(lambda: not world.has("Service"))
        assert server.removed == [(f"{PATHS['Service']}/web", {"uid": "5", "resourceVersion": version})]


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_what_somebody_made_of_one_of_ours_is_never_removed(kind: str) -> None:
    """`kubectl get -o yaml`, another name, `kubectl apply`: labels, owner and annotations are copied with it."""
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        source = world.server.objects[PATHS["Deployment"]]["web"]
        copied = {**source, "kind": kind, "metadata": {**source["metadata"], "name": "web-copy", "uid": "2"}}
        world.server.put(PATHS[kind], copied)
        await world.holds(lambda: len(world.deployer.reflectors[kind]) == len(world.server.objects[PATHS[kind]]))
        assert len(world.deployer.live.objects) == 5, "nothing is kept of it"
        world.want(wanted())
        await world.holds(lambda: not world.has("Service"))
        world.elsewhere.add(WEB)
        world.want(None)
        await world.holds(lambda: not any(world.has(each) for each in PATHS))
        await world.idle()
        assert world.has(kind, "web-copy")
        assert not any(path.endswith("web-copy") for _, path in world.writes())


async def test_what_was_made_for_a_gateway_goes_also_when_its_new_class_is_known_later_than_its_move() -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        world.want(None)
        await world.idle()
        assert world.has("Deployment")
        world.elsewhere.add(WEB)
        world.deployer.look_for_moved()
        await world.holds(lambda: not any(world.has(kind) for kind in PATHS))


@pytest.mark.parametrize("left", [None, Wanted("1", as_it_is=True)], ids=["gone", "not accepted"])
async def test_nothing_is_removed_of_a_gateway_that_is_gone_or_not_accepted(left: Wanted | None) -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
        before = world.writes()
        world.want(left)
        await asyncio.sleep(0)
        await world.idle()
        assert world.writes() == before


def made(kind: str, *, labelled: bool, owned: bool) -> dict[str, Any]:
    """An object as somebody else makes it, of the name that ours would have."""
    ours = next(each.body for each in full().objects if each.key.kind == kind)
    metadata = {"name": ours["metadata"]["name"], "namespace": "shop", "uid": "9"}
    metadata |= {"labels": ours["metadata"]["labels"]} if labelled else {}
    metadata |= {"ownerReferences": ours["metadata"]["ownerReferences"]} if owned else {}
    return {"apiVersion": ours["apiVersion"], "kind": kind, "metadata": metadata, "theirs": "yes"}


def full() -> Wanted:
    """An object of each kind."""
    spec = GatewayParametersSpec.model_validate({"podDisruptionBudget": {}, "horizontalPodAutoscaler": {}})
    request = Request("shop", "web", "1", "gatewright", (ServicePort(80, "TCP"),), layers=(Layer("own", spec),))
    return Wanted("1", rendered(request, Defaults("1"), "c"))


@pytest.mark.parametrize(
    ("labelled", "owned"), [(False, False), (True, False), (False, True)], ids=["neither", "label", "owner"]
)
@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_one_object_of_somebody_else_stops_all_objects_of_the_gateway(
    kind: str, labelled: bool, owned: bool
) -> None:
    """Pods would run as a foreign account, with a foreign key; ours has both label and owner."""
    world = World()
    theirs = made(kind, labelled=labelled, owned=owned)
    name = theirs["metadata"]["name"]
    world.server.put(PATHS[kind], theirs)
    async with leading(world):
        world.want(full())
        await world.holds(lambda: f"{kind} shop/{name} exists and was not made for this Gateway" in world.failure)
        await world.holds(lambda: world.deployer.failures > 1)  # looked at again
        assert world.writes() == []
        assert world.server.objects[PATHS[kind]][name]["theirs"] == "yes"
        world.server.delete(PATHS[kind], name)
        await world.holds(lambda: not world.failure and all(world.has(each) for each in PATHS if each != "Secret"))


async def test_what_runs_stays_as_it_is_when_an_object_of_somebody_else_takes_the_place_of_ours() -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
        world.server.delete(PATHS["ServiceAccount"], "web")
        world.server.put(PATHS["ServiceAccount"], made("ServiceAccount", labelled=False, owned=False))
        await world.holds(lambda: "ServiceAccount shop/web exists" in world.failure)
        before = world.writes()
        world.want(wanted(80, 81))
        failures = world.deployer.failures
        await world.holds(lambda: world.deployer.failures > failures)
        assert world.writes() == before


@pytest.mark.parametrize(
    ("kind", "is_named"),
    [("ServiceAccount", True), ("ConfigMap", True), ("Secret", True), ("Service", False)],
)
async def test_no_pod_is_asked_for_while_what_it_names_could_not_be_made(kind: str, is_named: bool) -> None:
    """A Service may fail by itself: Pods serve without."""
    world = World(Refusing(PATHS[kind]))
    async with leading(world):
        world.want(wanted(80))
        await world.holds(lambda: world.deployer.failures > 1)
        assert world.has("Deployment") is not is_named


@pytest.mark.parametrize(
    ("message", "is_hinted"),
    [
        ('services "web" is forbidden: User "x" cannot patch resource "services" in API group ""', True),
        ('services "web" is forbidden: exceeded quota: small', False),
        ('services "web" is forbidden: ValidatingAdmissionPolicy "gatewright-controller" denied request', False),
    ],
)
async def test_where_a_right_is_missing_the_status_says_what_to_bind(message: str, is_hinted: bool) -> None:
    async with leading(World(Refusing(PATHS["Service"], message=message))) as world:
        world.want(wanted(80))
        await world.holds(lambda: message in world.failure)
        assert ("bind the ClusterRole gatewright-provisioner in namespace shop" in world.failure) is is_hinted


async def test_what_to_bind_is_said_once_and_logged_once_until_it_is_another_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Refusing(*PATHS.values(), message='User "x" cannot patch it')
    async with leading(World(server)) as world:
        world.want(wanted(80))
        await world.holds(lambda: world.deployer.failures > 1)
        for name in ("ServiceAccount shop/web", "ConfigMap shop/web", "Secret shop/web-session-key"):
            assert f"{name}: 403 Forbidden: " in world.failure
        assert world.failure.count("bind the ClusterRole") == 1
        assert world.failure.endswith("made there: `gatewright crds namespace | kubectl apply -n shop -f -`")
        server.message = "exceeded quota: small"
        await world.holds(lambda: "quota" in world.failure)
        server.refused = ()
        await world.idle()
        server.refused, server.message = (PATHS["Service"],), "exceeded quota: small"
        world.want(wanted(80, 81))
        await world.holds(lambda: "quota" in world.failure)
    found = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert [("quota" in each, "objects of Gateway shop/web: " in each) for each in found] == [
        (False, True),
        (True, True),
        (True, True),
    ]


class Refusing(Server):
    """Takes no write of some kinds."""

    def __init__(self, *paths: str, message: str = "no right") -> None:
        super().__init__()
        self.refused, self.message = paths, message

    async def request(self, method: str, path: str, body: Any = None, content: str = "", query: Any = None) -> Any:
        if method != "GET" and path.startswith(self.refused):
            raise ApiError(403, "Forbidden", self.message)
        return await super().request(method, path, body, content, query)


async def test_a_gateway_of_the_same_name_takes_over_what_was_made_for_the_one_before() -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        world.want(wanted(80, uid="2"))

        def owners() -> set[str]:
            kinds = ("ServiceAccount", "ConfigMap", "Service", "Deployment")
            found = [world.server.objects[PATHS[kind]]["web"]["metadata"]["ownerReferences"] for kind in kinds]
            return {each["uid"] for (each,) in found}

        await world.holds(lambda: owners() == {"2"})


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ApiError(422, "Invalid", "no"), "Accepted InvalidParameters: ServiceAccount shop/web: 422 Invalid: no"),
        (ApiError(403, "Forbidden", "quota"), "Programmed NoResources: ServiceAccount shop/web: 403 Forbidden: quota"),
        (ApiError(500, "", "failed to create typed patch object (x): .spec.y"), "Accepted InvalidParameters: "),
        (ApiError(500, "", "down"), "Programmed Pending: "),
        (ApiError(599, "", "odd"), "Programmed Pending: "),
        (OSError("cut"), "Programmed Pending: ServiceAccount shop/web: cut"),
    ],
)
async def test_a_failure_is_told_and_gone_when_it_went_well(error: Exception, told: str) -> None:
    async with leading() as world:
        await world.deployer.listed()
        seen: list[str] = []
        report = world._report

        async def note(outcomes: Mapping[str, Outcome | None]) -> None:
            await report(outcomes)
            seen.append(world.failure)

        world.deployer._report = note
        world.server.refuse.append(error)
        world.want(wanted(80))
        await world.holds(lambda: any(each.startswith(told) for each in seen))
        await world.holds(lambda: not world.failure and world.has("Deployment"))


async def test_a_failure_is_gone_when_what_failed_is_no_longer_asked_for() -> None:
    async with leading() as world:
        await world.deployer.listed()
        world.server.refuse.extend([ApiError(422, "Invalid", "an old overlay")] * 100)
        world.want(wanted(80))
        await world.holds(lambda: "an old overlay" in world.failure)
        world.want(Wanted("1", as_it_is=True))  # the parameters cannot be used in another way now
        await world.holds(lambda: not world.failure)


async def test_addresses_are_told_also_by_who_does_not_lead() -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Service"))
    follower = World()
    follower.server = world.server
    follower.deployer = Deployer(world.server, follower.feed, follower._report, lambda _: False, lambda: 0.9)
    following = asyncio.create_task(follower.deployer.follow())
    found = world.server.objects[PATHS["Service"]]["web"]
    status = {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}, {"hostname": "a.example", "ip": ""}]}}
    spec = {**found["spec"], "clusterIP": "10.96.0.1"}
    world.server.put(PATHS["Service"], {**found, "spec": spec, "status": status})
    expected = Outcome((("IPAddress", "10.0.0.1"), ("Hostname", "a.example")), cluster_addresses=("10.96.0.1",))
    await follower.holds(lambda: follower.outcomes == {"shop/web": expected})
    assert follower.writes() == world.writes()
    await cancelled(following)


async def test_pods_of_which_none_is_ready_are_told() -> None:
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        found = world.server.objects[PATHS["Deployment"]]["web"]
        for status, is_unready in (
            ({"replicas": 2, "unavailableReplicas": 2}, True),
            ({"replicas": 2, "readyReplicas": 1}, False),
            ({"replicas": 1, "readyReplicas": 0}, True),
            ({"observedGeneration": 2}, False),  # it may have no Pods
        ):
            world.server.put(PATHS["Deployment"], {**found, "status": status})
            expected = {"shop/web": Outcome(is_unready=True)} if is_unready else {"shop/web": None}
            await world.holds(lambda expected=expected: world.outcomes == expected)


async def test_a_copy_of_what_was_made_says_nothing_about_the_gateway() -> None:
    """With our labels and the Gateway as owner; a finalizer keeps it, so that its removal never ends."""
    async with leading() as world:
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
        service, deployment = (
            world.server.objects[PATHS["Service"]]["web"],
            world.server.objects[PATHS["Deployment"]]["web"],
        )

        def copied(found: dict[str, Any], **more: object) -> dict[str, Any]:
            metadata = {**found["metadata"], "name": "copy", "deletionTimestamp": "2026-01-01T00:00:00Z"}
            return {**found, "metadata": metadata, **more}

        def addressed(found: dict[str, Any], address: str) -> dict[str, Any]:
            spec = {**found["spec"], "clusterIP": "10.96.0.1"}
            return {**found, "spec": spec, "status": {"loadBalancer": {"ingress": [{"ip": address}]}}}

        world.server.put(PATHS["Deployment"], copied(deployment, status={"replicas": 1}))
        world.server.put(PATHS["Service"], copied(addressed(service, "10.6.6.6")))
        world.server.put(PATHS["Service"], addressed(service, "10.0.0.1"))
        seen = [world.deployer.reflectors[each] for each in ("Deployment", "Service")]
        await world.holds(lambda: [len(each) for each in seen] == [2, 2])
        await world.holds(
            lambda: (
                world.outcomes == {"shop/web": Outcome((("IPAddress", "10.0.0.1"),), cluster_addresses=("10.96.0.1",))}
            )
        )
        await world.idle()
        assert world.outcomes == {"shop/web": Outcome((("IPAddress", "10.0.0.1"),), cluster_addresses=("10.96.0.1",))}


class Hasty(Server):
    """A load balancer assigns an address, and the watch reports it, before the answer to whoever made the Service has
    come."""

    reported: Callable[[], bool]

    async def request(
        self, method: str, path: str, body: object = None, content: str = "", query: object = None
    ) -> dict[str, object]:
        answer = await super().request(method, path, body, content, query)
        if (method, content) == ("PATCH", APPLY) and path.startswith(PATHS["Service"]):
            status = {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}
            spec = {**dict(body["spec"]), "clusterIP": "10.96.0.1"}  # type: ignore[index]
            self.put(PATHS["Service"], {**answer, "spec": spec, "status": status})
            await until(self.reported, "the watch reports it")
        return answer


async def test_an_address_that_comes_before_the_answer_is_not_lost() -> None:
    world = World()
    server = world.server = Hasty()
    for path in PATHS.values():
        server.define(path)
    world.deployer = Deployer(server, world.feed, world._report, world.elsewhere.__contains__, lambda: 0.9)
    expected = Outcome((("IPAddress", "10.0.0.1"),), cluster_addresses=("10.96.0.1",))
    server.reported = lambda: world.outcomes == {"shop/web": expected}
    async with leading(world):
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
        assert world.outcomes == {"shop/web": expected}


class Altering(Server):
    """A webhook that has a value of its own for a field that we apply."""

    def _applied(self, known: dict[str, Any] | None, body: dict[str, Any]) -> dict[str, Any]:
        made = super()._applied(known, body)
        if made.get("kind") == "Deployment":
            made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 7
        return made


DEPLOYMENT = WantedKey("Deployment", "shop", "web")


def altered(world: World) -> float:
    return world.deployer.numbers()["provisioning_altered"][()]


async def test_what_the_api_server_makes_something_else_of_is_applied_once_and_forgotten_when_it_is_gone() -> None:
    world = World()
    server = world.server = Altering()
    for path in PATHS.values():
        server.define(path)
    world.deployer = Deployer(server, world.feed, world._report, world.elsewhere.__contains__, lambda: 0.9)
    async with leading(world):
        world.want(wanted(80))
        await world.holds(lambda: world.has("Deployment"))
        await world.idle()
        assert altered(world) == 1
        before = world.writes()
        server.put(PATHS["Deployment"], server.objects[PATHS["Deployment"]]["web"])  # a status, say
        version = str(server.version)
        await world.holds(lambda: world.deployer.live.objects[DEPLOYMENT]["metadata"]["resourceVersion"] == version)
        await world.idle()
        assert world.writes() == before
        world.want(None)  # the Gateway is gone, and the garbage collector takes its objects
        await world.idle()
        for path in PATHS.values():
            for name in [*server.objects[path]]:
                server.delete(path, name)
        await world.holds(lambda: not world.deployer.live.objects)
        assert altered(world) == 0
        assert world.writes() == before


async def test_what_is_as_wanted_again_is_no_longer_altered() -> None:
    world = World()
    server = world.server = Altering()
    for path in PATHS.values():
        server.define(path)
    world.deployer = Deployer(server, world.feed, world._report, world.elsewhere.__contains__, lambda: 0.9)
    async with leading(world):
        world.want(wanted(80))
        await world.holds(lambda: altered(world) == 1)
        server.__class__ = Server  # type: ignore[assignment]  # the webhook is gone
        found = server.objects[PATHS["Deployment"]]["web"]
        server.put(PATHS["Deployment"], {**found, "spec": {**found["spec"], "replicas": 9, "paused": True}})
        await world.holds(lambda: altered(world) == 0)


def of(namespace: str, name: str) -> Change[ObjectKey, Wanted]:
    request = Request(namespace, name, "1", "gatewright", (ServicePort(80, "TCP"),))
    return Change(ObjectKey(namespace, name), None, Wanted("1", rendered(request, Defaults("1"), "c")))


async def test_a_gateway_does_not_wait_for_all_those_of_another_namespace() -> None:
    """150 Gateways of one tenant delayed another's by 12 s."""
    world = World()
    async with leading(world):
        world.feed.put([of("shop", f"web-{number:03}") for number in range(150)])

        def made() -> list[str]:
            asked = [path for method, path in world.server.asked if method == "PATCH" and "/deployments/" in path]
            return [path.rpartition("/")[2] for path in asked]

        await world.holds(lambda: world.has("Deployment", "web-003"))
        already = len(made())
        world.feed.put([of("other", "last")])
        await world.idle()
        assert len(made()) == 151
        assert already < 100 and made().index("last") < already + 2 * 8  # what eight workers do in two turns
