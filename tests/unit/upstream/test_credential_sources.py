"""Where credentials toward clouds come from: what their servers are asked, and what comes of their answers, good and
bad ones, whatever a clock says."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from email.utils import formatdate
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from dataplane.upstream.auth import aws, azure, gcp
from dataplane.upstream.auth.asking import Answer, Question, World
from dataplane.upstream.auth.sigv4 import Keys
from dataplane.upstream.auth.tokens import NEVER, Fetched, Unobtainable
from gatewright import aws_hosts

NOW = 1_800_000_000.0
MINUTES = 600.0


class Servers:
    """Answers by a part of the URL, the first that fits; notes what it was asked."""

    def __init__(
        self,
        *answers: tuple[str, Any],
        environment: Mapping[str, str] = MappingProxyType({}),
        files: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        self.answers, self.environment, self.files = answers, environment, files
        self.asked: list[Question] = []
        self.skew = 0.0
        """Of the servers' clock against ours."""

    def world(self) -> World:
        return World(self._ask, lambda: NOW, self.environment, self._read)

    async def _ask(self, question: Question) -> Answer:
        self.asked.append(question)
        for part, answer in self.answers:
            if part in f"{question.method} {question.url}":
                found = answer(self) if callable(answer) else answer
                status, body = found if isinstance(found, tuple) else (200, found)
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                headers = {"date": formatdate(NOW + self.skew, usegmt=True), "metadata-flavor": "Google"}
                return Answer(status, headers, text)
        raise Unobtainable(f"{question.host}: connection refused")

    async def _read(self, path: str) -> bytes:
        if path not in self.files:
            raise Unobtainable(f"{path} cannot be read")
        return self.files[path]


def done(work: Awaitable[Any]) -> Any:
    """The result of what never waits."""
    coroutine: Any = work
    assert isinstance(coroutine, Coroutine)
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def fields_of(question: Question) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(question.body.decode()).items()}


