"""Writes statuses to the API server: what the program wants of them, one write at a time for each object.

A write says for which version of the object it was made, so that what others wrote meanwhile is never lost: then the
API server refuses it, and the fact that brings the newer version brings a new status as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol

from controlplane.derive import Change, Feed
from controlplane.kube import paths
from controlplane.kube.access import JSON_PATCH, ApiError
from controlplane.kube.schedule import Schedule
from controlplane.translate.statuses import StatusKey, StatusWrite
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.metadata import ObjectKey

log = logging.getLogger("controlplane.kube")

AT_ONCE: Final = 8
"""Writes that are under way at a time."""
AT_ONCE_FIRST: Final = 2
"""The same of kinds in `FIRST`, beside them: all others may wait for answers of a busy API server."""
FIRST: Final = frozenset({"GatewayClass", "Gateway", "ListenerSet"})
"""Kinds whose statuses are written before others that are due: there are few of them, and a thousand routes that are
created have a thousand statuses of their own."""
UNUSABLE: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY)
"""Answers that the same write would get again: told, and not repeated before something changes."""


class Writes(Protocol):
    """`access.Access`."""

    async def request(self, method: str, path: str, body: object = None, content: str = "") -> dict[str, Any]: ...


class StatusWriter:
    """`version_of`: in which version a kind is served. `clock` is the loop's; `random` draws from [0, 1)."""

    def __init__(
        self,
        access: Writes,
        version_of: Callable[[str], str],
        clock: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        self.count = 0
        """Writes that succeeded."""
        self.conflicts = 0
        self.failures = 0
        self._access = access
        self._version_of = version_of
        self._clock = clock
        self._random = random
        self._first, self._others = Schedule(random), Schedule(random)
        self._woken = asyncio.Event()

    def __len__(self) -> int:
        return len(self._first) + len(self._others)

    def _schedule(self, key: StatusKey) -> Schedule:
        return self._first if key[0] in FIRST else self._others

    async def run(self, feed: Feed[StatusKey, StatusWrite]) -> None:
        """Writes until cancelled."""
        end = feed.subscribe(self._note)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(self._work(self._first, self._others))
                for _ in range(AT_ONCE_FIRST):
                    group.create_task(self._work(self._first))
        finally:
            end()
            self._first, self._others = Schedule(self._random), Schedule(self._random)

    def _note(self, changes: Sequence[Change[StatusKey, StatusWrite]]) -> None:
        now = self._clock()
        for key, _, write in changes:
            self._schedule(key).want(key, write, now)
        self._woken.set()

    async def _work(self, *schedules: Schedule) -> None:
        """`schedules`: what is due in the first goes before what is due in the next."""
        while True:
            now = self._clock()
            taken = next((taken for each in schedules if (taken := each.take(now)) is not None), None)
            if taken is None:
                await self._rest(schedules)
            else:
                await self._write(*taken)

    async def _rest(self, schedules: Sequence[Schedule]) -> None:
        dues = [due for each in schedules if (due := each.next_due()) is not None]
        due = min(dues, default=None)
        self._woken.clear()
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - self._clock())):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _write(self, key: StatusKey, write: StatusWrite) -> None:
        schedule = self._schedule(key)
        try:
            answer = await self._access.request("PATCH", self._path(key), _patch(write), JSON_PATCH)
        except ApiError as error:
            self._refused(key, error)
        except (OSError, TimeoutError) as error:
            self._failed(key, error)
        else:
            self.count += 1
            schedule.written(
                key, write, str((answer.get("metadata") or {}).get("resourceVersion") or ""), self._clock()
            )
        self._woken.set()

    def _refused(self, key: StatusKey, error: ApiError) -> None:
        if error.status == HTTPStatus.CONFLICT:
            self.conflicts += 1
            self._schedule(key).conflicted(key, self._clock())
        elif error.status == HTTPStatus.NOT_FOUND:
            self._schedule(key).dropped(key)
        elif error.status in UNUSABLE:
            self.failures += 1
            log.error("the status of %s cannot be written: %s", ObjectKey(*key), error)
            self._schedule(key).dropped(key)
        else:
            self._failed(key, error)

    def _failed(self, key: StatusKey, error: Exception) -> None:
        self.failures += 1
        wait = self._schedule(key).failed(key, self._clock())
        if wait is not None:
            log.warning("the status of %s was not written: %s; again in %.1f s", ObjectKey(*key), error, wait)

    def _path(self, key: StatusKey) -> str:
        info = KINDS[key[0]]
        return f"{paths.of_object(info, self._version_of(info.kind) or info.versions[0], ObjectKey(*key))}/status"


def _patch(write: StatusWrite) -> list[dict[str, Any]]:
    """RFC 6902. The version makes the API server refuse it where the object has another one."""
    return [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": write.resource_version},
        {"op": "add", "path": "/status", "value": write.body},
    ]
