"""Basic authentication (RFC 7617): a user and password of an htpasswd file let a request pass; `basicAuth.username`.

`basicAuthentication`. Slow hashes are checked in a thread. The outcome is remembered by a keyed digest of what
the client sent, good and bad ones apart, so that a repeated password costs one look-up and invented ones displace no
valid one. One and the same check runs once. Checks wait in a queue that is fair between client addresses: who sends a
flood of invented passwords waits behind itself, and is answered with 503 above a bound; other clients are not affected.
For users that are not there a hash of the file is checked all the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dataplane.chain.filter import Env, Filter, Future, Refused
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.credentials import htpasswd, locations, refusals
from dataplane.credentials.fair_queue import FairQueue
from dataplane.link.sources import source_of
from gatewright.cel.values import Redacted
from gatewright.wire.v1 import authentication_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME = "basic_authentication"

ENTRY: Final = ".htaccess"
"""Of the Secret."""

KNOWN: Final = 4096
"""Good outcomes that are remembered, and as many bad ones."""

WRONG: Final = "the user or password is wrong"
MALFORMED: Final = "the credentials are malformed"

DEFAULT_REALM: Final = "Restricted"

ValueT = TypeVar("ValueT")


class _Check:
    """A password that is checked, or waits for it. The repr has nothing of it."""

    __slots__ = ("digest", "hashed", "is_dropped", "is_over", "password", "user", "waiting")

    def __init__(self, digest: bytes, pair: tuple[bytes, bytes], hashed: htpasswd.Hash) -> None:
        self.digest, self.hashed = digest, hashed
        self.user, self.password = pair
        self.waiting: list[Future] = []
        """Of all who sent the same."""
        self.is_dropped = False
        """Others that had fewer took its place."""
        self.is_over = False
        """The outcome is known, or there is none."""

    def wake(self) -> None:
        """Wake all who wait for the outcome."""
        self.is_over = True
        for done in self.waiting:
            if not done.done():
                done.set_result(None)


def secrets(config: authentication_pb2.BasicAuthentication) -> Iterable[str]:
    """Key of the Secret that a policy reads."""
    return (config.secret,)


def build(config: authentication_pb2.BasicAuthentication, env: Env) -> Filter:
    """Raises `Refused`: no Secret, no `.htaccess` in it, no user in that; a realm or location that cannot be."""
    if config.mode == refusals.PERMISSIVE:
        raise Refused("mode: basic authentication has Strict and Optional only")
    place = locations.location(config.location, b"Basic")
    users = _users(config.secret, env)
    check = Authentication(users, place, config.mode, _challenge(config.realm), env)
    return place.step(NAME, check.request, env)


def _users(key: str, env: Env) -> dict[bytes, htpasswd.Hash]:
    data = env.secret(key).get(ENTRY)
    if data is None:
        raise Refused(f"secret: {key} has no entry {ENTRY}")
    try:
        return htpasswd.read(data, key)
    except htpasswd.Unusable as error:
        raise Refused(f"secret: {key}: {error}") from None


def _challenge(realm: str) -> bytes:
    """The value of WWW-Authenticate (RFC 9110 11.6.1, 5.6.4). Raises `Refused`."""
    if any(ord(character) < 32 or ord(character) == 127 for character in realm):
        raise Refused("realm: control characters")
    quoted = (realm or DEFAULT_REALM).replace("\\", "\\\\").replace('"', '\\"')
    return b'Basic realm="%b"' % quoted.encode()


class Authentication:
    """The step of one policy, with the outcomes that it remembers."""

    def __init__(
        self, users: dict[bytes, htpasswd.Hash], place: locations.Location, mode: int, challenge: bytes, env: Env
    ) -> None:
        self._users, self._hashes, self._place = users, tuple(users.values()), place
        self._offload, self._spawn, self._make_future = env.offload, env.spawn, env.make_future
        self._absent = refusals.absence(mode, "BasicMissing", challenge, env.origin)
        causes = (WRONG, MALFORMED, refusals.SEVERAL)
        self._refused = refusals.refusals(mode, "BasicInvalid", challenge, env.origin, causes)
        self._busy = made("AuthenticationBusy", str(env.origin), b"retry-after: 1\r\n")
        self._salted = hashlib.blake2b(digest_size=32, key=os.urandom(32))
        self._good: dict[bytes, dict[str, str]] = {}
        """Digest of credentials -> what they leave for expressions."""
        self._bad: dict[bytes, None] = {}
        self._checks: dict[bytes, _Check] = {}
        """By digest of credentials: the one that runs, and those that wait."""
        self._queue: FairQueue[_Check] = FairQueue(bounds=env.password_checks)
        self._is_checking = False

    def request(self, x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        found = self._place.find(x)
        if found is None:
            return self._absent
        if found is locations.AMBIGUOUS:
            return self._refused[refusals.SEVERAL]
        credentials = self._place.read(found[0])
        if credentials is None:
            return self._absent
        digest = self._digest(credentials)
        if digest in self._good or digest in self._bad:
            return self._verdict(x, found, digest)
        return self._checked(x, found, digest, credentials)

    def _verdict(self, x: Exchange, found: locations.Found, digest: bytes) -> Reply | None:
        """The answer once the outcome is known; a check without an outcome counts as a bad one."""
        user = self._good.get(digest)
        if user is None:
            return self._refused[WRONG]
        self._place.remove(x, found)
        x.leave("basicAuth", user)
        x.leave("basicAuthCredentials", Redacted((self._place.read(found[0]) or b"").decode("latin-1")))
        return None

    def _checked(
        self, x: Exchange, found: locations.Found, digest: bytes, credentials: bytes
    ) -> Reply | Awaitable[Reply | None] | None:
        pair = htpasswd.user_and_password(credentials)
        if pair is None:
            return self._refused[MALFORMED]
        hashed = self._hash_for(pair[0])
        if hashed.quick or self._offload is None:
            self._learn(digest, pair[0], hashed.matches(pair[1]))
            return self._verdict(x, found, digest)
        check = self._checks.get(digest)
        if check is None:
            check = _Check(digest, pair, hashed)
            loser = self._queue.add(source_of(x.peer), check)
            if loser is check:
                return self._busy
            if loser is not None:
                self._drop(loser)
            self._checks[digest] = check
            if self._spawn is not None:
                self._begin(self._spawn)
        return self._later(x, found, check)

    async def _later(self, x: Exchange, found: locations.Found, check: _Check) -> Reply | None:
        while self._spawn is None and not check.is_over and (work := self._next()) is not None:
            await work
        if not check.is_over:
            done = self._make_future()
            check.waiting.append(done)
            await done
        return self._busy if check.is_dropped else self._verdict(x, found, check.digest)

    def _begin(self, spawn: Callable[[Coroutine[Any, Any, None]], Any]) -> None:
        """Run the check whose turn it is, unless one runs. No request owns it: the one that asked for it may leave."""
        if not self._is_checking and (work := self._next()) is not None:
            self._is_checking = True
            spawn(work)

    def _next(self) -> Coroutine[Any, Any, None] | None:
        check = self._queue.take()
        return None if check is None else self._run(check)

    async def _run(self, check: _Check) -> None:
        """One check, in a thread; then it is the turn of the next. There is one thread: more would not be faster."""
        assert self._offload is not None  # the caller has looked
        goes_on = False
        try:
            self._learn(check.digest, check.user, await self._offload(partial(check.hashed.matches, check.password)))
            goes_on = True
        except Exception:
            goes_on = True
            raise
        finally:  # when it is cancelled the worker ends: no other begins
            del self._checks[check.digest]
            check.wake()
            self._is_checking = False
            if goes_on and self._spawn is not None:
                self._begin(self._spawn)

    def _drop(self, check: _Check) -> None:
        check.is_dropped = True
        del self._checks[check.digest]
        check.wake()

    def _learn(self, digest: bytes, user: bytes, matched: bool) -> None:
        if matched and user in self._users:
            _remember(self._good, digest, {"username": _text(user)})
        else:
            _remember(self._bad, digest, None)

    def _digest(self, data: bytes) -> bytes:
        made = self._salted.copy()
        made.update(data)
        return made.digest()

    def _hash_for(self, user: bytes) -> htpasswd.Hash:
        """The user's; for one that is not there always the same other one: the answer takes as long as for a user."""
        return self._users.get(user) or self._hashes[int.from_bytes(self._digest(user)[:8], "big") % len(self._hashes)]


def _remember(outcomes: dict[bytes, ValueT], digest: bytes, value: ValueT) -> None:
    """The oldest is forgotten when there are too many."""
    if len(outcomes) >= KNOWN:
        del outcomes[next(iter(outcomes))]
    outcomes[digest] = value


def _text(user: bytes) -> str:
    """RFC 7617 2.1 leaves the encoding open: UTF-8 where it is that."""
    try:
        return user.decode()
    except UnicodeDecodeError:
        return user.decode("latin-1")
