"""Credentials toward clouds beside what others have made: our signatures are checked by moto, which stands for AWS and
reads them as AWS does; what our sources ask servers of tokens equals what the SDKs of Azure and Google Cloud ask."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dataplane.upstream.auth import azure, gcp
from dataplane.upstream.auth.asking import Answer, Question, World
from dataplane.upstream.auth.tokens import Unobtainable
from tests.conftest import need_tool
from tests.fakes.socket_proxy import serving
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import started
from tests.harness.waiting import until

pytestmark = pytest.mark.needs("cloud-python")

# --- AWS: moto, which checks SigV4 after the first requests

UNSIGNED: Final = 6
"""Requests that nobody signs: what `account` makes."""
REGION: Final = "eu-west-1"
ALL: Final = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["*"], "Resource": ["*"]}]}
)
TRUST: Final = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}],
    }
)


class Moto:
    """One account, with the keys of a user who may do all, and a role that may."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.access = self.secret = self.role = ""

    def account(self) -> None:
        self._iam("CreateUser", UserName="ann")
        self._iam("PutUserPolicy", UserName="ann", PolicyName="all", PolicyDocument=ALL)
        keys = self._iam("CreateAccessKey", UserName="ann")
        self.access, self.secret = (_element(keys, name) for name in ("AccessKeyId", "SecretAccessKey"))
        self.role = _element(self._iam("CreateRole", RoleName="r", AssumeRolePolicyDocument=TRUST), "Arn")
        self._iam("PutRolePolicy", RoleName="r", PolicyName="all", PolicyDocument=ALL)
        self._iam("GetUser", UserName="ann")

    def _iam(self, action: str, **fields: str) -> str:
        """Unsigned: it looks at the scope of a signature alone, to tell which service is meant."""
        body = urlencode({"Action": action, "Version": "2010-05-08", **fields}).encode()
        scope = "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0"
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/", body, {"Authorization": scope})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return str(answer.read().decode())

    def is_there(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/moto-api/data.json", timeout=PATIENCE).close()
        except OSError:
            return False
        return True

    def backend(self, auth: str) -> str:
        return BACKEND.replace("PORT", str(self.port)).replace("AUTH", auth)

    def static(self, service: str, secret: str = "") -> str:
        keys = f"secretRef: {{accessKey: {{value: {self.access}}}, secretKey: {{value: '{secret or self.secret}'}}}}"
        return self.backend(f"aws: {{serviceName: {service}, {keys}}}")


def _element(text: str, name: str) -> str:
    found = re.search(rf"<{name}>([^<]+)</{name}>", text)
    assert found is not None, text
    return found[1]


BACKEND: Final = """
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: all
      backends: [{host: '127.0.0.1:PORT', policies: {auth: {AUTH}}}]
"""
BUCKET: Final = (
    f"<CreateBucketConfiguration><LocationConstraint>{REGION}</LocationConstraint></CreateBucketConfiguration>"
)
WHO: Final = b"Action=GetCallerIdentity&Version=2011-06-15"
FORM: Final = "Content-Type: application/x-www-form-urlencoded\r\n"


@asynccontextmanager
async def moto(folder: Path) -> AsyncIterator[Moto]:
    made = Moto(reserve())
    code = "import sys; from moto.server import main; main(sys.argv[1:])"
    command = [need_tool("cloud-python"), "-c", code, "-H", "127.0.0.1", "-p", str(made.port)]
    async with started(folder, "moto", command, environment={"INITIAL_NO_AUTH_ACTION_COUNT": str(UNSIGNED)}):
        await until(lambda: made.is_there(), "moto")
        await asyncio.to_thread(made.account)
        yield made


async def test_moto_takes_our_signatures(tmp_path: Path) -> None:
    """One server for all that is asked of it: it takes seconds to start."""
    environment = {"AWS_REGION": REGION}
    async with moto(tmp_path) as aws:
        async with serving(aws.static("sts"), environment=environment) as proxy:
            answer = await proxy.ask("POST", "/", WHO, FORM)
            assert answer.startswith(b"HTTP/1.1 200") and b"user/ann</Arn>" in answer
        async with serving(aws.static("sts", secret="another"), environment=environment) as proxy:
            answer = await proxy.ask("POST", "/", WHO, FORM)
            assert answer.startswith(b"HTTP/1.1 403") and b"SignatureDoesNotMatch" in answer, "it does check them"
        async with serving(aws.static("secretsmanager"), environment=environment) as proxy:
            headers = "Content-Type: application/x-amz-json-1.1\r\nX-Amz-Target: secretsmanager.ListSecrets\r\n"
            assert b'"SecretList"' in await proxy.ask("POST", "/", b"{}", headers)
        async with serving(aws.static("s3"), environment=environment) as proxy:
            assert (await proxy.ask("PUT", "/bucket", BUCKET.encode())).startswith(b"HTTP/1.1 200")
            for key in ("plain", "a%20b/c%2Bd", "%C3%A4//x", "t~t-t_t.t"):
                assert (await proxy.ask("PUT", f"/bucket/{key}", b"content")).startswith(b"HTTP/1.1 200"), key
                assert (await proxy.ask("GET", f"/bucket/{key}")).endswith(b"content"), key
            listed = await proxy.ask("GET", "/bucket?prefix=a%20b&list-type=2&delimiter=")
            assert b"<Key>a b/c+d</Key>" in listed
        known = {
            **environment,
            "AWS_ACCESS_KEY_ID": aws.access,
            "AWS_SECRET_ACCESS_KEY": aws.secret,
            "AWS_ENDPOINT_URL_STS": f"http://127.0.0.1:{aws.port}",
        }
        role = aws.backend(f"aws: {{serviceName: sts, assumeRole: {{roleArn: '{aws.role}'}}}}")
        async with serving(role, environment=known) as proxy:
            assert b"assumed-role/r/gatewright</Arn>" in await proxy.ask("POST", "/", WHO, FORM)


# --- Azure and Google Cloud: the requests of their SDKs

SDKS: Final = Path(__file__).parent.parent / "fakes" / "cloud_sdk_requests.py"
PEM: Final = (
    rsa.generate_private_key(65537, 2048)
    .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    .decode()
)
ACCOUNT: Final = {
    "type": "service_account",
    "client_email": "gw@project.iam.gserviceaccount.com",
    "private_key": PEM,
    "private_key_id": "k1",
    "token_uri": "https://oauth2.googleapis.com/token",
}
USER: Final = {"type": "authorized_user", "client_id": "c", "client_secret": "hush", "refresh_token": "again"}
WORKLOAD: Final = {"AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t", "AZURE_FEDERATED_TOKEN_FILE": "/token"}
APP_SERVICE: Final = {"IDENTITY_ENDPOINT": "http://127.0.0.1:41000/msi/token", "IDENTITY_HEADER": "hush"}
IDENTITIES: Final = {
    "system": azure.SYSTEM,
    "client": azure.ManagedIdentity("c"),
    "object": azure.ManagedIdentity("", "o"),
    "resource": azure.ManagedIdentity("", "", "r"),
}
RUN: Final = gcp.Wanted("https://run.example")
Ours = tuple[Callable[[World], Coroutine[Any, Any, Any]], dict[str, str]]
OURS: Final[dict[str, Ours]] = {
    "azure client": (lambda world: azure.of_client(world, azure.Client("c", "t", "hush")), {}),
    "azure workload": (azure.ambient, WORKLOAD),
    **{
        f"azure identity, {name}": (lambda world, chosen=chosen: azure.of_managed(world, chosen), {})
        for name, chosen in IDENTITIES.items()
    },
    **{
        f"azure app service, {name}": (lambda world, chosen=chosen: azure.of_managed(world, chosen), APP_SERVICE)
        for name, chosen in IDENTITIES.items()
    },
    "google account": (lambda world: gcp.of_account(world, ACCOUNT, gcp.Wanted()), {}),
    "google account, ID token": (lambda world: gcp.of_account(world, ACCOUNT, RUN), {}),
    "google user": (lambda world: gcp.of_account(world, USER, gcp.Wanted()), {}),
    "google metadata": (lambda world: gcp.ambient(world, gcp.Wanted()), {}),
    "google metadata, ID token": (lambda world: gcp.ambient(world, RUN), {}),
}
READ: Final = ("metadata", "metadata-flavor", "x-identity-header", "content-type", "accept", "authorization")
"""Headers that servers of tokens look at; the others are about the SDK."""
MAY_DIFFER: Final = {
    ("client_info",): "Azure's SDK asks whom the token is of, for its cache of users",
    ("accept",): "we say that we read JSON, which is all that there is",
    ("metadata",): "App Service reads x-identity-header; the SDK sends the header of virtual machines, too",
    ("object_id", "principal_id"): "App Service: the one is an alias of the other, by its reference",
    ("claim sub",): "Google's library leaves out who the token is of where it is the issuer",
    ("claim iat",): "two clocks",
    ("claim exp",): "two clocks",
}


def _parts(method: str, url: str, headers: dict[str, str], body: str) -> dict[str, str]:
    """What a server of tokens reads of a request: fields of the query, of the form, of an assertion, headers."""
    split = urlsplit(url)
    found = {"target": f"{method} {split.scheme}://{split.netloc}{split.path}"}
    found |= dict(parse_qsl(split.query)) | dict(parse_qsl(body))
    found |= {name: value for name, value in headers.items() if name in READ}
    if "assertion" in found:
        head, claims, _ = found.pop("assertion").split(".")
        found |= {f"header {name}": str(value) for name, value in json.loads(_decoded(head)).items()}
        found |= {f"claim {name}": str(value) for name, value in json.loads(_decoded(claims)).items()}
    return found


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def _asked_by_us(source: Callable[[World], Coroutine[Any, Any, Any]], environment: dict[str, str]) -> dict[str, str]:
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        raise Unobtainable("that is all that we want to know")

    async def read(path: str) -> bytes:
        if path == "/token":
            return b"jwt"
        raise Unobtainable(path)

    with pytest.raises(Unobtainable):
        asyncio.run(source(World(ask, lambda: 1_800_000_000.0, environment, read)))
    (question,) = asked
    return _parts(question.method, question.url, dict(question.headers), question.body.decode())


@pytest.fixture(scope="module")
def asked_by_sdks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    token = tmp_path_factory.mktemp("cloud") / "token"
    token.write_text("jwt")
    given = json.dumps({"account": ACCOUNT, "user": USER, "token": str(token)})
    command = [need_tool("cloud-python"), str(SDKS), given]
    done = subprocess.run(command, check=True, capture_output=True, timeout=4 * PATIENCE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", OURS)
def test_a_server_of_tokens_is_asked_as_its_sdk_asks(name: str, asked_by_sdks: dict[str, Any]) -> None:
    last = asked_by_sdks[name][-1]  # Google's library looks at the account first
    theirs, ours = _parts(**last), _asked_by_us(*OURS[name])
    differing = {key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)}
    unexplained = [key for key in differing if not any(key in allowed for allowed in MAY_DIFFER)]
    assert unexplained == [], {key: (theirs.get(key), ours.get(key)) for key in unexplained}
    assert theirs["target"] == ours["target"]


def test_every_way_to_a_token_is_compared(asked_by_sdks: dict[str, Any]) -> None:
    assert asked_by_sdks.keys() == OURS.keys()
