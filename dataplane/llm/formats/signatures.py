"""Signatures of thinking on their way through a client of another API: they say whose they are, so that a provider
never gets one that it did not make. Pure."""

from __future__ import annotations

from typing import Final

from dataplane.llm.chat import Origin

MARK: Final = "gatewright."


def read(written: str, own: Origin) -> tuple[str, Origin, bool]:
    """The signature, whose it is, and whether it is a redacted thought itself. `own`: of the format it is read in."""
    if not written:
        return "", Origin.UNSIGNED, False
    if written.startswith(MARK):
        name, dot, signature = written[len(MARK) :].partition(".")
        origin = name.rstrip(_REDACTED)
        if dot and origin in _NAMES:
            return signature, Origin(origin), name.endswith(_REDACTED)
    return written, own, False


_REDACTED: Final = "!"
_NAMES: Final = frozenset(each.value for each in Origin)


def write(signature: str, origin: Origin, own: Origin, is_redacted: bool = False) -> str:
    """As a client of `own`'s format carries it. `is_redacted`: it is a redacted thought, which that format has no place
    for."""
    if not signature or origin is Origin.UNSIGNED or (origin is own and not is_redacted):
        return signature
    return f"{MARK}{origin.value}{_REDACTED if is_redacted else ''}.{signature}"
