"""Which secrets each part of the standalone file holds, and what they are called as entries of a Secret.

A table for `resources`, which reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gatewright.api.backend.auth import CREDENTIAL_ENTRY, SECRET_ENTRIES, AwsAuth, AzureAuth, BackendAuth, GcpAuth
from gatewright.api.checks.certificates import AUTHORITIES, CERTIFICATE, KEY, STAPLE
from gatewright.api.schema.model import Model
from gatewright.api.standalone.secrets import Content
from gatewright.api.text.places import Path
from gatewright.api.traffic.basic_authentication import USERS_ENTRY
from gatewright.api.traffic.jwt_authentication import SHARED_SECRET_ENTRY

Contents = tuple[Path, list[tuple[Path, str, Content | str]]]
"""Path of the field below `policies`; of each entry the path below it, its name in the Secret, and its text."""


def _users(model: Any, _: str) -> Contents:  # Any: the file's form of BasicAuthentication
    if model.secret_ref is None:
        return ("basicAuthentication", "users"), [((), USERS_ENTRY, "\n".join(model.users))]
    return ("basicAuthentication", "secretRef"), [((), USERS_ENTRY, model.secret_ref)]


def _shared_secret(model: Any, index: str) -> Contents:  # Any: the file's form of JWTProvider
    path = ("jwtAuthentication", "providers", int(index), "sharedSecretRef")
    return path, [((), SHARED_SECRET_ENTRY, model.shared_secret_ref)]


def _keys(model: Any, _: str) -> Contents:  # Any: the file's form of APIKeyAuthentication
    contents: list[tuple[Path, str, Content | str]] = [
        ((name,), name, content) for name, content in model.secret_ref.items()
    ]
    return ("apiKeyAuthentication", "secretRef"), contents


def _pair(model: Any, index: str) -> Contents:  # Any: the file's form of ListenerTLS
    pair = model.certificate_refs[int(index)]
    contents = (
        (CERTIFICATE, pair.certificate),
        (KEY, pair.key),
        (STAPLE, pair.staple),
        (AUTHORITIES, pair.authorities),
    )
    return ("tls", "certificateRefs", int(index)), [
        ((name,), name, text) for name, text in contents if text is not None
    ]


def _client(model: Any, _: str) -> Contents:  # Any: the file's form of BackendTLS
    own = model.mtls_certificate_ref[0]
    written = ((CERTIFICATE, own.certificate), (KEY, own.key), ("ca.cert", own.authorities))
    contents: list[tuple[Path, str, Content | str]] = [
        ((name,), name, content) for name, content in written if content is not None
    ]
    return ("tls", "mtlsCertificateRef", 0), contents


def _auth(model: Any, _: str) -> Contents:  # Any: the file's form of BackendAuth, or the part of it for a cloud
    if isinstance(model, BackendAuth):
        name, secret = ("key", model.key) if model.key is not None else ("secretRef", _secret_of(model))
        return ("auth", name), [((), CREDENTIAL_ENTRY, secret)]
    cloud = next(name for name, kind in _CLOUDS.items() if isinstance(model, kind))
    path, secret = ("auth", cloud, "secretRef"), _secret_of(model)
    if isinstance(secret, Content):  # of one entry
        (entry,) = SECRET_ENTRIES[GcpAuth]
        return path, [((), entry, secret)]
    written = [(field.alias or name, getattr(secret, name)) for name, field in type(secret).model_fields.items()]
    return path, [((name,), name, content) for name, content in written if content is not None]


def _secret_of(model: Any) -> Any:  # the file's form of what is a reference in the CRD
    return model.secret_ref


_CLOUDS: Final[dict[str, type[Model]]] = {"aws": AwsAuth, "azure": AzureAuth, "gcp": GcpAuth}


CONTENTS: Final[dict[str, Callable[[Any, str], Contents]]] = {
    "jwt_authentication": _shared_secret,
    "basic_authentication": _users,
    "api_key_authentication": _keys,
    "backend_tls": _client,
    "backend_auth": _auth,
    "tls": _pair,
}
"""Policy on the wire, or a listener's `tls`, to the secrets that its model holds; the text is the index of a part,
where it has several."""
