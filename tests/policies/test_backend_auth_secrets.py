"""No secret of `backend.auth` shows: in a log, an access log, an error, a status, a dump, a page, a repr. Each secret
field has a text that nothing else has, and each way in which things go well or wrong is gone."""

from __future__ import annotations

import gc
import json
import logging
from typing import Any, Final

import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from controlplane.admin import content
from controlplane.snapshot import RESOURCE_TYPE as TYPE
from controlplane.snapshot.redact import redacted
from dataplane.table.store import RESOURCE_TYPE, Change
from gatewright.api.decode import documents
from gatewright.api.standalone import standalone
from gatewright.wire.v1.resource_pb2 import Resource
from tests.fakes.memory_proxy import MemoryProxy

CANARY: Final = "c4n4ry"
THERE: Final = {
    "AZURE_AUTHORITY_HOST": "http://127.0.0.1:9100",
    "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:9100",
    "AWS_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": f"id-{CANARY}",
    "AWS_SECRET_ACCESS_KEY": CANARY,
    "AWS_SESSION_TOKEN": CANARY,
    "IDENTITY_ENDPOINT": "http://127.0.0.1:9100/msi",
    "IDENTITY_HEADER": CANARY,
}
USER = {"type": "authorized_user", "client_id": "c", "client_secret": CANARY, "refresh_token": CANARY}
KEY = {"type": "service_account", "client_email": "c", "private_key": CANARY}
ROLE = "arn:aws:iam::123456789012:role/r"

AUTH: Final = {
    "key": f"{{key: {CANARY}}}",
    "key that cannot be sent": f'{{key: "{CANARY}\\u200b"}}',
    "key of two lines": f'{{key: "{CANARY}\\n{CANARY}"}}',
    "secretRef": f"{{secretRef: {{value: {CANARY}}}}}",
    "query": f"{{key: {CANARY}, location: {{queryParameter: {{name: k}}}}}}",
    "cookie": f"{{key: {CANARY}, location: {{cookie: {{name: k}}}}}}",
    "unfit cookie": f"{{key: 'a;{CANARY}', location: {{cookie: {{name: k}}}}}}",
    "aws": f"{{aws: {{serviceName: s3, secretRef: {{accessKey: {{value: id}}, secretKey: {{value: {CANARY}}},"
    f" sessionToken: {{value: {CANARY}}}}}}}}}",
    "aws that cannot be sent": f"{{aws: {{serviceName: s3, secretRef: {{accessKey: {{value: 'a{chr(233)}\\n{CANARY}'}},"
    f" secretKey: {{value: {CANARY}}}}}}}}}",
    "aws without a service": f"{{aws: {{secretRef: {{accessKey: {{value: id}}, secretKey: {{value: {CANARY}}}}}}}}}",
    "role": f"{{aws: {{serviceName: s3, assumeRole: {{roleArn: '{ROLE}'}}}}}}",
    "azure": f"{{azure: {{secretRef: {{clientID: {{value: c}}, tenantID: {{value: t}},"
    f" clientSecret: {{value: {CANARY}}}}}}}}}",
    "identity": "{azure: {managedIdentity: {clientId: c, objectId: '', resourceId: ''}}}",
    "gcp": f"{{gcp: {{secretRef: {{value: '{json.dumps(USER)}'}}}}}}",
    "gcp with a bad key": f"{{gcp: {{secretRef: {{value: '{json.dumps(KEY)}'}}}}}}",
    "gcp without JSON": f"{{gcp: {{secretRef: {{value: '{CANARY}'}}}}}}",
}
FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: all
      policies: {auth: %s}
      backends: [{host: '127.0.0.1:9000'}]
