"""The authority of xDS: what its Secret holds over years, and what controllers issue by it."""

from __future__ import annotations

import datetime as dt
import re

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import PolicyBuilder, Store

from controlplane.xds.trust import authority as authorities
from controlplane.xds.trust.authority import (
    BUNDLE,
    CONTROLLER,
    KEY,
    LIFETIME,
    NEXT_KEY,
    OF_A_CONTROLLER,
    RENEW,
    SKEW,
    SPREAD,
    Authority,
    Identity,
    UnusableAuthority,
)
from controlplane.xds.trust.issuer import Issuer

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NAMES = ("gatewright.system.svc",)
DAY = dt.timedelta(days=1)
SECOND = dt.timedelta(seconds=1)


def is_trusted(identity: Identity, bundle: bytes, name: str, now: dt.datetime) -> bool:
    store = Store(x509.load_pem_x509_certificates(bundle))
    verifier = PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(name))
    try:
        verifier.verify(x509.load_pem_x509_certificate(identity.certificate), [])
    except x509.verification.VerificationError:
        return False
    return True


def test_what_is_written_is_read() -> None:
    first = authorities.created(START)
    assert authorities.read(authorities.written(first)).bundle == first.bundle
    second = authorities.rotated(first, START + LIFETIME - RENEW + DAY)
    again = authorities.read(authorities.written(second))
    assert again.bundle == second.bundle and len(again.certificates) == 2 and again.next_key is not None


def test_nothing_is_replaced_before_it_is_time() -> None:
    first = authorities.created(START)
    assert authorities.rotated(first, START + LIFETIME - RENEW - DAY) is first


def test_the_times_of_an_authority() -> None:
    """A year; a successor when 120 days of it are left; a day until that one signs. Certificates: two days."""
    assert (LIFETIME, RENEW, SPREAD, SKEW, OF_A_CONTROLLER) == (365 * DAY, 120 * DAY, DAY, DAY / 24, 2 * DAY)
    first = authorities.created(START)
    assert first.signing.not_valid_before_utc == START - SKEW and first.signing.not_valid_after_utc == START + LIFETIME
    made = START + LIFETIME - RENEW
    assert authorities.rotated(first, made) is first
    both = authorities.rotated(first, made + SECOND)
    assert len(both.certificates) == 2 and both.signing == first.signing
    assert authorities.rotated(both, made + SPREAD) is both
    after = authorities.rotated(both, made + SECOND + SPREAD)
    assert (after.certificates, after.next_key) == (both.certificates[::-1], None)


def test_an_authority_at_its_end_is_followed_at_once() -> None:
    """Its successor came late; nothing that the old one signs is trusted any more."""
    first = authorities.created(START)
    end = START + LIFETIME
    both = authorities.rotated(first, end - DAY / 2)
    assert authorities.rotated(both, end - SECOND) is both
    assert authorities.rotated(both, end).certificates == both.certificates[1:]


def test_those_before_the_one_that_signs_stay_until_they_expire() -> None:
    first, old = authorities.created(START), authorities.created(START - 200 * DAY)
    both = Authority((first.signing, old.signing), first.key)
    end = START - 200 * DAY + LIFETIME
    assert authorities.rotated(both, end - SECOND) is both
    assert authorities.rotated(both, end).certificates == first.certificates


def test_a_bundle_is_one_certificate_after_the_other() -> None:
    first = authorities.created(START)
    both = authorities.rotated(first, START + LIFETIME - RENEW + DAY)
    assert both.bundle.startswith(first.bundle)
    rest = both.bundle.removeprefix(first.bundle)
    assert rest.startswith(b"-----BEGIN CERTIFICATE-----\n") and rest.endswith(b"\n-----END CERTIFICATE-----\n")


def test_what_has_expired_is_trusted_no_more_when_another_one_signs() -> None:
    first, old = authorities.created(START), authorities.created(START - 2 * LIFETIME)
    now = START + LIFETIME - RENEW + DAY
    both = authorities.rotated(first, now)
    _, following = both.certificates
    kept = Authority((first.signing, old.signing, following), first.key, both.next_key)
    assert authorities.rotated(kept, now + 2 * SPREAD).certificates == (following, first.signing)


