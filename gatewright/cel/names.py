"""The name that was probably meant, for messages about unknown names."""

from __future__ import annotations

from collections.abc import Iterable


def hint(word: str, known: Iterable[str]) -> str:
    """`; did you mean "path"?`, or nothing when no known name is near. Letter case does not count."""
    from difflib import get_close_matches  # only expressions that are refused pay for it

    by_folded = {name.casefold(): name for name in known}
    nearest = get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return f'; did you mean "{by_folded[nearest[0]]}"?' if nearest else ""
