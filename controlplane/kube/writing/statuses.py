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
from controlplane.kube.writing.pace import Pace
from controlplane.kube.writing.schedule import Schedule
from controlplane.spans import NO_SPANS
from controlplane.translate.status.statuses import StatusKey, StatusWrite
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.metadata import ObjectKey

log = logging.getLogger("controlplane.kube")

AT_ONCE_LEAST: Final = 2
"""Writes that may be under way at a time in any case: one may get no answer for long."""
AT_ONCE: Final = 8
"""The most of them, of kinds in `FIRST` and of others apart: fewer while the API server lets them wait (`pace`), so
that it has time for users."""
FIRST: Final = frozenset({"GatewayClass", "Gateway", "ListenerSet"})
"""Kinds whose statuses do not wait for those of others: there are few of them, and a thousand routes that are created
have a thousand statuses of their own."""
UNUSABLE: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY)
"""Answers that the same write would get again: logged, and not asked for before something changes."""


class Writes(Protocol):
    """`access.Access`."""

    async def request(self, method: str, path: str, body: object = None, content: str = "") -> dict[str, Any]: ...


class _Lane:
    """Writes that wait for each other, and for none of another lane."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._pace = Pace(AT_ONCE_LEAST, AT_ONCE)
        self._under_way = 0

    def next_due(self) -> float | None:
        """When the next write may begin; None: there is none, or an answer has to come first."""
        return self.schedule.next_due() if self._under_way < self._pace.width else None

    def take(self, now: float) -> tuple[StatusKey, StatusWrite] | None:
        """A write that may begin now, and is under way until `answered`."""
        taken = self.schedule.take(now) if self._under_way < self._pace.width else None
        self._under_way += taken is not None
        return taken

    def answered(self, took: float, now: float) -> None:
        """One that is under way is not any more."""
        self._under_way -= 1
        self._pace.answered(took, now)


class StatusWriter:
    """`version_of`: in which version a kind is served. `clock` is the loop's; `random` draws from [0, 1). `age`:
    seconds since the facts were reported that the feed's changes come from, while it reports them."""

    def __init__(
        self,
        access: Writes,
        version_of: Callable[[str], str],
        clock: Callable[[], float],
        random: Callable[[], float],
        age: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.count = 0
        """Writes that succeeded."""
        self.conflicts = 0
        self.failures = 0
        self.spans = NO_SPANS
        """Who wants to know of writes."""
        self._access = access
        self._version_of = version_of
        self._clock = clock
        self._random = random
        self._age = age
        self._first, self._others = self._lanes()
        self._woken = asyncio.Event()

    def _lanes(self) -> tuple[_Lane, _Lane]:
        return _Lane(Schedule(self._random)), _Lane(Schedule(self._random))

    def __len__(self) -> int:
        return len(self._first.schedule) + len(self._others.schedule)

    def _lane(self, key: StatusKey) -> _Lane:
        return self._first if key[0] in FIRST else self._others

    async def run(self, feed: Feed[StatusKey, StatusWrite]) -> None:
        """Writes until cancelled."""
        end = feed.subscribe(self._note)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    for lane in (self._first, self._others):
                        while (taken := lane.take(self._clock())) is not None:
                            group.create_task(self._write(lane, *taken))
                    await self._rest()
        finally:
            end()
            self._first, self._others = self._lanes()

    def _note(self, changes: Sequence[Change[StatusKey, StatusWrite]]) -> None:
        since = self._clock() - self._age()  # a moment of quiet begins with the fact, not when we were done with it
        for key, _, write in changes:
            self._lane(key).schedule.want(key, write, since)
        self._woken.set()

    async def _rest(self) -> None:
        """Until a write is due, or something has happened."""
        dues = [due for each in (self._first, self._others) if (due := each.next_due()) is not None]
        due = min(dues, default=None)
        self._woken.clear()
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - self._clock())):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _write(self, lane: _Lane, key: StatusKey, write: StatusWrite) -> None:
        began = self._clock()
        span, failure = self.spans.begin("write status", object=str(ObjectKey(*key))), ""
        try:
            answer = await self._access.request("PATCH", self._path(key), _patch(write), JSON_PATCH)
        except ApiError as error:
            failure = str(error.status)
            self._refused(lane.schedule, key, error)
        except (OSError, TimeoutError) as error:
            failure = type(error).__name__
            self._failed(lane.schedule, key, error)
        else:
            self.count += 1
            version = str((answer.get("metadata") or {}).get("resourceVersion") or "")
            lane.schedule.written(key, write, version, self._clock())
        span.end(failure)
        now = self._clock()
        lane.answered(now - began, now)
        self._woken.set()

    def _refused(self, schedule: Schedule, key: StatusKey, error: ApiError) -> None:
        if error.status == HTTPStatus.CONFLICT:
            self.conflicts += 1
            schedule.conflicted(key, self._clock())
        elif error.status == HTTPStatus.NOT_FOUND:
            schedule.dropped(key)
        elif error.status in UNUSABLE:
            self.failures += 1
            log.error("the status of %s cannot be written: %s", ObjectKey(*key), error)
            schedule.dropped(key)
        else:
            self._failed(schedule, key, error)

    def _failed(self, schedule: Schedule, key: StatusKey, error: Exception) -> None:
        self.failures += 1
        wait = schedule.failed(key, self._clock())
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
