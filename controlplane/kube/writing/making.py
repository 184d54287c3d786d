"""One object of a Gateway at a time: looked at, applied, created, removed.

Called by `deployer`, which decides what is wanted and whether an object may be touched. Rules of its own:

- What is removed must still be what was seen.
- An object that is as wanted is not written. One that somebody changes back each time is written less and less often.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol

from controlplane.deploy.names import MANAGED_BY, PRODUCT
from controlplane.deploy.request import WantedKey, WantedObject
from controlplane.kube import paths
from controlplane.kube.access import APPLY, ApiError
from controlplane.kube.reading.reflector import Reads
from controlplane.kube.writing import differences
from controlplane.kube.writing.contests import Contests
from controlplane.kube.writing.owned import KINDS, Live, LiveChange, slim
from gatewright.api.schema import metadata as api

log = logging.getLogger("controlplane.kube")

Json = dict[str, Any]  # Any: JSON

MANAGER: Final = "gatewright"
"""Of the fields that we apply."""
LONGEST_REST: Final = 0.5
"""Seconds that a Gateway's turn lasts longer because somebody undid what was written; else it has another turn."""
KEY_BYTES: Final = 32
"""Of a session key."""


class Requests(Reads, Protocol):
    """`access.Access`."""

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        content: str = "",
        query: Mapping[str, Any] | None = None,
    ) -> Json: ...


class Contested(Exception):
    """Somebody changes an object back each time."""


Looked = Mapping[WantedKey, Json | Exception | None]
"""Objects as they are, None where there is none, or why that is not known."""


class Objects:
    """The objects of all Gateways, as `live` has them."""

    def __init__(self, access: Requests, live: Live) -> None:
        self.writes = 0
        """Objects that were applied or created."""
        self.removals = 0
        self.live = live
        self._access = access
        self._altered: dict[WantedKey, tuple[str, str]] = {}
        """Of objects that the API server made something else of: digests of what was applied and what came of it."""
        self._contests: Contests[WantedKey] = Contests()

    @property
    def altered(self) -> int:
        """How many there are that the API server made something else of than what was applied."""
        return len(self._altered)

    def forget(self, key: WantedKey) -> None:
        """An object that is gone."""
        self._altered.pop(key, None)

    async def ensure(self, wanted: WantedObject, there: Json | Exception | None) -> None:
        """`there`: what a look found, of one that the watch has not, or not yet; made for the Gateway, if anything."""
        key, body = wanted.key, differences.marked(wanted.body)
        live = self.live.objects.get(key)
        is_known = live is not None
        if isinstance(there, Exception):
            try:
                raise there
            finally:
                del there  # see `gatewright/kept_errors`
        if live is None:
            live = there
        if wanted.random_key:
            if live is None:
                await self._wait_for_others(key, body)
                await self._create(key, {**body, "stringData": {wanted.random_key: secrets.token_hex(KEY_BYTES)}})
            return
        if live is None or not self._is_current(key, live, body):
            await self._wait_for_others(key, body)
            await self._apply(key, body, force=is_known)

    async def _wait_for_others(self, key: WantedKey, body: Json) -> None:
        """Before the same is written again, which somebody undid. Raises Contested where that goes on."""
        loop, mark = asyncio.get_running_loop(), _mark(body)
        rest = self._contests.rest(key, mark, loop.time())
        if rest > LONGEST_REST:
            raise Contested
        await asyncio.sleep(rest)
        self._contests.wrote(key, mark, loop.time())

    def _is_current(self, key: WantedKey, live: Json, body: Json) -> bool:
        if differences.is_as_wanted(live, body):
            return True
        return self._altered.get(key) == (_mark(body), differences.fingerprint(live))

    async def looks(self, keys: Sequence[WantedKey]) -> Looked:
        """All at a time: a proxy waits for its objects."""
        async with asyncio.TaskGroup() as group:
            tasks = {key: group.create_task(self._look(key)) for key in keys}
        return {key: task.result() for key, task in tasks.items()}

    async def _look(self, key: WantedKey) -> Json | Exception | None:
        """An object as it is; why that is not known."""
        try:
            return slim(key.kind, await self._access.request("GET", _path(key)))
        except ApiError as error:
            return None if error.status == HTTPStatus.NOT_FOUND else error
        except (OSError, TimeoutError) as error:
            return error

    async def _apply(self, key: WantedKey, body: Json, *, force: bool) -> None:
        """`force`: it was seen to be made for the Gateway. Without, what somebody else made at this very moment stays
        theirs."""
        query = {"fieldManager": MANAGER, "force": "true" if force else "false", "fieldValidation": "Strict"}
        before = self.live.objects.get(key)
        made = slim(key.kind, await self._access.request("PATCH", _path(key), body, APPLY, query))
        self.writes += 1
        log.info("%s was applied", key)
        self._keep(key, before, made)
        if differences.is_as_wanted(made, body):
            self._altered.pop(key, None)
        else:
            self._altered[key] = _mark(body), differences.fingerprint(made)

    async def _create(self, key: WantedKey, body: Json) -> None:
        collection = _path(key).rpartition("/")[0]
        before = self.live.objects.get(key)
        made = await self._access.request("POST", collection, body, query={"fieldManager": MANAGER})
        self._keep(key, before, slim(key.kind, made))
        self.writes += 1
        log.info("%s was made", key)

    def _keep(self, key: WantedKey, before: Json | None, made: Json) -> None:
        """What the watch will report in a moment, unless it has reported something since `before`: that may be newer,
        with the address that somebody assigned meanwhile."""
        if self.live.objects.get(key) is before:
            self.live.take([LiveChange(key, made)])

    async def remove(self, key: WantedKey, body: Json) -> None:
        metadata = body["metadata"]
        if (metadata.get("labels") or {}).get(MANAGED_BY) != PRODUCT or metadata.get("deletionTimestamp"):
            return
        seen = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": seen,
            "propagationPolicy": "Background",
        }
        try:
            await self._access.request("DELETE", _path(key), options)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        self.removals += 1
        log.info("%s is not wanted any more, and was removed", key)


def _mark(body: Json) -> str:
    """The digest of an object as `differences.marked` gives it."""
    return str(body["metadata"]["annotations"][differences.APPLIED])


def _path(key: WantedKey) -> str:
    info = KINDS[key.kind]
    return paths.of_object(info, info.versions[0], api.ObjectKey(*key))