def moment(seconds: float) -> str:
    return aws.datetime.fromtimestamp(seconds, aws.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- AWS

KEYS = Keys(b"AKID", b"hush", b"token")
GIVEN = {"Code": "Success", "AccessKeyId": "AKID", "SecretAccessKey": "hush", "Token": "token"}


def given(seconds: float = 3600.0) -> Callable[[Servers], Any]:
    return lambda servers: {**GIVEN, "Expiration": moment(NOW + servers.skew + seconds)}


def session(seconds: float = 3600.0) -> Callable[[Servers], Any]:
    return lambda servers: (
        200,
        f"<R><Credentials><AccessKeyId>AKID</AccessKeyId><SecretAccessKey>hush</SecretAccessKey><SessionToken>token"
        f"</SessionToken><Expiration>{moment(NOW + servers.skew + seconds)}</Expiration></Credentials></R>".encode(),
    )


IMDS = (
    ("PUT http://169.254.169.254/latest/api/token", (200, b"metadata-token")),
    ("GET http://169.254.169.254/latest/meta-data/iam/security-credentials/the-role", given()),
    ("GET http://169.254.169.254/latest/meta-data/iam/security-credentials/", (200, b"the-role\n")),
)
PROFILES = b"[default]\naws_access_key_id = AKID\naws_secret_access_key = hush\naws_session_token = token\n"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_SESSION_TOKEN": "token"}
WEB = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/r"}


def clock() -> aws.Clock:
    return aws.Clock(lambda: NOW)


@pytest.mark.parametrize(
    ("servers", "seconds", "asked"),
    [
        (Servers(*IMDS, environment=ENVIRONMENT), NEVER, 0),
        (Servers(*IMDS, files={"/h/.aws/credentials": PROFILES}, environment={"HOME": "/h"}), 300.0, 0),
        (
            Servers(
                *IMDS,
                files={"/c": PROFILES.replace(b"default", b"profile x")},
                environment={"AWS_CONFIG_FILE": "/c", "AWS_PROFILE": "x"},
            ),
            300.0,
            0,
        ),
        (Servers(("sts.eu-west-1.amazonaws.com", session()), *IMDS, files={"/token": b"jwt\n"},
                 environment={**WEB, "AWS_REGION": "eu-west-1"}), 3600.0, 1),
        (Servers(("http://169.254.170.2/creds", given()), *IMDS,
                 environment={"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/creds"}), 3600.0, 1),
        (Servers(*IMDS), 3600.0, 3),
    ],
    ids=["environment", "profile", "config file", "web identity", "container", "instance"],
)  # fmt: skip
def test_the_chain_of_aws(servers: Servers, seconds: float, asked: int) -> None:
    assert done(aws.ambient(servers.world(), clock())) == Fetched(KEYS, seconds)
    assert len(servers.asked) == asked


def test_imds_is_asked_with_a_token() -> None:
    servers = Servers(*IMDS)
    done(aws.ambient(servers.world(), clock()))
    assert dict(servers.asked[0].headers) == {"x-aws-ec2-metadata-token-ttl-seconds": "21600"}
    assert [dict(each.headers) for each in servers.asked[1:]] == [{"x-aws-ec2-metadata-token": "metadata-token"}] * 2


def test_a_web_identity_is_sent_as_its_file_has_it() -> None:
    servers = Servers(("sts.amazonaws.com", session()), files={"/token": b"jwt\n"}, environment=WEB)
    done(aws.ambient(servers.world(), clock()))
    (question,) = servers.asked
    wanted = {"Action": "AssumeRoleWithWebIdentity", "WebIdentityToken": "jwt", "RoleArn": WEB["AWS_ROLE_ARN"]}
    assert wanted.items() <= fields_of(question).items()
    assert "authorization" not in dict(question.headers)


@pytest.mark.parametrize(
    ("servers", "why"),
    [
        (Servers(environment={"AWS_EC2_METADATA_DISABLED": "true"}), "neither environment"),
        (Servers(), "connection refused"),
        (Servers(environment={"AWS_PROFILE": "gone"}), "profile gone has no"),
        (Servers(files={"/h/.aws/credentials": b"nonsense"}, environment={"HOME": "/h"}), "cannot be read as a file"),
        (Servers(environment={"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://elsewhere/"}), "neither https nor"),
        (Servers(environment={**ENVIRONMENT, "AWS_ACCESS_KEY_ID": "a\nb"}), "cannot be sent"),
        (Servers(("PUT", (403, b"")),), "answered 403"),
        (Servers(("PUT", (200, b"a\r\nb")),), "without a usable token"),
        (Servers(IMDS[0], ("GET", (200, b"../../x"))), "without a usable role"),
        (Servers(IMDS[0], ("the-role", (200, b"{")), IMDS[2]), "no JSON object"),
        (Servers(IMDS[0], ("the-role", (200, GIVEN)), IMDS[2]), "without a usable Expiration"),
        (Servers(IMDS[0], ("the-role", (200, {**GIVEN, "Token": 5})), IMDS[2]), "without a usable Token"),
        (Servers(environment=WEB), "/token cannot be read"),
        (Servers(("sts", (200, b"<AccessKeyId>a</AccessKeyId>")), files={"/token": b"jwt"}, environment=WEB),
         "without a usable SecretAccessKey"),
    ],
)  # fmt: skip
def test_what_the_chain_cannot_have_is_said(servers: Servers, why: str) -> None:
    with pytest.raises(Unobtainable, match=re.escape(why)) as raised:
        done(aws.ambient(servers.world(), clock()))
    assert "hush" not in str(raised.value)


def test_lives_are_counted_by_the_server_s_clock() -> None:
    servers = Servers(*IMDS)
    servers.skew = -MINUTES
    assert done(aws.ambient(servers.world(), clock())).seconds == 3600.0


async def _base() -> Fetched[Keys]:
    return Fetched(Keys(b"BASE", b"base-secret"), NEVER)


ROLE = "arn:aws:iam::123456789012:role/r"


def test_a_role_is_assumed_with_the_credentials_that_there_are() -> None:
    servers = Servers(("https://sts.us-east-2.amazonaws.com/", session()), environment={"AWS_REGION": "us-east-2"})
    assert done(aws.assumed(servers.world(), clock(), _base, ROLE)) == Fetched(KEYS, 3600.0)
    (question,) = servers.asked
    assert {"Action": "AssumeRole", "RoleArn": ROLE}.items() <= fields_of(question).items()
    signature = dict(question.headers)["authorization"]
    assert "Credential=BASE/20270115/us-east-2/sts/aws4_request, SignedHeaders=host;x-amz-date" in signature


def test_a_role_is_asked_for_once_more_by_the_clock_of_aws() -> None:
    """A clock that is ten minutes wrong: AWS refuses the signature, and its own time signs the next one."""

    def judge(servers: Servers) -> Any:
        sent = dict(servers.asked[-1].headers)["x-amz-date"].encode()
        right = aws.moment_of(NOW + servers.skew)
        refusal = b"<Error><Code>SignatureDoesNotMatch</Code><Message>secret-in-it</Message></Error>"
        return session()(servers) if sent == right else (403, refusal)

    servers, ours = Servers(("sts", judge)), clock()
    servers.skew = MINUTES
    assert done(aws.assumed(servers.world(), ours, _base, ROLE)).seconds == 3600.0
    assert len(servers.asked) == 2 and ours.now() == NOW + MINUTES


def test_a_role_that_is_refused_says_why_and_nothing_more() -> None:
    answer = (403, b"<Error><Code>AccessDenied</Code><Message>secret-in-it</Message></Error>")
    with pytest.raises(Unobtainable, match="answered 403, AccessDenied") as raised:
        done(aws.assumed(Servers(("sts", answer)).world(), clock(), _base, ROLE))
    assert "secret-in-it" not in str(raised.value)


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("s3.eu-west-1.amazonaws.com", ("s3", "eu-west-1")),
        ("bucket.s3.eu-west-1.amazonaws.com", ("s3", "eu-west-1")),
        ("bedrock-runtime.us-east-1.amazonaws.com", ("bedrock", "us-east-1")),
        ("bedrock-agentcore.us-west-2.amazonaws.com", ("bedrock-agentcore", "us-west-2")),
        ("abc.execute-api.us-gov-west-1.amazonaws.com", ("execute-api", "us-gov-west-1")),
        ("x.lambda-url.us-east-1.on.aws", ("lambda", "us-east-1")),
        ("vpce-1.execute-api.us-east-1.vpce.amazonaws.com", ("execute-api", "us-east-1")),
        ("sqs.cn-north-1.amazonaws.com.cn", ("sqs", "cn-north-1")),
        ("sts.amazonaws.com", ("sts", "us-east-1")),
        ("s3.eu-west-1.amazonaws.com.evil.example", ("", "")),
        ("evilamazonaws.com", ("", "")),
        ("127.0.0.1", ("", "")),
        ("", ("", "")),
    ],
)
def test_what_a_host_of_aws_names(host: str, place: tuple[str, str]) -> None:
    assert aws_hosts.place_of(host) == place


