"""Which xDS address may serve what: every combination of options, on loopback and elsewhere."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from controlplane.settings import Security
from controlplane.xds.trust.exposure import Exposed, check

FILE = Path("x")
LOCAL, ELSEWHERE = (
    ("127.0.0.1", "::1", "localhost"),
    ("0.0.0.0", "::", "10.0.0.1", "controller.example", "localhost.evil", "evil.localhost"),
)


def refusal(host: str, security: Security) -> str:
    try:
        check((host, 18000), security)
    except Exposed as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("host", [*LOCAL, *ELSEWHERE])
def test_resources_leave_only_through_tls_to_who_is_known_unless_asked_for_on_loopback(host: str) -> None:
    some = (None, FILE)
    for certificate, key, clients, tokens, insecure in product(some, some, some, some, (False, True)):
        security = Security(certificate, key, clients, tokens, insecure)
        tls, known = certificate is not None and key is not None, clients is not None or tokens is not None
        if not refusal(host, security):
            assert not security.serves_resources or (tls and known) or (insecure and host in LOCAL)
            assert host in LOCAL or (tls and known)


@pytest.mark.parametrize(
    ("host", "security", "cure"),
    [
        (
            "0.0.0.0",
            Security(),
            "0.0.0.0:18000 can be reached from other machines, so xDS needs TLS there: give --xds-",
        ),
        ("::", Security(token_file=FILE), "[::]:18000 can be reached"),
        ("0.0.0.0", Security(FILE, FILE), "give --xds-token-file FILE (tokens) or --xds-client-ca FILE"),
        ("127.0.0.1", Security(FILE, FILE), "give --xds-token-file FILE (tokens) or --xds-client-ca FILE"),
        ("127.0.0.1", Security(FILE), "--xds-tls-cert and --xds-tls-key are needed both"),
        ("127.0.0.1", Security(key=FILE), "--xds-tls-cert and --xds-tls-key are needed both"),
        ("0.0.0.0", Security(key=FILE), "--xds-tls-cert and --xds-tls-key are needed both"),
        ("127.0.0.1", Security(token_file=FILE), "--xds-token-file needs TLS"),
        ("127.0.0.1", Security(client_authority=FILE), "--xds-client-ca needs TLS"),
        ("0.0.0.0", Security(FILE, FILE, FILE, FILE, True), "--xds-insecure is for loopback addresses only"),
    ],
)
def test_the_refusal_says_what_to_do(host: str, security: Security, cure: str) -> None:
    assert cure in refusal(host, security)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"insecure": True},
        *({name: FILE} for name in ("certificate", "key", "client_authority", "token_file")),
    ],
)
def test_what_a_cluster_knows_does_not_come_from_files_too(more: dict[str, Any]) -> None:
    for host in (*LOCAL, *ELSEWHERE):
        refused = refusal(host, Security(service_accounts=True, **more))
        assert refused.startswith("--xds-service-accounts has its certificates and tokens from the cluster") == bool(
            more
        )
        assert bool(refused) == bool(more)


@pytest.mark.parametrize(
    ("host", "security"),
    [
        ("127.0.0.1", Security()),
        ("127.0.0.1", Security(insecure=True)),
        ("127.0.0.1", Security(token_file=FILE, insecure=True)),
        ("::1", Security(FILE, FILE, token_file=FILE)),
        ("0.0.0.0", Security(FILE, FILE, token_file=FILE)),
        ("0.0.0.0", Security(FILE, FILE, FILE)),
        ("::", Security(FILE, FILE, FILE, FILE)),
    ],
)
def test_what_is_served(host: str, security: Security) -> None:
    assert refusal(host, security) == ""
