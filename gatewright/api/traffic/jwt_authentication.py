"""`traffic.jwtAuthentication`: JSON Web Tokens of clients."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.schema.fields import Json, PositiveDuration, ShortString
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.references import LocalSecretObjectRef, PolicyBackendReference
from gatewright.api.schema.rules import exactly_one, where_set
from gatewright.api.traffic.extraction import AuthorizationExtractionLocation

Mode = Literal["Strict", "Optional", "Permissive"]
Audiences = Annotated[tuple[str, ...], Field(min_length=1, max_length=64)]
IdentityProvider = Literal["Auth0", "Keycloak", "Okta"]

SHARED_SECRET_ENTRY: Final = "secret"
"""The entry of a Secret that is the secret of an issuer."""


class RemoteJWKS(Model):
    """Keys that a server publishes."""

    jwks_path: Annotated[str, Field(min_length=1, max_length=2000)]
    """Path of the key set below the server's root, commonly .well-known/jwks.json."""
    cache_duration: PositiveDuration = "5m"
    """How long fetched keys count."""
    backend_ref: PolicyBackendReference
    """The server: a Service or static GatewayBackend. A policy that targets it says whether TLS is used."""


class DiscoveredJWKS(Model):
    """Keys that the issuer's own metadata names: `jwks_uri` of its `/.well-known/openid-configuration` (OpenID Connect
    Discovery 1.0). Gatewright extension."""

    cache_duration: PositiveDuration = "5m"
    """How long fetched keys count."""
    backend_ref: PolicyBackendReference
    """The issuer: a Service or static GatewayBackend. A policy that targets it says whether TLS is used."""


class JWKS(RuledModel):
    """The keys that sign tokens: fetched, or written here."""

    remote: RemoteJWKS | None = None
    """Keys that a server publishes."""
    inline: Annotated[str, Field(min_length=2, max_length=65536)] | None = None
    """A JSON Web Key Set."""
    discovery: DiscoveredJWKS | None = None
    """Gatewright extension: keys that the issuer's own metadata names. `issuer` has to be an https or http URL."""

    cel_rules = (exactly_one("remote", "inline", "discovery"),)


class JWTProvider(RuledModel):
    """An issuer of tokens."""

    issuer: ShortString
    """The token's `iss` claim. Several providers may have one issuer: the token's `kid` decides, then its `aud`."""
    audiences: Audiences | None = None
    """Audiences of which the token's `aud` claim must name one; any, when unset."""
    jwks: JWKS | None = None
    """The issuer's public keys. Tokens with HS256 are never valid with them."""
    shared_secret_ref: LocalSecretObjectRef | None = None
    """Gatewright extension, in place of `jwks`: a Secret whose entry `secret` (32 bytes or more) signs the issuer's
    tokens with HS256. No other algorithm is valid then."""

    cel_rules = (exactly_one("jwks", "sharedSecretRef"),)


class JWTMCPConfig(Model):
    """Discovery of the authorization server by MCP clients; the gateway serves its metadata."""

    resource_metadata: dict[str, Json] | None = None
    """Fields of the OAuth protected resource metadata."""
    provider: IdentityProvider | None = None
    """The kind of identity provider, where it needs adapting."""
    client_id: str | None = None
    """The client id that is returned instead of passing registrations of clients on to the identity provider."""


class JWTAuthentication(RuledModel):
    """Tokens of clients. A valid one is removed from the request."""

    mode: Mode = "Strict"
    """`Strict` asks for a valid token; `Optional` lets requests without one pass; `Permissive` rejects nothing, and
    reads claims where it can."""
    providers: Annotated[tuple[JWTProvider, ...], Field(min_length=1, max_length=64)]
    """Issuers whose tokens are valid."""
    location: AuthorizationExtractionLocation | None = None
    """Where the token stands; default is the header Authorization with the prefix Bearer."""
    mcp: JWTMCPConfig | None = None
    """Serve the metadata by which MCP clients find the authorization server. Needs one provider and mode Strict."""

    cel_rules = (
        where_set("mcp", "self.providers.size() == 1", "must have exactly one item when mcp is set", blame="providers"),
        where_set("mcp", "self.mode == 'Strict'", "must be Strict when mcp is set", blame="mode"),
    )