# --- Azure

TOKEN = {"access_token": "its-token", "expires_in": 3600, "token_type": "Bearer"}
ENTRA = "POST https://login.microsoftonline.com/t/oauth2/v2.0/token"
SCOPE = "https://cognitiveservices.azure.com/.default"


def test_a_client_of_azure() -> None:
    servers = Servers((ENTRA, TOKEN))
    found = done(azure.of_client(servers.world(), azure.Client("c", "t", "hush")))
    assert found == Fetched(b"its-token", 3600.0)
    wanted = {"grant_type": "client_credentials", "client_id": "c", "client_secret": "hush", "scope": SCOPE}
    assert fields_of(servers.asked[0]) == wanted


def test_a_tenant_stays_one_segment_of_the_path() -> None:
    servers = Servers(("login", TOKEN))
    done(azure.of_client(servers.world(), azure.Client("c", "../x?y", "hush")))
    assert servers.asked[0].url == "https://login.microsoftonline.com/..%2Fx%3Fy/oauth2/v2.0/token"


@pytest.mark.parametrize(
    ("identity", "named"),
    [
        (azure.SYSTEM, {}),
        (azure.ManagedIdentity("c", "o", "r"), {"client_id": "c"}),
        (azure.ManagedIdentity("", "o", "r"), {"object_id": "o"}),
        (azure.ManagedIdentity("", "", "r"), {"msi_res_id": "r"}),
    ],
)
def test_a_managed_identity(identity: azure.ManagedIdentity, named: dict[str, str]) -> None:
    servers = Servers(("GET http://169.254.169.254/metadata/identity/oauth2/token", TOKEN))
    assert done(azure.of_managed(servers.world(), identity)) == Fetched(b"its-token", 3600.0)
    (question,) = servers.asked
    assert dict(question.headers) == {"metadata": "true"}
    asked = {name: values[0] for name, values in parse_qs(urlsplit(question.url).query).items()}
    assert asked == {"api-version": "2018-02-01", "resource": "https://cognitiveservices.azure.com", **named}


