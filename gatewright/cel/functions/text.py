"""Strings and bytes as each other, with the language's errors."""

from __future__ import annotations

from gatewright.cel.errors import Fault


def as_bytes(value: str | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise Fault("the string is not valid Unicode") from None


def as_text(value: str | bytes) -> str:
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Fault("invalid UTF-8") from None
