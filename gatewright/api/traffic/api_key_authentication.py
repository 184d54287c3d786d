"""`traffic.apiKeyAuthentication`: keys that Secrets hold."""

from __future__ import annotations

from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.references import LocalSecretObjectRef
from gatewright.api.schema.rules import exactly_one
from gatewright.api.traffic.extraction import AuthorizationExtractionLocation
from gatewright.api.traffic.jwt_authentication import Mode


class SecretSelector(Model):
    """Secrets of the policy's namespace by their labels."""

    match_labels: dict[str, str]
    """Labels that a Secret must carry. What happens with a key that several of them define is undefined."""


class APIKeyAuthentication(RuledModel):
    """API keys. Each entry of a Secret is one: its value is the key, or the JSON object `{"key": …, "metadata": …}`. A
    valid key is removed from the request."""

    secret_ref: LocalSecretObjectRef | None = None
    """A Secret of keys."""
    secret_selector: SecretSelector | None = None
    """Many Secrets of keys."""
    mode: Mode = "Strict"
    """`Strict` asks for a valid key; `Optional` lets requests without one pass; `Permissive` rejects nothing."""
    location: AuthorizationExtractionLocation | None = None
    """Where the key stands; default is the header Authorization with the prefix Bearer."""

    cel_rules = (exactly_one("secretRef", "secretSelector"),)
