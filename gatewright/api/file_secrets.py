"""Secrets and certificates in the standalone file, in place of Secrets and ConfigMaps: a text, a file or a variable.

Used by the table in file_parts. It reads no file and no variable: who uses a secret does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field

from gatewright.api.model import Broken, Model, RuledModel, one_of

ENV_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""Names of environment variables (POSIX, 8.1)."""


class Content(RuledModel):
    """A secret or certificate: written here, or where to read it."""

    value: Annotated[str, Field(min_length=1, max_length=65536)] | None = Field(default=None, repr=False)
    """The text itself. Whoever may read the file reads it."""
    file: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Path of a file that holds it, relative to this file's folder. It is read again when it changes."""
    env: Annotated[str, Field(max_length=256, pattern=ENV_PATTERN)] | None = None
    """Name of an environment variable that holds it."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "value", "file", "env")


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


class ClientCertificate(ServerCertificate):
    """As a server's, and who verifies the other side."""

    authorities: Annotated[Content | None, Field(alias="ca.cert")] = None
    """The authorities that the server is verified with, PEM, unless caCertificateRefs names them."""
