"""Views of header maps, and the queries of URIs.

A header map gives repeated headers joined by ", " when it is used as a map. `split()` gives lists of the values between
commas, `values(name)` those of one header, `raw()` lists of the lines as they came, `redacted()` hides what usually
carries credentials.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from gatewright.cel import parameters
from gatewright.cel.budget import LARGE, Budget, built, steps, uncut
from gatewright.cel.errors import Fault
from gatewright.cel.functions.encoders import decoding, encoding
from gatewright.cel.functions.table import method
from gatewright.cel.functions.text import as_bytes, as_text
from gatewright.cel.remembered import Remembered
from gatewright.cel.types import STRING, list_of, map_of
from gatewright.cel.values import HeaderMap, plain_name

HEADERS = map_of(STRING, STRING)
LINE, PAIR, LETTER = 1500, 400, 70
"""Nanoseconds of a line of headers, of a cookie, and of a letter of a name."""
SECRET = frozenset(
    ("authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-goog-api-key")
)


def _lines(headers: dict[str, Any]) -> list[tuple[str, str]]:
    if isinstance(headers, HeaderMap):
        return headers.lines
    if not all(isinstance(word, str) for pair in headers.items() for word in pair):
        raise Fault("not headers: names and values are strings")
    return list(headers.items())


def redacted(budget: Budget, headers: dict[str, Any]) -> dict[str, Any]:
    built(budget, 64 * len(headers))
    uncut(budget, len(headers), LINE)
    return {name: "<redacted>" if name.lower() in SECRET else value for name, value in joined(budget, headers).items()}


def joined(budget: Budget, headers: dict[str, Any]) -> dict[str, str]:
    built(budget, 64 * len(headers))
    uncut(budget, len(headers), LINE)
    return dict(HeaderMap(_lines(headers)))


def raw(budget: Budget, headers: dict[str, Any]) -> dict[str, list[str]]:
    uncut(budget, len(headers), LINE)
    result: dict[str, list[str]] = {}
    for name, value in _lines(headers):
        result.setdefault(name, []).append(value)
        built(budget, 64)
    return result


def split(budget: Budget, headers: dict[str, Any]) -> dict[str, list[str]]:
    uncut(budget, len(headers), LINE)
    result: dict[str, list[str]] = {}
    for name, value in _lines(headers):
        result.setdefault(name, []).extend(_pieces(budget, value))
    return result


def values(budget: Budget, headers: dict[str, Any], name: str) -> list[str]:
    """Each value of one header, whichever way it is spelled in; none where there is no such header."""
    lines = _lines(headers)
    built(budget, 16 * len(lines))
    uncut(budget, len(lines), LINE)
    uncut(budget, len(name) + sum([len(each) for each, _ in lines if len(each) > LARGE]), LETTER)
    wanted = plain_name(name)
    return [piece for each, value in lines if plain_name(each) == wanted for piece in _pieces(budget, value)]


def _pieces(budget: Budget, value: str) -> list[str]:
    if len(value) > LARGE:
        steps(budget, len(value) / 256)
    built(budget, 64 * (1 + value.count(",")))
    return [stripped for piece in value.split(",") if (stripped := piece.strip(" \t"))]


def cookie(budget: Budget, headers: dict[str, Any], name: str) -> str:
    """The value of a request's cookie; without it there is no value."""
    uncut(budget, len(headers), LINE)
    text = ";".join([value for header, value in _lines(headers) if header.lower() == "cookie"])
    uncut(budget, text.count(";"), PAIR)
    found = _COOKIES(text).get(name)
    if found is None:
        raise Fault(f"no such cookie: {name}")
    return found


def _cookies(text: str) -> dict[str, str]:
    """The first value of each cookie, without the quotation marks that it may stand in (RFC 6265 4.2.1). Blanks beside
    the name and the value do not count: origins leave them out, and so does `dataplane/http/cookies`."""
    result: dict[str, str] = {}
    for pair in text.split(";"):
        name, separator, value = pair.partition("=")
        if separator:
            value = value.strip(_BLANKS)
            quoted = len(value) > 1 and value[0] == value[-1] == '"'
            result.setdefault(name.strip(_BLANKS), value[1:-1] if quoted else value)
    return result


_BLANKS: Final = " \t"


_COOKIES = Remembered(_cookies)


def _parts(uri: str) -> tuple[str, list[str], str]:
    """What is before the query, its pairs as written, and the fragment. Raises TooMany."""
    rest, mark, fragment = uri.partition("#")
    path, _, text = rest.partition("?")
    parameters.limit(text.count("&"))
    return path, [pair for pair in text.split("&") if pair], mark + fragment


def _decoded(text: str) -> str:
    return as_text(unquote_to_bytes(as_bytes(text.replace("+", " "))))


def _pair(budget: Budget, name: str, value: str) -> str:
    encoding(budget, name)
    encoding(budget, value)
    return f"{quote(as_bytes(name), safe='')}={quote(as_bytes(value), safe='')}"


def _whole(budget: Budget, path: str, pairs: list[str], fragment: str) -> str:
    result = path + ("?" + "&".join(pairs) if pairs else "") + fragment
    built(budget, len(result))
    return result


def query(budget: Budget, uri: str, name: str) -> str:
    """The first value of a query parameter, decoded; without it there is no value."""
    text = uri.partition("#")[0].partition("?")[2]
    built(budget, len(text) + 64 * text.count("&"))
    decoding(budget, text)
    return parameter(_PARAMETERS(text), name)


def _parameters(text: str) -> dict[bytes, bytes]:
    return parameters.read(as_bytes(text))


_PARAMETERS = Remembered(_parameters)


def parameter(found: dict[bytes, bytes], name: str) -> str:
    """The same of a query that has been read (`parameters.read`)."""
    value = found.get(as_bytes(name))
    if value is None:
        raise Fault(f"no such query parameter: {name}")
    return as_text(value)


def add_query(budget: Budget, uri: str, name: str, value: str) -> str:
    path, pairs, fragment = _parts(uri)
    return _whole(budget, path, [*pairs, _pair(budget, name, value)], fragment)


def set_query(budget: Budget, uri: str, name: str, value: str) -> str:
    """With this one value for the parameter, in the place of the first one there was."""
    decoding(budget, uri)
    path, pairs, fragment = _parts(uri)
    kept: list[str] = []
    done = False
    for pair in pairs:
        if _decoded(pair.partition("=")[0]) != name:
            kept.append(pair)
        elif not done:
            kept.append(_pair(budget, name, value))
            done = True
    return _whole(budget, path, kept if done else [*kept, _pair(budget, name, value)], fragment)


TABLE = (
    method("redacted", (HEADERS,), HEADERS, redacted, charges=True),
    method("join", (HEADERS,), HEADERS, joined, charges=True),
    method("raw", (HEADERS,), map_of(STRING, list_of(STRING)), raw, charges=True),
    method("values", (HEADERS, STRING), list_of(STRING), values, charges=True),
    method("split", (HEADERS,), map_of(STRING, list_of(STRING)), split, charges=True),
    method("cookie", (HEADERS, STRING), STRING, cookie, charges=True),
    method("query", (STRING, STRING), STRING, query, charges=True),
    method("addQuery", (STRING, STRING, STRING), STRING, add_query, charges=True),
    method("setQuery", (STRING, STRING, STRING), STRING, set_query, charges=True),
)
