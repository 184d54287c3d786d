"""Chains of certificates that take long to check, of clients whose certificate need not be valid."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from OpenSSL import SSL

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


def client(key: Any) -> SSL.Connection:
    """One whose chain is of this key, but for its own certificate; the last one has signed itself."""
    own, now = new_key(EC), datetime.now(UTC)
    names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"c{number}")]) for number in range(LONG)]
    context = client_context(DEFAULT, NOT_ASKED)
    for number, name in enumerate(names):
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(names[min(number + 1, LONG - 1)])
        builder = builder.public_key(key.public_key() if number else own.public_key()).serial_number(number + 1)
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
