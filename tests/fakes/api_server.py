"""An API server in memory for unit tests, as far as reflectors, writers and leases ask one.

Lists in pages, watches with bookmarks and history, versions that conflict. What it is told to refuse it refuses once.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from controlplane.kube.access import APPLY, ApiError
from controlplane.kube.paths import CORE, of_kind
from gatewright.api.objects.kinds import KINDS

Json = dict[str, Any]


class ApiServer:
    """Objects by path of their kind and name. `version` counts all writes, as one store does."""

    def __init__(self) -> None:
        # Kinds of the core are in every cluster.
        core = (info for info in KINDS.values() if not info.group)
        self.objects: dict[str, dict[str, Json]] = {of_kind(info, info.versions[0]): {} for info in core}
        self.version = 1
        self.oldest = 0
        """Watches that want to go on from before are answered 410."""
        self.asked: list[tuple[str, str]] = []
        self.refuse: deque[Exception] = deque()
        self.core: bytes | ApiError = json.dumps({"kind": "APIVersions", "versions": ["v1"]}).encode()
        """What it answers when it is asked which versions of the core it has."""
        self.events: list[tuple[int, str, bytes]] = []
        self._news = asyncio.Event()
        self._cut = asyncio.Event()

    def define(self, path: str) -> None:
        """The kind exists from now on."""
        self.objects.setdefault(path, {})

    def undefine(self, path: str) -> None:
        del self.objects[path]
        self.cut()

    def put(self, path: str, value: Json) -> None:
        self.version += 1
        known = self.objects.setdefault(path, {})
        name = value["metadata"]["name"]
        kind = "MODIFIED" if name in known else "ADDED"
        stored = {**value, "metadata": {**value["metadata"], "resourceVersion": str(self.version)}}
        known[name] = stored
        self._tell(path, kind, stored)

    def delete(self, path: str, name: str) -> None:
        self.version += 1
        value = self.objects[path].pop(name)
        value["metadata"]["resourceVersion"] = str(self.version)
        self._tell(path, "DELETED", value)

    def bookmark(self, path: str) -> None:
        self._tell(path, "BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    def forget_history(self) -> None:
        self.oldest = self.version

    def cut(self) -> None:
        """End all watches."""
        self._cut.set()
        self._cut = asyncio.Event()

    def _tell(self, path: str, kind: str, value: Json) -> None:
        self.events.append((self.version, path, json.dumps({"type": kind, "object": value}).encode()))
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def read(self, path: str, **query: Any) -> bytes:
        if path == CORE:
            self.asked.append(("GET", path))
            if isinstance(self.core, ApiError):
                raise self.core
            return self.core
        return json.dumps(await self.request("GET", path, query=query)).encode()

    async def request(self, method: str, path: str, body: Any = None, content: str = "", query: Any = None) -> Json:
        self.asked.append((method, path))
        await asyncio.sleep(0)
        if self.refuse:
            raise self.refuse.popleft()
        if method == "GET" and self._listed(path)[0] in self.objects:
            return self._page(*self._listed(path), query or {})
        kind, _, name = path.removesuffix("/status").rpartition("/")
        if method == "POST":
            kind, name = path, body["metadata"]["name"]
            if name in self.objects.setdefault(kind, {}):
                raise ApiError(409, "AlreadyExists", name)
        elif method == "PATCH" and content == APPLY:
            self.put(kind, self._applied(self.objects.get(kind, {}).get(name), body))
            return self.objects[kind][name]
        elif name not in self.objects.get(kind, {}):
            raise ApiError(404, "NotFound", path)
        if method == "GET":
            return self.objects[kind][name]
        if method == "DELETE":
            self._check(self.objects[kind][name], body["preconditions"]["resourceVersion"])
            self.delete(kind, name)
            return {}
        if method == "PATCH":
            body = self._patched(self.objects[kind][name], body)
        elif method == "PUT":
            self._check(self.objects[kind][name], body["metadata"]["resourceVersion"])
        self.put(kind, body)
        return self.objects[kind][name]

    def _check(self, known: Json, version: str) -> None:
        if known["metadata"]["resourceVersion"] != version:
            raise ApiError(409, "Conflict", "the object has been modified")

    def _applied(self, known: Json | None, body: Json) -> Json:
        """One manager applies everything; others have what is beside it."""
        beside = {name: part for name, part in (known or {}).items() if name not in body}
        return {**beside, **json.loads(json.dumps(body))}

    def _patched(self, known: Json, patch: list[Json]) -> Json:
        precondition, content = patch
        assert (precondition["op"], precondition["path"]) == ("replace", "/metadata/resourceVersion")
        assert (content["op"], content["path"]) in (("add", "/status"), ("add", "/metadata/finalizers"))
        self._check(known, precondition["value"])
        if content["path"] == "/status":
            return {**known, "status": content["value"]}
        return {**known, "metadata": {**known["metadata"], "finalizers": content["value"]}}

    def _listed(self, path: str) -> tuple[str, str]:
        """The path of a kind, and the namespace in which it is listed; "": everywhere."""
        before, _, after = path.partition("/namespaces/")
        namespace, _, kind = after.partition("/")
        return (f"{before}/{kind}", namespace) if kind and path not in self.objects else (path, "")

    def _page(self, path: str, namespace: str, query: Json) -> Json:
        there = [each for each in self.objects[path].values() if namespace in ("", each["metadata"].get("namespace"))]
        items = sorted(there, key=lambda each: str(each["metadata"]["name"]))
        start, limit = int(query.get("continue", 0)), int(query["limit"])
        more = str(start + limit) if start + limit < len(items) else ""
        metadata = {"resourceVersion": str(self.version), "continue": more}
        return {"metadata": metadata, "items": json.loads(json.dumps(items[start : start + limit]))}

    async def lines(self, path: str, **query: Any) -> AsyncIterator[list[bytes]]:
        self.asked.append(("WATCH", path))
        if self.refuse:
            raise self.refuse.popleft()
        if path not in self.objects:
            raise ApiError(404, "NotFound", path)
        seen, cut = int(query["resourceVersion"]), self._cut
        if seen < self.oldest:
            yield [json.dumps({"type": "ERROR", "object": {"code": 410}}).encode()]
            return
        position = 0
        while not cut.is_set():
            lines = [line for version, at, line in self.events[position:] if at == path and version > seen]
            position = len(self.events)
            if lines:
                yield lines
            del lines  # as the real one, it keeps nothing that it has sent
            if len(self.events) > position:  # while the reader was busy
                continue
            waits = {asyncio.create_task(self._news.wait()), asyncio.create_task(cut.wait())}
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
