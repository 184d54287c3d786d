"""One kind of objects, followed: listed once, then watched; listed anew only when the API server has forgotten where we
were.

What is read goes to `sink`, which is waited for, so that a controller with much to do reads no further. A kind that the
cluster does not have (its definition may come later) counts as listed, with nothing; that it does not is believed only
of a server that answers as an API server does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, Generic, Protocol, TypeVar

from controlplane.kube import paths
from controlplane.kube.access import TOO_LARGE, ApiError
from controlplane.kube.paths import Kind
from controlplane.kube.reading import events as answers
from controlplane.kube.reading.events import Expired, Failed, Item
from controlplane.turns import SLICE, rest

log = logging.getLogger("controlplane.kube")

PAGE: Final = 500
"""Objects of one answer to a list."""
FEWER: Final = 16
"""How many times fewer are asked for in an answer after one that was too large."""
WATCH: Final = (240, 480)
"""Seconds for which a watch is asked, drawn anew each time, so that not all end at once."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before the next try, doubled each time; up to half of it is taken off at random."""
NO_CLUSTER: Final = "this is not how an API server answers"
FORBIDDEN: Final = "Forbidden"
"""The reason of an API server's 403."""
ABSENT: Final = 5.0
"""Seconds between two looks for a kind that the cluster does not have."""

_F = TypeVar("_F")
_I = TypeVar("_I")

Sink = Callable[[Sequence[_F]], Awaitable[None]]


class Reads(Protocol):
    """`access.Access`."""

    async def read(self, path: str, **query: str | int) -> bytes: ...

    def lines(self, path: str, **query: str | int) -> AsyncIterator[list[bytes]]: ...


class Follows(Protocol[_F]):
    """What lists and watches of a kind come to: `known.Known` is one."""

    resource_version: str

    def __len__(self) -> int: ...
    def list_begins(self) -> None: ...
    def page(self, items: Iterable[Item], version: str) -> list[_F]: ...
    def list_ends(self, resource_version: str) -> list[_F]: ...
    def left(self, namespace: str) -> list[_F]: ...
    def events(self, lines: Iterable[bytes]) -> list[_F]: ...


class Reflector(Generic[_F]):
    """`random` draws uniformly from [0, 1). `query`: which objects of the kind are read; none: all."""

    def __init__(
        self,
        info: Kind,
        access: Reads,
        sink: Sink[_F],
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
        self._sink = sink
        self._random = random
        self._known = known
        self._query = {**(query or {})}
        self._spaces: dict[str, bool] = {}
        """Namespaces to look into, and whether they are read."""
        self._patience: asyncio.Timeout | None = None
        """Of the wait for the next event, while there is one."""

    def __len__(self) -> int:
        return len(self._known)

    def look_into(self, namespace: str, *, is_read: bool) -> None:
        """What is in a namespace is read from now on, or no more (`Known.is_read` says so from now on)."""
        self._spaces[namespace] = is_read
        patience, self._patience = self._patience, None  # one that ends cannot be ended again
        if patience is not None:
            patience.reschedule(0.0)

    def left(self, namespace: str) -> list[_F]:
        """What is not known any more because its namespace is not read; the caller passes it on."""
        return self._known.left(namespace)

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
                await self._look()
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
        """The next list says what is there; what was delivered stays until then. Many watches may end so at once."""
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
        self._spaces.clear()  # a list has what is in all of them; what is said while it is made comes behind it
        missing: ApiError | None = None
        for version in self.info.versions:
            try:
                await self._list_version(version)
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                missing = error
            else:
                if not self.version and self.listed.is_set():
                    log.info("%s are defined now, and read", self.info.plural)
                self.version = version
                self.listed.set()
                return
        if missing is not None:
            await self._believe(missing)
        if self.version:
            log.warning("%s are not defined any more: there are none until their definition is back", self.info.plural)
        self.version = ""
        self._known.list_begins()
        await self._deliver(self._known.list_ends(""))
        self._recovered()
        self.listed.set()

    async def _believe(self, missing: ApiError) -> None:
        """That the cluster does not have the kind: what was read of it would be gone. Raises Failed, or what else is
        wrong, where another server may be answering, or a proxy before the server: 404 to everything is no cluster.
        Kinds of the core are in every one."""
        if not self.info.group:
            raise Failed(f"{NO_CLUSTER}: {missing}")
        try:
            answers.core_versions(await self._access.read(paths.CORE))
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise Failed(f"{NO_CLUSTER}: {missing}") from error
            if error.reason != FORBIDDEN:  # that reason is an API server's
                raise

    async def _list_version(self, version: str) -> None:
        known = self._known
        path = paths.of_kind(self.info, version)
        page = await self._page(path)
        known.list_begins()
        position = await self._pages(path, page, version)
        await self._deliver(known.list_ends(position))

    async def _pages(self, path: str, page: answers.Page, version: str) -> str:
        """Says what is on all of them; the answer is the moment that they are of."""
        while True:
            await self._slowly(page.items or (), lambda items: self._known.page(items, version))
            if not page.metadata.more:
                return page.metadata.version
            page = await self._page(path, page.metadata.more)

    async def _page(self, path: str, more: str = "") -> answers.Page:
        """Of fewer objects where that many are too large for one answer: the authors of objects decide how large."""
        rest, limit = {"continue": more} if more else {}, PAGE
        while True:
            try:
                return answers.page(await self._access.read(path, **self._query, **rest, limit=limit))
            except ApiError as error:
                if error.reason != TOO_LARGE or limit == 1:
                    raise
                limit = max(1, limit // FEWER)

    async def _deliver(self, facts: Sequence[_F]) -> None:
        if facts:
            await self._sink(facts)

    async def _slowly(self, items: Iterable[_I], read: Callable[[Iterable[_I]], list[_F]]) -> None:
        """Says what they come to, all at once; while they are read, others get turns. What came before one that raises
        is said as well."""
        found: list[_F] = []
        end = time.monotonic() + SLICE
        try:
            for item in items:
                found += read((item,))
                if time.monotonic() >= end:
                    await rest()
                    end = time.monotonic() + SLICE
        except (Expired, Failed):
            await self._deliver(found)
            raise
        await self._deliver(found)

    async def _watched(self) -> AsyncIterator[None]:
        """Until the API server ends the watch, something is wrong with it, or `look_into` asks for more."""
        low, high = WATCH
        stream = self._access.lines(
            paths.of_kind(self.info, self.version),
            **self._query,
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=self._known.resource_version,
            timeoutSeconds=low + int(self._random() * (high - low)),
        )
        while (lines := await self._next(stream)) is not None:
            await self._slowly(lines, self._known.events)
            del lines  # objects once more, until the next ones come
            yield

    async def _next(self, stream: AsyncIterator[list[bytes]]) -> list[bytes] | None:
        """None: the watch has ended."""
        try:
            async with asyncio.timeout(0.0 if self._spaces else None) as patience:
                self._patience = None if self._spaces else patience
                return await anext(stream, None)
        except TimeoutError:
            if not self._spaces:
                raise
            return None
        finally:
            self._patience = None

    async def _look(self) -> None:
        """Into namespaces that are read from now on, or no more. No watch is under way meanwhile: the next one goes on
        from before, so that nothing is missed that happened since."""
        while self._spaces:
            namespace, is_read = next(iter(self._spaces.items()))
            if is_read:
                path = paths.of_kind(self.info, self.version, namespace)
                await self._pages(path, await self._page(path), self.version)
            else:
                await self._deliver(self._known.left(namespace))
            if self._spaces.get(namespace) is is_read:
                del self._spaces[namespace]
