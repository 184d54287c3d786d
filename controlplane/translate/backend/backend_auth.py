"""What `backend.auth` of a policy or GatewayBackend names: the Secret with a credential, in the object's own namespace.

A value is not looked at: it leaves through `secrets.resource` alone.
"""

from __future__ import annotations

from controlplane.derive import Context
from controlplane.translate.backend import secrets
from controlplane.translate.backend.secrets import Secrets
from controlplane.translate.conditions import Condition
from controlplane.translate.keys import ObjectKey
from gatewright.api.backend.auth import SECRET_ENTRIES, AwsAuth, AzureAuth, BackendAuth, GcpAuth

AuthSecret = BackendAuth | AwsAuth | AzureAuth | GcpAuth
"""Who may have a `secretRef`."""


def named(context: Context, known: Secrets, namespace: str, auth: AuthSecret) -> tuple[ObjectKey, ...] | Condition:
    """The Secret of `secretRef`, which is set."""
    assert auth.secret_ref is not None  # the caller asked
    return secrets.named(context, known, namespace, auth.secret_ref, *SECRET_ENTRIES[type(auth)])
