"""The server's certificate, its key and the authority of client certificates: files, read again when they change.

gRPC asks for them at each handshake, in threads of its own. Files that do not fit together, as in the middle of a
replacement, leave what was there in force; the log says so once.
"""

from __future__ import annotations

import logging
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc

from controlplane.xds.trust.tokens import CredentialError
from gatewright import files as regular

LOG: Final = logging.getLogger(__name__)

MOST: Final = 1024 * 1024
"""Bytes of one file."""


@dataclass(frozen=True, slots=True)
class Files:
    """PEM files: the certificate with those between it and its authority, its key, and, for mutual TLS, the
    certificates of the authorities of proxies."""

    certificate: Path
    key: Path
    client_authority: Path | None = None


class Certificates:
    """What a TLS listener shows and wants."""

    def __init__(self, files: Files) -> None:
        """Reads the files. Raises CredentialError."""
        self.files = files
        self._seen: object = _signatures(files)
        self._complaint = ""
        self._first = _read(files)

    @property
    def wants_client_certificate(self) -> bool:
        return self.files.client_authority is not None

    def credentials(self) -> Any:  # Any: grpc is not typed
        """For `add_secure_port`."""
        return grpc.dynamic_ssl_server_credentials(
            self._first, self._fetch, require_client_authentication=self.wants_client_certificate
        )

    def _fetch(self) -> Any:  # Any: grpc is not typed
        """The configuration of the next handshakes; None: as before."""
        seen = _signatures(self.files)
        if seen == self._seen:
            return None
        try:
            made = _read(self.files)
        except CredentialError as error:
            if str(error) != self._complaint:
                LOG.error("the certificate from before stays in force: %s", error)
            self._complaint = str(error)
            return None
        self._seen, self._complaint = seen, ""
        LOG.info("certificate and key were read again: %s", self.files.certificate)
        return made


def _read(files: Files) -> Any:  # Any: grpc is not typed
    """The configuration that gRPC takes. Raises CredentialError."""
    try:
        pair = regular.read(files.key, MOST), regular.read(files.certificate, MOST)  # before a library waits for a pipe
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key, password="")
    except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
        raise CredentialError(_why(error, "certificate and key", files.certificate, files.key)) from None
    authority = None
    if files.client_authority is not None:
        try:
            authority = regular.read(files.client_authority, MOST)
            ssl.create_default_context(cadata=authority.decode("ascii"))
        except (OSError, ValueError) as error:
            raise CredentialError(_why(error, "the authority of proxies", files.client_authority)) from None
    return grpc.ssl_server_certificate_configuration([pair], authority)


def _why(error: OSError | ValueError, what: str, *paths: Path) -> str:
    named = " and ".join(map(str, paths))
    if isinstance(error, ssl.SSLError) or not isinstance(error, OSError):
        return f"{what} ({named}) are not usable PEM files that belong together"
    return f"{what} ({named}) cannot be read: {error.strerror or 'error'}"


def _signatures(files: Files) -> tuple[object, ...]:
    """Change when one of the files is replaced or written."""
    return tuple(map(_signature, (files.certificate, files.key, files.client_authority)))


def _signature(file: Path | None) -> object:
    try:
        found = os.stat(file) if file is not None else None
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)
