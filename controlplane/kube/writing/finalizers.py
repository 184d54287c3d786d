"""Writes the finalizers of GatewayClasses to the API server: what the program wants of them, one at a time.

A write says for which version of the class it was made, so that finalizers of others are never lost: what the API
server refuses because of that is wanted anew by the fact that brings the newer version. One that somebody undoes each
time is written less and less often.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final

from controlplane.derive import Change, Feed
from controlplane.kube import paths
from controlplane.kube.access import JSON_PATCH, ApiError
from controlplane.kube.writing.contests import Contests
from controlplane.kube.writing.pending import Pending
from controlplane.kube.writing.statuses import Writes
from controlplane.translate.gateway.class_finalizers import FinalizerWrite
from controlplane.translate.keys import ObjectKey
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema import metadata as api

log = logging.getLogger("controlplane.kube")

KIND: Final = KINDS["GatewayClass"]
QUIET: Final = 0.1
"""Seconds that a write waits: of a class that is used anew its status is written meanwhile, which makes a version."""
OVERTAKEN: Final = (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)
"""Answers after which a fact is on its way that says more."""


class FinalizerWriter:
    """`version_of`: in which version a kind is served. `clock` is the loop's; `random` draws from [0, 1)."""

    def __init__(
        self,
        access: Writes,
        version_of: Callable[[str], str],
        clock: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        self.trouble = ""
        """Why the last write failed; "" when it did not."""
        self._access = access
        self._version_of = version_of
        self._clock = clock
        self._random = random
        self._wanted: dict[ObjectKey, FinalizerWrite] = {}
        self._pending: Pending[ObjectKey] = Pending(random)
        self._contests: Contests[ObjectKey] = Contests()
        self._woken = asyncio.Event()

    async def run(self, feed: Feed[ObjectKey, FinalizerWrite]) -> None:
        """Writes until cancelled."""
        end = feed.subscribe(self._note)
        try:
            while True:
                key = self._pending.take(self._clock())
                if key is None:
                    await self._rest()
                elif await self._is_done(key):
                    self._pending.done(key, self._clock() + QUIET)
                else:
                    self._pending.failed(key, self._clock())
        finally:
            end()
            self._wanted, self._pending, self.trouble = {}, Pending(self._random), ""

    def _note(self, changes: Sequence[Change[ObjectKey, FinalizerWrite]]) -> None:
        for key, _, new in changes:
            if new is None:
                self._wanted.pop(key, None)
            else:
                self._wanted[key] = new
                now = self._clock()
                self._pending.want(key, now + max(QUIET, self._contests.wait(key, new.finalizers, now)))
        self._woken.set()

    async def _rest(self) -> None:
        due = self._pending.next_due()
        self._woken.clear()
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - self._clock())):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _is_done(self, key: ObjectKey) -> bool:
        """False: it is to be tried again."""
        write = self._wanted.get(key)
        if write is None:
            return True
        path = paths.of_object(KIND, self._version_of(KIND.kind) or KIND.versions[0], api.ObjectKey(KIND.kind, *key))
        try:
            await self._access.request("PATCH", path, _patch(write), JSON_PATCH)
            self._contests.wrote(key, write.finalizers, self._clock())
        except ApiError as error:
            if error.status not in OVERTAKEN:
                return self._failed(key, error)
        except (OSError, TimeoutError) as error:
            return self._failed(key, error)
        self.trouble = ""
        return True

    def _failed(self, key: ObjectKey, error: Exception) -> bool:
        """Logged once for each reason: a right that is missing may be so for long."""
        trouble = f"the finalizer of GatewayClass {key.name} cannot be written: {error or type(error).__name__}"
        if trouble != self.trouble:
            log.warning("%s; it is tried again", trouble)
        self.trouble = trouble
        return False


def _patch(write: FinalizerWrite) -> list[dict[str, Any]]:
    """RFC 6902. The version makes the API server refuse it where the class has another one."""
    return [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": write.resource_version},
        {"op": "add", "path": "/metadata/finalizers", "value": [*write.finalizers]},
    ]
