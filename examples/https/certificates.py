"""A folder to try HTTPS with: `python certificates.py FOLDER`.

Makes in FOLDER, which must not exist yet, a copy of this example's objects and beside them

    certificates.yaml  the Secret with the Gateway's certificate, the ConfigMap with the authority of clients
    client/ca.crt      what a client trusts
    client/client.crt  a client's own certificate; client/client.key

The authority's own key is forgotten: for a Gateway that stays, use the authority of your organisation.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HERE = Path(__file__).resolve().parent
DAYS = 30
NAMES = (
    x509.DNSName("localhost"),
    x509.DNSName("shop.example.com"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
)

Key = ec.EllipticCurvePrivateKey


def main(arguments: Sequence[str]) -> int:
    """Makes the folder; answers the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python certificates.py FOLDER\n")
        return 2
    folder = Path(arguments[0])
    try:
        folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        sys.stderr.write(f"{folder}: {error.strerror}; name a folder that does not exist yet\n")
        return 1
    for file in HERE.glob("*.yaml"):
        shutil.copy(file, folder)
    make(folder)
    return 0


def make(folder: Path) -> None:
    """The certificates."""
    authority = ec.generate_private_key(ec.SECP256R1())
    root = _signed("example authority", authority, authority, ())
    server, server_key = _pair("shop.example.com", NAMES, ExtendedKeyUsageOID.SERVER_AUTH, authority)
    client, client_key = _pair("laptop", [x509.DNSName("laptop")], ExtendedKeyUsageOID.CLIENT_AUTH, authority)
    objects = (
        _object("Secret", "shop", type="kubernetes.io/tls", stringData={"tls.crt": server, "tls.key": server_key}),
        _object("ConfigMap", "clients", data={"ca.crt": root}),
    )
    _write(folder / "certificates.yaml", "---\n".join(f"{json.dumps(each, indent=2)}\n" for each in objects))
    (folder / "client").mkdir()
    for name, text in (("ca.crt", root), ("client.crt", client), ("client.key", client_key)):
        _write(folder / "client" / name, text)


def _object(kind: str, name: str, **fields: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def _pair(
    name: str, names: Sequence[x509.GeneralName], usage: x509.ObjectIdentifier, authority: Key
) -> tuple[str, str]:
    """Certificate and key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    extensions = (x509.SubjectAlternativeName(names), x509.ExtendedKeyUsage([usage]))
    form = serialization.PrivateFormat.PKCS8
    text = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return _signed(name, key, authority, extensions), text.decode()


def _signed(name: str, key: Key, authority: Key, extensions: Sequence[x509.ExtensionType]) -> str:
    """A certificate, PEM; without extensions that of the authority."""
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name("example authority"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=not extensions, path_length=None), critical=True)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _write(path: Path, text: str) -> None:
    """For the owner alone."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
