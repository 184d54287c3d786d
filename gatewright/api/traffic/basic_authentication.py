"""`traffic.basicAuthentication`: user names and passwords (RFC 7617)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.schema.fields import HTPASSWD_PATTERN
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.references import LocalSecretObjectRef
from gatewright.api.schema.rules import exactly_one
from gatewright.api.traffic.extraction import AuthorizationExtractionLocation

USERS_ENTRY: Final = ".htaccess"
"""The entry of a Secret that is a whole htpasswd file."""

_User = Annotated[str, Field(pattern=HTPASSWD_PATTERN)]


class BasicAuthentication(RuledModel):
    """Users with passwords. Valid credentials are removed from the request."""

    users: Annotated[tuple[_User, ...], Field(min_length=1, max_length=256)] | None = Field(default=None, repr=False)
    """Lines of an htpasswd file, `USER:HASH` each; MD5, bcrypt, crypt and SHA-1 hashes, no plain passwords."""
    secret_ref: LocalSecretObjectRef | None = None
    """A Secret whose entry `.htaccess` is a whole htpasswd file."""
    mode: Literal["Strict", "Optional"] = "Strict"
    """`Strict` asks for valid credentials; `Optional` lets requests without any pass."""
    realm: str = "Restricted"
    """The realm that the answer 401 names."""
    location: AuthorizationExtractionLocation | None = None
    """Where the credentials stand; default is the header Authorization with the prefix Basic."""

    cel_rules = (exactly_one("users", "secretRef"),)
