"""Spellings of a path that origins read differently: what a listener does about them. Pure.

A path that is canonical (`http/uri`) may still have slashes in a row, escaped slashes and backslashes, and parameters
(";" to the end of a segment). Some origins take `/x//admin`, `/x%2Fadmin`, `/x%5Cadmin` and `/admin;a=1` for another
path, some do not. A listener decides each kind for itself and its origins, or leaves it open: then the path passes
where every reading leads to the same rule and is allowed, and is refused otherwise (`proxy/request/entry`,
`filters/steps/authorization`, `chain/conditional`).
"""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from dataplane.http.uri import without_dots

OPEN, KEEP, CHANGE, REJECT = "", "Keep", "Change", "Reject"
"""What becomes of a kind: how the origin reads it is unknown; it passes; it is made what others read it as; 400."""

REFUSED: Final = "AmbiguousPath"
"""Reason code of a refusal."""

_SLASHES = re.compile(rb"//+").sub
_PARAMETERS = re.compile(rb";[^/]*").sub

_Change = Callable[[bytes], bytes]
_KINDS: Final[tuple[tuple[bytes, _Change], ...]] = (
    # what such a path has in it, and how other readers decode it; in the order in which origins do it
    (b"%5C", lambda path: path.replace(b"%5C", b"/")),
    (b"%2F", lambda path: path.replace(b"%2F", b"/")),
    (b";", lambda path: _PARAMETERS(b"", path)),
    (b"//", lambda path: _SLASHES(b"/", path)),
)


@dataclass(frozen=True, slots=True)
class PathRules:
    """Of one listener. The defaults hold where nothing is configured."""

    backslashes: str = OPEN
    escaped_slashes: str = OPEN
    parameters: str = OPEN
    slashes: str = OPEN
    lower: bool = False
    """Paths are in lower case for policies and origins."""


ALL_OPEN: Final = PathRules()


def one_reading(path: bytes, rules: PathRules) -> tuple[bytes, tuple[bytes, ...]] | None:
    """A canonical path -> (as it is for policies and the origin, as origins may read it otherwise); None: refuse it."""
    actions = (rules.backslashes, rules.escaped_slashes, rules.parameters, rules.slashes)
    changes: list[_Change] = []
    for (mark, change), action in zip(_KINDS, actions, strict=True):
        if action == CHANGE:  # whether or not it is there now: another change may make it
            changes.append(change)
        elif action == REJECT and mark in path:
            return None
    if rules.lower:
        path = re.sub(rb"%[0-9a-f]{2}", lambda escape: escape[0].upper(), path.lower())
    path = _changed(path, changes) if changes else path
    if rules.slashes == REJECT and b"//" in path:  # of an escape that was decoded
        return None
    left = [change for (mark, change), action in zip(_KINDS, actions, strict=True) if action == OPEN and mark in path]
    if not left:
        return path, ()
    if rules.slashes != KEEP and left[-1] is not _KINDS[-1][1]:
        left.append(_KINDS[-1][1])
    readings = {_changed(path, chosen) for count in range(1, len(left) + 1) for chosen in combinations(left, count)}
    return path, tuple(sorted(readings - {path}))


def _changed(path: bytes, changes: list[_Change] | tuple[_Change, ...]) -> bytes:
    """With each change made in turn, and the dot segments that come of it removed."""
    for change in changes:
        path = change(path)
    return without_dots(path) if b"/." in path else path


LONGEST_READ: Final = 1_024
"""Bytes of a path that is read leniently: a longer one that may be read otherwise may be anything."""
_ESCAPES: Final = 3
"""So often escapes of escapes are resolved."""
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})").sub
_SLASHES_OF_ANY_KIND = re.compile(rb"[/\\]+").sub
_ENDS_OF_NAMES = re.compile(rb"(?<![ .\x00-\x1f])[ .\x00-\x1f]++(?=/|\Z)").sub
_BEHIND_PATHS = re.compile(rb"[?#].*", re.DOTALL).sub
_MAY_BE_READ_OTHERWISE = re.compile(rb"[^a-z0-9_:/.-]|/[/.]|[/.]\Z|\./").search


def leniently_read(path: bytes) -> bytes | None:
    """A path, or the end of one, as the most lenient of origins takes it: without escapes, parameters, slashes in a row
    and one at the end, dots and spaces at the end of names, what stands behind an escaped `?` or `#`; in lower case.
    None: it is too long to say so.

    What is decided by the names of an API at the end of a path (`llm/routes`) has to be the same for it."""
    if _MAY_BE_READ_OTHERWISE(path) is None:
        return path
    if len(path) > LONGEST_READ:
        return None
    for _ in range(_ESCAPES):
        path = _ESCAPE(lambda found: unhexlify(found[1]), path)
    path = _PARAMETERS(b"", _BEHIND_PATHS(b"", path).lower())
    path = _changed(_SLASHES_OF_ANY_KIND(b"/", path), ())
    return _SLASHES(b"/", _ENDS_OF_NAMES(b"", path)).rstrip(b"/")
