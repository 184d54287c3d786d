"""Certificates that are checked are those that handshakes work with: each kind of key and chain, by the check of the
configuration, by the proxy that loads it, and by a client that OpenSSL is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from OpenSSL import SSL

from dataplane.tls.contexts import accepting, load, server_context
from dataplane.tls.settings import BadSettings, Identity, TlsSettings
from gatewright.api.checks.certificates import pair_problem
from gatewright.presenting import CURVES

Made = Callable[[Path], tuple[bytes, bytes]]


def run(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder, timeout=60)


def self_signed(*key: str) -> Made:
    """`key`: words that make its key."""

    def made(folder: Path) -> tuple[bytes, bytes]:
        run(folder, "genpkey", *key, "-out", "key")
        run(folder, "req", "-x509", "-new", "-key", "key", "-out", "crt", "-days", "90", "-subj", "/CN=a.example")
        return (folder / "crt").read_bytes(), (folder / "key").read_bytes()

    return made


def chained(bits: int) -> Made:
    """Signed by somebody with an RSA key of so many bits, whose certificate is beside it."""

    def made(folder: Path) -> tuple[bytes, bytes]:
        above, own = ("-newkey", f"rsa:{bits}", "-nodes", "-keyout", "ca.key"), ("-newkey", "rsa:2048", "-nodes")
        run(folder, "req", "-x509", *above, "-out", "ca", "-subj", "/CN=ca", "-days", "90")
        run(folder, "req", "-new", *own, "-keyout", "key", "-out", "asked", "-subj", "/CN=a.example")
        run(folder, "x509", "-req", "-in", "asked", "-CA", "ca", "-CAkey", "ca.key", "-days", "90", "-out", "crt")
        return (folder / "crt").read_bytes() + (folder / "ca").read_bytes(), (folder / "key").read_bytes()

    return made


def on(curve: str) -> Made:
    return self_signed("-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{curve}")


RSA_KEY = ("-pkeyopt", "rsa_keygen_bits:2048")
KINDS: dict[str, tuple[Made, str]] = {
    # Who makes it, and what is wrong with it.
    "RSA": (self_signed("-algorithm", "RSA", *RSA_KEY), ""),
    "P-256": (on("prime256v1"), ""),
    "P-384": (on("secp384r1"), ""),
    "P-521": (on("secp521r1"), ""),
    "brainpool": (on("brainpoolP256r1"), ""),
    "Ed25519": (self_signed("-algorithm", "ED25519"), ""),
    "Ed448": (self_signed("-algorithm", "ED448"), ""),
    "a chain": (chained(2048), ""),
    "RSA-PSS": (self_signed("-algorithm", "RSA-PSS", *RSA_KEY), "is for RSA-PSS alone"),
    "RSA-PSS of one digest": (
        self_signed("-algorithm", "RSA-PSS", *RSA_KEY, "-pkeyopt", "rsa_pss_keygen_md:sha256"),
        "is for RSA-PSS alone",
    ),
    "secp256k1": (on("secp256k1"), "has a key of the curve secp256k1"),
    "P-224": (on("secp224r1"), "has a key of the curve secp224r1"),
    "P-192": (on("prime192v1"), "has a key of the curve secp192r1"),
    "a weak authority": (chained(1024), "cannot be used: ca key too small"),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_accepted_is_what_a_handshake_works_with(name: str, tmp_path: Path) -> None:
    make, wrong = KINDS[name]
    chain, key = make(tmp_path)
    problem = pair_problem(chain, key)
    if wrong:
        assert problem is not None and problem.entry == "tls.crt" and problem.text.startswith(wrong)
        with pytest.raises(BadSettings, match=wrong):
            load(Identity(chain, key))
        return
    assert problem is None
    assert shakes(server_context(TlsSettings(), [load(Identity(chain, key))]))


@pytest.mark.parametrize("curve", ["secp256k1", "secp224r1", *(each for each in sorted(CURVES) if "brain" not in each)])
def test_a_curve_is_taken_where_openssl_shakes_hands_with_it(curve: str, tmp_path: Path) -> None:
    """Without our check: what OpenSSL makes of such a key itself."""
    name = "prime256v1" if curve == "secp256r1" else curve
    chain, _ = on(name)(tmp_path)
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.use_certificate_file(str(tmp_path / "crt"))
    context.use_privatekey_file(str(tmp_path / "key"))
    assert chain and shakes(context) == (curve in CURVES)


def shakes(server: SSL.Context) -> bool:
    """Whether a client that believes anybody gets through."""
    near, far = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD), None), accepting(server)
    near.set_connect_state()
    done = set()
    for _ in range(4):
        for side, other in ((near, far), (far, near)):
            try:
                side.do_handshake()
                done.add(side)
            except SSL.WantReadError:
                pass
            except SSL.Error:
                return False
            try:
                other.bio_write(side.bio_read(65_536))
            except SSL.WantReadError:
                continue
    return len(done) == 2
