"""API key authentication: a key of a Secret lets a request pass, and its metadata are there as `apiKey.*`.

`apiKeyAuthentication`. The keys themselves are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dataplane.chain.filter import Env, Filter, RequestHook
from dataplane.chain.reply import Reply
from dataplane.credentials import api_keys, locations, refusals
from gatewright.cel.values import Redacted
from gatewright.wire.v1 import authentication_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME = "api_key_authentication"

UNKNOWN = "the key is not known"


def secrets(config: authentication_pb2.ApiKeyAuthentication) -> Iterable[str]:
    """Keys of the Secrets that a policy reads."""
    return config.secrets


def build(config: authentication_pb2.ApiKeyAuthentication, env: Env) -> Filter:
    """Raises `Refused` for a Secret that is not there and for a location that cannot be."""
    place = locations.location(config.location, b"Bearer")
    keys = api_keys.ApiKeys(each for key in config.secrets for each in api_keys.read(env.secret(key), key))
    scheme = place.scheme or b"Bearer"
    absent = refusals.absence(config.mode, "ApiKeyMissing", scheme, env.origin)
    challenge = scheme + b' error="invalid_token"'
    invalid = refusals.refusals(config.mode, "ApiKeyInvalid", challenge, env.origin, (UNKNOWN, refusals.SEVERAL))
    return place.step(NAME, _hook(place, keys, absent, invalid), env)


def _hook(
    place: locations.Location, keys: api_keys.ApiKeys, absent: Reply | None, invalid: dict[str, Reply | None]
) -> RequestHook:
    find, read, remove, metadata_of = place.find, place.read, place.remove, keys.metadata
    unknown, several = invalid[UNKNOWN], invalid[refusals.SEVERAL]

    def authenticate(x: Exchange) -> Reply | None:
        found = find(x)
        if found is None:
            return absent
        if found is locations.AMBIGUOUS:
            return several
        key = read(found[0])
        if key is None:
            return absent
        metadata = metadata_of(key)
        if metadata is None:
            return unknown
        remove(x, found)
        x.leave("apiKey", {**metadata, "key": Redacted(key.decode("utf-8", "replace"))})
        return None

    return authenticate