def test_a_managed_identity_of_app_service_says_when_its_token_ends() -> None:
    environment = {"IDENTITY_ENDPOINT": "http://127.0.0.1:41000/msi/token", "IDENTITY_HEADER": "hush"}
    answer = {"access_token": "its-token", "expires_on": str(int(NOW + 1800))}
    servers = Servers(("GET http://127.0.0.1:41000/msi/token?", answer), environment=environment)
    assert done(azure.of_managed(servers.world(), azure.SYSTEM)) == Fetched(b"its-token", 1800.0)
    assert dict(servers.asked[0].headers) == {"x-identity-header": "hush"}


def test_a_workload_of_azure() -> None:
    named = {"AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t", "AZURE_FEDERATED_TOKEN_FILE": "/token"}
    servers = Servers((ENTRA, TOKEN), environment=named, files={"/token": b"jwt\n"})
    assert done(azure.ambient(servers.world())) == Fetched(b"its-token", 3600.0)
    assert fields_of(servers.asked[0])["client_assertion"] == "jwt"


@pytest.mark.parametrize("answer", [(401, {"error": "invalid_client"}), (200, b"no"), (200, {"access_token": "a b\n"})])
def test_what_azure_does_not_give(answer: Any) -> None:
    with pytest.raises(Unobtainable):
        done(azure.of_client(Servers(("login", answer)).world(), azure.Client("c", "t", "hush")))


# --- Google Cloud

RSA = rsa.generate_private_key(65537, 2048)
PEM = RSA.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
ACCOUNT = {
    "type": "service_account",
    "client_email": "gw@project.iam.gserviceaccount.com",
    "private_key": PEM,
    "private_key_id": "k1",
    "token_uri": "https://oauth2.googleapis.com/token",
}
USER = {"type": "authorized_user", "client_id": "c", "client_secret": "hush", "refresh_token": "again"}


def id_token(ends: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(ends)}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


def claims_of(question: Question) -> dict[str, Any]:
    """Of the assertion, whose signature is looked at."""
    head, claims, signature = fields_of(question)["assertion"].split(".")
    key = RSA.public_key()
    key.verify(_decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())
    assert json.loads(_decoded(head)) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    found: dict[str, Any] = json.loads(_decoded(claims))
    return found


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def account(**members: Any) -> Any:
    return gcp.account_of(json.dumps({**ACCOUNT, **members}).encode())


def test_an_access_token_of_a_service_account() -> None:
    servers = Servers(("POST https://oauth2.googleapis.com/token", TOKEN))
    assert done(gcp.of_account(servers.world(), account(), gcp.Wanted())) == Fetched(b"its-token", 3600.0)
    assert claims_of(servers.asked[0]) == {
        "iss": "gw@project.iam.gserviceaccount.com",
        "sub": "gw@project.iam.gserviceaccount.com",
        "aud": "https://oauth2.googleapis.com/token",
        "iat": int(NOW),
        "exp": int(NOW) + 3600,
        "scope": "https://www.googleapis.com/auth/cloud-platform",
    }


def test_an_id_token_of_a_service_account() -> None:
    servers = Servers(("oauth2", {"id_token": id_token(NOW + 1800)}))
    found = done(gcp.of_account(servers.world(), account(), gcp.Wanted("https://run.example")))
    assert found == Fetched(id_token(NOW + 1800).encode(), 1800.0)
    assert claims_of(servers.asked[0])["target_audience"] == "https://run.example"


