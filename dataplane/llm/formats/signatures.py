"""Signatures of thinking on their way through a client of another API: they say whose they are, so that a provider
never gets one that it did not make. Pure."""

from __future__ import annotations

from typing import Final

from dataplane.llm.chat import Origin

_MARK: Final = "gatewright."


def read(written: str, own: Origin) -> tuple[str, Origin]:
    """The signature, and whose it is. `own`: of the format it is read in."""
    if not written:
        return "", Origin.NOBODY
    if not written.startswith(_MARK):
        return written, own
    name, _, signature = written[len(_MARK) :].partition(".")
    return (signature, Origin(name)) if name in _NAMES else (written, own)


_NAMES: Final = frozenset(each.value for each in Origin)


def write(signature: str, origin: Origin, own: Origin) -> str:
    """As a client of `own`'s format carries it."""
    if not signature or origin in (own, Origin.NOBODY):
        return signature
    return f"{_MARK}{origin.value}.{signature}"
