"""The few verbs of the Kubernetes API that a rig needs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType
from typing import Any

import aiohttp

log = logging.getLogger("rig")

Json = dict[str, Any]
Take = Callable[[str, Json], None]

AGAIN = 0.3
"""Seconds before a list or a request is tried again."""
LONGEST_LINE = 2**24


class ApiError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status


class Api:
    """A client; open as a context."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._headers = url, {"Authorization": f"Bearer {token}"}
        self._http: aiohttp.ClientSession

    async def __aenter__(self) -> Api:
        connector = aiohttp.TCPConnector(ssl=False, limit=0)
        self._http = aiohttp.ClientSession(self._url, headers=self._headers, connector=connector)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def call(self, verb: str, path: str, body: object = None, content: str = "application/json") -> Json:
        """Raises ApiError."""
        data = None if body is None else json.dumps(body)
        async with self._http.request(verb, path, data=data, headers={"Content-Type": content}) as answer:
            found: Json = await answer.json(content_type=None)
            if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
                raise ApiError(answer.status, f"{verb} {path}: {found.get('message')}")
            return found

    async def is_ready(self) -> bool:
        """Whether the server says so."""
        try:
            async with self._http.get("/readyz", timeout=aiohttp.ClientTimeout(5)) as answer:
                return answer.status == HTTPStatus.OK
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False

    async def patch(self, path: str, body: Json) -> Json:
        return await self.call("PATCH", path, body, "application/merge-patch+json")

    async def insist(self, verb: str, path: str, body: Json | None = None) -> Json:
        """Until the object is there, as a kubelet waits for what a Pod mounts."""
        while True:
            try:
                return await self.call(verb, path, body)
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
            await asyncio.sleep(AGAIN)

    async def follow(self, path: str, take: Take) -> None:
        """Tells all objects that are there, and what becomes of them, until cancelled."""
        known: dict[str, Json] = {}
        while True:
            try:
                version = await self._listed(path, known, take)
                await self._watched(path, version, known, take)
            except (aiohttp.ClientError, ApiError, TimeoutError, ValueError) as error:
                log.warning("%s: %r", path, error)
            await asyncio.sleep(AGAIN)

    async def _listed(self, path: str, known: dict[str, Json], take: Take) -> str:
        found = await self.call("GET", path)
        fresh = {each["metadata"]["uid"]: each for each in found["items"]}
        for uid in known.keys() - fresh.keys():
            take("DELETED", known.pop(uid))
        for uid, each in fresh.items():
            known[uid] = each
            take("MODIFIED", each)
        return str(found["metadata"]["resourceVersion"])

    async def _watched(self, path: str, version: str, known: dict[str, Json], take: Take) -> None:
        query = {"watch": "1", "resourceVersion": version}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._http.get(path, params=query, read_bufsize=LONGEST_LINE, timeout=timeout) as answer:
            async for line in answer.content:
                event = json.loads(line)
                if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
                    return
                found = event["object"]
                known[found["metadata"]["uid"]] = found
                if event["type"] == "DELETED":
                    del known[found["metadata"]["uid"]]
                take(event["type"], found)
