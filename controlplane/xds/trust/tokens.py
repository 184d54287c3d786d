"""Bearer tokens of proxies: a file of them, read again when it changes, and the comparison with what a proxy brings.

A line is a token (RFC 6750, 2.1: letters, digits and `-._~+/`, then `=`), and after it the Gateways that it is for, as
NAMESPACE/NAME; without any it is for all. `#` begins a comment. Several lines with tokens for the same Gateway let a
token be replaced without a moment in which neither is taken. Only digests are kept; no text of an error has a token.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from gatewright import files, invisible

LOG: Final = logging.getLogger(__name__)

SHORTEST: Final = 16
"""Characters of a token: fewer can be guessed."""

CURE: Final = (
    "a line is a token of at least 16 characters, and the Gateways (NAMESPACE/NAME) that it is for, if not all"
)

_TOKEN: Final = re.compile(rf"[A-Za-z0-9\-._~+/]{{{SHORTEST},}}=*")
_GATEWAY: Final = re.compile(r"[a-z0-9][-a-z0-9.]*/[a-z0-9][-a-z0-9.]*")

Gateways = frozenset[str] | None
"""What a credential is for: these Gateways, or with None all."""


class CredentialError(Exception):
    """A file with credentials cannot be used; the text names it and the cure, and nothing of what is in it."""


def parse(text: str) -> Mapping[bytes, Gateways]:
    """Digests of tokens with the Gateways that each is for. A token that stands in several lines is for all that they
    name.

    Raises:
        ValueError: a line is not of the form, named by its number, or there is no token.
    """
    found: dict[bytes, Gateways] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        token, *names = words
        if not _TOKEN.fullmatch(token) or not all(map(_GATEWAY.fullmatch, names)):
            raise ValueError(f"line {number}: {CURE}")
        digest = _digest(token)
        before = found.get(digest, frozenset())
        found[digest] = None if not names or before is None else before | frozenset(names)
    if not found:
        raise ValueError(f"holds no token; {CURE}, for example of `openssl rand -hex 32`")
    return found


def text_of(data: bytes) -> str:
    """A file as text, without a byte order mark; other bytes than UTF-8 stay, so that they make a bad token."""
    return invisible.without_mark(data).decode("utf-8", "surrogateescape")


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


class Tokens:
    """The tokens of one file. A file that cannot be read, or holds none, admits no proxy (fail closed)."""

    def __init__(self, file: Path) -> None:
        """Reads the file. Raises CredentialError."""
        self._file = file
        self._seen: object = None
        self._known: Mapping[bytes, Gateways] = {}
        self._error = ""
        self.generation = 0
        """Counts how often the tokens were others than before."""
        self.refresh()
        if self._error:
            raise CredentialError(self._error)

    def __repr__(self) -> str:
        return f"<Tokens {len(self._known)} of {self._file}>"

    @property
    def is_readable(self) -> bool:
        """Whether the file was well when it was read last."""
        return not self._error

    def refresh(self) -> None:
        """Read the file again when it is another one than last time."""
        seen = _signature(self._file)
        if seen == self._seen and seen is not None:
            return
        self._seen, before = seen, (self._known, self._error)
        try:
            self._known, self._error = parse(text_of(files.read(self._file))), ""
        except OSError as error:
            self._known, self._error = {}, f"{self._file} cannot be read: {error.strerror or 'error'}"
        except ValueError as error:
            self._known, self._error = {}, f"{self._file}: {error}"
        if (self._known, self._error) != before:
            self.generation += 1
            self._report()

    def _report(self) -> None:
        if self._error:
            LOG.error("no proxy is let in with a token until its file is well: %s", self._error)
        else:
            LOG.info("tokens were read: %d in %s", len(self._known), self._file)

    def find(self, token: str) -> tuple[bool, Gateways]:
        """Whether the token is one of them, and what it is for. Takes the same time for every wrong one: all digests
        are compared, each in constant time."""
        digest, is_known, gateways = _digest(token), False, None
        for known, names in self._known.items():
            if hmac.compare_digest(known, digest):
                is_known, gateways = True, names
        return is_known, gateways


def _signature(file: Path) -> object:
    """Changes when the file is replaced or written; None when there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
