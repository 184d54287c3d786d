"""How the agent reaches its control plane: plain over a Unix socket, else TLS, with a token or a certificate.

Called by `xds_client` at each try, which reads the files anew: a token or certificate that was replaced acts from the
next stream on. Nothing of a file's content is in an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import grpc

from dataplane.settings import Address, XdsAccess
from gatewright import files, invisible

TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""RFC 6750, 2.1."""

MOST: Final = 1024 * 1024
"""Bytes of a token, a certificate, a key or the authorities of a controller."""

Option = tuple[str, str | int]


class Unusable(Exception):
    """A file cannot be used; the text names it."""


def channel(address: Address, access: XdsAccess, options: Sequence[Option]) -> grpc.aio.Channel:
    """A channel of its own. Raises Unusable."""
    if not access.tls:
        return grpc.aio.insecure_channel(target_of(address), options)
    credentials = grpc.ssl_channel_credentials(_read(access.ca_file), _read(access.key_file), _read(access.cert_file))
    if access.server_name:
        options = (*options, ("grpc.ssl_target_name_override", access.server_name))
    return grpc.aio.secure_channel(target_of(address), credentials, options)


def metadata(access: XdsAccess) -> dict[str, Any]:
    """Arguments of a call: the token, if there is one. Raises Unusable."""
    if access.token_file is None:
        return {}
    return {"metadata": (("authorization", f"Bearer {token_in(access.token_file)}"),)}


def token_in(file: Path) -> str:
    """The first word of the first line that has one: a line of the controller's file will do, too."""
    text = invisible.without_mark(_read(file) or b"").decode("utf-8", "replace")
    words = (line.partition("#")[0].split() for line in text.splitlines())
    token = next((first for first, *_ in filter(None, words)), "")
    if not TOKEN.fullmatch(token):
        raise Unusable(f"{file} holds no token: letters, digits and -._~+/ on a line")
    return token


def _read(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        return files.read(file, MOST)
    except OSError as error:
        raise Unusable(f"{file} cannot be read: {error.strerror or 'error'}") from None


def target_of(address: Address) -> str:
    """An address as gRPC writes it."""
    return f"unix:{address.path}" if address.path else f"dns:///{address}"