def test_an_assertion_is_made_once_more_by_the_clock_of_google() -> None:
    def judge(servers: Servers) -> Any:
        is_right = claims_of(servers.asked[-1])["iat"] == int(NOW + servers.skew)
        return TOKEN if is_right else (400, {"error": "invalid_grant"})

    servers = Servers(("oauth2", judge))
    servers.skew = -MINUTES
    assert done(gcp.of_account(servers.world(), account(), gcp.Wanted())) == Fetched(b"its-token", 3600.0)
    assert len(servers.asked) == 2


def test_a_user_who_has_logged_in() -> None:
    servers = Servers(("oauth2", TOKEN), environment={"HOME": "/h"}, files={
        "/h/.config/gcloud/application_default_credentials.json": json.dumps(USER).encode()
    })  # fmt: skip
    assert done(gcp.ambient(servers.world(), gcp.Wanted())) == Fetched(b"its-token", 3600.0)
    assert fields_of(servers.asked[0])["refresh_token"] == "again"


@pytest.mark.parametrize(
    ("wanted", "part", "answer", "found"),
    [
        (gcp.Wanted(), "/token?scopes=", TOKEN, Fetched(b"its-token", 3600.0)),
        (
            gcp.Wanted("https://run.example"),
            "/identity?audience=https%3A%2F%2Frun.example&format=full",
            (200, id_token(NOW + 900).encode()),
            Fetched(id_token(NOW + 900).encode(), 900.0),
        ),
    ],
)
def test_the_metadata_server(wanted: gcp.Wanted, part: str, answer: Any, found: Fetched[bytes]) -> None:
    servers = Servers((f"service-accounts/default{part}", answer))
    assert done(gcp.ambient(servers.world(), wanted)) == found
    assert servers.asked[0].url.startswith("http://metadata.google.internal/computeMetadata/v1/instance/")
    assert dict(servers.asked[0].headers) == {"metadata-flavor": "Google"}


def test_a_file_that_is_named_and_not_there_is_no_reason_to_ask_elsewhere() -> None:
    servers = Servers(("metadata", TOKEN), environment={"GOOGLE_APPLICATION_CREDENTIALS": "/gone"})
    with pytest.raises(Unobtainable, match="/gone cannot be read"):
        done(gcp.ambient(servers.world(), gcp.Wanted()))
    assert servers.asked == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"no", "no JSON object"),
        (b"[]", "no JSON object"),
        (b"[" * 100_000, "no JSON object"),
        (b'{"type": "external_account"}', "its type is none of"),
        (b'{"type": ["service_account"]}', "its type is none of"),
        (json.dumps({**ACCOUNT, "client_email": ""}).encode(), "no client_email"),
        (json.dumps({**ACCOUNT, "private_key": "-"}).encode(), "private_key cannot be read"),
        (json.dumps({**ACCOUNT, "token_uri": "http://elsewhere/"}).encode(), "token_uri is not https"),
    ],
)
def test_a_file_of_credentials_that_cannot_be_used(text: bytes, why: str) -> None:
    with pytest.raises(gcp.BadCredentials, match=why):
        gcp.account_of(text)


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c", f"e30.{'A' * 9}.x", "e30.e30.x"])
def test_what_is_no_id_token(token: str) -> None:
    servers = Servers(("oauth2", {"id_token": token}))
    with pytest.raises(Unobtainable):
        done(gcp.of_account(servers.world(), account(), gcp.Wanted("https://run.example")))


def test_nothing_secret_is_in_a_repr() -> None:
    question = Question("GET", "https://h/p?key=hush", (("authorization", "hush"),), b"hush")
    shown = [azure.Client("c", "t", "hush"), Keys(b"hush", b"hush", b"hush"), Fetched(b"hush", 1.0)]
    assert "hush" not in repr([*shown, Answer(200, {"a": "hush"}, b"hush")])
    assert "hush" not in repr(question).replace(question.url, "")
