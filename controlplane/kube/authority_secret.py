"""Keeps the authority of xDS in a Secret: made by whichever controller is first, replaced by the one that leads, used
by all."""

from __future__ import annotations

import asyncio
import base64
import binascii
import datetime as dt
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, Protocol

from controlplane.kube.access import ApiError
from controlplane.xds.trust import authority as authorities
from controlplane.xds.trust.authority import Authority, UnusableAuthority

log = logging.getLogger("controlplane.kube")

NAME: Final = "gatewright-xds-ca"
LOOK: Final = 60.0
"""Seconds between two looks: much less than a new authority waits before it signs."""
TRIES: Final = 5
"""Of creating it, when others do so at the same moment."""

Json = dict[str, Any]  # Any: JSON


class Requests(Protocol):
    """`access.Access`."""

    async def request(self, method: str, path: str, body: object = None) -> Json: ...


class AuthoritySecret:
    """`use` gets what the Secret holds, at first by `load`, later by `follow` when it is something else."""

    def __init__(
        self, access: Requests, namespace: str, use: Callable[[Authority], None], now: Callable[[], dt.datetime]
    ) -> None:
        self.trouble = ""
        """Why the authority cannot be read or replaced now; "" when it can."""
        self._access = access
        self._namespace = namespace
        self._use = use
        self._now = now

    @property
    def place(self) -> str:
        return f"Secret {self._namespace}/{NAME}"

    async def load(self) -> None:
        """Reads it, or makes it where there is none. Raises UnusableAuthority, ApiError, OSError."""
        for _ in range(TRIES):
            secret = await self._read()
            if secret is not None:
                self._use(self._authority(secret))
                return
            try:
                await self._access.request("POST", self._path(), self._secret(authorities.created(self._now())))
                log.info("%s was made: the authority of xDS", self.place)
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT:  # else another controller was faster
                    raise
        raise OSError(f"{self.place} is made and removed again")

    async def follow(self, leads: Callable[[], bool]) -> None:
        """Looks again and again, until cancelled; replaces what is too old while `leads`."""
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self.look(replace=leads())
                self.trouble = ""
            except (ApiError, OSError, TimeoutError, UnusableAuthority) as error:
                self._failed(f"{self.place}: {error}; the authority from before stays in force")

    async def look(self, *, replace: bool) -> None:
        """Once. A Secret that is gone is made anew with another authority, which proxies learn from then on: anyone who
        removes it means that. Raises as `load`."""
        secret = await self._read()
        if secret is None:
            if replace:
                await self.load()
            return
        found = self._authority(secret)
        wanted = authorities.rotated(found, self._now())
        if wanted is not found and replace:
            metadata = secret.get("metadata") or {}
            try:
                await self._access.request("PUT", f"{self._path()}/{NAME}", self._secret(wanted, metadata))
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                return  # somebody was faster: the next look shows
            log.info("%s was replaced: %d authorities are trusted", self.place, len(wanted.certificates))
            found = wanted
        self._use(found)

    async def _read(self) -> Json | None:
        try:
            return await self._access.request("GET", f"{self._path()}/{NAME}")
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def _authority(self, secret: Json) -> Authority:
        try:
            data = {name: base64.b64decode(str(value)) for name, value in (secret.get("data") or {}).items()}
        except binascii.Error:
            raise UnusableAuthority("its data is not in base64") from None
        return authorities.read(data)

    def _secret(self, authority: Authority, metadata: Json | None = None) -> Json:
        labels = {"app.kubernetes.io/managed-by": "gatewright"}
        data = {name: base64.b64encode(value).decode() for name, value in authorities.written(authority).items()}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata or {"name": NAME, "namespace": self._namespace, "labels": labels},
            "type": "Opaque",
            "data": data,
        }

    def _path(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/secrets"

    def _failed(self, text: str) -> None:
        if text != self.trouble:
            log.error("%s", text)
        self.trouble = text
