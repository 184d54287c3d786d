"""OAuth metadata for MCP clients: the documents by which they find who issues tokens. Pure: values in, values out.

RFC 9728 (protected resource), RFC 8414 (authorization server), RFC 7591 (registration of clients). `Site` is where a
client asked; identity providers differ in what `PROVIDERS` says.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from dataplane.credentials.discovery import PATH as OPENID
from dataplane.credentials.discovery import Unusable, place_of
from dataplane.http.uri import is_target
from dataplane.http.well_known import REGISTRATION, RESOURCE, SERVER

MAX_DOCUMENT: Final = 262_144
"""Bytes of metadata, and of a registration's answer."""
MAX_REGISTRATION: Final = 65_536
"""Bytes of a registration."""
MAX_REDIRECTS: Final = 64
"""Redirect URIs of a client that gets a fixed id."""


class Site(NamedTuple):
    """Where a client asked: `base` is scheme and authority, `path` that of the resource, "" for the root."""

    base: str
    path: str

    @property
    def url(self) -> str:
        """The resource."""
        return self.base + self.path

    @property
    def registration(self) -> str:
        return f"{self.base}{SERVER}{self.path}{REGISTRATION}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of identity provider: where it differs from the standards."""

    is_openid: bool = False
    """Its metadata is that of OpenID Connect."""
    wants_audience: bool = False
    """Its tokens have an audience only where the request for authorization names one."""
    registration: str = ""
    """Where clients register, of its own interface; `{issuer}` is replaced by the issuer's path. "": its metadata
    says."""


PROVIDERS: Final = {
    "": Kind(),
    "Auth0": Kind(wants_audience=True),
    "Keycloak": Kind(is_openid=True, registration="{issuer}/clients-registrations/openid-connect"),
    "Okta": Kind(is_openid=True, wants_audience=True, registration="/oauth2/v1/clients"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a policy says. `issuer`: "" where none is known. `overrides`: `resourceMetadata`, which wins over our own
    fields as it is."""

    issuer: str
    audiences: tuple[str, ...] = ()
    provider: str = ""
    client_id: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        return PROVIDERS[self.provider]

    @property
    def is_adapted(self) -> bool:
        """To clients we are the authorization server: its metadata is not the provider's own."""
        return bool(self.provider or self.client_id)


def resource(settings: Settings, site: Site) -> dict[str, Any]:
    """Metadata of the protected resource (RFC 9728 2)."""
    site = published(settings, site)
    server = site.url if settings.is_adapted else settings.issuer
    return {
        "resource": site.url,
        **({"authorization_servers": [server]} if server else {}),
        "mcp_protocol_version": "2025-06-18",
        "resource_type": "mcp-server",
        **settings.overrides,
    }


def source(settings: Settings) -> tuple[bytes, bytes]:
    """Authority and path of the provider's own metadata. Raises `discovery.Unusable`."""
    place = place_of(settings.issuer)
    issuer = place.path.removesuffix(OPENID)
    path = place.path if settings.kind.is_openid else f"{SERVER}{issuer}"  # RFC 8414 3.1
    return place.authority, path.encode()


def read(data: bytes, settings: Settings) -> dict[str, Any]:
    """Metadata of the provider, checked. Raises `Unusable`: for that of another issuer as well (RFC 8414 3.3)."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise Unusable("the metadata is not JSON") from None
    if not isinstance(document, dict):
        raise Unusable("the metadata is no object")
    if document.get("issuer") != settings.issuer:
        raise Unusable("the metadata is of another issuer")
    for name in ("authorization_endpoint", "token_endpoint"):
        if not _is_url(document.get(name)):
            raise Unusable(f"the metadata has no {name}")
    return document


def _is_url(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return urlsplit(value).scheme in ("https", "http") and bool(urlsplit(value).netloc)
    except ValueError:
        return False


def server(document: dict[str, Any], settings: Settings, site: Site) -> dict[str, Any]:
    """Metadata of the authorization server, as Gatewright's clients are to have it."""
    made, site = dict(document), published(settings, site)
    if settings.is_adapted:
        made["issuer"] = site.url
    if settings.kind.wants_audience and settings.audiences:
        endpoint = made["authorization_endpoint"]
        joint = "&" if urlsplit(endpoint).query else "?"
        made["authorization_endpoint"] = f"{endpoint}{joint}audience={quote(settings.audiences[0], safe='')}"
    if settings.client_id or settings.kind.registration:
        made["registration_endpoint"] = site.registration
    return made


def registration_target(document: dict[str, Any], settings: Settings) -> bytes:
    """Path at the issuer's own host where clients register. Raises `Unusable`."""
    place = place_of(settings.issuer)
    if settings.kind.registration:
        return settings.kind.registration.format(issuer=place.path.removesuffix(OPENID)).encode()
    endpoint = document.get("registration_endpoint")
    parts = urlsplit(endpoint) if isinstance(endpoint, str) and _is_url(endpoint) else None
    if parts is None or (parts.scheme, parts.netloc.lower().encode()) != (place.scheme, place.authority):
        raise Unusable("the metadata has no registration_endpoint at the issuer's host")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not is_target(target):
        raise Unusable("the metadata's registration_endpoint has characters that a URL has escaped")
    return target.encode()


def registered(body: bytes, client_id: str) -> dict[str, Any] | None:
    """The answer to a registration where the client's id is fixed (RFC 7591 3.2.1); None: it is none."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return None
    uris = asked.get("redirect_uris", []) if isinstance(asked, dict) else None
    if not isinstance(uris, list) or len(uris) > MAX_REDIRECTS or not all(isinstance(each, str) for each in uris):
        return None
    return {
        "client_id": client_id,
        "client_id_issued_at": 0,
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "redirect_uris": uris,
    }


def published(settings: Settings, site: Site) -> Site:
    """Where clients find us: what `resource` says that is set by hand, since a proxy before us may be asked by another
    scheme or host; else where they asked."""
    resource_url = settings.overrides.get("resource")
    if not isinstance(resource_url, str) or not _is_url(resource_url):
        return site
    parts = urlsplit(resource_url)
    return Site(f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/"))


def pointer(settings: Settings, site: Site) -> bytes:
    """`resource_metadata` of a challenge (RFC 9728 5.1), ready for the header."""
    site = published(settings, site)
    text = f"{site.base}{RESOURCE}{site.path}"
    return b'resource_metadata="%b"' % quote(text, safe="/%:@!$&'()*+,;=-._~[]").encode()


_is_authority = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?").fullmatch


def site(scheme: bytes, authority: bytes, path: bytes) -> Site | None:
    """Where a client asked; None: its host is none that can be written down."""
    if not _is_authority(authority):
        return None
    return Site(f"{scheme.decode()}://{authority.decode()}", path.decode("latin-1").rstrip("/"))
