"""Which secrets each part of the standalone file holds, and what they are called as entries of a Secret.

A table for `resources`, which reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gatewright.api.checks.certificates import AUTHORITIES, CERTIFICATE, KEY, STAPLE
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


CONTENTS: Final[dict[str, Callable[[Any, str], Contents]]] = {
    "jwt_authentication": _shared_secret,
    "basic_authentication": _users,
    "api_key_authentication": _keys,
    "backend_tls": _client,
    "tls": _pair,
}
"""Policy on the wire, or a listener's `tls`, to the secrets that its model holds; the text is the index of a part,
where it has several."""
