"""Who a token of a service account belongs to, and whose resources that account may have.

`Reviews` asks the API server (`kube.reviews` is the one that does); everything else is pure. The laws:

- A token counts only when the API server says that it is authenticated, for our audience, and its account is the one
  that the Gateway's proxies run under: in the Gateway's namespace, of the name that its objects have.
- What cannot be asked is refused (fail closed), with a code that makes the proxy try again.
- A token that cannot possibly do (not of the form, for another audience or account, expired by what it says itself) is
  refused without asking: a stranger must not have the API server busy.
- Answers are kept for a while, by digest: of `MOST` tokens at most, and no longer than the token is valid.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Protocol

AUDIENCE: Final = "gatewright"
LONGEST: Final = 16 * 1024
"""Characters of a token."""
MOST: Final = 10_000
"""Answers that are kept."""
AT_ONCE: Final = 16
"""Questions that are under way at a time."""
WAITING: Final = 1000
"""Questions that wait for their turn; more are refused."""
GOOD_FOR: Final = 60.0
"""Seconds for which a token that was found good is not asked about again."""
LATEST: Final = 1e12
"""Seconds since the epoch until which a token may be valid: 30,000 years."""
BAD_FOR: Final = 10.0
"""The same of one that was found bad."""
AGAIN: Final = 300.0
"""Seconds after which the token of a connected proxy is asked about again."""
RETRY: Final = 30.0
"""The same while the API server cannot be asked."""

UNREADABLE: Final = "the token is not one of a service account"
EXPIRED: Final = "the token has expired; connect again with a new one"
UNKNOWN: Final = "the API server does not know the token, or not for the audience gatewright"
UNCHECKED: Final = "the token cannot be checked now; try again"


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What the API server says of a token: the account that it authenticates for our audience, or "" for none."""

    username: str


class Reviews(Protocol):
    """The API server's TokenReview."""

    async def review(self, token: str, audience: str) -> Reviewed:
        """Raises OSError when it cannot be asked."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason`: "" when the proxy may have what it asks for, until `until` (steady seconds); then it is asked again.
    `is_final`: with this token it never may; else the same may go well in a moment."""

    reason: str = ""
    until: float = 0.0
    is_final: bool = True


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says of itself; it is not checked."""

    subject: str
    audiences: frozenset[str]
    expires: float


class ServiceAccounts:
    """`account_of` gives the user name of the account that a Gateway's proxies run under. `wall` gives seconds of the
    day's clock, `steady` those that never jump."""

    def __init__(
        self,
        reviews: Reviews,
        account_of: Callable[[str], str],
        wall: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._reviews = reviews
        self._account_of = account_of
        self._wall = wall
        self._steady = steady
        self._kept: OrderedDict[bytes, tuple[Reviewed, float]] = OrderedDict()
        self._asked: dict[bytes, asyncio.Task[Reviewed]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    @property
    def pending(self) -> int:
        """Questions that wait for an answer."""
        return len(self._asked)

    @property
    def kept(self) -> int:
        """Answers that are kept."""
        return len(self._kept)

    async def check(self, gateway: str, token: str) -> Verdict:
        """Whether a proxy with this token may have this Gateway's resources."""
        wanted = self._account_of(gateway)
        claims = claimed(token)
        if claims is None or AUDIENCE not in claims.audiences:
            return Verdict(UNREADABLE if claims is None else UNKNOWN)
        left = claims.expires - self._wall()
        if left <= 0:
            return Verdict(EXPIRED)
        if claims.subject != wanted:
            return Verdict(_not_its_own(gateway, wanted))
        try:
            reviewed = await self._reviewed(token, left)
        except (OSError, TimeoutError):
            return Verdict(UNCHECKED, self._steady() + min(RETRY, left), is_final=False)
        if not reviewed.username:
            return Verdict(UNKNOWN)
        if reviewed.username != wanted:
            return Verdict(_not_its_own(gateway, wanted))
        return Verdict(until=self._steady() + min(AGAIN, left))

    async def _reviewed(self, token: str, left: float) -> Reviewed:
        """From what is kept, or asked: once, however many wait for the answer. Raises OSError."""
        digest, now = sha256(token.encode()).digest(), self._steady()
        kept = self._kept.get(digest)
        if kept is not None and now < kept[1]:
            return kept[0]
        task = self._asked.get(digest)
        if task is None:
            if len(self._asked) >= WAITING:
                raise OSError("too many questions")
            task = self._asked[digest] = asyncio.ensure_future(self._ask(token))
            task.add_done_callback(lambda done: self._answered(digest, done))
        found = await asyncio.shield(task)
        self._keep(digest, found, self._steady() + min(GOOD_FOR if found.username else BAD_FOR, left))
        return found

    def _answered(self, digest: bytes, task: asyncio.Task[Reviewed]) -> None:
        del self._asked[digest]
        if not task.cancelled():
            task.exception()  # taken note of, also when the caller has left

    async def _ask(self, token: str) -> Reviewed:
        async with self._turns:
            return await self._reviews.review(token, AUDIENCE)

    def _keep(self, digest: bytes, found: Reviewed, until: float) -> None:
        self._kept[digest] = found, until
        self._kept.move_to_end(digest)
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)

    async def close(self) -> None:
        """Asks nothing more."""
        for task in [*self._asked.values()]:
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)


def account(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def claimed(token: str) -> Claims | None:
    """What a token says of itself (RFC 7519), unchecked; None when it is none of a service account."""
    parts = token.split(".")
    if len(token) > LONGEST or len(parts) != 3 or not token.isascii():
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    return _claims(found) if isinstance(found, dict) else None


def _claims(found: dict[str, Any]) -> Claims | None:  # Any: JSON
    subject, audience, expires = found.get("sub"), found.get("aud"), found.get("exp")
    audiences = audience if isinstance(audience, list) else [audience]
    if not isinstance(expires, int | float) or not abs(expires) < LATEST:  # nor is "not a number"
        return None
    names = frozenset(each for each in audiences if isinstance(each, str))
    return Claims(subject, names, float(expires)) if isinstance(subject, str) else None


def _not_its_own(gateway: str, wanted: str) -> str:
    return f"the token is not of {wanted}, the service account of the proxies of {gateway}"
