"""The few functions of OpenSSL that pyOpenSSL has in its binding and does not offer, each wrapped once, with types; and
`Records`, which reads and writes what flows on an open connection without an allocation or an exception for each call.

`lacks` says what of them is missing in the library that is installed; tests ask it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from OpenSSL import SSL

_binding: Any = SSL._lib  # type: ignore[attr-defined]  # functions of C: nobody has written down their types
_memory: Any = SSL._ffi  # type: ignore[attr-defined]

PLAIN: Final = 16_384
"""Plaintext that one record has at most (RFC 8446 5.1)."""
TAKEN: Final = 65_536
"""Bytes that are taken at a time of what OpenSSL has written."""
_WANT_READ: Final = _binding.SSL_ERROR_WANT_READ

_NAMES = (
    "SSL_CTX_set1_curves_list",
    "SSL_session_reused",
    "SSL_get0_group_name",
    "SSL_CTX_use_certificate_chain_file",
    "SSL_CTX_set_alpn_select_cb",
    "SSL_get0_alpn_selected",
    "SSL_do_handshake",
)


def lacks() -> list[str]:
    """Names of functions that the installed library does not have."""
    return [name for name in _NAMES if not hasattr(_binding, name)]


class Records:
    """What a connection without a socket reads and writes.

    pyOpenSSL allocates a buffer for each call, and says with an exception that there is no more: a request and its
    answer take four of them, which costs more than to decrypt and encrypt both. Here calls share one buffer (a process
    has one loop, and nothing stays there), and no more is None, or nothing. Errors are raised by pyOpenSSL, as ever.
    """

    __slots__ = ("_connection", "_from_ssl", "_into_ssl", "_ssl")

    def __init__(self, connection: SSL.Connection) -> None:
        self._connection: Any = connection
        self._ssl: Any = connection._ssl
        self._into_ssl: Any = connection._into_ssl
        self._from_ssl: Any = connection._from_ssl

    def shake(self) -> bool:
        """Go on with the handshake; whether it is done. False: more has to come. Raises `SSL.Error`, and what a
        callback of the context raised."""
        result = _binding.SSL_do_handshake(self._ssl)
        if result != 1 and _binding.SSL_get_error(self._ssl, result) == _WANT_READ:
            return False
        self._connection._raise_ssl_error(self._ssl, result)
        return True

    def agreed(self) -> tuple[str, str, str, bytes]:
        """Version, cipher suite, group and protocol (ALPN) of a handshake that is done; "" and b"" for none."""
        ssl = self._ssl
        cipher = _binding.SSL_CIPHER_get_name(_binding.SSL_get_current_cipher(ssl))
        _binding.SSL_get0_alpn_selected(ssl, _protocol, _length)
        protocol = _memory.buffer(_protocol[0], _length[0])[:] if _length[0] else b""
        return _text(_binding.SSL_get_version(ssl)), _text(cipher), _text(_binding.SSL_get0_group_name(ssl)), protocol

    def feed(self, data: bytes) -> None:
        """What came from the peer. The memory takes all of it."""
        _binding.BIO_write(self._into_ssl, data, len(data))

    def read(self) -> bytes | None:
        """The content of a record, None when no whole one is here. Raises `SSL.Error`; `SSL.ZeroReturnError` at the
        end."""
        count = _binding.SSL_read(self._ssl, _buffer, PLAIN)
        if count > 0:
            return _memory.buffer(_buffer, count)[:]  # type: ignore[no-any-return]
        if _binding.SSL_get_error(self._ssl, count) != _WANT_READ:
            self._connection._raise_ssl_error(self._ssl, count)
        return None

    def has_more(self) -> bool:
        """Whether bytes came of another record."""
        return bool(_binding.BIO_get_mem_data(self._into_ssl, _start) > 0)

    def seal(self, data: bytes) -> bytes:
        """Encrypt, and `take`. Raises `SSL.Error`."""
        count = _binding.SSL_write(self._ssl, data, len(data))
        if count <= 0:
            self._connection._raise_ssl_error(self._ssl, count)
        return self.take()

    def take(self) -> bytes:
        """What is to be sent, `TAKEN` bytes at most; empty when there is nothing."""
        count = _binding.BIO_read(self._from_ssl, _buffer, TAKEN)
        return _memory.buffer(_buffer, count)[:] if count > 0 else b""


_start: Any = _memory.new("char *[1]")
"""Where `BIO_get_mem_data` says where the bytes are; nobody asks."""
_buffer: Any = _memory.new("char[]", TAKEN)
_protocol: Any = _memory.new("unsigned char **")
_length: Any = _memory.new("unsigned int *")


def _text(words: Any) -> str:
    """Of OpenSSL's own; "" where it has none."""
    return _memory.string(words).decode() if words else ""


def set_groups(context: SSL.Context, names: Sequence[str]) -> bool:
    """Allow exactly these groups, in this order; False: OpenSSL does not know one of them."""
    found: int = _binding.SSL_CTX_set1_curves_list(context._context, ":".join(names).encode())
    if found != 1:
        _binding.ERR_clear_error()
    return found == 1


def choose_protocol(context: SSL.Context, ours: Sequence[bytes]) -> None:
    """Of the protocols that a client offers (ALPN) choose the first of ours; without one the handshake fails (RFC 7301
    3.2).

    pyOpenSSL finds its object of the connection first, and makes memory for each answer; here answers are made once.
    """
    answers = [(name, _memory.new("unsigned char[]", name)) for name in ours]

    def choose(_ssl: Any, chosen: Any, length: Any, offered: Any, size: int, _more: Any) -> int:
        names = _names(_memory.buffer(offered, size)[:])
        for name, answer in answers:
            if name in names:
                chosen[0], length[0] = answer, len(name)
                return _CHOSEN
        return _NONE_IN_COMMON

    callback = _memory.callback(_CHOICE, choose, error=_NONE_IN_COMMON)
    kept: Any = context
    kept._alpn_select_callback = callback  # where pyOpenSSL keeps its own: it lives as long as the context
    _binding.SSL_CTX_set_alpn_select_cb(context._context, callback, _memory.NULL)


_CHOICE: Final = "int(SSL *, unsigned char **, unsigned char *, const unsigned char *, unsigned int, void *)"
_CHOSEN: Final[int] = _binding.SSL_TLSEXT_ERR_OK
_NONE_IN_COMMON: Final[int] = _binding.SSL_TLSEXT_ERR_ALERT_FATAL


def _names(offered: bytes) -> list[bytes]:
    """Each behind its length; OpenSSL has checked that they are."""
    names, at = [], 0
    while at < len(offered):
        start, at = at + 1, at + 1 + offered[at]
        names.append(offered[start:at])
    return names


def is_resumed(connection: SSL.Connection) -> bool:
    """Whether the handshake took up a session of an earlier one."""
    found: int = _binding.SSL_session_reused(connection._ssl)
    return found == 1


def use_chain(context: SSL.Context, chain: bytes) -> None:
    """Present this certificate and its chain (PEM, the certificate first), beside those of other kinds of keys.

    pyOpenSSL has one chain for all certificates of a context; of a file OpenSSL takes one for each. Raises `SSL.Error`.
    """
    with _as_file(chain) as path:
        context.use_certificate_chain_file(path)


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A file in memory, where the system has such; certificates are public."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("chain", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
