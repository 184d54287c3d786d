"""Credentials toward clouds: requests signed for AWS, tokens of Azure and Google Cloud.

Loaded with the first policy that has one. What a policy has fetched outlives swaps; policies of one source share it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeVar

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings.backend_auth.entries import secret_entry
from dataplane.filters.settings.backend_auth.servers import CredentialServers
from dataplane.upstream.auth import aws as amazon
from dataplane.upstream.auth import azure as microsoft
from dataplane.upstream.auth import gcp as google
from dataplane.upstream.auth.asking import World
from dataplane.upstream.auth.finishers import Presented, Refusing
from dataplane.upstream.auth.setting import Made
from dataplane.upstream.auth.signing import Signed
from dataplane.upstream.auth.sigv4 import Keys, Scope
from dataplane.upstream.auth.tokens import Constant, Fetched, Kept, Services, Token, Unobtainable
from dataplane.upstream.outgoing import Finisher
from dataplane.upstream.settings import CloudPlace
from gatewright import aws_hosts
from gatewright.wire.v1 import backend_policy_pb2

ValueT = TypeVar("ValueT")
Fetch = Callable[[World], Awaitable[Fetched[ValueT]]]


def _token(name: str, what: tuple[object, ...], fetch: Fetch[ValueT], env: Env) -> Token[ValueT]:
    """One for all policies of the same source: `what` identifies it. `name`: for the log."""

    def made() -> Token[ValueT]:
        servers = CredentialServers(env)
        services = Services(env.clock, env.make_future, env.spawn or _no_loop)
        return Token(name, lambda: fetch(servers.world()), services)

    digest = hashlib.blake2b(repr(what).encode(), digest_size=16).hexdigest()
    return env.kept(f"credential|{name}|{digest}", made)


def _no_loop(work: Coroutine[Any, Any, None]) -> None:
    work.close()
    raise RuntimeError("there is no loop that would fetch")


# --- AWS


class _Amazon(NamedTuple):
    """Keys, and the time that they sign by."""

    keys: Kept[Keys]
    clock: amazon.Clock


def aws(config: backend_policy_pb2.AwsAuth, env: Env) -> Made:
    """Raises `Refused`."""
    source = _keys(config, env)

    def made(host: str, is_tls: bool, cloud: CloudPlace) -> Finisher:
        found, region = aws_hosts.place_of(host)
        service = config.service_name or cloud.service or found
        if not service:
            return Refusing(f"aws.serviceName is not set, and {host or 'a socket'} is no host of AWS, which has it")
        region = cloud.region or region or amazon.region_of(env.environment)
        if not region:
            return Refusing(f"no region of AWS: {host or 'a socket'} names none, and AWS_REGION is not set")
        return Signed(source.keys, Scope(region.encode(), service.encode()), source.clock, is_tls)

    return made


def _keys(config: backend_policy_pb2.AwsAuth, env: Env) -> _Amazon:
    clock = env.kept("credential|aws clock", lambda: amazon.Clock(env.wall_clock))
    if config.secret:
        access, secret = _text(config.secret, "accessKey", env), _text(config.secret, "secretKey", env)
        has_token = "sessionToken" in env.secret(config.secret)
        token = _text(config.secret, "sessionToken", env) if has_token else ""
        try:
            return _Amazon(Constant(amazon.keys_of(access, secret, token, config.secret)), clock)
        except Unobtainable as error:
            raise Refused(str(error)) from None
    role = config.assume_role.role_arn

    async def ambient(world: World) -> Fetched[Keys]:
        return await amazon.ambient(world, clock)

    async def assumed(world: World) -> Fetched[Keys]:
        return await amazon.assumed(world, clock, lambda: amazon.ambient(world, clock), role)

    name = f"AWS role {role}" if role else "AWS"
    return _Amazon(_token(name, ("aws", role), assumed if role else ambient, env), clock)


# --- Azure


def azure(config: backend_policy_pb2.AzureAuth, env: Env) -> Made:
    """Raises `Refused`."""
    named, what, fetch = _azure_source(config, env)

    def made(host: str, is_tls: bool, cloud: CloudPlace) -> Finisher:
        audience = cloud.audience or microsoft.audience_of(host)
        return Presented(_token(named, (*what, audience), lambda world: fetch(world, audience), env))

    return made


_CLIENT: Final = ("clientID", "tenantID", "clientSecret")
_OfAudience = Callable[[World, str], Awaitable[Fetched[bytes]]]


def _azure_source(config: backend_policy_pb2.AzureAuth, env: Env) -> tuple[str, tuple[object, ...], _OfAudience]:
    """Its name for the log, what identifies it, and how it is asked for tokens for an audience."""
    if config.secret:
        client = microsoft.Client(*(_text(config.secret, name, env) for name in _CLIENT))
        name = f"Azure client {client.client}"
        return name, ("client", *client), lambda world, audience: microsoft.of_client(world, client, audience)
    if config.HasField("managed_identity"):
        named = config.managed_identity
        identity = microsoft.ManagedIdentity(named.client_id, named.object_id, named.resource_id)
        name = f"Azure identity {next(filter(None, identity), 'of the system')}"
        return name, tuple(identity), lambda world, audience: microsoft.of_managed(world, identity, audience)
    return "Azure", ("azure",), microsoft.ambient


def _text(key: str, name: str, env: Env) -> str:
    try:
        return secret_entry(key, name, env).decode()
    except UnicodeDecodeError:
        raise Refused(f"the entry {name} of {key} is no text") from None


# --- Google Cloud

_FILE: Final = "credentials.json"


def gcp(config: backend_policy_pb2.GcpAuth, env: Env) -> Made:
    """Raises `Refused`."""
    account = None
    if config.secret:
        try:
            account = google.account_of(secret_entry(config.secret, _FILE, env))
        except google.BadCredentials as error:
            raise Refused(f"the entry {_FILE} of {config.secret}: {error}") from None
    if config.type not in (*_ACCESS, backend_policy_pb2.GCP_TOKEN_TYPE_ID_TOKEN):
        raise Refused("a type of token that this proxy does not know")
    is_access = config.type in _ACCESS

    def fetched(wanted: google.Wanted) -> Fetch[bytes]:
        if account is None:
            return lambda world: google.ambient(world, wanted)
        return lambda world: google.of_account(world, account, wanted)

    def made(host: str, is_tls: bool, cloud: CloudPlace) -> Finisher:
        if not (is_access or config.audience or host):
            return Refusing("gcp.audience is not set, and a socket has no host that it could be")
        wanted = google.Wanted("" if is_access else config.audience or f"https://{host}")
        name = f"Google Cloud {wanted.audience}".rstrip()
        what = ("gcp", wanted.audience, None if account is None else sorted(account.items()))
        return Presented(_token(name, what, fetched(wanted), env))

    return made


_ACCESS: Final = (
    backend_policy_pb2.GCP_TOKEN_TYPE_UNSPECIFIED,
    backend_policy_pb2.GCP_TOKEN_TYPE_ACCESS_TOKEN,
)
