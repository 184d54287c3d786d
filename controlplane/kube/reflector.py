"""One kind of objects, followed: listed once, then watched; listed anew only when the API server has forgotten where we
were.

What is read goes to `tell`, which is waited for, so that a controller with much to do reads no further. A kind that the
cluster does not have (its definition may come later) counts as listed, with nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Generic, Protocol, TypeVar

from controlplane.kube import paths
from controlplane.kube.access import ApiError
from controlplane.kube.known import Expired, Failed
from controlplane.kube.paths import Kind

log = logging.getLogger("controlplane.kube")

PAGE: Final = 500
"""Objects of one answer to a list."""
WATCH: Final = (240, 480)
"""Seconds for which a watch is asked, drawn anew each time, so that not all end at once."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before the next try, doubled each time; up to half of it is taken off at random."""
ABSENT: Final = 5.0
"""Seconds between two looks for a kind that the cluster does not have."""

_F = TypeVar("_F")

Tell = Callable[[Sequence[_F]], Awaitable[None]]


class Reads(Protocol):
    """`access.Access`."""

    async def get(self, path: str, **query: str | int) -> dict[str, Any]: ...

    def lines(self, path: str, **query: str | int) -> AsyncIterator[list[bytes]]: ...


class Follows(Protocol[_F]):
    """What lists and watches of a kind come to: `known.Known` is one."""

    resource_version: str

    def __len__(self) -> int: ...
    def list_begins(self) -> None: ...
    def page(self, body: dict[str, Any], version: str) -> list[_F]: ...
    def list_ends(self, resource_version: str) -> list[_F]: ...
    def events(self, lines: Iterable[bytes]) -> list[_F]: ...


class Reflector(Generic[_F]):
    """`random` draws uniformly from [0, 1). `query`: which objects of the kind are read; none: all."""

    def __init__(
        self,
        info: Kind,
        access: Reads,
        tell: Tell[_F],
        random: Callable[[], float],
        known: Follows[_F],
        query: Mapping[str, str] | None = None,
    ) -> None:
        self.info = info
        self.version = ""
        """Of the kind, that is read; "" while the cluster has none that we know."""
        self.listed = asyncio.Event()
        self.trouble = ""
        """Why it cannot be read now; "" when it can."""
        self.relists = 0
        self._access = access
        self._tell = tell
        self._random = random
        self._known = known
        self._query = {**(query or {})}

    def __len__(self) -> int:
        return len(self._known)

    async def run(self) -> None:
        """Follows until cancelled."""
        wait = FIRST_WAIT
        while True:
            try:
                if not self._known.resource_version:
                    await self._list()
                if not self.version:
                    await asyncio.sleep(ABSENT * (0.5 + self._random()))
                    continue
                self._recovered()
                async for _ in self._watched():
                    wait = FIRST_WAIT
            except Expired:
                await self._forget()
            except (ApiError, Failed, OSError, TimeoutError, ValueError) as error:
                if isinstance(error, ApiError) and error.status in (HTTPStatus.GONE, HTTPStatus.NOT_FOUND):
                    await self._forget()
                else:
                    self._failed(error)
                    await asyncio.sleep(wait * (1 - self._random() / 2))
                    wait = min(2 * wait, LONGEST_WAIT)

    async def _forget(self) -> None:
        """The next list says what is there; what was told stays until then. Many watches may end so at once."""
        self._known.resource_version = ""
        self.relists += 1
        await asyncio.sleep(FIRST_WAIT * self._random())

    def _failed(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        if text != self.trouble:
            log.warning("%s cannot be read: %s; it is tried again", self.info.plural, text)
        self.trouble = text

    def _recovered(self) -> None:
        if self.trouble:
            log.info("%s can be read again", self.info.plural)
            self.trouble = ""

    async def _list(self) -> None:
        """Of the first version that the cluster serves. Raises as `Reads` does."""
        for version in self.info.versions:
            try:
                await self._list_version(version)
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
            else:
                self.version = version
                self.listed.set()
                return
        self.version = ""
        self._known.list_begins()
        facts = self._known.list_ends("")
        if facts:
            await self._tell(facts)
        self._recovered()
        self.listed.set()

    async def _list_version(self, version: str) -> None:
        known, query = self._known, self._query
        path = paths.of_kind(self.info, version)
        body = await self._access.get(path, **query, limit=PAGE)
        known.list_begins()
        while True:
            facts = known.page(body, version)
            if facts:
                await self._tell(facts)
            metadata = body.get("metadata") or {}
            more = metadata.get("continue")
            if not more:
                break
            body = await self._access.get(path, **query, limit=PAGE, **{"continue": more})
        vanished = known.list_ends(str(metadata.get("resourceVersion") or ""))
        if vanished:
            await self._tell(vanished)

    async def _watched(self) -> AsyncIterator[None]:
        """Until the API server ends the watch, or something is wrong with it."""
        low, high = WATCH
        stream = self._access.lines(
            paths.of_kind(self.info, self.version),
            **self._query,
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=self._known.resource_version,
            timeoutSeconds=low + int(self._random() * (high - low)),
        )
        async for lines in stream:
            facts = self._known.events(lines)
            if facts:
                await self._tell(facts)
            yield