def test_no_certificate_is_valid_longer_than_its_authority() -> None:
    authority = authorities.created(START)
    issued = authorities.issued(authority, NAMES, START + LIFETIME - OF_A_CONTROLLER / 4)
    found = x509.load_pem_x509_certificate(issued.certificate)
    assert found.not_valid_after_utc == authority.signing.not_valid_after_utc
    assert issued.renew_at < found.not_valid_after_utc


def test_years_of_rotation_break_no_trust() -> None:
    """Looked at every six hours for three years: whoever trusts what was there a day ago trusts what is issued now, and
    whoever has the newest bundle trusts what was issued within a certificate's life."""
    authority, now, signers = authorities.created(START), START, set()
    before: list[tuple[dt.datetime, bytes]] = []
    alive: list[tuple[dt.datetime, Identity]] = []
    for _ in range(3 * 365 * 4):
        authority = authorities.rotated(authority, now)
        signers.add(authority.signing.fingerprint(hashes.SHA256()))
        assert len(authority.certificates) <= 3
        if (now.hour == 0 and (now - START).days % 7 == 0) or authority.next_key is not None:
            issued = authorities.issued(authority, NAMES, now)
            old = [bundle for at, bundle in before if now - at >= SPREAD]
            assert all(is_trusted(issued, bundle, NAMES[0], now) for bundle in [authority.bundle, *old[-1:]])
            alive = [(at, each) for at, each in alive if now - at < OF_A_CONTROLLER / 2] + [(now, issued)]
            assert all(is_trusted(each, authority.bundle, NAMES[0], now) for _, each in alive)
        before = [*before[-8:], (now, authority.bundle)]
        now += DAY / 4
    assert len(signers) == 5  # one for each 245 days, and the first


def test_an_issued_certificate_is_for_the_names_and_for_other_controllers_and_is_no_authority() -> None:
    authority = authorities.created(START)
    issued = authorities.issued(authority, NAMES, START)
    assert is_trusted(issued, authority.bundle, NAMES[0], START)
    assert is_trusted(issued, authority.bundle, CONTROLLER, START)
    assert not is_trusted(issued, authority.bundle, "other.system.svc", START)
    assert not is_trusted(issued, authority.bundle, NAMES[0], START + OF_A_CONTROLLER + DAY)
    assert not is_trusted(issued, authorities.created(START).bundle, NAMES[0], START)
    certificate = x509.load_pem_x509_certificate(issued.certificate)
    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False


