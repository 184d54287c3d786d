"""References of policies: what they lead to, as the caller knows it, and where their keys stand on the wire.

Called by `to_wire`, a function for each policy with references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gatewright.api.text.places import Path
from gatewright.wire.v1 import backend_pb2


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Why a reference cannot be honoured."""

    reason: str


@dataclass(frozen=True, slots=True)
class References:
    """What a policy's references lead to, as its caller knows it."""

    backend: Callable[[Any], str | Unresolved]
    """Of a `backend_ref` (Any: the CRD's or the standalone file's): the key of a Backend."""
    secrets: Callable[[str, Any], tuple[str, ...] | Unresolved]
    """Of a setting with credentials and its model (Any: the CRD's or the file's): keys of the Secrets that have them.
    The setting is "basic_authentication" (one key), "api_key_authentication", "jwt_authentication/INDEX" with a
    provider that has a shared secret (one key), "backend_tls" with one that has a client certificate (one key), or
    "backend_auth" with a BackendAuth, or the part of it for a cloud, that has a credential (one key)."""
    authorities: Callable[[Any], tuple[str, ...] | Unresolved]
    """Of a `backend.tls` (Any: the CRD's or the file's) with authorities of its own: these, PEM."""
    server: Callable[[Path, ServerMade], str | Unresolved]
    """The key of a Backend that the policy brings itself, and where it stands below the policy. What makes it is given
    references of its own, for the policies there."""


ServerMade: TypeAlias = "Callable[[References], backend_pb2.Backend]"


def _unresolved(*_: Any) -> Unresolved:
    return Unresolved("its object is not accepted")


NOTHING_RESOLVES: Final = References(_unresolved, _unresolved, _unresolved, _unresolved)
"""Of a policy of which only that acts what refers to nothing."""


# What is wrong: the path of a reference in API names, below the policy, and why.
Reasons = Iterator[tuple[str, Unresolved]]


def _one_reference(model: Any, message: Any, references: References) -> Reasons:
    yield from backend_reference("backendRef", model, message, references)


def _server_references(model: Any, message: Any, references: References, path: str = "") -> Reasons:
    if model.backend_ref is not None:
        yield from backend_reference(f"{path}backendRef", model, message, references)
    for index, item in enumerate(getattr(model, "conditional", None) or ()):
        below = f"{path}conditional[{index}].policy."
        yield from _server_references(item.policy, message.conditional[index].policy, references, below)


def _rate_limit_references(model: Any, message: Any, references: References, path: str = "") -> Reasons:
    if model.global_ is not None:
        yield from backend_reference(f"{path}global.backendRef", model.global_, message.remote, references)
    for index, item in enumerate(getattr(model, "conditional", None) or ()):
        below = f"{path}conditional[{index}].policy."
        yield from _rate_limit_references(item.policy, message.conditional[index].policy, references, below)


def _jwt_references(model: Any, message: Any, references: References) -> Reasons:
    for index, provider in enumerate(model.providers):
        path, wire = f"providers[{index}]", message.providers[index]
        if provider.shared_secret_ref is not None:
            keys = references.secrets(f"jwt_authentication/{index}", provider)
            if isinstance(keys, Unresolved):
                yield f"{path}.sharedSecretRef", keys
            else:
                (wire.secret,) = keys
        elif provider.jwks.remote is not None:
            yield from backend_reference(
                f"{path}.jwks.remote.backendRef", provider.jwks.remote, wire.jwks.remote, references
            )
        elif provider.jwks.discovery is not None:
            found, message = provider.jwks.discovery, wire.jwks.discovery
            yield from backend_reference(f"{path}.jwks.discovery.backendRef", found, message, references)


def backend_reference(path: str, model: Any, message: Any, references: References) -> Reasons:
    key = references.backend(model.backend_ref)
    if isinstance(key, Unresolved):
        yield path, key
    else:
        message.backend = key


def _tls_references(model: Any, message: Any, references: References) -> Reasons:
    if model.mtls_certificate_ref:
        keys = references.secrets("backend_tls", model)
        if isinstance(keys, Unresolved):
            yield "mtlsCertificateRef", keys
        else:
            (message.certificate,) = keys
            message.authorities_secret = message.certificate
    if model.ca_certificate_refs:
        texts = references.authorities(model)
        if isinstance(texts, Unresolved):
            yield "caCertificateRefs", texts
        else:
            message.authorities.extend(texts)


HTTPS: Final = 443
_CLOUDS: Final = ("aws", "azure", "gcp")
"""Fields of BackendAuth that may have a Secret of their own, in model and message."""


def _auth_references(model: Any, message: Any, references: References) -> Reasons:
    if getattr(model, "key", None) is not None:
        yield from credential("key", model, message, references)
    elif model.secret_ref is not None:
        yield from credential("secretRef", model, message, references)
    for name in _CLOUDS:
        cloud = getattr(model, name)
        if cloud is not None and cloud.secret_ref is not None:
            yield from credential(f"{name}.secretRef", cloud, getattr(message, name), references)


def credential(path: str, model: Any, message: Any, references: References) -> Reasons:
    keys = references.secrets("backend_auth", model)
    if isinstance(keys, Unresolved):
        yield path, keys
    else:
        (message.secret,) = keys


def _mcp_references(model: Any, message: Any, references: References) -> Reasons:
    if model.authentication is not None:
        keys = message.authentication.providers[0].jwks.remote
        yield from backend_reference("authentication.jwks.backendRef", model.authentication.jwks, keys, references)
    if model.guardrails is None:
        return
    for index, processor in enumerate(model.guardrails.processors):
        where = f"guardrails.processors[{index}].remote.backendRef"
        yield from backend_reference(where, processor.remote, message.guardrails.processors[index], references)


def _collector_reference(model: Any, message: Any, references: References) -> Reasons:
    yield from backend_reference("backendRef", model, message, references)


def _otlp_reference(model: Any, message: Any, references: References) -> Reasons:
    if model.otlp is not None:
        yield from backend_reference("otlp.backendRef", model.otlp, message.otlp, references)


def _basic_references(model: Any, message: Any, references: References) -> Reasons:
    keys = references.secrets("basic_authentication", model)
    if isinstance(keys, Unresolved):
        yield "secretRef", keys
    else:
        (message.secret,) = keys


def _api_key_references(model: Any, message: Any, references: References) -> Reasons:
    keys = references.secrets("api_key_authentication", model)
    if isinstance(keys, Unresolved):
        yield "secretRef" if model.secret_ref is not None else "secretSelector", keys
    else:
        message.secrets.extend(keys)


RESOLVERS: Final[dict[str, Callable[[Any, Any, References], Reasons]]] = {
    "request_mirror": _one_reference,
    "backend_tunnel": _one_reference,
    "ext_auth": _server_references,
    "ext_proc": _server_references,
    "rate_limit": _rate_limit_references,
    "backend_ext_auth": _server_references,
    "jwt_authentication": _jwt_references,
    "basic_authentication": _basic_references,
    "api_key_authentication": _api_key_references,
    "backend_tls": _tls_references,
    "backend_auth": _auth_references,
    "backend_mcp": _mcp_references,
    "tracing": _collector_reference,
    "access_log": _otlp_reference,
    "metrics": _otlp_reference,
}
"""Field of the wire's Policy to what fills in its keys of other resources. `to_wire` has that of `backend_ai`, whose
parts have policies of their own."""
