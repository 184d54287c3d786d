"""Target `credentials`: finding a credential in a request and taking it out, and reading what it is.

The first octet says what the rest is: a head with a header or cookie, a target with a parameter, a token, a user with
password. Promises: what is found is what a naive reader finds, which takes the message apart and looks at every piece;
afterwards exactly that piece is gone; tokens and passwords that are read mean the same to the standard library; nothing
raises.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_to_bytes

from dataplane.credentials import htpasswd, jwt, locations
from dataplane.exchange import Exchange
from dataplane.http.heads import Head, twin
from tests.fuzz.rig import require

SEEDS = (
    b"hauthorization: Bearer x\r\na: 1",
    b"hAuthorization: Basic x\r\nAUTHORIZATION: bearer y",
    b"cCookie: a=1; key=x; b=2\r\ncookie: key",
    b'ccookie:key="x";;key =y',
    b"q/p?a=1&key=x&b",
    b"q/p?k%65y=%41&&key",
    b"teyJhbGciOiJub25lIn0.eyJpc3MiOiJhIiwiaXNzIjoiYiJ9.",
    b"teyJhbGciOiJFUzI1NiIsImtpZCI6ImEifQ.eyJleHAiOjF9.AAAA",
    b"uYTpi",
    b"uw6Q6w7Y=",
)
LONGEST = 1000

BEARER = locations.in_header("Authorization", b"Bearer")
COOKIE = locations.in_cookie("key")
QUERY = locations.in_query("key")


def check(data: bytes) -> None:
    kind, rest = data[:1], data[1:]
    if len(data) <= LONGEST and kind in _KINDS:
        _KINDS[kind](rest)


def _exchange(lines: list[bytes], target: bytes = b"/") -> Exchange:
    return Exchange(None, b"GET", target, Head(b"\r\n" + b"".join(line + b"\r\n" for line in lines)), 0.0)


def _lines(data: bytes) -> list[bytes]:
    """Header lines as the codec lets them through: a name, a colon, no CR or LF."""
    lines = [line.replace(b"\r", b"").replace(b"\n", b"") for line in data.split(b"\r\n")]
    return [line for line in lines if line.partition(b":")[1] and line[:1] not in b" \t:"]


def _value(line: bytes, name: bytes) -> bytes | None:
    head, _, value = line.partition(b":")
    return value if head.lower() == name else None


def _compare(place: locations.Location, x: Exchange, credentials: list[bytes | None]) -> bool:
    """Find, compare with what the naive reader found, take out; whether there was one."""
    found = place.find(x)
    require((found is locations.AMBIGUOUS) == (len(credentials) > 1), f"{credentials} and {found}")
    if found is None or found is locations.AMBIGUOUS:
        require(found is not None or not credentials, f"{credentials} was not found")
        return False
    require([place.read(found[0])] == credentials, f"{credentials} is not {found}")
    place.remove(x, found)
    return True


def check_header(data: bytes) -> None:
    lines = _lines(data)
    ours = [line for line in lines if _value(line, b"authorization") is not None]
    x = _exchange(lines)
    if _compare(BEARER, x, [naive_bearer(line.partition(b":")[2]) for line in ours]):
        require(x.request.block == _exchange([line for line in lines if line not in ours]).request.block, "others went")
        require(x.request.low == twin(x.request.block), "the twin differs")


def naive_bearer(value: bytes) -> bytes | None:
    value = value.strip(b" \t")
    if value.lower() == b"bearer":
        return b""
    words = value.replace(b"\t", b" ").split(b" ", 1)
    return value[len(b"bearer") :].strip(b" \t") if len(words) == 2 and words[0].lower() == b"bearer" else None


def check_cookie(data: bytes) -> None:
    lines = _lines(data)
    pairs = [piece for line in lines for piece in (_value(line, b"cookie") or b"").split(b";")]
    ours = [pair for pair in pairs if b"=" in pair and pair.partition(b"=")[0].strip(b" \t") == b"key"]
    x = _exchange(lines)
    if _compare(COOKIE, x, [naive_unquoted(pair.partition(b"=")[2].strip(b" \t")) for pair in ours]):
        values = [value for line in x.request.block.split(b"\r\n") if (value := _value(line, b"cookie")) is not None]
        left = [piece.strip(b" \t") for value in values for piece in value.split(b";") if piece.strip(b" \t")]
        wanted = [pair.strip(b" \t") for pair in pairs if pair not in ours and pair.strip(b" \t")]
        require(left == wanted, f"{left} is left of {pairs}")
        require(x.request.low == twin(x.request.block), "the twin differs")
        others = [line for line in lines if _value(line, b"cookie") is None]
        kept = [line for line in x.request.block[2:-2].split(b"\r\n") if line and _value(line, b"cookie") is None]
        require(kept == others, "others went")


def naive_unquoted(value: bytes) -> bytes:
    return value[1:-1] if len(value) >= 2 and value.startswith(b'"') and value.endswith(b'"') else value


def check_query(data: bytes) -> None:
    if any(octet <= 0x20 or octet == 0x7F or octet == 0x23 for octet in data):
        return  # no target that the codec lets through
    path, mark, query = data.partition(b"?")
    pieces = query.split(b"&") if mark else []
    ours = [piece for piece in pieces if unquote_to_bytes(piece.partition(b"=")[0].replace(b"+", b" ")) == b"key"]
    x = _exchange([], data)
    if _compare(QUERY, x, [unquote_to_bytes(piece.partition(b"=")[2]) for piece in ours]):
        left = b"&".join(piece for piece in pieces if piece not in ours)
        require(x.target == (path + b"?" + left if len(pieces) > 1 else path), f"{x.target!r} is left of {data!r}")
        require(x.query == left, f"the query of {x.target!r} is {x.query!r}")
    secrets = [value for piece in ours if len(value := piece.partition(b"=")[2]) > len(locations.REDACTED)]
    require(not any(value in x.asked_target for value in secrets if data.count(value) == 1), "the log shows it")


def check_token(data: bytes) -> None:
    read = jwt.read(data)
    if isinstance(read, str):
        require(read in jwt.CAUSES, f"{read} is no cause")
        return
    head, payload, signature = data.split(b".")
    header: dict[str, Any] = json.loads(naive_octets(head))
    require((header["alg"], header.get("kid")) == (read.algorithm, read.kid), f"{header} is not {read}")
    require("crit" not in header and json.loads(naive_octets(payload)) == read.claims, "other claims")
    require((read.signed, read.signature) == (head + b"." + payload, naive_octets(signature)), "other parts")
    require(isinstance(jwt.wrong_claims(read.claims, frozenset("a"), 0.0), str), "no verdict")


def naive_octets(text: bytes) -> bytes:
    octets = base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    require(base64.urlsafe_b64encode(octets).rstrip(b"=") == text, f"{text!r} is not the only way to write it")
    return octets


def check_user(data: bytes) -> None:
    pair = htpasswd.user_and_password(data)
    try:
        user, colon, password = base64.b64decode(data, validate=True).partition(b":")
    except binascii.Error:
        require(pair is None, f"{data!r} is no base64")
        return
    if pair is not None:
        require(colon == b":" and pair == (user, password), f"{pair} is not {user!r}")
        require(not any(octet < 32 or octet == 127 for octet in user + password), "control characters")


_KINDS: dict[bytes, Callable[[bytes], None]] = {
    b"h": check_header,
    b"c": check_cookie,
    b"q": check_query,
    b"t": check_token,
    b"u": check_user,
}
