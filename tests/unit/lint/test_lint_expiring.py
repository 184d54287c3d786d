"""Certificates that expire soon, in Secrets and in the standalone file."""

from __future__ import annotations

import json

import pytest

from gatewright.api.lint.lint import Document, lint
from tests.fakes.certificates import Authority, Issued

ROOT = Authority()
SOON, LATER, PAST = (ROOT.issue("a.example", days=days) for days in (13.5, 14.5, -0.5))


def secret(pair: Issued, field: str = "stringData", kind: str = "kubernetes.io/tls") -> Document:
    data = {"tls.crt": pair.chain.decode(), "tls.key": pair.key.decode()}
    values = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "type": kind, field: data}
    return Document("a.yaml", json.dumps(values))


def standalone(pair: Issued) -> Document:
    refs = [{"tls.crt": {"value": pair.chain.decode()}, "tls.key": {"value": pair.key.decode()}}]
    listener = {"protocol": "HTTPS", "tls": {"certificateRefs": refs}, "routes": []}
    return Document("gw.yaml", json.dumps({"binds": [{"port": 8443, "listeners": [listener]}]}))


def said(document: Document) -> list[tuple[str, str, str]]:
    return [(each.path, each.severity, each.message) for each in lint([document]) if each.code == "expiring"]


@pytest.mark.parametrize(("pair", "verb"), [(SOON, "expires"), (PAST, "has expired")])
def test_a_secret_is_warned_of(pair: Issued, verb: str) -> None:
    ((path, severity, message),) = said(secret(pair))
    assert (path, severity) == ('stringData["tls.crt"]', "warning")
    assert message.startswith(f"the certificate {verb} on 20")


def test_others_are_not() -> None:
    assert said(secret(LATER)) == []
    assert said(secret(SOON, kind="Opaque")) == []  # nobody says that this is what it looks like
    assert (
        said(Document("a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ntype: kubernetes.io/tls\n")) == []
    )


def test_a_standalone_file_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewright.api.standalone.standalone.LISTENER_PROTOCOLS", ())
    ((path, severity, message),) = said(standalone(SOON))
    assert (path, severity) == ('binds[0].listeners[0].tls.certificateRefs[0]["tls.crt"]', "warning")
    assert message.startswith("expires on 20")
    assert said(standalone(LATER)) == []
