"""What holds credentials does not show them: a repr goes to logs and tracebacks."""

from __future__ import annotations

import pytest

from dataplane.agent.file_reading import Loaded
from dataplane.chain.calls import CallAnswer, CallRequest
from dataplane.credentials.api_keys import ApiKeys
from dataplane.credentials.jwt import Token
from dataplane.filters.steps.ext_auth.verdict import Verdict
from dataplane.http.heads import Head
from dataplane.link.messages import Changes, Record
from dataplane.link.pools import BodyMemory
from dataplane.proxy.attempt.replay import BodyCopy
from dataplane.settings import Defaults
from dataplane.table.store import Change, SecretRecord
from gatewright.api.backend.auth import BackendAuth
from gatewright.api.objects.secret import Secret
from gatewright.api.standalone import secrets
from gatewright.api.standalone.config import Session
from gatewright.api.traffic.basic_authentication import BasicAuthentication
from gatewright.cel.values import Redacted

SECRET = "hunter2"
BYTES = SECRET.encode()
LINE = b"\r\nauthorization: hunter2\r\n"

COPY = BodyCopy(100, BodyMemory(100), "")
COPY.sent(BYTES, True)

HOLDERS = [
    CallRequest(b"GET", b"/?key=" + BYTES, headers=LINE[2:], body=BYTES),
    CallAnswer(200, Head(LINE), BYTES),
    Verdict(metadata={"token": SECRET}),
    Changes((Record("", "secret/default/s", BYTES),)),
    Change("", "secret/default/s", BYTES),
    SecretRecord(b"", {"password": BYTES}),
    Loaded(SECRET, (Record("", "secret/default/s", BYTES),), Defaults(), {}, {SECRET: ()}),
    ApiKeys([(BYTES, {})]),
    Token("RS256", None, {"sub": SECRET}, BYTES, BYTES),
    COPY,
    # what users write
    BasicAuthentication.model_construct(users=(f"ann:{SECRET}",)),
    BackendAuth.model_construct(key=SECRET),
    Secret.model_construct(data={"password": SECRET}, string_data={"password": SECRET}),
    Session.model_construct(key=SECRET),
    secrets.Content.model_construct(value=SECRET),
    *(
        model.model_construct(secret_ref=SECRET)
        for model in (
            secrets.UsersSecret,
            secrets.KeysSecret,
            secrets.CredentialSecret,
            secrets.GcpSecret,
            secrets.AwsSecret,
            secrets.AzureSecret,
        )
    ),
    secrets.BackendCertificates.model_construct(mtls_certificate_ref=(SECRET,)),
    secrets.ListenerCertificates.model_construct(certificate_refs=(SECRET,)),
    # what expressions see
    Redacted(SECRET),
]


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: type(holder).__name__)
def test_no_secret_is_shown(holder: object) -> None:
    assert SECRET not in repr(holder) and SECRET not in f"{holder}"
