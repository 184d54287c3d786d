"""The few functions of OpenSSL that pyOpenSSL has in its binding and does not offer, each wrapped once, with types; and
`Records`, which reads and writes what flows on an open connection without an allocation or an exception for each call.

`lacks` says what of them is missing in the library that is installed; tests ask it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from OpenSSL import SSL, crypto

from dataplane.http.messages import TlsInfo
from dataplane.tls.settings import TLS_1_3

_binding: Any = SSL._lib  # type: ignore[attr-defined]  # functions of C without type annotations
_memory: Any = SSL._ffi  # type: ignore[attr-defined]

PLAIN: Final = 16_384
"""Plaintext that one record has at most (RFC 8446 5.1)."""
TAKEN: Final = 65_536
"""Bytes that are taken at a time of what OpenSSL has written."""
UNPROVEN: Final = "unproven"
"""What a connection carries (`get_app_data`) whose peer's certificate is not valid."""
_WANT_READ: Final = _binding.SSL_ERROR_WANT_READ

_NAMES = (
    "SSL_CTX_set1_curves_list",
    "SSL_session_reused",
    "SSL_CTX_set_alpn_select_cb",
    "SSL_get0_alpn_selected",
    "SSL_do_handshake",
    "SSL_set_accept_state",
    "SSL_version",
    "SSL_shutdown",
)


def lacks() -> list[str]:
    """Names of functions that the installed library does not have."""
    return [name for name in _NAMES if not hasattr(_binding, name)]


def accepted(context: SSL.Context) -> SSL.Connection:
    """The server's side of a new connection, without a socket.

    pyOpenSSL makes one that callbacks find; it notes each in a dictionary of weak references, and sets what OpenSSL has
    set already. A context without a callback of pyOpenSSL's needs neither.
    """
    made: Any = context
    has_callbacks = made._verify_helper or made._ocsp_helper or made._alpn_select_helper
    connection: Any = SSL.Connection(context, None) if has_callbacks else _Unlisted(context)
    _binding.SSL_set_accept_state(connection._ssl)
    return connection  # type: ignore[no-any-return]


class _Unlisted(SSL.Connection):
    """As pyOpenSSL makes it, attribute by attribute, but for the dictionary."""

    def __init__(self, context: SSL.Context) -> None:
        made: Any = self
        made._context = context
        made._ssl = ssl = _memory.gc(_binding.SSL_new(context._context), _binding.SSL_free)
        made._app_data = made._alpn_select_callback_args = made._socket = None
        made._verify_helper = made._verify_callback = None
        made._cookie_generate_helper = made._cookie_verify_helper = None
        made._into_ssl, made._from_ssl = into_ssl, from_ssl = _new_memory(), _new_memory()
        _binding.SSL_set_bio(ssl, into_ssl, from_ssl)  # they go with it


_KIND: Any = _binding.BIO_s_mem()


def _new_memory() -> Any:
    return _binding.BIO_new(_KIND)


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
        if result != 1 and _binding.SSL_get_error(self._ssl, result) != _WANT_READ:
            self._connection._raise_ssl_error(self._ssl, result)
        return bool(result == 1)

    def agreed(self, sni: bytes) -> TlsInfo:
        """What a handshake that is done came to, whose client asked for `sni`."""
        ssl = self._ssl
        _binding.SSL_get0_alpn_selected(ssl, _protocol, _length)
        alpn = _memory.buffer(_protocol[0], _length[0])[:] if _length[0] else b""
        info = _info(alpn, sni, _binding.SSL_session_reused(ssl))
        return self._with_certificate(info) if _binding.SSL_get_verify_mode(ssl) else info

    def _with_certificate(self, info: TlsInfo) -> TlsInfo:
        connection: SSL.Connection = self._connection
        certificate = connection.get_peer_certificate()  # not read: OpenSSL takes some that the library does not
        if certificate is None:
            return info
        content = crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate)
        return replace(info, certificate=content, is_proven=connection.get_app_data() != UNPROVEN)

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
        self.add(data)
        return self.take()

    def add(self, data: bytes) -> None:
        """Encrypt; the caller takes the records. Raises `SSL.Error`."""
        count = _binding.SSL_write(self._ssl, data, len(data))
        if count <= 0:
            self._connection._raise_ssl_error(self._ssl, count)

    def is_of_1_3(self) -> bool:
        """Of a handshake that is done."""
        return bool(_binding.SSL_version(self._ssl) == TLS_1_3)

    def end(self) -> None:
        """Say that no more will be written (close_notify). Raises `SSL.Error`."""
        result = _binding.SSL_shutdown(self._ssl)
        if result < 0:
            self._connection._raise_ssl_error(self._ssl, result)

    def take(self) -> bytes:
        """What is to be sent, `TAKEN` bytes at most; empty when there is nothing."""
        count = _binding.BIO_read(self._from_ssl, _buffer, TAKEN)
        return _memory.buffer(_buffer, count)[:] if count > 0 else b""


_start: Any = _memory.new("char *[1]")
"""Where `BIO_get_mem_data` says where the bytes are; not read."""
_buffer: Any = _memory.new("char[]", TAKEN)
_protocol: Any = _memory.new("unsigned char **")
_length: Any = _memory.new("unsigned int *")


@lru_cache(1024)
def _info(alpn: bytes, sni: bytes, resumed: int) -> TlsInfo:
    """Most handshakes come to the same."""
    return TlsInfo(alpn, sni, resumed=resumed == 1)


def set_groups(context: SSL.Context, names: Sequence[str]) -> bool:
    """Allow exactly these groups, in this order; False: OpenSSL does not know one of them."""
    found: int = _binding.SSL_CTX_set1_curves_list(context._context, ":".join(names).encode())
    if found != 1:
        _binding.ERR_clear_error()
    return found == 1


def choose_protocol(context: SSL.Context, offered: Sequence[bytes]) -> None:
    """Of the protocols that a client offers (ALPN) choose the first that is in `offered`; without one the handshake
    fails (RFC 7301 3.2).

    pyOpenSSL finds its object of the connection first, and makes memory for each answer; here answers are made once.
    """
    answers = [(name, _memory.new("unsigned char[]", name)) for name in offered]

    @lru_cache(256)  # clients offer the same few lists; `client_hello.MAX_ALPN` bounds each
    def answer_to(offered: bytes) -> tuple[Any, int] | None:
        names = _names(offered)
        return next(((answer, len(name)) for name, answer in answers if name in names), None)

    def choose(_ssl: Any, chosen: Any, length: Any, offered: Any, size: int, _more: Any) -> int:
        answer = answer_to(_memory.buffer(offered, size)[:])
        if answer is None:
            return _NONE_IN_COMMON
        chosen[0], length[0] = answer
        return _CHOSEN

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