def test_what_an_authority_may_do() -> None:
    """Sign certificates of ends and lists of those that are withdrawn. Nothing else."""
    certificate = authorities.created(START).signing
    found = {type(each.value): (each.value, each.critical) for each in certificate.extensions}
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    assert found == {
        x509.BasicConstraints: (x509.BasicConstraints(ca=True, path_length=0), True),
        x509.KeyUsage: (usage, True),
        x509.SubjectKeyIdentifier: (x509.SubjectKeyIdentifier.from_public_key(certificate.public_key()), False),
    }
    (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert re.fullmatch("gatewright xds 2026-01-01 [0-9a-f]{8}", str(name.value))
    assert certificate.subject != authorities.created(START).signing.subject, "a chain is built by names"


def test_what_a_certificate_of_a_controller_says() -> None:
    authority = authorities.created(START)
    issued = authorities.issued(authority, NAMES, START)
    certificate = x509.load_pem_x509_certificate(issued.certificate)
    found = {type(each.value): (each.value, each.critical) for each in certificate.extensions}
    signer = authority.signing.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    names = x509.SubjectAlternativeName([x509.DNSName(NAMES[0]), x509.DNSName(CONTROLLER)])
    assert found == {
        x509.BasicConstraints: (x509.BasicConstraints(ca=False, path_length=None), True),
        x509.SubjectAlternativeName: (names, False),
        x509.ExtendedKeyUsage: (
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
            False,
        ),
        x509.AuthorityKeyIdentifier: (
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(signer),
            False,
        ),
    }
    assert certificate.issuer == authority.signing.subject
    assert (certificate.not_valid_before_utc, certificate.not_valid_after_utc) == (START - SKEW, START + 2 * DAY)
    assert issued.renew_at == START + DAY


def nameless() -> bytes:
    """An authority whose certificates cannot say which of its keys signed them."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(START).not_valid_after(START + DAY)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def another_kind_of_key() -> bytes:
    return ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def test_one_certificate_of_another_form_spoils_the_bundle() -> None:
    authority = authorities.created(START)
    data = authorities.written(authority)
    for other in (nameless(), authorities.issued(authority, NAMES, START).certificate):
        with pytest.raises(UnusableAuthority, match="a certificate that is no authority made by gatewright"):
            authorities.read(data | {BUNDLE: data[BUNDLE] + other})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({BUNDLE: b""}, "ca.crt holds no certificates"),
        ({BUNDLE: b"nonsense"}, "ca.crt holds no certificates"),
        (
            {BUNDLE: authorities.issued(authorities.created(START), NAMES, START).certificate},
            "a certificate that is no auth",
        ),
        ({KEY: b""}, "ca.key holds no private key"),
        ({KEY: another_kind_of_key()}, "ca.key is no key of an elliptic curve"),
        ({KEY: authorities.written(authorities.created(START))[KEY]}, "ca.key is not the key of the first certificate"),
        ({NEXT_KEY: b"nonsense"}, "next.key holds no private key"),
        (
            {NEXT_KEY: authorities.written(authorities.created(START))[KEY]},
            "next.key is not the key of the last certificate",
        ),
    ],
)
def test_a_secret_of_another_form_is_refused(change: dict[str, bytes], reason: str) -> None:
    data = authorities.written(authorities.created(START)) | change
    with pytest.raises(UnusableAuthority, match=reason) as told:
        authorities.read(data)
    assert "PRIVATE" not in str(told.value)


def test_keys_are_not_shown() -> None:
    authority = authorities.created(START)
    shown = repr(authority) + repr(authorities.issued(authority, NAMES, START))
    assert "PRIVATE" not in shown and "key=" not in shown


class TestIssuer:
    def test_it_goes_on_with_a_certificate_until_the_middle_of_its_life_or_another_authority(self) -> None:
        now, authority = [START], authorities.created(START)
        issuer = Issuer(lambda: now[0])
        issuer.name(NAMES)
        issuer.use(authority)
        first = issuer.identity()
        now[0] += OF_A_CONTROLLER / 2 - DAY / 24
        assert issuer.identity() is first
        now[0] += DAY / 24
        second = issuer.identity()
        assert second is not first
        issuer.use(Authority((*authority.certificates, authorities.created(START).signing), authority.key))
        assert issuer.identity() is not second
        assert issuer.identity().bundle == issuer.bundle

    def test_who_listens_hears_of_another_bundle_alone(self) -> None:
        issuer, heard = Issuer(lambda: START), [0]
        issuer.listeners.append(lambda: heard.append(1))
        authority = authorities.created(START)
        issuer.use(authority)
        issuer.use(authorities.read(authorities.written(authority)))
        assert heard == [0, 1]

    def test_what_grpc_is_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Proxies show a token, other controllers a certificate of the same authority; what is new counts from the next
        handshake on."""
        monkeypatch.setattr(grpc, "ssl_server_certificate_configuration", lambda *given: given)
        monkeypatch.setattr(
            grpc,
            "dynamic_ssl_server_credentials",
            lambda first, fetch, require_client_authentication: (first, fetch, require_client_authentication),
        )
        monkeypatch.setattr(grpc, "ssl_channel_credentials", lambda *given: given)
        now, authority = [START], authorities.created(START)
        issuer = Issuer(lambda: now[0])
        assert issuer.bundle == b"" and issuer.wants_client_certificate is False
        issuer.name(iter(NAMES))  # type: ignore[arg-type]  # kept as they are now
        issuer.use(authority)
        shown = issuer.identity()
        assert is_trusted(shown, authority.bundle, NAMES[0], START)
        first, fetch, is_mutual = issuer.credentials()
        assert (first, is_mutual) == (([(shown.key, shown.certificate)], None), False)
        mutual, fetch_mutual, is_mutual = issuer.mutual_credentials()
        assert (mutual, is_mutual) == (([(shown.key, shown.certificate)], authority.bundle), True)
        assert issuer.channel_credentials() == (authority.bundle, shown.key, shown.certificate)
        assert fetch() is None and fetch_mutual() is None, "as before"
        now[0] += OF_A_CONTROLLER / 2
        newest = issuer.identity()
        assert newest.certificate != shown.certificate
        assert fetch() == ([(newest.key, newest.certificate)], None) and fetch() is None
        assert fetch_mutual() == ([(newest.key, newest.certificate)], authority.bundle)

    def test_nothing_is_shown_before_there_is_an_authority(self) -> None:
        with pytest.raises(RuntimeError, match="no authority"):
            Issuer(lambda: START).identity()
