"""OpenID Connect Discovery 1.0: where an issuer's metadata is, and where that says its keys are. Pure.

The keys have to be at the issuer's own scheme and host: the backend that a policy names is the only one that is asked,
and metadata must not lead a gateway anywhere else.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

PATH: Final = "/.well-known/openid-configuration"
"""Appended to the issuer (Discovery 4)."""

_URL: Final = re.compile(r"(https?)://([A-Za-z0-9._~:\[\]-]+)(/[!-~]*)?")
"""Scheme, authority and path, without user, query or fragment in front of the path (Discovery 3, `issuer`)."""


class Unusable(ValueError):
    """The text says what is wrong with it."""


class Place(NamedTuple):
    """Where the metadata of an issuer is."""

    scheme: str
    authority: bytes
    """What requests for it have as Host."""
    path: str


def place_of(issuer: str) -> Place:
    """Raises `Unusable`."""
    found = _URL.fullmatch(issuer)
    if found is None or "?" in issuer or "#" in issuer:
        raise Unusable("is no https or http URL without a query")
    scheme, authority, path = found.groups("")
    return Place(scheme, authority.lower().encode(), path.rstrip("/") + PATH)


def keys_path(metadata: bytes, issuer: str, place: Place) -> str:
    """Path and query of `jwks_uri`. Raises `Unusable`: for metadata of another issuer as well (Discovery 4.3)."""
    try:
        document = json.loads(metadata)
    except (ValueError, RecursionError):
        raise Unusable("the metadata is not JSON") from None
    if not isinstance(document, dict):
        raise Unusable("the metadata is no object")
    if document.get("issuer") != issuer:
        raise Unusable("the metadata is of another issuer")
    uri = document.get("jwks_uri")
    found = _URL.fullmatch(uri) if isinstance(uri, str) and "#" not in uri else None
    if found is None:
        raise Unusable("the metadata has no jwks_uri that can be asked")
    scheme, authority, path = found.groups("")
    if (scheme, authority.lower().encode()) != (place.scheme, place.authority):
        raise Unusable("jwks_uri is at another host: name that one by jwks.remote")
    return path or "/"
