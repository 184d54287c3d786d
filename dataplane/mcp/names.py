"""Names of items behind one endpoint: with several targets each says whose it is.

Tools and prompts are `<target>_<name>`: names of targets are those of DNS labels and have no `_`. Resources, their
templates and tasks are `<target>+<uri>`, where the target is the beginning of the scheme; a `ui://` keeps its scheme in
front, by which hosts know it. A scheme begins with a letter (RFC 3986 3.1): `t.`, with which no target can begin,
stands before a target that begins with none.
"""

from __future__ import annotations

from typing import Final

UI: Final = "ui://"
_MARKS: Final = {"tool": "_", "prompt": "_", "resource": "+", "task": "+"}
_LETTER: Final = "t."


def joined(kind: str, target: str, name: str) -> str:
    """The name of an item of a target, as clients see it."""
    if kind == "resource" and name.startswith(UI):
        return f"{UI}{target}+{name.removeprefix(UI)}"
    letter = _LETTER if kind == "resource" and not target[:1].isalpha() else ""
    return f"{letter}{target}{_MARKS[kind]}{name}"


def parted(kind: str, name: str) -> tuple[str, str]:
    """The inverse: target and name; ("", name) where it names no target."""
    scheme = UI if kind == "resource" and name.startswith(UI) else ""
    target, mark, rest = name.removeprefix(scheme).partition(_MARKS[kind])
    if kind == "resource" and not scheme:
        target = _without_letter(target)
    return (target, scheme + rest) if mark and target else ("", name)


def _without_letter(target: str) -> str:
    """ "": it is the name of none, since names have one spelling."""
    bare = target.removeprefix(_LETTER)
    return bare if (bare is target) == bare[:1].isalpha() else ""


def tagged(target: str, request_id: str | int) -> str:
    """The id of a request that a target has for the client: its answer names the target."""
    return f"gw:{target}:{'n' if isinstance(request_id, int) else 's'}:{request_id}"


def untagged(request_id: object) -> tuple[str, str | int] | None:
    """The inverse; None for an id that was not made here."""
    if not isinstance(request_id, str) or not request_id.startswith("gw:"):
        return None
    target, _, rest = request_id.removeprefix("gw:").partition(":")
    kind, mark, text = rest.partition(":")
    if kind == "s" and mark:
        return target, text
    digits = text.removeprefix("-")
    if kind == "n" and digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS:
        return target, int(text)
    return None


_DIGITS: Final = 20
