"""Certificates for tests: authorities that sign, for any names, with any kind of key, in chains, with revocation lists.

authority = Authority()
server = authority.issue("shop.example", "*.shop.example")
server.chain, server.key  # PEM
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

RSA, EC, ED25519, HUGE = "RSA", "EC", "Ed25519", "RSA of 14,112 bits"


@dataclass(frozen=True)
class Issued:
    chain: bytes
    """PEM: the certificate, then what is between it and the root."""
    key: bytes
    certificate: x509.Certificate

    @property
    def entries(self) -> dict[str, bytes]:
        """As a Secret has them."""
        return {"tls.crt": self.chain, "tls.key": self.key}


@cache
def _rsa(number: int) -> Any:
    return rsa.generate_private_key(65537, 2048)


def _huge() -> Any:
    """Of two primes that everybody knows (Mersenne's), because looking for such large ones takes minutes."""
    p, q = 2**9689 - 1, 2**4423 - 1
    d = pow(65537, -1, (p - 1) * (q - 1))
    numbers = rsa.RSAPrivateNumbers(
        p=p,
        q=q,
        d=d,
        dmp1=d % (p - 1),
        dmq1=d % (q - 1),
        iqmp=pow(q, -1, p),
        public_numbers=rsa.RSAPublicNumbers(65537, p * q),
    )
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def new_key(kind: str, number: int = 0) -> Any:
    """`number`: which of the RSA keys, which take long to make and are kept."""
    if kind == RSA:
        return _rsa(number)
    if kind == HUGE:
        return _huge()
    return ec.generate_private_key(ec.SECP256R1()) if kind == EC else ed25519.Ed25519PrivateKey.generate()


def pem_of(key: Any) -> bytes:
    written: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return written


class Authority:
    """Signs certificates; itself signed by `parent`, or by itself."""

    def __init__(self, name: str = "Test Root", parent: Authority | None = None) -> None:
        self.parent = parent
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer = parent or self
        builder = _builder(self.name, signer.name, self.key.public_key(), 365)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        self.certificate = builder.add_extension(usage, critical=True).sign(signer.key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(
        self,
        *names: str,
        kind: str = EC,
        days: float = 30,
        common_name: str = "",
        client: bool = False,
        number: int = 0,
        uris: tuple[str, ...] = (),
        age: float = 400,
    ) -> Issued:
        """`age`: days since it is valid, `days`: until it is not."""
        key = new_key(kind, number)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name or next(iter(names), "client"))])
        builder = _builder(subject, self.name, key.public_key(), days, age)
        alternatives = [*map(_name, names), *map(x509.UniformResourceIdentifier, uris)]
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        chain, above = [certificate], self
        while above.parent is not None:
            chain.append(above.certificate)
            above = above.parent
        return Issued(b"".join(each.public_bytes(Encoding.PEM) for each in chain), pem_of(key), certificate)

    def revoke(self, *issued: Issued) -> bytes:
        """A revocation list as PEM."""
        now = datetime.now(UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.name)
        builder = builder.last_update(now - timedelta(days=1)).next_update(now + timedelta(days=1))
        for each in issued:
            entry = x509.RevokedCertificateBuilder().serial_number(each.certificate.serial_number)
            builder = builder.add_revoked_certificate(entry.revocation_date(now - timedelta(hours=1)).build())
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _builder(subject: x509.Name, issuer: x509.Name, key: Any, days: float, age: float = 400) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(days=age)).not_valid_after(now + timedelta(days=days))


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
