"""Keys of AWS: those of the environment, of a role, or of the machine. They act on nothing but what they are given.

The order of the ambient chain is that of AWS' own SDKs: environment, profile, web identity, container, instance
metadata (IMDSv2). Variables have the SDKs' names. Source: AWS SDKs and Tools reference guide, "Standardized credential
providers".
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from dataplane.http.heads import is_value
from dataplane.upstream.auth import asking, sigv4
from dataplane.upstream.auth.asking import Answer, Question, World, answered, form, object_of, text_of
from dataplane.upstream.auth.sigv4 import Keys, Request, Scope
from dataplane.upstream.auth.tokens import NEVER, Fetched, Unobtainable
from gatewright.aws_hosts import GLOBAL_REGION

Source = Callable[[], Awaitable[Fetched[Keys]]]

SESSION: Final = "gatewright"
"""Name of the sessions of a role, in AWS' logs."""
REREAD: Final = 300.0
"""Seconds after which a file is read again."""
SKEW: Final = 60.0
"""Seconds by which our clock may be wrong before AWS' own is believed."""
_METADATA: Final = "http://169.254.169.254"
_CONTAINER: Final = "http://169.254.170.2"
_CONTAINER_HOSTS: Final = frozenset(
    ("169.254.170.2", "169.254.170.23", "fd00:ec2::23", "127.0.0.1", "::1", "localhost"),
)
"""Where credentials of containers are asked for in plain text (the SDKs' rule)."""


def region_of(environment: Mapping[str, str]) -> str:
    return environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or ""


class Clock:
    """AWS' time: the local one, unless AWS has said that it is wrong by more than a minute."""

    __slots__ = ("__weakref__", "_wall", "skew")

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self.skew = 0.0

    def now(self) -> float:
        return self._wall() + self.skew

    def learn(self, answer: Answer) -> bool:
        """Whether the answer's time is another one than was thought."""
        moment = answer.moment
        if moment is None or abs(moment - self.now()) <= SKEW:
            return False
        self.skew = moment - self._wall()
        return True


