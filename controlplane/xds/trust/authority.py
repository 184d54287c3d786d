"""The authority behind the xDS address of a cluster's controllers: what its Secret holds, when it is replaced, and the
certificates that each controller issues to itself. Pure but for the random numbers of keys.

The laws:

1. *Who trusts comes first.* A new authority is in `bundle` for `SPREAD` before anything is signed with it, so that
   every proxy has it when it meets it. The one before stays there until it expires.
2. *No proxy loses a stream.* A certificate is looked at when a connection begins; what is replaced meanwhile concerns
   the next one.
3. *All controllers sign with the same authority*, and with keys of their own that never leave them.
4. *A Secret that cannot be read is never written over*: it may be somebody's, and proxies trust what it held.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BUNDLE: Final = "ca.crt"
"""Entry of the Secret: the certificates that proxies trust; first the one that signs."""
KEY: Final = "ca.key"
NEXT_KEY: Final = "next.key"
"""While an authority waits for its turn: the key of the last certificate of the bundle."""

LIFETIME: Final = dt.timedelta(days=365)
RENEW: Final = dt.timedelta(days=120)
"""What the signing authority has left when its successor is made."""
SPREAD: Final = dt.timedelta(days=1)
"""From the making of an authority to its first signature. A kubelet takes up to two minutes to bring it to a pod."""
SKEW: Final = dt.timedelta(hours=1)
"""By which a clock may be behind."""
OF_A_CONTROLLER: Final = dt.timedelta(days=2)
"""Lifetime of a controller's own certificate; it is replaced in the middle of it."""

CONTROLLER: Final = "controllers.gatewright.internal"
"""The name by which controllers know each other's certificates, beside those of the Service."""


class UnusableAuthority(Exception):
    """The Secret holds something else than an authority; the text says what is wrong, and nothing of what is in it."""


@dataclass(frozen=True, slots=True)
class Authority:
    """What the Secret holds."""

    certificates: tuple[x509.Certificate, ...]
    """First the one that signs; behind it those before it that have not expired, and the next one."""
    key: ec.EllipticCurvePrivateKey = field(repr=False)
    next_key: ec.EllipticCurvePrivateKey | None = field(default=None, repr=False)

    @property
    def signing(self) -> x509.Certificate:
        return self.certificates[0]

    @property
    def bundle(self) -> bytes:
        """What proxies trust, as PEM."""
        return b"".join(map(_pem, self.certificates))


@dataclass(frozen=True, slots=True)
class Identity:
    """A controller's certificate and its key, as PEM, from an authority."""

    certificate: bytes
    key: bytes = field(repr=False)
    bundle: bytes
    signed_by: bytes
    """Fingerprint of the authority."""
    renew_at: dt.datetime


def read(data: Mapping[str, bytes]) -> Authority:
    """Raises UnusableAuthority."""
    certificates = _certificates(data)
    key, following = _key(data, KEY), _key(data, NEXT_KEY) if data.get(NEXT_KEY) else None
    if not _belong(key, certificates[0]):
        raise UnusableAuthority(f"{KEY} is not the key of the first certificate of {BUNDLE}")
    if following is not None and not _belong(following, certificates[-1]):
        raise UnusableAuthority(f"{NEXT_KEY} is not the key of the last certificate of {BUNDLE}")
    return Authority(certificates, key, following)


def written(authority: Authority) -> dict[str, bytes]:
    """The inverse of `read`."""
    found = {BUNDLE: authority.bundle, KEY: _key_pem(authority.key)}
    return found if authority.next_key is None else found | {NEXT_KEY: _key_pem(authority.next_key)}


def created(now: dt.datetime) -> Authority:
    """The first one: there is no proxy yet that has to trust it before it signs."""
    certificate, key = _made(now)
    return Authority((certificate,), key)


def rotated(authority: Authority, now: dt.datetime) -> Authority:
    """What the Secret should hold now; the same object when nothing has to change."""
    certificates = authority.certificates
    if authority.next_key is not None:
        *others, following = certificates
        if now < following.not_valid_before_utc + SKEW + SPREAD and now < authority.signing.not_valid_after_utc:
            return authority
        return Authority((following, *_alive(others, now)), authority.next_key)
    if authority.signing.not_valid_after_utc - now < RENEW:
        certificate, key = _made(now)
        return Authority((*certificates, certificate), authority.key, key)
    alive = (authority.signing, *_alive(certificates[1:], now))
    return authority if len(alive) == len(certificates) else Authority(alive, authority.key)


def issued(authority: Authority, names: Sequence[str], now: dt.datetime) -> Identity:
    """A controller's own certificate, for its listeners and for calls to other controllers."""
    key = ec.generate_private_key(ec.SECP256R1())
    ends = min(now + OF_A_CONTROLLER, authority.signing.not_valid_after_utc)
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in (*names, CONTROLLER)])
    made = (
        _builder("gatewright controller", authority.signing.subject, key.public_key(), now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(alternatives, critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(_signed_by(authority.signing), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    signed_by = authority.signing.fingerprint(hashes.SHA256())
    return Identity(_pem(made), _key_pem(key), authority.bundle, signed_by, now + (ends - now) / 2)


def is_current(identity: Identity, authority: Authority, now: dt.datetime) -> bool:
    """Whether a controller may go on with its certificate."""
    is_same = identity.signed_by == authority.signing.fingerprint(hashes.SHA256())
    return is_same and identity.bundle == authority.bundle and now < identity.renew_at


def _made(now: dt.datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    # Each has a name of its own: a chain is built by names, and two authorities are trusted at a time.
    common = f"gatewright xds {now:%Y-%m-%d} {x509.random_serial_number() % 16**8:08x}"
    subject = _name(common)
    usage = x509.KeyUsage(
        key_cert_sign=True, crl_sign=True, digital_signature=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        _builder(common, subject, key.public_key(), now, now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate, key


def _builder(
    common: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: dt.datetime, ends: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(common))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(ends)
    )


def _signed_by(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alive(certificates: Sequence[x509.Certificate], now: dt.datetime) -> tuple[x509.Certificate, ...]:
    return tuple(each for each in certificates if now < each.not_valid_after_utc)


def _certificates(data: Mapping[str, bytes]) -> tuple[x509.Certificate, ...]:
    try:
        found = tuple(x509.load_pem_x509_certificates(data.get(BUNDLE, b"")))
    except ValueError:
        raise UnusableAuthority(f"{BUNDLE} holds no certificates") from None
    if not all(map(_is_authority, found)):
        raise UnusableAuthority(f"{BUNDLE} holds a certificate that is no authority made by gatewright")
    return found


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _key(data: Mapping[str, bytes], entry: str) -> ec.EllipticCurvePrivateKey:
    try:
        found = serialization.load_pem_private_key(data.get(entry, b""), None)
    except (ValueError, TypeError):
        raise UnusableAuthority(f"{entry} holds no private key") from None
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise UnusableAuthority(f"{entry} is no key of an elliptic curve")
    return found


def _belong(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> bool:
    return certificate.public_key() == key.public_key()


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
