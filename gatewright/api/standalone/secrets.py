"""Secrets and certificates in the standalone file, in place of Secrets and ConfigMaps: a text, a file or a variable.

Used by the table in file_parts. It reads no file and no variable: who uses a secret does. The fields that hold secrets
have no repr: a secret written itself in their place is reported, without showing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gatewright.api.schema.fields import ShortString
from gatewright.api.schema.model import Broken, Model, RuledModel, one_of

ENV_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""Names of environment variables (POSIX, 8.1)."""


class Content(RuledModel):
    """A secret or certificate: written here, or where to read it."""

    value: Annotated[str, Field(min_length=1, max_length=65536)] | None = Field(default=None, repr=False)
    """The text itself. Anyone who may read the file reads it."""
    file: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Path of a file that holds it, relative to this file's folder. It is read again when it changes."""
    env: Annotated[str, Field(max_length=256, pattern=ENV_PATTERN)] | None = None
    """Name of an environment variable that holds it."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "value", "file", "env")


class Unreadable(Exception):
    """A content cannot be had. The text names file or variable and the reason, never what is in it; `form` is the field
    that says where it is, "file" or "env"."""

    def __init__(self, form: str, text: str) -> None:
        super().__init__(text)
        self.form = form


class AwsKeys(Model):
    """The entries of a Secret with AWS credentials."""

    access_key: Content
    """The access key's id."""
    secret_key: Content
    """The secret key."""
    session_token: Content | None = None
    """The token of a temporary session."""


class AzureClient(Model):
    """The entries of a Secret with an Azure client."""

    client_id: Annotated[Content, Field(alias="clientID")]
    """The client's id."""
    tenant_id: Annotated[Content, Field(alias="tenantID")]
    """The tenant's id."""
    client_secret: Content
    """The client's secret."""


class ServerCertificate(Model):
    """The entries of a Secret with a certificate."""

    certificate: Annotated[Content, Field(alias="tls.crt")]
    """The certificate and those that signed it, PEM."""
    key: Annotated[Content, Field(alias="tls.key")]
    """Its private key, PEM."""


class ListenerCertificate(ServerCertificate):
    """The entries of a Secret with a listener's certificate."""

    staple: Annotated[Content | None, Field(alias="tls.ocsp-staple")] = None
    """An OCSP response about it, DER in a file or base64, that clients get who ask for one. Gatewright extension."""
    authorities: Annotated[Content | None, Field(alias="ca.crt")] = None
    """Who signed it, PEM, where `tls.crt` does not say so: the response is verified with that."""


class ClientCertificate(ServerCertificate):
    """The entries of a Secret with a certificate, and who verifies the other side."""

    authorities: Annotated[Content | None, Field(alias="ca.cert")] = None
    """The authorities that the server is verified with, PEM, unless caCertificateRefs has them."""


# What follows takes the place of fields of the CRDs' models; see FORMS in file_parts.


class UsersSecret(RuledModel):
    """In place of a Secret with users."""

    secret_ref: Content | None = Field(default=None, repr=False)
    """A whole htpasswd file."""


class KeysSecret(RuledModel):
    """In place of Secrets with API keys."""

    secret_ref: Annotated[dict[ShortString, Content], Field(min_length=1, max_length=4096)] = Field(repr=False)
    """Keys by names of your own. A content is a key, or the JSON object `{"key": …, "metadata": …}`."""
    secret_selector: ClassVar[None] = None


class SharedSecret(RuledModel):
    """In place of a Secret with the secret of an issuer."""

    shared_secret_ref: Content | None = Field(default=None, repr=False)
    """In place of `jwks`: the secret (32 bytes or more) that signs the issuer's tokens with HS256. No other algorithm
    is valid then."""


class CredentialSecret(RuledModel):
    """In place of a Secret with a credential."""

    secret_ref: Content | None = Field(default=None, repr=False)
    """The credential."""


class GcpSecret(RuledModel):
    """In place of a Secret with credentials of Google Cloud."""

    secret_ref: Content | None = Field(default=None, repr=False)
    """A credentials file, JSON; ambient credentials when unset."""


class AwsSecret(RuledModel):
    """In place of a Secret with credentials of AWS."""

    secret_ref: AwsKeys | None = Field(default=None, repr=False)
    """Access key and secret key; ambient credentials when unset."""


class AzureSecret(RuledModel):
    """In place of a Secret with credentials of Azure."""

    secret_ref: AzureClient | None = Field(default=None, repr=False)
    """A client's ids and secret."""


class BackendCertificates(RuledModel):
    """In place of a Secret and a ConfigMap with certificates."""

    mtls_certificate_ref: Annotated[tuple[ClientCertificate, ...], Field(max_length=1)] | None = Field(
        default=None, repr=False
    )
    """The client's certificate and key."""
    ca_certificate_refs: Annotated[tuple[Content, ...], Field(max_length=1)] | None = None
    """The authorities that the server is verified with, PEM; default is the system's."""


class ClientAuthorities(Model):
    """The entries of a ConfigMap with authorities of clients."""

    certificates: Annotated[Content, Field(alias="ca.crt")]
    """The authorities, PEM."""
    revocations: Annotated[Content | None, Field(alias="ca.crl")] = None
    """Lists of what they have revoked, PEM. Then every certificate of a client's chain needs one."""


class ClientValidation(Model):
    """How clients are verified, as `spec.tls.frontend.default.validation` of a Gateway says it."""

    ca_certificate_refs: Annotated[tuple[ClientAuthorities, ...], Field(min_length=1, max_length=16)]
    """Who has to have signed clients' certificates."""
    mode: Literal["AllowValidOnly", "AllowInsecureFallback"] = "AllowValidOnly"
    """`AllowValidOnly`: who has no valid certificate does not get through the handshake; `AllowInsecureFallback`: they
    are served, and have no identity."""


class ListenerCertificates(RuledModel):
    """In place of Secrets with certificates."""

    certificate_refs: Annotated[tuple[ListenerCertificate, ...], Field(max_length=64)] = Field(default=(), repr=False)
    """Certificates and their keys."""
    validation: ClientValidation | None = None
    """Ask clients for a certificate. Gatewright extension: a Gateway says it for all its listeners, or by port."""
