"""What was probably meant, for messages about unknown names and about what other languages write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final


def hint(word: str, known: Iterable[str]) -> str:
    """`; did you mean "path"?`, or nothing when no known name is near. Letter case does not count."""
    from difflib import get_close_matches  # only expressions that are refused pay for it

    by_folded = {name.casefold(): name for name in known}
    nearest = get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return f'; did you mean "{by_folded[nearest[0]]}"?' if nearest else ""


OTHER_LANGUAGES: Final = {
    "=": "; equal is ==",
    "&": "; and is &&",
    "|": "; or is ||",
    "and": "; and is &&",
    "or": "; or is ||",
    "not": "; not is !",
    "/": "; text stands in quotes",
}
"""What people write who know other languages, or who forget that they write an expression: token to cure."""


LONGEST_NAME: Final = 64
"""Characters on either side of a `-` that are looked at, to ask whether a name with a dash was meant."""


def dashed(text: str, offset: int) -> str:
    """The cure for `headers.x-team`, which is a difference; "" where the name at `offset` is no part of one."""
    before = re.search(r"\.((?:\w+-)+)$", text[max(0, offset - LONGEST_NAME) : offset])
    after = re.match(r"\w+(?:-\w+)*", text[offset : offset + LONGEST_NAME])
    if before is None or after is None:
        return ""
    return f'; a name with - stands in brackets: ["{before.group(1)}{after.group()}"]'
