"""Chains of certificates that take long to check, of clients whose certificate need not be valid."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL, crypto

from dataplane.tls import contexts
from dataplane.tls.binding import UNPROVEN
from dataplane.tls.contexts import MAX_DEPTH, accepting, client_context, connecting, load, server_context
from dataplane.tls.settings import DEFAULT, NOT_ASKED, Asks, Identity, Verification
from tests.fakes.certificates import EC, HUGE, RSA, Authority, new_key

AUTHORITY = Authority()
ISSUED = AUTHORITY.issue("shop.example")
SERVER = server_context(
    DEFAULT, [load(Identity(ISSUED.chain, ISSUED.key))], Verification(Asks.PERHAPS, (AUTHORITY.pem.decode(),))
)
LONG = 11
"""Certificates, as many as OpenSSL looks at."""


def client(key: Any, holds: Any = None) -> SSL.Connection:
    """One whose chain is of this key, but for its own certificate; the last one has signed itself. `holds`: the public
    key that those of the chain show in place of that of `key`, which has signed them all the same."""
    own, now, holds = new_key(EC), datetime.now(UTC), holds or key.public_key()
    names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"c{number}")]) for number in range(LONG)]
    context = client_context(DEFAULT, NOT_ASKED)
    for number, name in enumerate(names):
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(names[min(number + 1, LONG - 1)])
        builder = builder.public_key(holds if number else own.public_key()).serial_number(number + 1)
        builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(ca=number > 0, path_length=None), critical=True)
        made = builder.sign(key, hashes.SHA256())
        if number:
            context.add_extra_chain_cert(made)
        else:
            context.use_certificate(made)
    context.use_privatekey(own)
    return connecting(context)


def shake_hands(near: SSL.Connection, server: SSL.Context = SERVER) -> tuple[SSL.Connection, float]:
    """The server's side, and the longest that it computed at a time. Raises as OpenSSL does on that side."""
    far, longest = accepting(server), 0.0
    for _ in range(3):
        for side, other in ((near, far), (far, near)):
            began = time.thread_time()
            try:
                side.do_handshake()
            except SSL.WantReadError:
                pass
            finally:
                longest = max(longest, time.thread_time() - began) if side is far else longest
            try:
                other.bio_write(side.bio_read(65_536))
            except SSL.WantReadError:
                continue
    return far, longest


def test_one_with_large_keys_is_refused_before_a_signature_is_checked() -> None:
    near = client(new_key(HUGE))
    began = time.thread_time()
    with pytest.raises(SSL.Error, match="certificate verify failed"):
        shake_hands(near)
    assert time.thread_time() - began < 0.04


def test_one_with_keys_that_others_have_is_served_without_an_identity() -> None:
    far, longest = shake_hands(client(new_key(RSA)))
    assert far.get_app_data() == UNPROVEN and far.get_peer_certificate() is not None
    assert longest < 0.04


def rsa_of(bits: int) -> tuple[Any, Any]:
    """A key that signs, and the public one of so many bits in its place."""
    return new_key(RSA), rsa.RSAPublicNumbers(65537, 2**bits - 1).public_key()


def dsa_of(bits: int) -> tuple[Any, Any]:
    p, g, x = 2**bits - 1, 2, 5
    public = dsa.DSAPublicNumbers(pow(g, x, p), dsa.DSAParameterNumbers(p, 2**256 - 189, g))
    key = dsa.DSAPrivateNumbers(x, public).private_key()
    return key, key.public_key()


@pytest.mark.parametrize(
    ("keys", "is_served"),
    [(rsa_of(8192), True), (rsa_of(8200), False), (dsa_of(3072), True), (dsa_of(4096), False)],
    ids=["RSA 8192", "RSA 8200", "DSA 3072", "DSA 4096"],
)
def test_how_large_a_key_of_a_chain_may_be(keys: tuple[Any, Any], is_served: bool) -> None:
    near = client(*keys)
    if is_served:
        far, _ = shake_hands(near)
        assert far.get_app_data() == UNPROVEN and far.get_peer_certificate() is not None
    else:
        with pytest.raises(SSL.Error, match="certificate verify failed"):
            shake_hands(near)


def test_one_with_a_key_that_nobody_can_read_is_refused() -> None:
    """OpenSSL takes the certificate, and says only when it is asked for the key that it does not know its curve."""
    issued = AUTHORITY.issue("cart.example", client=True)
    curve = bytes.fromhex("2a8648ce3d030107")
    der = issued.certificate.public_bytes(Encoding.DER)
    unknown = crypto.load_certificate(crypto.FILETYPE_ASN1, der.replace(curve, curve[:-1] + b"\x7f"))
    assert contexts.any_certificate(accepting(SERVER), crypto.X509.from_cryptography(issued.certificate), 0, 1, 1)
    assert not contexts.any_certificate(accepting(SERVER), unknown, 0, 1, 1)


@pytest.mark.parametrize(("between", "is_valid"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_so_many_certificates_stand_between_a_client_and_its_authority(between: int, is_valid: bool) -> None:
    signer = AUTHORITY
    for number in range(between):
        signer = Authority(f"between {number}", signer)
    issued = signer.issue("cart.example", client=True)
    identity = load(Identity(issued.chain, issued.key))
    strict = Verification(Asks.VALID, (AUTHORITY.pem.decode(),))
    server = server_context(DEFAULT, [load(Identity(ISSUED.chain, ISSUED.key))], strict)
    near = connecting(client_context(DEFAULT, NOT_ASKED, identity))
    if is_valid:
        far, _ = shake_hands(near, server)
        assert far.get_peer_certificate() is not None
    else:
        with pytest.raises(SSL.Error, match="certificate verify failed"):
            shake_hands(near, server)
