"""Certificates and tokens to try a fleet with: `python credentials.py FOLDER [HOST ...]`.

Makes in FOLDER, which must not exist yet:

    ca.crt          what proxies and controller trust
    controller.crt  for the hosts named on the command line (default: localhost and 127.0.0.1); controller.key
    proxy.crt       names the Gateway default/edge, for mutual TLS; proxy.key
    tokens          what the controller takes: a token for default/edge
    token           the same token, for proxies

Keys and tokens are for their owner alone (0600). The authority's own key is forgotten: for a fleet that stays, use the
authority of your organisation.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

GATEWAY = "default/edge"
GATEWAY_URI = "spiffe://example.com/ns/default/gateway/edge"
DAYS = 30

Key = ec.EllipticCurvePrivateKey


def main(arguments: Sequence[str]) -> int:
    """Makes the files; answers the exit code."""
    if not arguments or arguments[0].startswith("-"):
        sys.stderr.write("usage: python credentials.py FOLDER [HOST ...]\n")
        return 2
    folder, hosts = Path(arguments[0]), arguments[1:] or ("localhost", "127.0.0.1")
    try:
        folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        sys.stderr.write(f"{folder}: {error.strerror}; name a folder that does not exist yet\n")
        return 1
    make(folder, hosts)
    return 0


def make(folder: Path, hosts: Sequence[str]) -> None:
    """All of the files."""
    authority = ec.generate_private_key(ec.SECP256R1())
    root = _signed("fleet authority", authority, "fleet authority", authority, ())
    _write(folder / "ca.crt", root.public_bytes(serialization.Encoding.PEM))
    _pair(folder, "controller", [_host(host) for host in hosts], ExtendedKeyUsageOID.SERVER_AUTH, authority)
    _pair(folder, "proxy", [x509.UniformResourceIdentifier(GATEWAY_URI)], ExtendedKeyUsageOID.CLIENT_AUTH, authority)
    token = secrets.token_hex(32)
    _write(folder / "tokens", f"{token} {GATEWAY}\n".encode())
    _write(folder / "token", f"{token}\n".encode())


def _pair(
    folder: Path, name: str, names: Sequence[x509.GeneralName], usage: x509.ObjectIdentifier, authority: Key
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    extensions = (x509.SubjectAlternativeName(names), x509.ExtendedKeyUsage([usage]))
    certificate = _signed(name, key, "fleet authority", authority, extensions)
    _write(folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    _write(folder / f"{name}.key", key.private_bytes(serialization.Encoding.PEM, *private))


def _signed(
    subject: str, key: Key, issuer: str, authority: Key, extensions: Sequence[x509.ExtensionType]
) -> x509.Certificate:
    """A certificate; one that has no extensions of its own is that of the authority."""
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=not extensions, path_length=None), critical=True)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(authority, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
