"""Servers that give credentials toward backends, asked through `Env.calls`: no configuration names them."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.http.heads import is_name, is_value
from dataplane.table.plans import at_host
from dataplane.tls.client import security
from dataplane.upstream.auth.asking import MAX_ANSWER, PORTS, SECONDS, Answer, Question, World
from dataplane.upstream.auth.tokens import Unobtainable
from dataplane.upstream.settings import Tls

if TYPE_CHECKING:
    from dataplane.chain.filter import Env
    from dataplane.table.plans import BackendPlan

MAX_FILE: Final = 65_536
"""Bytes of a file with a credential."""

_is_target: Final = re.compile(r"[\x21-\x7e]+").fullmatch


class CredentialServers:
    """Those of one policy."""

    __slots__ = ("_env", "_plans")

    def __init__(self, env: Env) -> None:
        self._env = env
        self._plans: dict[tuple[str, str, int], BackendPlan] = {}

    def world(self) -> World:
        """For one credential: all that it takes has one deadline."""
        env = self._env
        return World(partial(self._ask, env.clock() + SECONDS), env.wall_clock, env.environment, self._read)

    async def _ask(self, deadline: float, question: Question) -> Answer:
        """As `asking.Ask`."""
        calls, seconds = self._env.calls, deadline - self._env.clock()
        if calls is None or seconds <= 0:
            raise Unobtainable(f"{question.host} cannot be asked{' in time' if calls is not None else ''}")
        request = _request(question)
        call = calls.open(self._plan(question), request, x=None, head_within=seconds, whole_within=seconds)
        try:
            found = await call.whole(MAX_ANSWER)
        except CallFailed as error:
            raise Unobtainable(f"{question.host}: {error}") from None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in found.head.items()}
        return Answer(found.status, headers, found.body)

    def _plan(self, question: Question) -> BackendPlan:
        """Raises `Unobtainable`."""
        parts = urlsplit(question.url)
        try:
            port = parts.port or PORTS.get(parts.scheme, 0)
        except ValueError:
            port = 0
        if not parts.hostname or not port:
            raise Unobtainable(f"{question.host or 'a server of credentials'} has no usable URL")
        key = parts.scheme, parts.hostname, port
        plan = self._plans.get(key)
        if plan is None:
            tls = Tls(security(self._env.kept)) if parts.scheme == "https" else None
            plan = self._plans[key] = at_host(f"credentials/{parts.netloc}", parts.hostname, port, tls)
        return plan

    async def _read(self, path: str) -> bytes:
        """As `World.read`."""
        work = partial(_content, path)
        found: bytes | None = work() if self._env.offload is None else await self._env.offload(work)
        if found is None:
            raise Unobtainable(f"{path} cannot be read")
        return found


def _content(path: str) -> bytes | None:
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_FILE)
    except (OSError, ValueError):
        return None


def _request(question: Question) -> CallRequest:
    """Raises `Unobtainable` for what reads like another request."""
    parts = urlsplit(question.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [(name.encode(), value.encode()) for name, value in question.headers if name != "host"]
    if not _is_target(target) or not all(is_name(name) and is_value(value) for name, value in lines):
        raise Unobtainable(f"what {question.host} would be asked cannot be sent")
    headers = b"".join(b"%b: %b\r\n" % line for line in lines)
    return CallRequest(question.method.encode(), target.encode(), b"", headers, question.body)
