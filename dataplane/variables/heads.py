"""Headers as expressions see them: text, by their names. Pure."""

from __future__ import annotations

from dataplane.http.heads import Head, plain_name
from gatewright.cel.values import HeaderMap


def header_map(head: Head) -> HeaderMap:
    """All headers, for expressions that look at more than one by name."""
    return HeaderMap((name.decode(), text(value)) for name, value in head.items())


def header(head: Head, name: str) -> str | None:
    """The value of a header by its name, those of a repeated one joined by ", "."""
    key = plain_name(name.encode("utf-8", "replace"))
    needle = b"\r\n" + key + b":"
    low = head.low
    p = low.find(needle)
    if p < 0:
        return None
    start = p + len(needle)
    end = low.find(b"\r\n", start)
    if low.find(needle, end) == -1:
        return text(head.block[start:end].strip(b" \t"))
    return ", ".join(map(text, head.get_all(key)))


def text(value: bytes) -> str:
    """Header values and targets as text: UTF-8 where it is that, else each byte a character (RFC 9110 5.5)."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
