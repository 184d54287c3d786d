"""JWT authentication: a token of a configured issuer lets a request pass, and its claims are there as `jwt.*`.

Spec 2, jwtAuthentication. A token that was verified before is recognised by what the client sent, byte for byte, and
costs one look-up. Keys are fetched through `Env.calls`; the filter waits only for keys that it does not have yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.chain.filter import Env, Filter, Refused, RequestHook
from dataplane.chain.reply import Reply
from dataplane.credentials import locations, refusals
from dataplane.credentials.key_sources import InlineKeys, RemoteKeys, Unavailable
from dataplane.credentials.known_tokens import KnownTokens
from gatewright.cel.values import Redacted
from gatewright.wire.v1 import authentication_pb2

if TYPE_CHECKING:
    from dataplane.credentials.jwks import KeySet
    from dataplane.exchange import Exchange

NAME = "jwt_authentication"

FETCH_SECONDS: Final = 10.0
"""Decisions, Callouts: JWKS."""

MAX_KEY_SET: Final = 256 * 1024
"""Bytes of a key set: reading keys takes the worker's time."""

PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between tries to fetch the first keys, before any request asks for them."""

KEYS_UNAVAILABLE: Final = "the keys of the issuer could not be fetched"

DEFAULT_CACHE_MS: Final = 300_000

Source = InlineKeys | RemoteKeys


class Provider:
    """An issuer, as far as tokens are checked against it."""

    __slots__ = ("audiences", "source")

    def __init__(self, audiences: Iterable[str], source: Source) -> None:
        self.audiences = frozenset(audiences)
        self.source = source


def build(config: authentication_pb2.JwtAuthentication, env: Env) -> Filter:
    """Raises `Refused`: no providers, one issuer twice, inline keys without a usable one, remote keys without a way to
    fetch them, a location that cannot be."""
    place = locations.location(config.location, b"Bearer")
    providers: dict[str, Provider] = {}
    for index, provider in enumerate(config.providers):
        if provider.issuer in providers:
            raise Refused(f"providers[{index}].issuer: {provider.issuer} has been named before")
        source = _source(provider.jwks, f"providers[{index}].jwks", env)
        providers[provider.issuer] = Provider(provider.audiences, source)
    if not providers:
        raise Refused("providers: none")
    check = Authentication(providers, place, config.mode, env)
    return place.step(NAME, check.hook(), env)


def _source(config: authentication_pb2.Jwks, where: str, env: Env) -> Source:
    from dataplane.credentials import jwks  # with `cryptography`: not before a policy asks for it

    kind = config.WhichOneof("kind")
    if kind == "inline":
        try:
            return InlineKeys(jwks.read(config.inline))
        except jwks.Unusable as error:
            raise Refused(f"{where}.inline: {error}") from None
    if kind is None:
        raise Refused(f"{where}: neither remote nor inline")
    if env.calls is None:
        raise Refused(f"{where}.remote: there is no way to fetch keys here")
    remote = config.remote
    seconds = (remote.cache_duration_ms or DEFAULT_CACHE_MS) / 1000
    path = "/" + remote.jwks_path.lstrip("/")
    if not _is_path(path):
        raise Refused(f"{where}.remote.jwksPath: {remote.jwks_path!r} is not a path")
    fetch = _fetch(env, remote.backend, path)
    name = f"{remote.backend} {path}"

    def make() -> RemoteKeys:
        sign = None if env.buckets is None else env.buckets.sign(f"keys lost {name}")
        return RemoteKeys(name, fetch, seconds, env.clock, env.spawn, env.make_future, sign)

    keys = env.kept(f"jwks|{name}|{seconds}", make)
    _begin(keys, env)
    return keys


def _begin(keys: RemoteKeys, env: Env) -> None:
    """Fetch in the background, so that the first request finds keys."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if keys.keys is None and env.spawn is not None:
        env.spawn(_prefetch(keys))


async def _prefetch(keys: RemoteKeys) -> None:
    """The table that knows the server may not have been swapped in yet."""
    for pause in PAUSES:
        if keys.may_fetch(unknown=False):
            await keys.fetched()
        if keys.keys is not None:
            return
        await asyncio.sleep(pause)


def _is_path(path: str) -> bool:
    """Whether a request can have it."""
    return path.isascii() and path.isprintable() and " " not in path and "#" not in path


def _fetch(env: Env, backend: str, path: str) -> Callable[[], Any]:
    """What fetches a key set."""
    from dataplane.credentials import jwks

    request = CallRequest(b"GET", path.encode(), headers=b"accept: application/json\r\n")
    calls = env.calls
    assert calls is not None  # the caller has looked

    async def fetch() -> KeySet:
        try:
            answer = await calls.http(backend, request, FETCH_SECONDS, MAX_KEY_SET)
            if answer.status != 200:
                raise Unavailable(f"the server answered {answer.status}")
            return jwks.read(answer.body)
        except CallFailed as error:
            raise Unavailable(str(error), unresolved=error.cause == "unresolved") from None
        except jwks.Unusable as error:
            raise Unavailable(str(error)) from None

    return fetch


