"""Entries of Secrets that a proxy leaves out or refuses: what is no API key, lines that are no user, weak secrets.

Called by lint, for the Secrets that policies of the same files read. It says which entry, and nothing of what is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from gatewright import invisible
from gatewright.api.advice.advice import REFUSED, known_hash
from gatewright.api.advice.shared_secrets import weakness
from gatewright.api.checks.parts import parts
from gatewright.api.lint import reach
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.objects.secret import Secret
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Advice
from gatewright.api.traffic.api_key_authentication import APIKeyAuthentication
from gatewright.api.traffic.basic_authentication import USERS_ENTRY, BasicAuthentication
from gatewright.api.traffic.jwt_authentication import SHARED_SECRET_ENTRY, JWTProvider

LEFT_OUT: Final = "the proxy leaves it out"


def left_out(objects: reach.Objects) -> Iterator[tuple[ObjectKey, Advice]]:
    """One warning for each entry, and for each line of users, that will not count."""
    keys: dict[ObjectKey, Secret] = {}
    users: dict[ObjectKey, Secret] = {}
    known = {key: item for key, item in objects.items() if isinstance(item, Secret)}
    for owner, item in objects.items():
        for _, part in parts(item) if isinstance(item, GatewayPolicy) else ():
            if isinstance(part, APIKeyAuthentication):
                keys |= _secrets(_of_keys(part, owner, known), known)
            elif isinstance(part, BasicAuthentication) and part.secret_ref is not None:
                users |= _secrets([reach.named(part.secret_ref, owner.namespace)], known)
    for key, secret in keys.items():
        yield from ((key, advice) for advice in _no_keys(secret))
    for key, secret in users.items():
        yield from ((key, advice) for advice in _no_users(secret))


def refused_secrets(objects: reach.Objects) -> Iterator[tuple[ObjectKey, Advice]]:
    """An error for each shared secret of an issuer with which proxies refuse a whole policy."""
    known = {key: item for key, item in objects.items() if isinstance(item, Secret)}
    found: dict[ObjectKey, Secret] = {}
    for owner, item in objects.items():
        for _, part in parts(item) if isinstance(item, GatewayPolicy) else ():
            if isinstance(part, JWTProvider) and part.shared_secret_ref is not None:
                found |= _secrets([reach.named(part.shared_secret_ref, owner.namespace)], known)
    for key, secret in found.items():
        data = secret.values().get(SHARED_SECRET_ENTRY)
        if data is not None and (why := weakness(data)):
            yield key, Advice(_place(secret, SHARED_SECRET_ENTRY), f"{why}: {REFUSED}", "error")


def _of_keys(policy: APIKeyAuthentication, owner: ObjectKey, objects: reach.Objects) -> list[ObjectKey | None]:
    if policy.secret_ref is not None:
        return [reach.named(policy.secret_ref, owner.namespace)]
    labels = policy.secret_selector.match_labels if policy.secret_selector is not None else {}
    return [*reach.labelled("Secret", owner.namespace, labels, objects)] if labels else []


def _secrets(names: list[ObjectKey | None], objects: reach.Objects) -> dict[ObjectKey, Secret]:
    found = ((name, objects.get(name)) for name in names if name is not None)
    return {name: item for name, item in found if isinstance(item, Secret)}


def _no_keys(secret: Secret) -> Iterator[Advice]:
    for name, value in secret.values().items():
        why = _no_key(invisible.without_mark(value).strip())
        if why:
            yield Advice(_place(secret, name), f"is no API key: {why}; {LEFT_OUT}")


def _no_key(text: bytes) -> str:
    """Why an entry is none (a key, or `{"key": …, "metadata": {…}}`); "" when it is one."""
    if not text.startswith(b"{"):
        return _hidden(text) if text else "it is empty"
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return "it begins with { and is no JSON object"
    if not isinstance(members.get("key"), str) or not members["key"]:
        return 'its member "key" must be text'
    if not isinstance(members.get("metadata", {}), dict):
        return 'its member "metadata" must be an object'
    return _hidden(members["key"].encode(errors="replace"))


def _hidden(text: bytes) -> str:
    hidden = invisible.hidden(text)
    return f"it has an invisible character, {hidden}" if hidden else ""


def _no_users(secret: Secret) -> Iterator[Advice]:
    data = invisible.without_mark(secret.values().get(USERS_ENTRY, b""))
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        user, _, rest = line.strip().partition(":")
        if user and not user.startswith("#") and (hidden := _hidden(user.encode())):
            yield Advice(_place(secret, USERS_ENTRY), f"line {number} is no user: {hidden}: {LEFT_OUT}")
            continue
        if user and not user.startswith("#") and not known_hash(rest.partition(":")[0]):
            message = f"line {number} is no user with a hash of a known kind (MD5, bcrypt, crypt, SHA-1): {LEFT_OUT}"
            yield Advice(_place(secret, USERS_ENTRY), message)


def _place(secret: Secret, name: str) -> tuple[str, str]:
    return ("stringData" if name in secret.string_data else "data", name)
