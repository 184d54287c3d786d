"""Addresses of Services: given to those of type LoadBalancer, and led to ready Pods.

Where no port changes its number the address moves into the newest ready Pod (the kernel does the rest); else this
process listens on it. UDP always goes through here: who serves on the wildcard address answers from its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from tests.cluster.rig.api import Api, ApiError, Json
from tests.cluster.rig.forward import Forward, Target
from tests.cluster.rig.kubelet import Kubelet
from tests.cluster.rig.pod import Pod
from tests.cluster.rig.shell import BRIDGE, sh

log = logging.getLogger("rig")

OURS = "10.97."
"""Addresses that can be given; who asks for another one waits for ever."""

Place = tuple[str, int, str]


class Balancer:
    """Of all Services."""

    def __init__(self, api: Api, kubelet: Kubelet) -> None:
        self.services: dict[str, Json] = {}
        self._api, self._kubelet = api, kubelet
        self._given: dict[str, str] = {}
        self._count = 0
        self._placed: dict[str, str] = {}
        """Which Pod has an address."""
        self._forwards: dict[Place, tuple[str, Forward]] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._api.follow("/api/v1/services", self._take))
            group.create_task(self._balance())

    def _take(self, event: str, service: Json) -> None:
        uid = service["metadata"]["uid"]
        if event == "DELETED":
            self.services.pop(uid, None)
            for place in [each for each, (owner, _) in self._forwards.items() if owner == uid]:
                self._forwards.pop(place)[1].close()
        else:
            self.services[uid] = service
        self._kubelet.changed.set()

    async def _balance(self) -> None:
        changed = self._kubelet.changed
        while True:
            await changed.wait()
            changed.clear()
            for uid, service in [*self.services.items()]:
                addresses = await self._addresses(uid, service)
                pods = self._kubelet.behind(service)
                if addresses and pods:
                    await self._lead(uid, service, addresses, max(pods, key=lambda pod: pod.meta["creationTimestamp"]))

    async def _addresses(self, uid: str, service: Json) -> list[str]:
        spec = service["spec"]
        found = [*spec.get("externalIPs", ())]
        if spec.get("type") == "LoadBalancer":
            asked = spec.get("loadBalancerIP", "")
            if asked and not asked.startswith(OURS):
                return []
            found.insert(0, await self._give(uid, service, asked))
        if spec.get("clusterIP", "None") not in ("None", ""):
            found.append(spec["clusterIP"])
        return found

    async def _give(self, uid: str, service: Json, asked: str) -> str:
        if not asked and uid not in self._given:
            self._given[uid] = f"{OURS}{self._count // 250}.{1 + self._count % 250}"
            self._count += 1
        address = asked or self._given[uid]
        ingress = [{"ip": address, "ipMode": "VIP"}]
        status = service.setdefault("status", {}).setdefault("loadBalancer", {})
        if status.get("ingress") != ingress:
            status["ingress"] = ingress
            meta = service["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/services/{meta['name']}/status"
            with contextlib.suppress(ApiError):
                await self._api.patch(path, {"status": {"loadBalancer": {"ingress": ingress}}})
        return address

    async def _lead(self, uid: str, service: Json, addresses: list[str], newest: Pod) -> None:
        ports = service["spec"].get("ports", ())
        is_straight = all(newest.port(each) == each["port"] and each.get("protocol") != "UDP" for each in ports)
        for address in addresses:
            if is_straight and not any(place[0] == address for place in self._forwards):
                await self._place(address, newest)
            else:
                await self._forward(uid, address, ports)

    async def _place(self, address: str, pod: Pod) -> None:
        if self._placed.get(address) == pod.space:
            return
        move = f"ip -n {pod.space} addr replace {address}/32 dev lo"
        if await sh(f"{move}; ip route replace {address}/32 via {pod.address} dev {BRIDGE}"):
            self._placed[address] = pod.space

    async def _forward(self, uid: str, address: str, ports: list[Json]) -> None:
        if self._placed.pop(address, None):
            await sh(f"ip route del {address}/32 || true")
        wanted = {(address, each["port"], each.get("protocol", "TCP")): each for each in ports}
        for place in [each for each in self._forwards if each[0] == address and each not in wanted]:
            self._forwards.pop(place)[1].close()
        for place, port in wanted.items():
            if place not in self._forwards:
                await sh(f"ip addr replace {address}/32 dev lo")
                forward = Forward(*place, lambda number=port["port"]: self._targets(uid, number))  # type: ignore[misc]
                await forward.open()
                self._forwards[place] = uid, forward

    def _targets(self, uid: str, number: int) -> list[Target]:
        service = self.services.get(uid)
        if service is None:
            return []
        port = next((each for each in service["spec"]["ports"] if each["port"] == number), None)
        return [(pod.address, pod.port(port)) for pod in self._kubelet.behind(service)] if port else []
