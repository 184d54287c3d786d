"""The name that was probably meant: one similarity rule for every "did you mean" of the product.

Called wherever a user's word is refused (fields, kinds, enum values, log modules). It knows no words of its own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def near_name(word: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The known name that `word` is short for, or is most like, letter case aside; None when nothing is near
    (`likeness`: 1 is the same)."""
    by_folded = {name.casefold(): name for name in known}
    folded = word.casefold()
    if folded in by_folded:
        return by_folded[folded]
    longer = [name for name in by_folded.values() if _is_short_for(word, name)]
    if len(longer) == 1:
        return longer[0]
    nearest = difflib.get_close_matches(folded, by_folded, n=1, cutoff=likeness)
    return by_folded[nearest[0]] if nearest else None


def _is_short_for(word: str, name: str) -> bool:
    """As `jwtAuth` is for `jwtAuthentication`, and `jwt`: the first word is whole, the others may be cut off."""
    (first, *others), (start, *following) = _words(word), _words(name)
    return (
        first == start
        and len(others) <= len(following)
        and all(whole.startswith(part) for part, whole in zip(others, following, strict=False))
    )


def _words(name: str) -> list[str]:
    """Those of a name in camel case, folded."""
    return [part.casefold() for part in re.split(r"(?<=[a-z0-9])(?=[A-Z])", name)]


def did_you_mean(
    word: str, known: Iterable[str], *, label: str = "known", limit: int = 12, likeness: float = 0.6
) -> str:
    """The ending of an error message: `; did you mean "port"?`, else the known names when they are few."""
    names = sorted(known)
    near = near_name(word, names, likeness=likeness)
    if near is not None:
        return f'; did you mean "{near}"?'
    if not names:
        return ""
    shown = ", ".join(names[:limit])
    return f"; {label}: {shown}" + (", …" if len(names) > limit else "")
