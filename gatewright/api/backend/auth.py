"""`backend.auth` (BackendAuth): credentials that the gateway presents to a backend."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.schema.fields import ShortString
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.references import LocalSecretObjectRef
from gatewright.api.schema.rules import exactly_one, not_both, where_set
from gatewright.api.traffic.extraction import AuthorizationLocation

ROLE_ARN_PATTERN = r"^arn:[a-z0-9-]+:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$"


CREDENTIAL_ENTRY: Final = "Authorization"
"""The entry of a Secret that is a credential."""


class Passthrough(Model):
    """The client's own token, put back; it has no settings."""


class AwsAssumeRole(Model):
    """A role that is assumed with the ambient credentials."""

    role_arn: Annotated[str, Field(min_length=1, max_length=2048, pattern=ROLE_ARN_PATTERN)]
    """The role, `arn:PARTITION:iam::ACCOUNT:role/NAME`."""


class AwsAuth(RuledModel):
    """Requests signed for AWS."""

    secret_ref: LocalSecretObjectRef | None = None
    """A Secret with `accessKey`, `secretKey` and optionally `sessionToken`; ambient credentials when unset."""
    assume_role: AwsAssumeRole | None = None
    """A role to assume."""
    service_name: ShortString | None = None
    """The service that requests are signed for; backends of a cloud kind know it."""

    cel_rules = (not_both("secretRef", "assumeRole"),)


class AzureManagedIdentity(Model):
    """An identity that the platform manages; the first of the three that is not empty counts, all empty is the
    system-assigned one."""

    client_id: str
    """Client id."""
    object_id: str
    """Object id."""
    resource_id: str
    """Resource id."""


class AzureAuth(RuledModel):
    """Tokens for Azure."""

    secret_ref: LocalSecretObjectRef | None = None
    """A Secret with `clientID`, `tenantID` and `clientSecret`."""
    managed_identity: AzureManagedIdentity | None = None
    """An identity that the platform manages."""


class GcpAuth(RuledModel):
    """Tokens for Google Cloud."""

    type: Literal["AccessToken", "IdToken"] = "AccessToken"
    """Access tokens are for services, ID tokens for serverless runtimes."""
    secret_ref: LocalSecretObjectRef | None = None
    """A Secret with `credentials.json`; ambient credentials when unset."""
    audience: ShortString | None = None
    """Audience of an ID token; derived from the backend's host name when unset."""

    cel_rules = (where_set("audience", "self.type == 'IdToken'", "is valid only with type IdToken"),)


class BackendAuth(RuledModel):
    """Credentials toward a backend: one kind of them."""

    key: Annotated[str, Field(max_length=2048)] | None = Field(default=None, repr=False)
    """The credential itself, the least secure way: anybody who may read this object reads it. A Secret is safer."""
    secret_ref: LocalSecretObjectRef | None = None
    """A Secret whose entry `Authorization` is the credential."""
    passthrough: Passthrough | None = None
    """Put the client's own token back, which a JWT or API key policy has removed. Without such a policy it does
    nothing."""
    aws: AwsAuth | None = None
    """Sign requests for AWS."""
    azure: AzureAuth | None = None
    """Present a token for Azure."""
    gcp: GcpAuth | None = None
    """Present a token for Google Cloud."""
    location: AuthorizationLocation | None = None
    """Where the credential is written; default is the header Authorization with the prefix Bearer."""

    cel_rules = (
        exactly_one("key", "secretRef", "passthrough", "aws", "azure", "gcp"),
        where_set(
            "location",
            "!(has(self.aws) || has(self.azure) || has(self.gcp))",
            "must be absent when aws, azure or gcp is set",
        ),
    )


SECRET_ENTRIES: Final[dict[type[RuledModel], tuple[str, ...]]] = {
    BackendAuth: (CREDENTIAL_ENTRY,),
    AwsAuth: ("accessKey", "secretKey"),
    AzureAuth: ("clientID", "tenantID", "clientSecret"),
    GcpAuth: ("credentials.json",),
}
"""What the Secret of a `secretRef` must have."""