"""


def http(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


SESSION = "".join(f"<{n}>{CANARY}</{n}>" for n in ("AccessKeyId", "SecretAccessKey", "SessionToken"))
ANSWERS: Final = {
    "given": http("200 OK", json.dumps({"access_token": CANARY, "expires_in": 3600})),
    "refused": http("401 No", json.dumps({"error": CANARY, "error_description": f"no {CANARY}"})),
    "refused by AWS": http("403 No", f"<Error><Code>{CANARY}</Code><Message>{CANARY}</Message></Error>"),
    "a session": http("200 OK", f"{SESSION}<Expiration>2099-01-01T00:00:00Z</Expiration>"),
    "a session without an end": http("200 OK", f"{SESSION}<Expiration>{CANARY}</Expiration>"),
    "garbage": http("200 OK", f"{{{CANARY}"),
    "of another type": http("200 OK", json.dumps({"access_token": [CANARY]})),
    "not HTTP": f"{CANARY}\r\n\r\n".encode(),
}


class Lenient(MemoryProxy):
    """What its configuration refuses is refused."""

    def load(self, text: str) -> None:
        changes = [Change(RESOURCE_TYPE, each.key, each.SerializeToString()) for each in _resources(text)]
        for _ in self.applier.apply(changes):
            pass


def _resources(text: str) -> tuple[Resource, ...]:
    return standalone.load(text, "config.yaml").resources


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("auth", AUTH)
def test_a_proxy_shows_nothing(auth: str, answer: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    proxy = Lenient(FILE % AUTH[auth], environment=THERE)
    client = proxy.connect()
    client.send(b"GET /a HTTP/1.1\r\nhost: shop.example\r\n\r\n")
    for upstream in list(proxy.connector.upstreams):
        upstream.answer(ANSWERS[answer])
    shown = [client.received.decode(), *proxy.log_lines(), caplog.text, repr(proxy.applier.outcome.refused)]
    shown += [repr(each) for each in _ours()]
    client.lose()
    assert not [text for text in shown if CANARY in text and not _is_of_a_backend(text, answer)]


def _is_of_a_backend(text: str, answer: str) -> bool:
    """What a backend itself has answered is passed on."""
    return text.startswith("HTTP/1.1 ") and ANSWERS[answer].partition(b"\r\n\r\n")[2].decode() in text


def _ours() -> list[Any]:
    """All objects of the packages that credentials pass through."""
    homes = ("dataplane.upstream.auth", "dataplane.upstream.outgoing", "dataplane.upstream.settings")
    more = ("dataplane.table.plans", "dataplane.filters.settings.backend_auth", "dataplane.chain.calls")
    return [each for each in gc.get_objects() if type(each).__module__.startswith((*homes, *more))]


@pytest.mark.parametrize("auth", AUTH)
def test_a_file_shows_nothing_where_a_mistake_stands_beside(auth: str) -> None:
    loaded = standalone.load((FILE % AUTH[auth]).replace("name: all", "nmae: all"), "config.yaml")
    assert loaded.problems and CANARY not in "".join(map(str, loaded.problems))
    assert CANARY not in repr(standalone.load(FILE % AUTH[auth], "config.yaml"))


@pytest.mark.parametrize("auth", AUTH)
def test_dumps_show_nothing(auth: str) -> None:
    """Only messages of Secrets have any, and these are redacted (`test_dump`: as the proxy dumps them)."""
    resources = _resources(FILE % AUTH[auth])
    for each in resources:
        shown = redacted(AnyMessage(type_url=TYPE, value=each.SerializeToString()))
        assert CANARY.encode() not in shown.value
        assert each.HasField("secret") or CANARY.encode() not in each.SerializeToString()


OBJECTS = """
apiVersion: gatewright.dev/v1alpha1
kind: {kind}
metadata: {{name: it, namespace: default}}
spec: {spec}
"""
POLICY = "{targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}], backend: {auth: %s}}"
BACKEND = "{static: {host: h, port: 80}, policies: {auth: %s}}"
TARGET = "{mcp: {targets: [{name: one, static: {host: h, port: 80, policies: {auth: %s}}}]}}"


@pytest.mark.parametrize(
    ("kind", "spec"), [("GatewayPolicy", POLICY), ("GatewayBackend", BACKEND), ("GatewayBackend", TARGET)]
)
def test_objects_show_nothing(kind: str, spec: str) -> None:
    (decoded,) = documents.decode(OBJECTS.format(kind=kind, spec=spec % AUTH["key"]), "a.yaml")
    assert decoded.verdict == "valid" and decoded.item is not None
    assert CANARY not in repr(decoded.item) and CANARY not in json.dumps(content.shown(decoded.item))
    (wrong,) = documents.decode(OBJECTS.format(kind=kind, spec=spec % f"{{key: {CANARY}, kye: 1}}"), "a.yaml")
    assert wrong.problems and CANARY not in "".join(map(str, wrong.problems))
