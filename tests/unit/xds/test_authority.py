"""The authority of xDS: what its Secret holds over years, and what controllers issue by it."""

from __future__ import annotations

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.verification import PolicyBuilder, Store

from controlplane.xds import authority as authorities
from controlplane.xds.authority import (
    BUNDLE,
    CONTROLLER,
    KEY,
    LIFETIME,
    NEXT_KEY,
    OF_A_CONTROLLER,
    RENEW,
    SPREAD,
    Authority,
    Identity,
    UnusableAuthority,
)
from controlplane.xds.issuer import Issuer

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NAMES = ("gatewright.system.svc",)
DAY = dt.timedelta(days=1)


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

    def test_nothing_is_shown_before_there_is_an_authority(self) -> None:
        with pytest.raises(RuntimeError, match="no authority"):
            Issuer(lambda: START).identity()
