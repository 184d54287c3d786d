"""Names of items behind one endpoint: with several targets each says whose it is.

Tools and prompts are `<target>_<name>`: names of targets are those of DNS labels and have no `_`. Resources, their
templates and tasks are `<target>+<uri>`; a `ui://` keeps its scheme in front, by which hosts know it.
"""

from __future__ import annotations

from typing import Final

UI: Final = "ui://"
_MARKS: Final = {"tool": "_", "prompt": "_", "resource": "+", "task": "+"}


def joined(kind: str, target: str, name: str) -> str:
    """The name of an item of a target, as clients see it."""
    if kind == "resource" and name.startswith(UI):
        return f"{UI}{target}+{name.removeprefix(UI)}"
    return f"{target}{_MARKS[kind]}{name}"


def parted(kind: str, name: str) -> tuple[str, str]:
    """The inverse: target and name; ("", name) where it names no target."""
    scheme = UI if kind == "resource" and name.startswith(UI) else ""
    target, mark, rest = name.removeprefix(scheme).partition(_MARKS[kind])
    return (target, scheme + rest) if mark and target else ("", name)


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