def moment_of(seconds: float) -> bytes:
    """As the header x-amz-date says it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%dT%H%M%SZ").encode()


# --- the ambient chain


async def ambient(world: World, clock: Clock) -> Fetched[Keys]:
    """The first of the chain that there is. Raises `Unobtainable`: there is none, or the one that there is fails."""
    for source in (_of_environment, _of_profile, _of_web_identity, _of_container, _of_instance):
        found = await source(world, clock)
        if found is not None:
            return found
    raise Unobtainable("neither environment, profile, web identity, container nor instance has credentials of AWS")


async def _of_environment(world: World, clock: Clock) -> Fetched[Keys] | None:
    known = world.environment
    access, secret = known.get("AWS_ACCESS_KEY_ID"), known.get("AWS_SECRET_ACCESS_KEY")
    if not (access and secret):
        return None
    return Fetched(keys_of(access, secret, known.get("AWS_SESSION_TOKEN", ""), "the environment"), NEVER)


async def _of_profile(world: World, clock: Clock) -> Fetched[Keys] | None:
    """Static keys of a profile; of others (roles, processes, single sign-on) the file is passed over."""
    known = world.environment
    name, home = known.get("AWS_PROFILE") or "default", known.get("HOME", "")
    files = {
        known.get("AWS_SHARED_CREDENTIALS_FILE") or f"{home}/.aws/credentials": name,
        known.get("AWS_CONFIG_FILE") or f"{home}/.aws/config": name if name == "default" else f"profile {name}",
    }
    for path, section in files.items():
        found = await _profile(world, path, section)
        access, secret = found.get("aws_access_key_id"), found.get("aws_secret_access_key")
        if access and secret:
            return Fetched(keys_of(access, secret, found.get("aws_session_token", ""), f"profile {name}"), REREAD)
    if known.get("AWS_PROFILE"):
        raise Unobtainable(f"profile {name} has no aws_access_key_id and aws_secret_access_key")
    return None


async def _profile(world: World, path: str, section: str) -> Mapping[str, str]:
    try:
        text = await world.read(path)
    except Unobtainable:
        return {}
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text.decode())
    except (configparser.Error, ValueError):
        raise Unobtainable(f"{path} cannot be read as a file of profiles") from None
    return dict(parser[section]) if parser.has_section(section) else {}


async def _of_web_identity(world: World, clock: Clock) -> Fetched[Keys] | None:
    known = world.environment
    path, role = known.get("AWS_WEB_IDENTITY_TOKEN_FILE"), known.get("AWS_ROLE_ARN")
    if not (path and role):
        return None
    fields = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": role,
        "RoleSessionName": known.get("AWS_ROLE_SESSION_NAME") or SESSION,
        "WebIdentityToken": (await world.read(path)).decode("utf-8", "replace").strip(),
    }
    question = form(f"{token_service(known)[0]}/", fields)
    return _of_session(await answered(world.ask, question), question.host, clock)


async def _of_container(world: World, clock: Clock) -> Fetched[Keys] | None:
    known = world.environment
    relative, url = known.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), known.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if relative:
        url = _CONTAINER + relative
    if not url:
        return None
    if urlsplit(url).scheme != "https" and urlsplit(url).hostname not in _CONTAINER_HOSTS:
        raise Unobtainable("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of containers")
    token = known.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    file = known.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    if file:
        token = (await world.read(file)).decode("utf-8", "replace").strip()
    if is_value(token.encode()) is None:
        raise Unobtainable("the token for credentials of containers cannot be sent in a header")
    question = Question("GET", url, (("authorization", token),) if token else ())
    return _of_json(await answered(world.ask, question), question.host, clock)


async def _of_instance(world: World, clock: Clock) -> Fetched[Keys] | None:
    """IMDSv2: a token first, so that what can only make us send a GET cannot have keys."""
    known = world.environment
    if known.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return None
    base = (known.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _METADATA).rstrip("/")
    begun = Question("PUT", f"{base}/latest/api/token", (("x-aws-ec2-metadata-token-ttl-seconds", "21600"),))
    token = (await answered(world.ask, begun)).body.decode("latin-1").strip()
    headers = (("x-aws-ec2-metadata-token", token),)
    if not token or is_value(token.encode("latin-1")) is None:
        raise Unobtainable(f"{begun.host} answered without a usable token")
    roles = Question("GET", f"{base}/latest/meta-data/iam/security-credentials/", headers)
    role = (await answered(world.ask, roles)).body.decode("latin-1").split("\n")[0].strip()
    if not re.fullmatch(r"[A-Za-z0-9+=,.@_-]{1,64}", role):
        raise Unobtainable(f"{begun.host} answered without a usable role")
    question = Question("GET", roles.url + role, headers)
    return _of_json(await answered(world.ask, question), question.host, clock)


def keys_of(access: str, secret: str, token: str, where: str) -> Keys:
    """Raises `Unobtainable` for what a header cannot have."""
    found = Keys(access.encode(), secret.encode(), token.encode())
    if is_value(found.access) is None or is_value(found.token) is None:
        raise Unobtainable(f"{where} has keys of AWS that cannot be sent in a header")
    return found


def _of_json(answer: Answer, host: str, clock: Clock) -> Fetched[Keys]:
    found = object_of(answer, host)
    keys = Keys(*(text_of(found, name, host) for name in ("AccessKeyId", "SecretAccessKey", "Token")))
    return Fetched(keys, _life(found.get("Expiration"), answer, host, clock))


def _life(expiration: object, answer: Answer, host: str, clock: Clock) -> float:
    """Seconds, by the clock of who says it."""
    try:
        ends = datetime.fromisoformat(expiration if isinstance(expiration, str) else "")
    except ValueError:
        raise Unobtainable(f"{host} answered without a usable Expiration") from None
    if ends.tzinfo is None:
        ends = ends.replace(tzinfo=UTC)
    return ends.timestamp() - (clock.now() if answer.moment is None else answer.moment)


# --- the token service (STS)


def token_service(environment: Mapping[str, str]) -> tuple[str, str]:
    """Its URL, and the region that requests to it are signed for."""
    region = region_of(environment)
    url = environment.get("AWS_ENDPOINT_URL_STS") or environment.get("AWS_ENDPOINT_URL")
    if url:
        return url.rstrip("/"), region or GLOBAL_REGION
    if not region:
        return "https://sts.amazonaws.com", GLOBAL_REGION
    suffix = ".amazonaws.com.cn" if region.startswith("cn-") else ".amazonaws.com"
    return f"https://sts.{region}{suffix}", region


async def assumed(world: World, clock: Clock, base: Source, role: str) -> Fetched[Keys]:
    """Keys of a role, for who has the keys of `base`. Raises `Unobtainable`."""
    keys = (await base()).value
    fields = {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": role,
        "RoleSessionName": SESSION,
        "DurationSeconds": "3600",
    }
    url, region = token_service(world.environment)
    question = form(f"{url}/", fields)
    scope = Scope(region.encode(), b"sts")
    answer = await world.ask(signed(question, keys, scope, clock.now()))
    if answer.status != asking.OK and clock.learn(answer):  # refused, for what our clock says
        answer = await world.ask(signed(question, keys, scope, clock.now()))
    if answer.status != asking.OK:
        raise Unobtainable(f"{question.host} answered {answer.status}{_code_of(answer)}")
    clock.learn(answer)
    return _of_session(answer, question.host, clock)


def signed(question: Question, keys: Keys, scope: Scope, now: float) -> Question:
    """The question with a signature."""
    moment, parts = moment_of(now), urlsplit(question.url)
    added = {"x-amz-date": moment.decode()}
    if keys.token:
        added["x-amz-security-token"] = keys.token.decode()
    headers = tuple((name.encode(), value.encode()) for name, value in {"host": parts.netloc, **added}.items())
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    request = Request(question.method.encode(), target.encode(), headers, sigv4.digest_of(question.body))
    added["authorization"] = sigv4.authorization(request, keys, scope, moment).decode()
    return Question(question.method, question.url, (*question.headers, *added.items()), question.body)


def _of_session(answer: Answer, host: str, clock: Clock) -> Fetched[Keys]:
    """The credentials of STS' answer, which is XML of a few flat elements."""
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    found = {name: _element(answer.body, name) for name in names}
    keys = Keys(*(text_of(found, name, host) for name in names[:3]))
    return Fetched(keys, _life(found["Expiration"], answer, host, clock))


def _element(body: bytes, name: str) -> str:
    """The text of an element that AWS' own characters need no escapes in; "" without."""
    found = re.search(rb"<%b>\s*([A-Za-z0-9+/=_:.-]+)\s*</%b>" % (name.encode(), name.encode()), body)
    return found[1].decode() if found is not None else ""


_CODES: Final = frozenset(
    (
        *("AccessDenied", "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "SignatureDoesNotMatch"),
        *("MalformedPolicyDocument", "RegionDisabledException", "RequestExpired", "Throttling", "ValidationError"),
    )
)
"""Of STS' errors: what else it says may repeat what it was asked with."""


def _code_of(answer: Answer) -> str:
    code = _element(answer.body, "Code")
    return f", {code}" if code in _CODES else ""