class Authentication:
    """The step of one policy."""

    __slots__ = ("_absent", "_known", "_place", "_providers", "_replies", "_wall")

    def __init__(self, providers: dict[str, Provider], place: locations.Location, mode: int, env: Env) -> None:
        from dataplane.credentials import jwt

        scheme = place.scheme or b"Bearer"
        self._providers, self._place, self._wall = providers, place, env.wall_clock
        self._known = KnownTokens()
        self._absent = refusals.absence(mode, "JwtMissing", scheme, env.origin)
        causes = (*jwt.CAUSES, refusals.SEVERAL)
        self._replies = {
            **refusals.refusals(mode, "JwtInvalid", scheme + b' error="invalid_token"', env.origin, causes),
            **refusals.refusals(mode, "JwtKeysUnavailable", scheme, env.origin, (KEYS_UNAVAILABLE,)),
        }

    def hook(self) -> RequestHook:
        return self._in_header(self._place.needle) if self._place.needle else self._anywhere()

    def _anywhere(self) -> RequestHook:
        find, remove, wall_clock, known = self._place.find, self._place.remove, self._wall, self._known.entries
        absent, unknown = self._absent, self._unknown

        def authenticate(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
            found = find(x)
            if found is None:
                return absent
            entry = known.get(found[0])
            if entry is not None:
                until, source, keys, claims = entry
                if source.keys is keys and wall_clock() < until:
                    remove(x, found)
                    x.leave("jwt", claims)
                    return None
            return unknown(x, found)

        return authenticate

    def _in_header(self, needle: bytes) -> RequestHook:
        """The same with `locations.in_header` written out: every request of most gateways comes by here."""
        wall_clock, known, absent, unknown = self._wall, self._known.entries, self._absent, self._unknown
        length = len(needle)

        def authenticate(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
            head = x.request
            low = head.low
            start = low.find(needle)
            if start < 0:
                return absent
            end = low.find(b"\r", start + length)
            if low.find(needle, end) != -1:
                return unknown(x, locations.AMBIGUOUS)
            block = head.block
            sent = block[start + length : end]
            entry = known.get(sent)
            if entry is not None:
                until, source, keys, claims = entry
                if source.keys is keys and wall_clock() < until:
                    head.block = block[:start] + block[end:]
                    head.low = low[:start] + low[end:]
                    x.leave("jwt", claims)
                    return None
            return unknown(x, (sent, start, end))

        return authenticate

    def _unknown(self, x: Exchange, found: locations.Found) -> Reply | Awaitable[Reply | None] | None:
        """A credential that was not verified yet, or whose time is over."""
        if found is locations.AMBIGUOUS:
            return self._replies[refusals.SEVERAL]
        token = self._place.read(found[0])
        if token is None:
            return self._absent
        self._known.forget(found[0])
        outcome = self._verified(found[0], token, may_wait=True)
        if isinstance(outcome, RemoteKeys):
            return self._later(x, found, token, outcome)
        return self._settled(x, found, outcome)

    async def _later(self, x: Exchange, found: locations.Found, token: bytes, keys: RemoteKeys) -> Reply | None:
        await keys.fetched()
        outcome = self._verified(found[0], token, may_wait=False)
        assert not isinstance(outcome, RemoteKeys)  # it may not
        return self._settled(x, found, outcome)

    def _settled(self, x: Exchange, found: locations.Found, outcome: dict[str, Any] | str) -> Reply | None:
        if isinstance(outcome, str):
            return self._replies[outcome]
        self._place.remove(x, found)
        x.leave("jwt", outcome)
        return None

    def _verified(self, sent: bytes, token: bytes, may_wait: bool) -> dict[str, Any] | str | RemoteKeys:
        """Claims; or why it is refused; or the keys that have to be fetched first."""
        from dataplane.credentials import jwt

        read = jwt.read(token)
        if isinstance(read, str):
            return read
        issuer = read.claims.get("iss")
        provider = self._providers.get(issuer) if isinstance(issuer, str) else None
        if provider is None:
            return jwt.ISSUER
        source = provider.source
        keys = source.current() if may_wait else source.keys
        remote = source if may_wait and isinstance(source, RemoteKeys) else None
        if keys is None:
            return KEYS_UNAVAILABLE if remote is None or not remote.may_fetch(unknown=False) else remote
        wrong = jwt.wrong_signature(read, keys)
        if wrong == jwt.UNKNOWN_KEY and remote is not None and remote.may_fetch(unknown=True):
            return remote
        now = self._wall()
        wrong = wrong or jwt.wrong_claims(read.claims, provider.audiences, now)
        if wrong:
            return wrong
        claims = {**read.claims, "rawToken": Redacted(token.decode())}
        until = min(read.claims["exp"] + jwt.LEEWAY, now + source.fresh_for())
        self._known.remember(sent, (until, source, keys, claims))
        return claims
