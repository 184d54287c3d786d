"""ByteSize in an API server's terms: a pattern for texts, bounds for integers, and rules for what is too large.

Called by the generators of CRDs. An API server older than 1.34 takes any text in an int-or-string to be 3 MB long when
it estimates what a rule costs, so the rule that every ByteSize has reads the text once, which is nearly enough for it.
"""

from __future__ import annotations

from typing import Final

from gatewright.api.schema import byte_size

MAX_LENGTH: Final = 32


def up_to(number: int) -> str:
    """A pattern of the whole numbers from 0 to `number`, with any zeros before."""
    digits = str(number)
    options = [f"[0-9]{{1,{len(digits) - 1}}}"] if len(digits) > 1 else []
    for index, digit in enumerate(digits):
        least = "1" if index == 0 and len(digits) > 1 else "0"
        if digit > least:
            smaller = chr(ord(digit) - 1)
            choice = least if least == smaller else f"[{least}-{smaller}]"
            options.append(digits[:index] + choice + _any(len(digits) - index - 1))
    return f"0*({'|'.join((*options, digits))})"


def _any(count: int) -> str:
    return f"[0-9]{{{count}}}" if count > 1 else "[0-9]" * count


# The customary spellings, which Kubernetes' own quantities lack: their size is in the pattern. A fraction after the
# largest whole number passes here and is refused by the gateway.
_CUSTOMARY: Final = "|".join(
    f"({up_to(byte_size.MAXIMUM // scale)}(\\.[0-9]*)?|\\.[0-9]+){unit}"
    for unit, scale in (("[bB]", 1), ("[kK][bB]", 2**10), ("[mM][bB]", 2**20), ("[gG][bB]", 2**30))
)
_TERA: Final = r"(0+(\.0{0,2}|\.00[0-3][0-9]*)?|\.0{1,2}|\.00[0-3][0-9]*)[tT][bB]"
_QUANTITY: Final = r"([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,4})?"
PATTERN: Final = rf"^\+?({_QUANTITY}|{_CUSTOMARY}|{_TERA})$"

FITS: Final = (
    "type(self) == int || self.endsWith('b') || self.endsWith('B') || "
    f"quantity(self).compareTo(quantity('{byte_size.MAXIMUM}')) <= 0",
    f"must be at most {byte_size.MAXIMUM} bytes",
)
"""Rule and message for every ByteSize; integers and customary spellings are bounded without it."""

MOST_RULES: Final = 10_000_000 // (2 * 3 * 2**20 // 10)
"""How often it may stand in an object: an API server older than 1.34 takes the text to be 3 MiB, reading it to cost a
tenth of that, this rule to read it twice, and lets a rule cost 10,000,000 in all."""
