"""The keys of a provider as its policy has them: written there, fetched from a server, or a secret that is shared.

Used by the JWT filter when a policy is built. Keys that are fetched outlive a swap, and are shared by the policies of a
worker that fetch them from one place.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.chain.filter import Env, Refused
from dataplane.credentials.key_sources import InlineKeys, RemoteKeys, Unavailable
from dataplane.http.uri import is_target
from gatewright.wire.v1 import authentication_pb2

if TYPE_CHECKING:
    from dataplane.chain.calls import Calls
    from dataplane.credentials.discovery import Place
    from dataplane.credentials.jwks import KeySet

FETCH_SECONDS: Final = 10.0
"""Decisions, Callouts: JWKS."""

MAX_KEY_SET: Final = 256 * 1024
"""Bytes of a key set: reading keys takes the worker's time."""

DEFAULT_CACHE_MS: Final = 300_000

Source = InlineKeys | RemoteKeys


def source(provider: authentication_pb2.JwtProvider, where: str, env: Env) -> Source:
    """What a provider's tokens are checked with. `where`: its path in the policy. Raises `Refused`."""
    if not provider.secret:
        return _public(provider.jwks, provider.issuer, f"{where}.jwks", env)
    if provider.HasField("jwks"):
        raise Refused(f"{where}: jwks and a secret")
    return _shared(provider.secret, f"{where}.secret", env)


def _shared(key: str, where: str, env: Env) -> Source:
    from dataplane.credentials import jwk, shared_secret

    data = env.secret(key).get(shared_secret.ENTRY)
    if data is None:
        raise Refused(f"{where}: {key} has no entry {shared_secret.ENTRY}")
    try:
        return InlineKeys(shared_secret.read(data))
    except jwk.Unusable as error:
        raise Refused(f"{where}: {key}: {error}") from None


def _public(config: authentication_pb2.Jwks, issuer: str, where: str, env: Env) -> Source:
    from dataplane.credentials import jwk, jwks  # with `cryptography`: not before a policy asks for it

    kind = config.WhichOneof("kind")
    if kind == "inline":
        try:
            return InlineKeys(jwks.read(config.inline))
        except jwk.Unusable as error:
            raise Refused(f"{where}.inline: {error}") from None
    if kind is None:
        raise Refused(f"{where}: neither remote nor inline nor discovery")
    if env.calls is None:
        raise Refused(f"{where}.{kind}: there is no way to fetch keys here")
    if kind == "discovery":
        return _discovered(config.discovery, issuer, where, env)
    path = "/" + config.remote.jwks_path.lstrip("/")
    if not is_target(path):
        raise Refused(f"{where}.remote.jwksPath: {config.remote.jwks_path!r} is not a path")
    fetch = partial(_fetch, env.calls, config.remote.backend, b"", path)
    return _remote(env, f"{config.remote.backend} {path}", config.remote.cache_duration_ms, fetch)


def _discovered(config: authentication_pb2.DiscoveredJwks, issuer: str, where: str, env: Env) -> RemoteKeys:
    """As `_public`, of an issuer whose metadata says where its keys are."""
    from dataplane.credentials import discovery

    assert env.calls is not None  # the caller has looked
    try:
        place = discovery.place_of(issuer)
    except discovery.Unusable as error:
        raise Refused(f"{where}.discovery: issuer {issuer!r} {error}") from None
    fetch = partial(_discover, env.calls, config.backend, issuer, place)
    return _remote(env, f"{config.backend} {issuer} {discovery.PATH}", config.cache_duration_ms, fetch)


def _remote(env: Env, name: str, cache_ms: int, fetch: Callable[[], Coroutine[Any, Any, KeySet]]) -> RemoteKeys:
    seconds = (cache_ms or DEFAULT_CACHE_MS) / 1000

    def make() -> RemoteKeys:
        sign = None if env.buckets is None else env.buckets.sign(f"keys lost {name}")
        return RemoteKeys(name, fetch, seconds, env.clock, env.spawn, env.make_future, sign)

    return env.kept(f"jwks|{name}|{seconds}", make)


async def _discover(calls: Calls, backend: str, issuer: str, place: Place) -> KeySet:
    """The issuer's metadata, then the keys that it names. Raises `Unavailable`."""
    from dataplane.credentials import discovery

    body = await _get(calls, backend, place.authority, place.path)
    try:
        path = discovery.keys_path(body, issuer, place)
    except discovery.Unusable as error:
        raise Unavailable(f"{place.path}: {error}") from None
    return await _fetch(calls, backend, place.authority, path)


async def _fetch(calls: Calls, backend: str, authority: bytes, path: str) -> KeySet:
    """A key set. `authority` b"": the backend's own. Raises `Unavailable`."""
    from dataplane.credentials import jwk, jwks

    body = await _get(calls, backend, authority, path)
    try:
        return jwks.read(body)
    except jwk.Unusable as error:
        raise Unavailable(str(error)) from None


async def _get(calls: Calls, backend: str, authority: bytes, path: str) -> bytes:
    request = CallRequest(b"GET", path.encode(), authority=authority, headers=b"accept: application/json\r\n")
    try:
        answer = await calls.http(backend, request, FETCH_SECONDS, MAX_KEY_SET)
    except CallFailed as error:
        raise Unavailable(str(error), unresolved=error.cause == "unresolved") from None
    if answer.status != 200:
        raise Unavailable(f"the server answered {answer.status}")
    return answer.body
