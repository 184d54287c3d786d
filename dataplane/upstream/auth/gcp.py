"""Tokens of Google Cloud: access tokens for its services, ID tokens for serverless runtimes. They act on nothing but
what they are given.

Of a file of credentials (a service account, or a user who has logged in), else of the machine's metadata server.
Variables have the names of Google's own libraries. Source: Google's AIP-4110 to 4115.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from dataplane.upstream.auth.asking import (
    Answer,
    Question,
    World,
    answered,
    form,
    is_safe,
    object_of,
    seconds_of,
    text_of,
)
from dataplane.upstream.auth.tokens import Fetched, Unobtainable

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
"""What access tokens are for: all of Google Cloud that the account may use."""
_TOKENS: Final = "https://oauth2.googleapis.com/token"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LIFE: Final = 3600
_METADATA: Final = "metadata.google.internal"
_FLAVOR: Final = (("metadata-flavor", "Google"),)


class Wanted(NamedTuple):
    """`audience`: of an ID token; "": an access token is wanted."""

    audience: str = ""


class BadCredentials(ValueError):
    """A file of credentials cannot be used. The text has nothing of it."""


Account = Mapping[str, Any]


def account_of(text: bytes) -> Account:
    """A file of credentials. Raises `BadCredentials`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadCredentials("it is no JSON object")
    kind = found.get("type")
    needed = _NEEDED.get(kind) if isinstance(kind, str) else None
    if needed is None:
        raise BadCredentials(f"its type is none of {', '.join(_NEEDED)}")
    for name in needed:
        if not isinstance(found.get(name), str) or not found[name]:
            raise BadCredentials(f"it has no {name}")
    if not is_safe(found.get("token_uri") or _TOKENS):
        raise BadCredentials("its token_uri is not https")
    if kind == "service_account":
        _key_of(found)
    return found


async def of_account(world: World, account: Account, wanted: Wanted) -> Fetched[bytes]:
    """Raises `Unobtainable`, as all of these."""
    return await _GRANTS[account["type"]](world, account, wanted)


async def ambient(world: World, wanted: Wanted) -> Fetched[bytes]:
    """Application default credentials: the file that a variable names, that of a login, else the metadata server."""
    known = world.environment
    named = known.get("GOOGLE_APPLICATION_CREDENTIALS")
    path = named or f"{known.get('HOME', '')}/.config/gcloud/application_default_credentials.json"
    try:
        text = await world.read(path)
    except Unobtainable:
        if named:
            raise
        return await _of_metadata(world, wanted)
    try:
        account = account_of(text)
    except BadCredentials as error:
        raise Unobtainable(f"{path}: {error}") from None
    return await of_account(world, account, wanted)


# --- files


async def _of_service_account(world: World, account: Account, wanted: Wanted) -> Fetched[bytes]:
    """By an assertion that the account signs (RFC 7523 2.1). One that is refused for what our clock says is made once
    more, by the clock of the server."""
    uri = account.get("token_uri") or _TOKENS
    now = world.wall()
    question = form(uri, {"grant_type": _GRANT, "assertion": _assertion(account, wanted, uri, now)})
    answer = await world.ask(question)
    moment = answer.moment
    if answer.status in _REFUSED and moment is not None and abs(moment - now) > _SKEW:
        question = form(uri, {"grant_type": _GRANT, "assertion": _assertion(account, wanted, uri, moment)})
        answer = await world.ask(question)
    return _token(await answered(_given(answer), question), question.host, wanted, world)


_REFUSED: Final = frozenset((400, 401))
_SKEW: Final = 30.0


def _given(answer: Answer) -> Callable[[Question], Awaitable[Answer]]:
    async def ask(_: Question) -> Answer:
        return answer

    return ask


async def _of_user(world: World, account: Account, wanted: Wanted) -> Fetched[bytes]:
    """By a refresh token (RFC 6749 6). The audience of its ID tokens is the login's own."""
    names = ("client_id", "client_secret", "refresh_token")
    question = form(
        account.get("token_uri") or _TOKENS,
        {"grant_type": "refresh_token", **{name: account[name] for name in names}},
    )
    return _token(await answered(world.ask, question), question.host, wanted, world)


_NEEDED: Final = {
    "service_account": ("client_email", "private_key"),
    "authorized_user": ("client_id", "client_secret", "refresh_token"),
}
"""Types of files, and what they must have."""
_GRANTS: Final = {"service_account": _of_service_account, "authorized_user": _of_user}


def _key_of(account: Account) -> Any:  # of cryptography
    from cryptography.hazmat.primitives import serialization  # large, and few need it
    from cryptography.hazmat.primitives.asymmetric import rsa

    try:
        key = serialization.load_pem_private_key(account["private_key"].encode(), None)
    except (ValueError, TypeError):
        raise BadCredentials("its private_key cannot be read") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise BadCredentials("its private_key is not of RSA")
    return key


def _assertion(account: Account, wanted: Wanted, uri: str, now: float) -> str:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    header = {"alg": "RS256", "typ": "JWT", "kid": account.get("private_key_id") or None}
    purpose = {"target_audience": wanted.audience} if wanted.audience else {"scope": SCOPE}
    email = account["client_email"]
    claims = {"iss": email, "sub": email, "aud": uri, "iat": int(now), "exp": int(now) + _LIFE, **purpose}
    text = b".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
    signature = _key_of(account).sign(text, padding.PKCS1v15(), hashes.SHA256())
    return (text + b"." + _encoded(signature)).decode()


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


# --- the metadata server


async def _of_metadata(world: World, wanted: Wanted) -> Fetched[bytes]:
    host = world.environment.get("GCE_METADATA_HOST") or _METADATA
    base = f"http://{host}/computeMetadata/v1/instance/service-accounts/default"
    if wanted.audience:
        url = f"{base}/identity?{urlencode({'audience': wanted.audience, 'format': 'full'})}"
    else:
        url = f"{base}/token?scopes={quote(SCOPE, safe='')}"
    answer = await answered(world.ask, Question("GET", url, _FLAVOR))
    if answer.headers.get("metadata-flavor") != "Google":
        raise Unobtainable(f"{host} is not a metadata server: its answer does not say so")
    if wanted.audience:
        return _id_token({"id_token": answer.body.decode("latin-1").strip()}, answer, host, world)
    return _token(answer, host, wanted, world)


# --- answers


def _token(answer: Answer, host: str, wanted: Wanted, world: World) -> Fetched[bytes]:
    found = object_of(answer, host)
    if wanted.audience:
        return _id_token(found, answer, host, world)
    return Fetched(text_of(found, "access_token", host), seconds_of(found, "expires_in"))


def _id_token(found: Mapping[str, Any], answer: Answer, host: str, world: World) -> Fetched[bytes]:
    """Its life is in it (RFC 7519 4.1.4); whether it is good is for who gets it."""
    token = text_of(found, "id_token", host)
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(b".")[1] + b"=="))
        ends = float(claims["exp"])
    except (ValueError, OverflowError, LookupError, TypeError, RecursionError):
        raise Unobtainable(f"{host} answered what is no ID token") from None
    return Fetched(token, ends - (world.wall() if answer.moment is None else answer.moment))
