"""Where OAuth metadata of a resource is found: well-known paths before that of the resource (RFC 8615; RFC 9728 3.1,
RFC 8414 3.1)."""

from __future__ import annotations

from typing import Final

RESOURCE: Final = "/.well-known/oauth-protected-resource"
SERVER: Final = "/.well-known/oauth-authorization-server"
REGISTRATION: Final = "/client-registration"
"""Behind the path of the authorization server's metadata: where clients register through us."""

_PREFIXES: Final = (RESOURCE.encode(), SERVER.encode())

PUBLISHED: Final = "oauth.published"
"""Attribute of an exchange whose answer is metadata, which everybody may read."""


def resource_of(path: bytes) -> bytes | None:
    """The path of the resource that a well-known path is about; None: it is none."""
    if not path.startswith(b"/.well-known/oauth-"):
        return None
    for prefix in _PREFIXES:
        rest = path.removeprefix(prefix)
        if rest is not path and rest[:1] in (b"", b"/"):
            return rest.removesuffix(REGISTRATION.encode()) or b"/"
    return None
