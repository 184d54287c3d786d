"""JWT authentication: a token of a configured issuer lets a request pass, and its claims are there as `jwt.*`.

`jwtAuthentication`. What checks tokens is `credentials/authentication`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from dataplane.chain.filter import Env, Filter
from dataplane.credentials import authentication, locations
from dataplane.credentials.key_sources import RemoteKeys
from gatewright.wire.v1 import authentication_pb2

NAME = "jwt_authentication"

PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between tries to fetch the first keys, before any request asks for them."""


def secrets(config: authentication_pb2.JwtAuthentication) -> Iterable[str]:
    """Keys of the Secrets that a policy reads."""
    return (provider.secret for provider in config.providers if provider.secret)


def build(config: authentication_pb2.JwtAuthentication, env: Env) -> Filter:
    """Raises `Refused`, as `authentication.of`, and for a location that cannot be."""
    place = locations.location(config.location, b"Bearer")
    hook = authentication.of(config, place, env, partial(_begin, env)).hook()
    if config.HasField("mcp"):
        from dataplane.credentials.mcp_discovery import Discovery

        hook = Discovery(config, env).around(hook)
    return replace(place.step(NAME, hook, env), publishes=config.HasField("mcp"))


def _begin(env: Env, keys: RemoteKeys) -> None:
    """Fetch in the background, so that the first request finds keys."""
    if keys.keys is None and env.spawn is not None:
        env.spawn(_prefetch(env, keys))


async def _prefetch(env: Env, keys: RemoteKeys) -> None:
    """The table that knows the server may not have been swapped in yet."""
    for pause in PAUSES:
        if keys.may_fetch(unknown=False):
            await keys.fetched()
        if keys.keys is not None:
            return
        await env.sleep(pause)
