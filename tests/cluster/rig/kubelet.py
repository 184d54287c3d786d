"""The node of a rig: takes every Pod, runs it, and answers for logs. A scheduler and a kubelet in one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from datetime import datetime
from pathlib import Path

from aiohttp import web

from tests.cluster.rig.api import Api, ApiError, Json
from tests.cluster.rig.pod import Command, Pod
from tests.cluster.rig.shell import NODE, NODE_ADDRESS, stamp

log = logging.getLogger("rig")

PORT = 10250


class Kubelet:
    """`changed` is called when Pods come, become ready, or go."""

    def __init__(self, api: Api, folder: Path, command: Command, api_port: int) -> None:
        self.pods: dict[str, Pod] = {}
        self.changed: asyncio.Event = asyncio.Event()
        self._api, self._folder, self._command, self._api_port = api, folder, command, api_port
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        await self._register()
        runner = web.AppRunner(self._pages(), access_log=None)
        await runner.setup()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(self._folder / "kubelet.crt", self._folder / "kubelet.key")
        await web.TCPSite(runner, NODE_ADDRESS, PORT, ssl_context=tls).start()
        try:
            await self._api.follow("/api/v1/pods", self._take)
        finally:
            for task in [*self._tasks]:
                task.cancel()
            await runner.cleanup()

    def behind(self, service: Json) -> list[Pod]:
        """The ready Pods of a Service."""
        selector = (service["spec"].get("selector") or {}).items()
        namespace = service["metadata"]["namespace"]
        return [pod for pod in self.pods.values() if selector and _serves(pod, namespace) and _has(pod, dict(selector))]

    def _take(self, event: str, found: Json) -> None:
        meta = found["metadata"]
        uid, path = meta["uid"], f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        pod = self.pods.get(uid)
        if event == "DELETED":
            if self.pods.pop(uid, None) is not None and pod is not None:
                self._spawn(pod.stop())
        elif meta.get("deletionTimestamp"):
            end = pod.stop() if pod is not None else self._call("DELETE", path, {"gracePeriodSeconds": 0})
            self._spawn(end)
        elif not found["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            self._spawn(self._call("POST", f"{path}/binding", {"metadata": {"name": meta["name"]}, "target": target}))
        elif pod is None:
            self.pods[uid] = Pod(
                self._api, found, self._count, self._folder, self._command, self.changed.set, self._api_port
            )
            self._count += 1
        else:
            pod.meta = meta
        self.changed.set()

    async def _call(self, verb: str, path: str, body: Json) -> None:
        try:
            await self._api.call(verb, path, body)
        except ApiError as error:
            if error.status not in (404, 409):  # somebody was faster
                log.warning("%s", error)

    def _spawn(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _register(self) -> None:
        labels = {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        node: Json = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE, "labels": labels}}
        with contextlib.suppress(ApiError):
            await self._api.call("POST", "/api/v1/nodes", node)
        amount, now = {"cpu": "64", "memory": "64Gi", "pods": "1000"}, stamp()
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {
            "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}],
            "capacity": amount,
            "allocatable": amount,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": PORT}},
            "conditions": [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}],
        }
        await self._api.patch(f"/api/v1/nodes/{NODE}/status", {"status": status})

    def _pages(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        return app

    async def _logs(self, request: web.Request) -> web.Response:
        """What the API server asks for `pods/log`."""
        wanted, query = request.match_info, request.query
        name = f"{wanted['namespace']}/{wanted['pod']}"
        pod = next((each for each in self.pods.values() if str(each) == name), None)
        if pod is None or wanted["container"] not in pod.lines:
            return web.Response(status=404, text="no such container")
        since = 0.0
        if "sinceTime" in query:
            since = datetime.fromisoformat(query["sinceTime"].replace("Z", "+00:00")).timestamp()
        elif "sinceSeconds" in query:
            since = time.time() - float(query["sinceSeconds"])
        lines = [line for at, line in pod.lines[wanted["container"]] if at >= since]
        if "tailLines" in query:
            lines = lines[-int(query["tailLines"]) :]
        return web.Response(body=b"".join(lines), content_type="text/plain")


def _serves(pod: Pod, namespace: str) -> bool:
    return pod.is_ready and not pod.is_stopping and pod.meta["namespace"] == namespace


def _has(pod: Pod, selector: dict[str, str]) -> bool:
    return selector.items() <= (pod.meta.get("labels") or {}).items()
