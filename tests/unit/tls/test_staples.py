"""OCSP responses of listeners: which are presented, to whom, beside which certificate; what is wrong with others."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID
from OpenSSL import SSL

from dataplane.tls import contexts
from dataplane.tls.settings import BadSettings
from dataplane.tls.staples import EARLY, LARGEST, Staple, read
from tests.fakes.certificates import EC, ED25519, RSA, Authority, Issued
from tests.fakes.secure_proxy import SecureProxy, TlsClient, client_context, secure

ROOT = Authority("Root")
MIDDLE = Authority("Middle", ROOT)
OWN = MIDDLE.issue("shop.example")
NOW = datetime.now(UTC)
FILE = """
binds:
- port: 8443
  listeners:
  - name: https
    routes: [{policies: {directResponse: {status: 200}}}]
"""


def answer(
    issued: Issued = OWN,
    authority: Authority = MIDDLE,
    status: ocsp.OCSPCertStatus = ocsp.OCSPCertStatus.GOOD,
    begins: float = -1,
    ends: float | None = 1,
    signer: Any = None,
    responder: x509.Certificate | None = None,
    algorithm: Any = None,
    forger: Authority | None = None,
) -> bytes:
    """A response about `issued`, valid from so many days from now to so many. `forger` signs in place of the issuer."""
    is_revoked = status is ocsp.OCSPCertStatus.REVOKED
    builder = ocsp.OCSPResponseBuilder().add_response(
        issued.certificate,
        authority.certificate,
        algorithm or hashes.SHA1(),  # what responders use (RFC 6960 B.1)
        status,
        NOW + timedelta(days=begins),
        None if ends is None else NOW + timedelta(days=ends),
        NOW if is_revoked else None,
        x509.ReasonFlags.key_compromise if is_revoked else None,
    )
    named = responder or (forger or authority).certificate
    builder = builder.responder_id(ocsp.OCSPResponderEncoding.HASH, named)
    if responder is not None:
        builder = builder.certificates([responder])
    key = signer or (forger or authority).key
    digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key, digest).public_bytes(Encoding.DER)


def responder(
    authority: Authority, usage: Any = ExtendedKeyUsageOID.OCSP_SIGNING, days: float = 30, kind: str = EC
) -> tuple[Any, Any]:
    """Certificate and key of a responder that an authority has named."""
    issued = authority.issue(common_name="Responder", days=days, kind=kind)
    key = load_pem_private_key(issued.key, None)
    builder = x509.CertificateBuilder().subject_name(issued.certificate.subject).issuer_name(authority.name)
    builder = builder.public_key(issued.certificate.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(NOW - timedelta(days=400)).not_valid_after(NOW + timedelta(days=days))
    builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    return builder.sign(authority.key, hashes.SHA256()), key


def chain(*above: Authority) -> list[x509.Certificate]:
    return [OWN.certificate, *(each.certificate for each in above)]


def reading(content: bytes, certificates: list[x509.Certificate] | None = None) -> Any:
    return read(content, certificates or chain(MIDDLE), NOW.timestamp())


def test_a_good_response_is_read_from_der_and_base64() -> None:
    der = answer()
    for content in (der, base64.b64encode(der), base64.encodebytes(der)):
        staple = reading(content)
        assert staple.response == der and staple.is_valid(NOW.timestamp())
        assert not staple.is_valid(NOW.timestamp() + 86_401) and not staple.is_valid(NOW.timestamp() - 90_000)
    assert repr(der)[:20] not in repr(staple)


@pytest.mark.parametrize("algorithm", [hashes.SHA1(), hashes.SHA256(), hashes.SHA512()])
def test_digests_that_name_the_issuer(algorithm: Any) -> None:
    assert reading(answer(algorithm=algorithm))


def test_a_responder_that_the_issuer_has_named() -> None:
    certificate, key = responder(MIDDLE)
    assert reading(answer(signer=key, responder=certificate))


@pytest.mark.parametrize("kind", [EC, RSA, ED25519])
def test_a_responder_s_key_may_be_of_any_kind_and_the_signature_has_to_be_its(kind: str) -> None:
    certificate, key = responder(MIDDLE, kind=kind)
    der = answer(signer=key, responder=certificate)
    assert reading(der)
    signature = ocsp.load_der_ocsp_response(der).signature
    with pytest.raises(BadSettings, match="its signature is not that of"):
        reading(der.replace(signature, signature[:-1] + bytes([signature[-1] ^ 1])))


@pytest.mark.parametrize(
    ("now", "expected"),
    [(1000.0 - EARLY, True), (999.9 - EARLY, False), (1500.0, True), (1999.9, True), (2000.0, False)],
)
def test_when_one_is_valid(now: float, expected: bool) -> None:
    """A responder's clock may be ahead by five minutes."""
    assert Staple(b"", 1000.0, 2000.0).is_valid(now) is expected and EARLY == 300.0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (base64.b64encode(b"\x30" + bytes(LARGEST - 1)), "it is no OCSP response"),
        (base64.b64encode(b"\x30" + bytes(LARGEST)), "it is longer than 65536 bytes"),
        (b"!" * (2 * LARGEST), "it is neither DER nor base64"),
        (b"!" * (2 * LARGEST + 1), "it is longer than 65536 bytes"),
    ],
)
def test_how_long_one_may_be(content: bytes, words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        reading(content)


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"\x30\x00", "it is no OCSP response"),
    "no base64": (lambda: b"hello!", "it is neither DER nor base64"),
    "huge": (lambda: b"\x30" + bytes(LARGEST), "it is longer than"),
    "another certificate": (lambda: answer(MIDDLE.issue("other.example")), "it is about another certificate"),
    "another issuer": (lambda: answer(authority=ROOT), "it is about another certificate"),
    "another signature": (lambda: answer(forger=Authority("Middle", ROOT)), "its signature is not that of"),
    "changed": (lambda: (der := answer())[:-1] + bytes([der[-1] ^ 1]), "its signature is not that of"),
    "no responder": (
        lambda: answer(signer=(named := responder(MIDDLE, ExtendedKeyUsageOID.SERVER_AUTH))[1], responder=named[0]),
        "its signature is not that of",
    ),
    "a responder of others": (
        lambda: answer(signer=(named := responder(ROOT))[1], responder=named[0]),
        "its signature is not that of",
    ),
    "a responder of the past": (
        lambda: answer(signer=(named := responder(MIDDLE, days=-1))[1], responder=named[0]),
        "its signature is not that of",
    ),
    "revoked": (lambda: answer(status=ocsp.OCSPCertStatus.REVOKED), "it says that the certificate is REVOKED"),
    "unknown": (lambda: answer(status=ocsp.OCSPCertStatus.UNKNOWN), "it says that the certificate is UNKNOWN"),
    "ended": (lambda: answer(begins=-2, ends=-1), "it is valid from"),
    "not begun": (lambda: answer(begins=1, ends=2), "it is valid from"),
    "without end": (lambda: answer(ends=None), "it does not say until when"),
    "failed": (
        lambda: ocsp.OCSPResponseBuilder.build_unsuccessful(ocsp.OCSPResponseStatus.TRY_LATER).public_bytes(
            Encoding.DER
        ),
        "its responder answered TRY_LATER",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_not_presented(name: str) -> None:
    made, words = BAD[name]
    with pytest.raises(BadSettings, match=words):
        reading(made())


def test_the_issuer_has_to_be_there() -> None:
    with pytest.raises(BadSettings, match=r"neither tls\.crt nor ca\.crt"):
        reading(answer(), [OWN.certificate])
    with pytest.raises(BadSettings, match=r"neither tls\.crt nor ca\.crt"):
        reading(answer(), chain(ROOT))


# --- in handshakes


@dataclass(frozen=True)
class Stapled(Issued):
    staple: bytes = b""
    authorities: bytes = b""

    @property
    def entries(self) -> dict[str, bytes]:
        more = {"tls.ocsp-staple": self.staple, "ca.crt": self.authorities}
        return {**super().entries, **{name: value for name, value in more.items() if value}}


def stapled(staple: bytes, issued: Issued = OWN, authorities: bytes = b"") -> Stapled:
    return Stapled(issued.chain, issued.key, issued.certificate, staple, authorities)


def presented(
    proxy: SecureProxy, asks: bool = True, ciphers: bytes = b"", newest: int = SSL.TLS1_3_VERSION
) -> list[bytes]:
    """What a client is presented with that asks for a response, in one handshake that succeeds."""
    got: list[bytes] = []

    def take(connection: SSL.Connection, content: bytes, data: object) -> bool:
        got.append(content)
        return True

    context = client_context()
    context.set_ocsp_client_callback(take)
    context.set_max_proto_version(newest)
    if ciphers:
        context.set_cipher_list(ciphers)
    client = TlsClient(proxy.connect(), "shop.example", context=context, handshake=False)
    if asks:
        client.tls.request_ocsp()
    client.handshake()
    assert client.error == ""
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    assert client.read().startswith(b"HTTP/1.1 200 ")
    return [each for each in got if each]


@pytest.mark.parametrize("newest", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
def test_a_client_that_asks_gets_it(newest: int) -> None:
    staple = answer()
    proxy = SecureProxy(FILE, {"https": secure(stapled(staple))})
    assert presented(proxy, newest=newest) == [staple]
    assert presented(proxy, asks=False, newest=newest) == []
    (plan,) = proxy.applier.security.values()
    assert plan.staple_ends == pytest.approx((NOW + timedelta(days=1)).timestamp(), abs=1)


def test_each_certificate_has_its_own() -> None:
    other = MIDDLE.issue("shop.example", kind=RSA)
    ec_answer, rsa_answer = answer(), answer(other)
    proxy = SecureProxy(FILE, {"https": secure(stapled(ec_answer), stapled(rsa_answer, other))})
    assert presented(proxy, ciphers=b"ECDHE-ECDSA-AES128-GCM-SHA256", newest=SSL.TLS1_2_VERSION) == [ec_answer]
    assert presented(proxy, ciphers=b"ECDHE-RSA-AES128-GCM-SHA256", newest=SSL.TLS1_2_VERSION) == [rsa_answer]


def test_one_without_is_presented_without() -> None:
    other = MIDDLE.issue("shop.example", kind=RSA)
    proxy = SecureProxy(FILE, {"https": secure(stapled(answer()), other)})
    assert presented(proxy, ciphers=b"ECDHE-RSA-AES128-GCM-SHA256", newest=SSL.TLS1_2_VERSION) == []


def test_the_issuer_may_be_in_an_entry_of_its_own() -> None:
    issued = ROOT.issue("shop.example")
    staple = answer(issued, ROOT)
    proxy = SecureProxy(FILE, {"https": secure(stapled(staple, issued, ROOT.pem))})
    assert presented(proxy) == [staple]


@pytest.mark.parametrize("name", ["another signature", "revoked", "ended", "no base64"])
def test_a_bad_one_costs_no_handshake_and_is_logged(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        proxy = SecureProxy(FILE, {"https": secure(stapled(BAD[name][0]()))})
    assert presented(proxy) == []
    (plan,) = proxy.applier.security.values()
    assert plan.staple_ends == 0.0 and plan.refused == ""
    assert (
        f"listener https: the tls.ocsp-staple of secret/default/https-0 is not presented: {BAD[name][1]}" in caplog.text
    )


def test_one_that_ends_is_not_presented_any_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    staple = answer()
    proxy = SecureProxy(FILE, {"https": secure(stapled(staple))})
    assert presented(proxy) == [staple]
    monkeypatch.setattr(contexts.time, "time", lambda: NOW.timestamp() + 2 * 86_400)
    with caplog.at_level(logging.WARNING):
        assert presented(proxy) == [] and presented(proxy) == []
    assert caplog.text.count("an OCSP response is not presented any more") == 1


def test_a_new_one_is_presented_from_the_next_handshake_on() -> None:
    proxy = SecureProxy(FILE, {"https": secure(stapled(answer(begins=-2, ends=-1)))})
    assert presented(proxy) == []
    staple = answer()
    proxy.listeners["https"] = secure(stapled(staple))
    proxy.load(FILE)
    assert presented(proxy) == [staple]
