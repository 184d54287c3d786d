"""TLS of listeners in the standalone file: what proxies get of it, and what is wrong with it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from dataplane.agent.file_contents import Contents
from gatewright.api.standalone import standalone
from gatewright.api.standalone.secrets import Content
from gatewright.api.standalone.standalone import Standalone, load
from tests.fakes.certificates import RSA, Authority, Issued

ROOT = Authority()
ONE, TWO = ROOT.issue("a.example"), ROOT.issue("b.example", kind=RSA)
Resolve = Callable[[Content], bytes]


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standalone, "LISTENER_PROTOCOLS", ())


CLIENTS = {"ca.crt": {"value": ROOT.pem.decode()}}


def written(pair: Issued) -> dict[str, Any]:
    return {"tls.crt": {"value": pair.chain.decode()}, "tls.key": {"value": pair.key.decode()}}


def listener(*pairs: dict[str, Any], protocol: str = "HTTPS", **more: Any) -> dict[str, Any]:
    return {"name": "web", "protocol": protocol, "tls": {"certificateRefs": pairs}, **more}


def read(*listeners: dict[str, Any], resolve: Resolve | None = None, now: float | None = None) -> Standalone:
    text = json.dumps({"binds": [{"port": 8443, "listeners": listeners}]})
    return load(text, "gw.yaml", resolve=resolve, now=now)


def resources(found: Standalone, kind: str) -> dict[str, Any]:
    assert not found.errors, [*map(str, found.errors)]
    return {
        each.key: MessageToDict(getattr(each, kind), preserving_proto_field_name=True)
        for each in found.resources
        if each.WhichOneof("kind") == kind
    }


def problems(found: Standalone) -> list[str]:
    assert not found.resources
    return [f"{each.path}: {each.message}" for each in found.problems]


def test_certificates_travel_as_secrets_in_the_order_written() -> None:
    found = read(listener(written(TWO), written(ONE), hostname="*.example"))
    keys = [f"secret/default/listener/web/tls/{index}" for index in (0, 1)]
    ((_, message),) = resources(found, "listener").items()
    assert message["protocol"] == "PROTOCOL_HTTPS" and message["hostname"] == "*.example"
    assert message["tls"] == {"mode": "TLS_MODE_TERMINATE", "certificates": keys}
    secrets = {each.key: dict(each.secret.data) for each in found.resources if each.HasField("secret")}
    values = [{"tls.crt": pair.chain, "tls.key": pair.key} for pair in (TWO, ONE)]
    assert secrets == dict(zip(keys, values, strict=True))


def test_authorities_of_a_certificate_travel_with_it() -> None:
    found = read(listener({**written(ONE), **CLIENTS}))
    ((_, secret),) = [(each.key, each.secret) for each in found.resources if each.HasField("secret")]
    assert secret.data["ca.crt"].strip() == ROOT.pem.strip()


def test_files_and_variables_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "web.pem").write_bytes(ONE.chain)
    monkeypatch.setenv("WEB_KEY", ONE.key.decode())
    contents = Contents(tmp_path)
    found = read(listener({"tls.crt": {"file": "web.pem"}, "tls.key": {"env": "WEB_KEY"}}), resolve=contents.read)
    ((_, secret),) = [(each.key, each.secret) for each in found.resources if each.HasField("secret")]
    assert dict(secret.data) == {"tls.crt": ONE.chain.rstrip(), "tls.key": ONE.key.rstrip()}
    assert [*contents.stamps] == [tmp_path / "web.pem"]


def verifying(*authorities: dict[str, Any], **more: Any) -> dict[str, Any]:
    item = listener(written(ONE))
    return {**item, "tls": {**item["tls"], "validation": {"caCertificateRefs": authorities, **more}}}


def test_authorities_of_clients_are_in_the_listener(tmp_path: Path) -> None:
    other = Authority()
    (tmp_path / "ca.pem").write_bytes(other.pem)
    found = read(
        verifying({"ca.crt": {"value": ROOT.pem.decode()}}, {"ca.crt": {"file": "ca.pem"}}),
        resolve=Contents(tmp_path).read,
    )
    ((_, message),) = resources(found, "listener").items()
    validation = message["tls"]["client_validation"]
    assert [each.strip().encode() for each in validation["authorities"]] == [ROOT.pem.strip(), other.pem.strip()]
    assert validation["mode"] == "CLIENT_VALIDATION_MODE_ALLOW_VALID_ONLY"


def test_who_only_checks_reads_no_file() -> None:
    found = read(listener({"tls.crt": {"file": "web.pem"}, "tls.key": {"env": "WEB_KEY"}}))
    assert found.problems == () and resources(found, "secret") == {}


def test_a_bad_pair_names_its_entry() -> None:
    pair = {"tls.crt": written(ONE)["tls.crt"], "tls.key": written(TWO)["tls.key"]}
    at = "binds[0].listeners[0].tls.certificateRefs[1]"
    assert problems(read(listener(written(ONE), pair))) == [f'{at}["tls.key"]: does not belong to the certificate']
    pair = {"tls.crt": {"value": "hello"}, "tls.key": written(TWO)["tls.key"]}
    assert problems(read(listener(written(ONE), pair))) == [f'{at}["tls.crt"]: is no certificate in PEM form']


def test_a_missing_file_is_named_and_no_value_is(tmp_path: Path) -> None:
    found = read(
        listener({"tls.crt": written(ONE)["tls.crt"], "tls.key": {"file": "none.key"}}),
        resolve=Contents(tmp_path).read,
    )
    (said,) = problems(found)
    place = 'binds[0].listeners[0].tls.certificateRefs[0]["tls.key"].file'
    assert said == f'{place}: "{tmp_path / "none.key"}" cannot be read: No such file or directory'
    key = written(TWO)["tls.key"]["value"]
    bad = read(listener({"tls.crt": written(ONE)["tls.crt"], "tls.key": {"value": key}}))
    assert key[40:80] not in repr(bad) and key[40:80] not in str(problems(bad))


@pytest.mark.parametrize(
    ("item", "path", "message"),
    [
        ({"protocol": "HTTPS"}, "tls", "is required for protocol HTTPS"),
        ({"protocol": "TLS"}, "tls", "is required for protocol TLS"),
        ({"protocol": "HTTP", "tls": {"mode": "Passthrough"}}, "tls", "must be absent for protocol HTTP"),
        ({"protocol": "HTTPS", "tls": {"mode": "Passthrough"}}, "tls.mode", "must be Terminate for protocol HTTPS"),
        (
            {"protocol": "TLS", "tls": {"mode": "Passthrough", "validation": {"caCertificateRefs": [CLIENTS]}}},
            "tls.validation",
            "must be absent for mode Passthrough: what clients show is not seen here",
        ),
        ({"protocol": "HTTPS", "tls": {}}, "tls", "certificateRefs or options must be set when mode is Terminate"),
        (
            {"protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "web"}]}},
            "tls.certificateRefs[0].tls.crt",
            "is required",
        ),
        (
            {"protocol": "TLS", "tls": {"mode": "Passthrough", "options": {"a": "b"}}},
            "tls.options",
            "not supported: Gateway API gives its keys no meaning; `frontend.tls` of policies has what can be set; "
            "remove options to have the rest accepted",
        ),
    ],
)
def test_what_does_not_fit_is_refused(item: dict[str, Any], path: str, message: str) -> None:
    said = [each.replace('["tls.crt"]', ".tls.crt") for each in problems(read(item))]
    assert f"binds[0].listeners[0].{path}: {message}" in said


def test_passthrough_has_no_certificate() -> None:
    found = read({"name": "web", "protocol": "TLS", "tls": {"mode": "Passthrough"}})
    ((_, message),) = resources(found, "listener").items()
    assert message["tls"] == {"mode": "TLS_MODE_PASSTHROUGH"}
    assert resources(found, "secret") == {}


@pytest.mark.parametrize(("first", "second"), [("HTTP", "HTTPS"), ("HTTPS", "HTTP"), ("TLS", "TCP"), ("HTTP", "TCP")])
def test_listeners_of_one_port_fit_each_other(first: str, second: str) -> None:
    tls = {"certificateRefs": [written(ONE)]}
    items = [
        {"name": each.lower(), "protocol": each, **({"tls": tls} if each in ("HTTPS", "TLS") else {})}
        for each in (first, second)
    ]
    items[0]["hostname"] = "a.example"
    (said,) = problems(read(*items))
    assert said == f"binds[0].listeners[1].protocol: cannot share a port with {first}, which comes first"


def test_https_and_tls_share_a_port() -> None:
    tls = {"mode": "Passthrough"}
    found = read(listener(written(ONE)), {"name": "raw", "protocol": "TLS", "hostname": "raw.example", "tls": tls})
    assert len(resources(found, "listener")) == 2


def test_a_certificate_that_has_expired_is_warned_of_and_served() -> None:
    old = ROOT.issue("a.example", days=-0.5)
    found = read(listener(written(old)), now=time.time())
    assert len(resources(found, "secret")) == 1
    (problem,) = found.problems
    assert problem.severity == "warning" and problem.message.startswith("has expired on 20")
    assert read(listener(written(old))).problems == ()
