"""Credentials toward a backend (BackendAuth): a key, the client's own one put back, what clouds take.

A value of `upstream/settings`; the last mile writes it into each try. One that cannot be built covers what it covers
all the same: nothing is sent there without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, Final

from dataplane.chain.filter import Env, Refused
from dataplane.chain.header_edits import header_name
from dataplane.filters.settings.backend_auth.entries import secret_entry
from dataplane.http.heads import is_name
from dataplane.upstream.auth import location
from dataplane.upstream.auth.finishers import Key, Passthrough
from dataplane.upstream.auth.location import Place
from dataplane.upstream.auth.setting import BackendAuth, Made
from gatewright.wire.v1 import authentication_pb2, backend_policy_pb2

ENTRY: Final = "Authorization"
"""The entry of a Secret that is a credential."""


def secrets(config: backend_policy_pb2.BackendAuth) -> Iterable[str]:
    """Keys of the Secrets that a policy reads."""
    kind = config.WhichOneof("kind")
    found = config.secret if kind == "secret" else getattr(getattr(config, kind or "passthrough"), "secret", "")
    return (found,) if found else ()


def build(config: backend_policy_pb2.BackendAuth, env: Env) -> BackendAuth:
    """Raises `Refused`: a Secret that is not there, entries that are no credentials, a location that cannot be."""
    kind = config.WhichOneof("kind")
    if kind not in _KINDS:
        raise Refused("a kind of credential that this proxy does not know")
    return BackendAuth(_identity(config, env), _KINDS[kind](config, env))


def _identity(config: backend_policy_pb2.BackendAuth, env: Env) -> bytes:
    """A digest of the policy and of what is in its Secrets."""
    made = hashlib.blake2b(config.SerializeToString(deterministic=True), digest_size=16)
    for key in secrets(config):
        for name, value in sorted(env.secret(key).items()):
            made.update(b"%d %b %d %b" % (len(name), name.encode(), len(value), value))
    return made.digest()


def _key(config: backend_policy_pb2.BackendAuth, env: Env) -> Made:
    place = _place(config.location) or location.BEARER
    credential = secret_entry(config.secret, ENTRY, env)
    problem = place.fits(credential)
    if problem:
        raise Refused(f"the entry {ENTRY} of {config.secret} cannot be sent: {problem}")
    finisher = Key(credential, place)
    return lambda host, is_tls, cloud: finisher


def _passthrough(config: backend_policy_pb2.BackendAuth, env: Env) -> Made:
    finisher = Passthrough(_place(config.location))
    return lambda host, is_tls, cloud: finisher


def _aws(config: backend_policy_pb2.BackendAuth, env: Env) -> Made:
    from dataplane.filters.settings.backend_auth import clouds  # what tokens need is large, and few need it

    return clouds.aws(config.aws, env)


def _azure(config: backend_policy_pb2.BackendAuth, env: Env) -> Made:
    from dataplane.filters.settings.backend_auth import clouds

    return clouds.azure(config.azure, env)


def _gcp(config: backend_policy_pb2.BackendAuth, env: Env) -> Made:
    from dataplane.filters.settings.backend_auth import clouds

    return clouds.gcp(config.gcp, env)


_KINDS: Final[dict[str, Callable[[Any, Env], Made]]] = {
    "secret": _key,
    "passthrough": _passthrough,
    "aws": _aws,
    "azure": _azure,
    "gcp": _gcp,
}


def _place(config: authentication_pb2.CredentialLocation) -> Place | None:
    """Where a credential is written; None: where it usually is. Raises `Refused`."""
    kind = config.WhichOneof("kind")
    if kind is None:
        return None
    if kind == "header":
        name = header_name(config.header.name, "location.header.name")
        if location.is_reserved(name):
            raise Refused(f"location.header.name: {config.header.name} is not for credentials")
        prefix = config.header.prefix.encode()
        problem = location.fits_header(prefix)
        if problem:
            raise Refused(f"location.header.prefix: {problem}")
        return location.in_header(config.header.name.encode(), prefix)
    if kind == "query_parameter":
        return location.in_query(config.query_parameter.name.encode())
    if kind == "cookie":
        if is_name(config.cookie.name.encode()) is None:  # RFC 6265 4.1.1
            raise Refused(f"location.cookie.name: {config.cookie.name!r} is not the name of a cookie")
        return location.in_cookie(config.cookie.name.encode())
    raise Refused("location: a credential is written in a header, query parameter or cookie")
