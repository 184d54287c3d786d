"""The certificate that the controller shows to proxies: read again when its files change, never left half changed."""

from __future__ import annotations

import datetime
import logging
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from controlplane.xds.trust.certificates import Certificates, Files
from controlplane.xds.trust.tokens import CredentialError


def pair(name: str) -> tuple[bytes, bytes]:
    """A certificate that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(begin).not_valid_after(begin + datetime.timedelta(days=3650))
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), text


ONE, TWO = pair("one.test"), pair("two.test")


def files_in(folder: Path) -> Files:
    """A pair, and an authority of clients."""
    made = Files(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
    put(made, ONE)
    (folder / "ca.crt").write_bytes(ONE[0])
    return made


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return files_in(tmp_path)


def put(files: Files, new: tuple[bytes, bytes]) -> None:
    """Replaced, as a mounted Secret is."""
    for file, content in zip((files.certificate, files.key), new, strict=True):
        other = file.with_suffix(".new")
        other.write_bytes(content)
        other.replace(file)


class Server:
    """What gRPC would be given: the first configuration, and what each handshake is answered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, files: Files) -> None:
        monkeypatch.setattr(grpc, "ssl_server_certificate_configuration", lambda pairs, authority: (pairs, authority))
        monkeypatch.setattr(grpc, "dynamic_ssl_server_credentials", self._take)
        Certificates(files).credentials()

    def _take(self, first: Any, fetch: Any, require_client_authentication: bool) -> None:
        self.first, self.handshake, self.is_mutual = first, fetch, require_client_authentication


def test_files_that_were_replaced_count_from_the_next_handshake(
    monkeypatch: pytest.MonkeyPatch, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = Server(monkeypatch, files)
    assert (server.first, server.is_mutual) == (([ONE[::-1]], ONE[0]), True)
    assert server.handshake() is None, "as before"
    put(files, TWO)
    assert server.handshake() == ([TWO[::-1]], ONE[0])
    assert server.handshake() is None
    assert [each.getMessage() for each in caplog.records] == [
        f"certificate and key were read again: {files.certificate}"
    ]


def test_half_a_replacement_leaves_what_was_there_and_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(monkeypatch, files)
    files.certificate.write_bytes(TWO[0])
    assert [server.handshake(), server.handshake()] == [None, None]
    reason = f"certificate and key ({files.certificate} and {files.key}) are not usable PEM files that belong together"
    assert [each.getMessage() for each in caplog.records] == [f"the certificate from before stays in force: {reason}"]
    files.key.write_bytes(TWO[1])
    assert server.handshake() == ([TWO[::-1]], ONE[0])
    caplog.clear()
    files.key.unlink()
    assert server.handshake() is None
    assert [each.levelname for each in caplog.records] == ["ERROR"], "a new trouble is logged again"
    put(files, TWO)
    assert server.handshake() == ([TWO[::-1]], ONE[0])


def test_without_an_authority_proxies_need_no_certificate(monkeypatch: pytest.MonkeyPatch, files: Files) -> None:
    server = Server(monkeypatch, Files(files.certificate, files.key))
    assert (server.first, server.is_mutual) == (([ONE[::-1]], None), False)
    assert server.handshake() is None


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("tls.crt", None, "certificate and key ({crt} and {key}) cannot be read: No such file or directory"),
        ("tls.key", b"x", "certificate and key ({crt} and {key}) are not usable PEM files that belong together"),
        ("tls.key", TWO[1], "certificate and key ({crt} and {key}) are not usable PEM files that belong together"),
        ("ca.crt", None, "the authority of proxies ({ca}) cannot be read: No such file or directory"),
        ("ca.crt", b"x", "the authority of proxies ({ca}) are not usable PEM files that belong together"),
        ("ca.crt", b"\xff", "the authority of proxies ({ca}) are not usable PEM files that belong together"),
    ],
)
def test_files_that_cannot_be_used_are_named_with_the_reason(
    files: Files, name: str, content: bytes | None, reason: str
) -> None:
    file = files.key.with_name(name)
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(CredentialError) as raised:
        Certificates(files)
    assert str(raised.value) == reason.format(crt=files.certificate, key=files.key, ca=files.client_authority)


@pytest.mark.parametrize("password", [b"hush", b"x"])
def test_a_key_with_a_password_is_refused_and_asks_nobody(files: Files, password: bytes) -> None:
    key: Any = serialization.load_pem_private_key(ONE[1], None)
    locked = serialization.BestAvailableEncryption(password)
    files.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked))
    with pytest.raises(CredentialError, match="are not usable PEM files"):
        Certificates(files)
