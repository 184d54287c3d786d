"""Certificates, keys and lists in PEM form: what is wrong with them, and when they expire."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, rsa
from hypothesis import given
from hypothesis import strategies as st

from gatewright.api.checks import certificates
from gatewright.api.checks.certificates import (
    LONGEST_BUNDLE,
    LONGEST_CHAIN,
    LONGEST_KEY,
    authorities_problem,
    expiry,
    expiry_warning,
    pair_problem,
    revocations_problem,
)
from tests.fakes.certificates import EC, ED25519, RSA, Authority, pem_of

ROOT = Authority()
BETWEEN = Authority("between", ROOT)
PAIR = ROOT.issue("a.example")
NOT_PEM = "is no certificate in PEM form"


@pytest.mark.parametrize("kind", [EC, RSA, ED25519])
def test_pairs_of_each_kind_can_be_used(kind: str) -> None:
    for authority in (ROOT, BETWEEN):
        pair = authority.issue("a.example", kind=kind)
        assert pair_problem(pair.chain, pair.key) is None


@pytest.mark.parametrize(
    ("chain", "key", "entry", "text"),
    [
        (b"", PAIR.key, "tls.crt", NOT_PEM),
        (PAIR.key, PAIR.key, "tls.crt", NOT_PEM),
        (PAIR.chain[:-40], PAIR.key, "tls.crt", NOT_PEM),
        (PAIR.chain, b"", "tls.key", "is no private key in PEM form without a password"),
        (PAIR.chain, PAIR.chain, "tls.key", "is no private key in PEM form without a password"),
        (PAIR.chain, ROOT.issue("b.example").key, "tls.key", "does not belong to the certificate"),
        (ROOT.pem + PAIR.chain, PAIR.key, "tls.key", "does not belong to the certificate"),
        (b" " * (LONGEST_CHAIN + 1), b"", "tls.crt", "is longer than 262144 bytes"),
        (PAIR.chain, b" " * (LONGEST_KEY + 1), "tls.key", "is longer than 16384 bytes"),
    ],
)
def test_what_cannot_be_used(chain: bytes, key: bytes, entry: str, text: str) -> None:
    assert pair_problem(chain, key) == (entry, text)


def test_texts_as_long_as_they_may_be() -> None:
    chain, key = PAIR.chain.ljust(LONGEST_CHAIN, b"\n"), PAIR.key.ljust(LONGEST_KEY, b"\n")
    assert pair_problem(chain, key) is None
    assert pair_problem(chain + b"\n", key) == ("tls.crt", "is longer than 262144 bytes")
    assert pair_problem(chain, key + b"\n") == ("tls.key", "is longer than 16384 bytes")
    assert authorities_problem(ROOT.pem.decode().ljust(LONGEST_BUNDLE, "\n")) == ""
    assert revocations_problem(ROOT.revoke(PAIR).decode().ljust(LONGEST_BUNDLE, "\n")) == ""


def test_keys_that_openssl_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fakes.certificates.new_key", lambda *_: rsa.generate_private_key(65537, 1024))
    small = ROOT.issue("a.example")
    assert pair_problem(small.chain, small.key) == ("tls.key", "is an RSA key of 1024 bits; 2048 to 8192 are taken")
    other = pem_of(dsa.generate_private_key(2048))
    assert pair_problem(PAIR.chain, other) == ("tls.key", "does not belong to the certificate")


def test_the_first_of_a_chain_that_expires_counts() -> None:
    long, short = ROOT.issue("a.example", days=90), ROOT.issue("b.example", days=30)
    assert expiry(long.chain) == long.certificate.not_valid_after_utc
    assert expiry(long.chain + short.chain) == short.certificate.not_valid_after_utc
    assert expiry(b"nothing") is None


def test_a_warning_comes_fourteen_days_before() -> None:
    end = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    seconds = end.timestamp()
    said = [expiry_warning(end, seconds - 14 * 86_400 + each) for each in (-1, 0)]
    assert said == ["", "expires on 2026-03-01 at 12:30 UTC"]
    assert expiry_warning(end, seconds - 1) == "expires on 2026-03-01 at 12:30 UTC"
    assert expiry_warning(end, seconds) == "has expired on 2026-03-01 at 12:30 UTC"
    assert expiry_warning(None, seconds) == ""


def test_bundles_of_authorities() -> None:
    both = (ROOT.pem + b"\n# a comment\n" + BETWEEN.pem).decode()
    assert authorities_problem(both) == ""
    for text in ("", "hello", PAIR.key.decode()):
        assert authorities_problem(text) == NOT_PEM
    assert authorities_problem(both + "\n" * LONGEST_BUNDLE) == "is longer than 1048576 bytes"
    with_key = both + PAIR.key.decode()
    assert authorities_problem(with_key) == "has a private key: certificates of authorities are public"


def test_lists_of_revoked_certificates() -> None:
    lists = (ROOT.revoke(PAIR) + b"\n" + BETWEEN.revoke()).decode()
    assert revocations_problem(lists) == ""
    for text in ("", "hello", ROOT.pem.decode(), lists.replace("\n", "\n!", 3)):
        assert revocations_problem(text) == "is no list of revoked certificates in PEM form"
    assert revocations_problem(lists + "\n" * LONGEST_BUNDLE) == "is longer than 1048576 bytes"


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_whatever_stands_there_is_judged(one: bytes, other: bytes) -> None:
    for chain, key in ((one, other), (PAIR.chain, other), (PAIR.chain[: len(one) * 4] + other, PAIR.key)):
        problem = pair_problem(chain, key)
        assert problem is None or problem.entry in (certificates.CERTIFICATE, certificates.KEY)
        expiry(chain)
    text = one.decode("latin-1")
    assert revocations_problem(f"-----BEGIN X509 CRL-----\n{text}\n-----END X509 CRL-----") != ""
    assert authorities_problem(text) != ""
