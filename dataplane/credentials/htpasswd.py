"""htpasswd files: users and the hashes of their passwords (Apache httpd, `htpasswd` and "Password Formats").

Used by the basic authentication filter. Checking a hash is slow on purpose; the caller of `check` decides where. bcrypt
and the system's libcrypt run outside the interpreter's lock; where there is no libcrypt, and for Apache's own MD5,
libpass does it in Python. Libraries are imported with the first hash that needs them.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from gatewright import invisible
from gatewright.turns import paced

log = logging.getLogger("dataplane.credentials")

MAX_PASSWORD: Final = 512
"""Bytes; as libcrypt's own limit."""

MAX_BCRYPT_COST: Final = 16
MAX_ROUNDS: Final = 1_000_000
"""What one check may cost: seconds, not minutes."""


class Unusable(ValueError):
    """No user of the file can be authenticated, or a hash is not of a known kind."""


@dataclass(frozen=True, slots=True)
class Hash:
    """A password's hash. `check(password, text)` holds the processor for long, unless `quick`."""

    text: bytes = field(repr=False)
    check: Callable[[bytes, bytes], bool]
    quick: bool

    def matches(self, password: bytes) -> bool:
        """Whether it is the password's. False too for a hash that looked right and that the library cannot read."""
        try:
            return self.check(password, self.text)
        except ValueError:
            return False


def read(data: bytes, where: str) -> dict[bytes, Hash]:
    """Users of a file. Lines that cannot be used are left out and numbered in the log; of one user the first line
    counts, as for httpd. Raises `Unusable` when no user is left."""
    users: dict[bytes, Hash] = {}
    for number, line in enumerate(paced(invisible.without_mark(data).splitlines()), 1):
        text = line.strip()
        if not text or text.startswith(b"#"):
            continue
        user, colon, hashed = text.partition(b":")
        try:
            made = hash_of(hashed.partition(b":")[0]) if user and colon else None
            if made is not None and (hidden := invisible.hidden(user)):
                raise Unusable(f"an invisible character in the user's name, {hidden}")
        except Unusable as error:
            log.warning("%s: line %d: %s", where, number, error)
            continue
        if made is not None:
            users.setdefault(user, made)
    if not users:
        raise Unusable("no user with a hash of a known kind (MD5, bcrypt, crypt, SHA-1)")
    return users


def hash_of(text: bytes) -> Hash:
    """A hash by its form. Raises `Unusable`."""
    for form, check, quick in _KINDS:
        match = form.fullmatch(text)
        if match is not None:
            _affordable(match.groupdict())
            return Hash(text, check, quick)
    raise Unusable("a hash of a kind that is not known; passwords in plain text are not taken")


def _affordable(costs: dict[str, Any]) -> None:
    if int(costs.get("cost") or 0) > MAX_BCRYPT_COST or int(costs.get("rounds") or 0) > MAX_ROUNDS:
        raise Unusable("a hash that takes too long to check")


def _bcrypt(password: bytes, text: bytes) -> bool:
    import bcrypt

    return bcrypt.checkpw(password[:72], text)  # what follows never counted; the library refuses to be given it


def _sha1(password: bytes, text: bytes) -> bool:
    digest = binascii.b2a_base64(hashlib.sha1(password, usedforsecurity=False).digest(), newline=False)
    return hmac.compare_digest(digest, text[len(b"{SHA}") :])


def _apache_md5(password: bytes, text: bytes) -> bool:
    from passlib.hash import apr_md5_crypt

    return bool(apr_md5_crypt.verify(password, text.decode()))


_CRYPT_DATA: Final = 256 * 1024
"""Bytes for `struct crypt_data`: 131,232 with glibc, 32,768 with libxcrypt."""


@cache
def libcrypt() -> Callable[[bytes, bytes], bytes | None] | None:
    """The system's crypt_r, or None where there is none."""
    import ctypes

    for name in ("libcrypt.so.1", "libcrypt.so.2"):
        try:
            function = ctypes.CDLL(name).crypt_r
        except (OSError, AttributeError):
            continue
        function.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)
        function.restype = ctypes.c_char_p
        return lambda password, text: function(password, text, ctypes.create_string_buffer(_CRYPT_DATA))
    return None


def _crypt(password: bytes, text: bytes) -> bool:
    function = libcrypt()
    made = None if function is None else function(password, text)
    if made is None or made.startswith(b"*"):  # there is none, or it does not know this kind
        return _crypt_in_python(password, text)
    return hmac.compare_digest(made, text)


def _crypt_in_python(password: bytes, text: bytes) -> bool:
    from passlib.context import CryptContext

    context = CryptContext(["des_crypt", "md5_crypt", "sha256_crypt", "sha512_crypt"])
    return bool(context.verify(password, text.decode()))


_B64 = rb"[./0-9A-Za-z]"

_KINDS: tuple[tuple[re.Pattern[bytes], Callable[[bytes, bytes], bool], bool], ...] = (
    (re.compile(rb"\$2[aby]\$(?P<cost>[0-9]{2})\$" + _B64 + rb"{53}"), _bcrypt, False),
    (re.compile(rb"\$apr1\$" + _B64 + rb"{1,8}\$" + _B64 + rb"{22}"), _apache_md5, False),
    (re.compile(rb"\{SHA\}[+/0-9A-Za-z]{27}="), _sha1, True),
    (re.compile(rb"\$1\$" + _B64 + rb"{1,8}\$" + _B64 + rb"{22}"), _crypt, False),
    (re.compile(rb"\$5\$(?:rounds=(?P<rounds>[0-9]{1,9})\$)?" + _B64 + rb"{0,16}\$" + _B64 + rb"{43}"), _crypt, False),
    (re.compile(rb"\$6\$(?:rounds=(?P<rounds>[0-9]{1,9})\$)?" + _B64 + rb"{0,16}\$" + _B64 + rb"{86}"), _crypt, False),
    (re.compile(_B64 + rb"{13}"), _crypt, False),  # DES, the traditional one
)


def user_and_password(credentials: bytes) -> tuple[bytes, bytes] | None:
    """RFC 7617 2: base64 of `user:password`; control characters are in neither. None: it is something else."""
    try:
        user, colon, password = binascii.a2b_base64(credentials, strict_mode=True).partition(b":")
    except binascii.Error:
        return None
    if not colon or len(credentials) % 4 or len(password) > MAX_PASSWORD or _CONTROL.search(user + password):
        return None
    return user, password


_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
