"""How values are written in a line of the access log, as text and as JSON.

Values are what clients sent: none of them can forge another field or another line.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from gatewright.cel.budget import START
from gatewright.cel.values import NONE, Uint

OWN: Final = frozenset({"level", "time", "scope"})
"""Keys of a JSON line that are no fields of a request."""

is_name = re.compile(r'[^\s"=\\\x00-\x20\x7f]+').fullmatch
"""A name that needs no quoting in any format."""

_is_bare = re.compile(r"[!#-\[\]-~]+").fullmatch

_not_ascii = re.compile(r"[^\x00-\x7e]").sub
"""In a JSON text it is within strings, and may be escaped: some of it ends a line for some readers."""


MAX_FIELD: Final = 8192
"""Characters of a field; what is more is cut off and counted in its place."""

QUOTE: Final = b'"'
BACKSLASH: Final = b"\\"
"""What of a target needs quoting; text lines are compiled with names, as expressions in them have no quotes."""


def cut(text: str) -> str:
    """As much of a value as a field may have; a mark says how many characters are missing."""
    return text if len(text) <= MAX_FIELD else f"{text[:MAX_FIELD]}...+{len(text) - MAX_FIELD}"


def bare(text: str) -> str:
    """Text in a text line, quoted where its end could be misread."""
    return text if _is_bare(text) else quoted(text)


def text_of(value: Any) -> str | None:
    """A value in a text line: text as it is, quoted where its end could be misread; what is no text, number or bool as
    JSON. None: it has none. Raises CelError for what has no JSON."""
    if isinstance(value, str):
        return bare(cut(value))
    text = json_of(value)
    if text is None or _is_bare(text):
        return text
    return bare(json.loads(text)) if text[0] == '"' else quoted(text)


def json_of(value: Any) -> str | None:
    """A value in a JSON line. None: it has none. Raises CelError for what has no JSON."""
    kind = type(value)
    if isinstance(value, str):
        return quoted(cut(str(value)))  # a secret's text is "<redacted>"
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if value is None or value is NONE:
        return None
    if kind is float and not math.isfinite(value):
        return f'"{value}"'
    from gatewright.cel.functions import json_text  # with the language: not before an attribute asks for it

    text = json_text.write(list(START), value)
    if len(text) > MAX_FIELD:  # what is left of it is no JSON any more
        return quoted(cut(text))
    return _not_ascii(lambda match: json.dumps(match[0])[1:-1], text)


def quoted(text: str) -> str:
    """JSON's quoting: no line break or control character gets into a line."""
    return json.dumps(text)
