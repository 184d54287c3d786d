"""All beginnings of what a regular expression matches, as another one: so that a stream holds back what may still
become a match, and nothing else. Pure.

Of `ab+c` these are "", a, ab, abb, ..., abc: `(?:a(?:b+(?:c)?)?)?`, roughly. Assertions are taken for true, and
letters of either case for the same where any part of the pattern ignores case: more waits then than must, never less. A
pattern that `regexes.tree` does not understand has no such form.
"""

from __future__ import annotations

from gatewright.regexes import tree


def prefixes_of(pattern: str) -> str | None:
    """`pattern`: one that RE2 takes. None: it is not understood, or the form would be too large."""
    known = tree.read(pattern)
    if known is None:
        return None
    try:
        found = known.root.prefixes()
    except (tree.Unknown, RecursionError):
        return None
    if len(found) > tree.MOST:
        return None
    return f"(?i){found}" if known.ignores_case else found
