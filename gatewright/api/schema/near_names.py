"""The name that was probably meant: one similarity rule for every "did you mean" of the product.

Called wherever a user's word is refused (fields, kinds, enum values, log modules). It knows no words of its own.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near_name(word: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The known name most like `word`, letter case aside, or None when nothing is near (`likeness`: 1 is the same)."""
    by_folded = {name.casefold(): name for name in known}
    folded = word.casefold()
    if folded in by_folded:
        return by_folded[folded]
    nearest = difflib.get_close_matches(folded, by_folded, n=1, cutoff=likeness)
    return by_folded[nearest[0]] if nearest else None


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
