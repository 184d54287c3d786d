"""`listeners[].tls.validation` of the standalone file: certificates of clients, from YAML to the handshake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatewright.api.standalone import standalone
from gatewright.api.standalone.secrets import Unreadable
from gatewright.wire.v1 import tls_pb2
from tests.fakes.certificates import Authority, Issued
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy
from tests.fakes.secure_proxy import TlsClient

SERVERS, CLIENTS = Authority("Servers"), Authority("Clients")
SERVER = SERVERS.issue("shop.example", "open.example")
GOOD, GONE = CLIENTS.issue(client=True, common_name="cart"), CLIENTS.issue(client=True, common_name="gone")
OTHER = Authority("Others").issue(client=True, common_name="cart")
GET = b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def listener(name: str, validation: dict[str, Any] | None, mode: str = "Terminate") -> dict[str, Any]:
    own = {"tls.crt": {"value": SERVER.chain.decode()}, "tls.key": {"value": SERVER.key.decode()}}
    tls: dict[str, Any] = {"certificateRefs": [own]} if mode == "Terminate" else {"mode": mode}
    if validation is not None:
        tls["validation"] = validation
    routes = {"routes": [{"backends": [{"host": "127.0.0.1:9000"}]}]}
    if mode != "Terminate":
        routes = {"tcpRoutes": [{"backends": [{"host": "127.0.0.1:9000"}]}]}
    protocol = "HTTPS" if mode == "Terminate" else "TLS"
    return {"name": name, "protocol": protocol, "hostname": f"{name}.example", "tls": tls, **routes}


def asking(mode: str = "AllowValidOnly", revoked: tuple[Issued, ...] | None = None) -> dict[str, Any]:
    authorities = {"ca.crt": {"value": CLIENTS.pem.decode()}}
    if revoked is not None:
        authorities["ca.crl"] = {"value": CLIENTS.revoke(*revoked).decode()}
    return {"caCertificateRefs": [authorities], "mode": mode}


def text(*listeners: dict[str, Any]) -> str:
    names = {"subject": "source.subject", "cn": "source.subjectCn"}
    frontend = {"accessLog": {"add": names}}
    return json.dumps({"frontendPolicies": frontend, "binds": [{"port": 8443, "listeners": list(listeners)}]})


def memory(*listeners: dict[str, Any]) -> MemoryProxy:
    return Http1Endpoints(text(*listeners))


def asked(proxy: MemoryProxy, identity: Issued | None) -> str:
    """What the log says of a client with this certificate; "" where the handshake, or its first request, fails."""
    client = TlsClient(proxy.connect(), "shop.example", SERVERS, identity=identity)
    if client.error or not client.far.open:
        return ""
    client.send(GET)
    if not proxy.connector.upstreams:
        return ""
    proxy.upstream.answer(OK)
    assert client.read().startswith(b"HTTP/1.1 200 ")
    return proxy.log_lines()[-1].partition("ms ")[2]


@pytest.mark.parametrize(
    ("mode", "identity", "told"),
    [
        ("AllowValidOnly", GOOD, "subject=CN=cart cn=cart"),
        ("AllowValidOnly", None, None),
        ("AllowValidOnly", OTHER, None),
        ("AllowValidOnly", GONE, None),
        ("AllowInsecureFallback", GOOD, "subject=CN=cart cn=cart"),
        ("AllowInsecureFallback", None, ""),
        ("AllowInsecureFallback", OTHER, ""),
        ("AllowInsecureFallback", GONE, ""),
    ],
)
def test_who_gets_through_and_as_whom(mode: str, identity: Issued | None, told: str | None) -> None:
    proxy = memory(listener("shop", asking(mode, (GONE,))))
    found = asked(proxy, identity)
    if told is None:
        assert not proxy.connector.upstreams
    else:
        assert found.strip() == told and proxy.connector.upstreams


def test_without_a_list_nobody_is_revoked_and_without_validation_nobody_is_asked() -> None:
    assert asked(memory(listener("shop", asking())), GONE).strip() == "subject=CN=gone cn=gone"
    assert asked(memory(listener("shop", None)), GOOD).strip() == ""


def test_a_list_that_is_replaced_counts_from_the_next_connection_on() -> None:
    proxy = memory(listener("shop", asking(revoked=())))
    assert asked(proxy, GONE)
    proxy.load(text(listener("shop", asking(revoked=(GONE,)))))
    assert asked(proxy, GONE) == "" and asked(proxy, GOOD)


def test_a_request_for_a_listener_that_asks_otherwise_is_misdirected() -> None:
    proxy = memory(listener("shop", asking()), listener("open", None))
    client = TlsClient(proxy.connect(), "open.example", SERVERS)
    client.send(GET)
    assert client.read().startswith(b"HTTP/1.1 421 ") and not proxy.connector.upstreams


def problems(*listeners: dict[str, Any]) -> list[str]:
    return [str(each) for each in standalone.load(text(*listeners), "gw.yaml").problems]


PLACE = "binds[0].listeners[0].tls.validation"


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        (
            {"caCertificateRefs": [{"ca.crt": {"value": "no pem"}}]},
            '.caCertificateRefs[0]["ca.crt"]',
            "no certificate in PEM",
        ),
        (
            {"caCertificateRefs": [{"ca.crt": {"value": CLIENTS.pem.decode()}, "ca.crl": {"value": "x"}}]},
            '.caCertificateRefs[0]["ca.crl"]',
            "no list of revoked certificates",
        ),
        ({"caCertificateRefs": []}, ".caCertificateRefs", "must have 1 to 16 items"),
        ({}, ".caCertificateRefs", "required"),
        ({**asking(), "mode": "Maybe"}, ".mode", "AllowValidOnly"),
    ],
)
def test_what_cannot_be_used_is_named(change: dict[str, Any], place: str, words: str) -> None:
    (problem, *others) = problems(listener("shop", change))
    assert not others and f"{PLACE}{place}" in problem and words in problem


def test_what_passes_through_shows_no_certificate() -> None:
    (problem,) = problems(listener("shop", asking(), mode="Passthrough"))
    assert f"{PLACE}: must be absent for mode Passthrough" in problem


def test_files_are_read_and_missing_ones_named(tmp_path: Path) -> None:
    (tmp_path / "clients.pem").write_bytes(CLIENTS.pem)
    validation = {"caCertificateRefs": [{"ca.crt": {"file": "clients.pem"}, "ca.crl": {"file": "none.pem"}}]}

    def resolve(content: Any) -> bytes:
        try:
            return (tmp_path / content.file).read_bytes()
        except OSError as error:
            raise Unreadable("file", str(error.strerror)) from None

    loaded = standalone.load(text(listener("shop", validation)), "gw.yaml", resolve=resolve)
    (problem,) = [str(each) for each in loaded.problems]
    assert f'{PLACE}.caCertificateRefs[0]["ca.crl"].file' in problem
    del validation["caCertificateRefs"][0]["ca.crl"]
    loaded = standalone.load(text(listener("shop", validation)), "gw.yaml", resolve=resolve)
    assert not loaded.problems
    (made,) = [each.listener.tls for each in loaded.resources if each.HasField("listener")]
    assert made.client_validation.mode == tls_pb2.CLIENT_VALIDATION_MODE_ALLOW_VALID_ONLY
    assert list(made.client_validation.authorities) == [CLIENTS.pem.decode()]
