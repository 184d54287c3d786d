"""Text to tokens, with the values of literals already decoded.

Called by the parser. One regular expression finds the next token; every one of its alternatives is linear. Offsets
count code points. It never looks at what a name means.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gatewright.cel.errors import CelSyntaxError, problem_at
from gatewright.cel.names import OTHER_LANGUAGES
from gatewright.cel.values import MAX_INT, MAX_UINT, Uint
from gatewright.turns import pause

MAX_TEXT = 16 * 1024
"""Characters of an expression."""


class Token(NamedTuple):
    """kind: ident, quoted (a name in backticks), literal, op, end. A literal's value is its decoded value."""

    kind: str
    value: object
    offset: int
    text: str


TOKEN = re.compile(
    r"""(?:[\t\n\f\r\ ]+|//[^\n]*)*
  (?:(?P<string>(?:[rR][bB]?|[bB][rR]?)?(?:\"{3}|'{3}|"|'))
  | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<int>0x[0-9a-fA-F]+[uU]?|[0-9]+[uU]?)
  | (?P<ident>[_a-zA-Z][_a-zA-Z0-9]*)
  | `(?P<quoted>[-_./\ a-zA-Z0-9]+)`
  | (?P<op>&&|\|\||[=!<>]=|[-+*/%<>!?:.,()\[\]{}])
  | (?P<end>\Z)
  | (?P<other>.))
    """,
    re.VERBOSE | re.DOTALL,
)

# (raw, quote) -> the rest of the literal. A quote of one character ends at the end of the line at the latest.
STRING_ENDS = {
    (False, '"'): re.compile(r'((?:[^"\\\r\n]|\\[^\r\n])*)"'),
    (False, "'"): re.compile(r"((?:[^'\\\r\n]|\\[^\r\n])*)'"),
    (True, '"'): re.compile(r'([^"\r\n]*)"'),
    (True, "'"): re.compile(r"([^'\r\n]*)'"),
    (False, '"""'): re.compile(r'((?:[^\\]|\\.)*?)"""', re.DOTALL),
    (False, "'''"): re.compile(r"((?:[^\\]|\\.)*?)'''", re.DOTALL),
    (True, '"""'): re.compile(r'(.*?)"""', re.DOTALL),
    (True, "'''"): re.compile(r"(.*?)'''", re.DOTALL),
}

ESCAPE = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\\?\"'`])|[xX](?P<hex>[0-9a-fA-F]{2})|u(?P<u4>[0-9a-fA-F]{4})"
    r"|U(?P<u8>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})|(?P<bad>.))",
    re.DOTALL,
)
SIMPLE = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))
KEYWORDS = {"true": True, "false": False, "null": None}


def tokens(text: str) -> list[Token]:
    """All tokens of `text`, an end token last. Raises CelSyntaxError at the first thing that is no token."""
    if len(text) > MAX_TEXT:
        raise _refused(text, 0, f"the expression has {len(text)} characters, more than {MAX_TEXT}")
    found: list[Token] = []
    offset = 0
    while True:
        pause()
        match = TOKEN.match(text, offset)
        assert match is not None  # its last alternative takes anything
        kind = match.lastgroup or ""
        if kind == "op":
            word = match.group("op")
            found.append(Token(kind, word, match.start("op"), word))
        elif kind == "end":
            found.append(Token(kind, None, len(text), "the end of the expression"))
            return found
        elif kind == "string":
            read, offset = _string(text, match)
            found.append(read)
            continue
        else:
            found.append(READERS[kind](text, match.start(kind), match.group(kind)))
        offset = match.end()


def _refused(text: str, offset: int, message: str, hint: str = "") -> CelSyntaxError:
    return CelSyntaxError((problem_at(text, offset, message, hint=hint),))


def _other(text: str, offset: int, word: str) -> Token:
    raise _refused(text, offset, f"unexpected character {word!r}", OTHER_LANGUAGES.get(word, ""))


def _ident(text: str, offset: int, name: str) -> Token:
    if name in KEYWORDS:
        return Token("keyword", KEYWORDS[name], offset, name)
    return Token("op" if name == "in" else "ident", name, offset, name)


def _quoted(text: str, offset: int, name: str) -> Token:
    return Token("quoted", name, offset, f"`{name}`")


def _int(text: str, offset: int, word: str) -> Token:
    """The sign is not part of the token: the parser decides whether 2^63 is allowed."""
    unsigned = word[-1] in "uU"
    digits = word[:-1] if unsigned else word
    base = 16 if digits.startswith("0x") else 10
    significant = digits.removeprefix("0x").lstrip("0")
    value = int(digits, base) if len(significant) < 30 else MAX_UINT + 1
    if value > (MAX_UINT if unsigned else MAX_INT + 1):
        raise _refused(text, offset, f"{'uint' if unsigned else 'int'} literal out of range")
    return Token("literal", Uint(value) if unsigned else value, offset, word)


def _float(text: str, offset: int, word: str) -> Token:
    value = float(word)
    if value == float("inf"):
        raise _refused(text, offset, "double literal out of range")
    return Token("literal", value, offset, word)


def _string(text: str, match: re.Match[str]) -> tuple[Token, int]:
    opening, start = match.group("string"), match.start("string")
    prefix = opening.rstrip("\"'")
    quote = opening[len(prefix) :]
    raw, is_bytes = "r" in prefix.lower(), "b" in prefix.lower()
    end = STRING_ENDS[raw, quote].match(text, match.end())
    if end is None:
        raise _refused(text, start, "the string does not end")
    inner = end.group(1)
    value: object
    if is_bytes:
        value = _encoded(text, start, inner) if raw else _unescaped_bytes(text, match.end(), inner)
    else:
        value = inner if raw or "\\" not in inner else _unescaped(text, match.end(), inner)
    return Token("literal", value, start, "a string"), end.end()


def _unescaped(text: str, start: int, inner: str) -> str:
    def one(match: re.Match[str]) -> str:
        kind = match.lastgroup or ""
        word = match.group(kind)
        if kind == "simple":
            return SIMPLE[word]
        if kind == "bad":
            raise _refused(text, start + match.start(), f"unknown escape \\{word}")
        code = int(word, 8 if kind == "octal" else 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise _refused(text, start + match.start(), "the escape names no Unicode character")
        return chr(code)

    return ESCAPE.sub(one, inner)


def _unescaped_bytes(text: str, start: int, inner: str) -> bytes:
    """In bytes, \\x and octal escapes are single bytes; other characters become UTF-8; \\u is not allowed."""
    parts: list[bytes] = []
    end = 0
    for match in ESCAPE.finditer(inner):
        kind = match.lastgroup or ""
        parts.append(_encoded(text, start + end, inner[end : match.start()]))
        if kind == "simple":
            parts.append(SIMPLE[match.group("simple")].encode())
        elif kind in ("hex", "octal"):
            parts.append(bytes((int(match.group(kind), 16 if kind == "hex" else 8),)))
        else:
            raise _refused(text, start + match.start(), f"escape {match.group()[:2]} is not allowed in bytes")
        end = match.end()
    parts.append(_encoded(text, start + end, inner[end:]))
    return b"".join(parts)


def _encoded(text: str, offset: int, piece: str) -> bytes:
    try:
        return piece.encode()
    except UnicodeEncodeError:
        raise _refused(text, offset, "the text holds a lone surrogate") from None


READERS = {"ident": _ident, "quoted": _quoted, "int": _int, "float": _float, "other": _other}
