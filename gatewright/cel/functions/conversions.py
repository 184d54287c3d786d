"""Conversions between types: `int("1")`, `string(1.5)`, `bytes("é")`, ...

Text of numbers is read as strictly as the specification's own: no underscores, no spaces, no digits of other scripts.
"""

from __future__ import annotations

import math
import re

from gatewright.cel.budget import Budget, built
from gatewright.cel.errors import Fault
from gatewright.cel.functions import network, times
from gatewright.cel.functions.standard import identity
from gatewright.cel.functions.table import function
from gatewright.cel.operators import timestamp
from gatewright.cel.types import BOOL, BYTES, CIDR, DOUBLE, DURATION, INT, IP, STRING, TIMESTAMP, UINT
from gatewright.cel.values import MAX_INT, MAX_UINT, MIN_INT, Timestamp, Uint

INT_TEXT = re.compile(r"[+-]?[0-9]{1,40}")
UINT_TEXT = re.compile(r"\+?[0-9]{1,40}")
DOUBLE_TEXT = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[iI]nf(?:inity)?|Infinity|NaN|nan)"
)
BOOL_TEXT = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def int_from_uint(value: Uint) -> int:
    if value > MAX_INT:
        raise Fault("int out of range")
    return int(value)


def int_from_double(value: float) -> int:
    """Truncated; both ends of the range are excluded, since a double cannot distinguish them from their neighbours."""
    if not MIN_INT < value < MAX_INT:
        raise Fault("int out of range")
    return int(value)


def int_from_string(text: str) -> int:
    if INT_TEXT.fullmatch(text):
        value = int(text)
        if MIN_INT <= value <= MAX_INT:
            return value
    raise Fault("not an int")


def uint_from_int(value: int) -> Uint:
    if value < 0:
        raise Fault("uint out of range")
    return Uint(value)


def uint_from_double(value: float) -> Uint:
    if not 0 <= value < MAX_UINT:
        raise Fault("uint out of range")
    return Uint(value)


def uint_from_string(text: str) -> Uint:
    if UINT_TEXT.fullmatch(text):
        value = int(text)
        if value <= MAX_UINT:
            return Uint(value)
    raise Fault("not a uint")


def double_from_string(text: str) -> float:
    if len(text) <= 400 and DOUBLE_TEXT.fullmatch(text):
        return float(text)
    raise Fault("not a double")


def string_from_double(value: float) -> str:
    """The shortest text that reads back as the same double; whole numbers without a decimal point."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return plain_double(value)


def plain_double(value: float) -> str:
    text = repr(value)
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        sign, digits = exponent[0], exponent[1:]
        return f"{mantissa.removesuffix('.0')}e{sign}{digits.zfill(2)}"
    return text.removesuffix(".0")


def string_from_bytes(budget: Budget, value: bytes) -> str:
    built(budget, len(value))
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Fault("invalid UTF-8") from None


def bytes_from_string(budget: Budget, text: str) -> bytes:
    built(budget, len(text))
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Fault("the string is not valid Unicode") from None


def string_from_bool(value: bool) -> str:
    return "true" if value else "false"


def bool_from_string(text: str) -> bool:
    found = BOOL_TEXT.get(text)
    if found is None:
        raise Fault("not a bool")
    return found


def decimal(value: int) -> str:
    return str(int(value))


def timestamp_from_int(seconds: int) -> Timestamp:
    return timestamp(seconds * 10**9)


def seconds_of(value: Timestamp) -> int:
    return int(value) // 10**9


TABLE = (
    function("int", (INT,), INT, identity),
    function("int", (UINT,), INT, int_from_uint),
    function("int", (DOUBLE,), INT, int_from_double),
    function("int", (STRING,), INT, int_from_string),
    function("int", (TIMESTAMP,), INT, seconds_of),
    function("uint", (UINT,), UINT, identity),
    function("uint", (INT,), UINT, uint_from_int),
    function("uint", (DOUBLE,), UINT, uint_from_double),
    function("uint", (STRING,), UINT, uint_from_string),
    function("double", (DOUBLE,), DOUBLE, identity),
    function("double", (INT,), DOUBLE, float),
    function("double", (UINT,), DOUBLE, float),
    function("double", (STRING,), DOUBLE, double_from_string),
    function("string", (STRING,), STRING, identity),
    function("string", (INT,), STRING, str),
    function("string", (UINT,), STRING, decimal),
    function("string", (DOUBLE,), STRING, string_from_double),
    function("string", (BOOL,), STRING, string_from_bool),
    function("string", (BYTES,), STRING, string_from_bytes, charges=True),
    function("string", (TIMESTAMP,), STRING, times.timestamp_text),
    function("string", (DURATION,), STRING, times.duration_text),
    function("string", (IP,), STRING, network.ip_text),
    function("string", (CIDR,), STRING, network.cidr_text),
    function("bytes", (BYTES,), BYTES, identity),
    function("bytes", (STRING,), BYTES, bytes_from_string, charges=True),
    function("bool", (BOOL,), BOOL, identity),
    function("bool", (STRING,), BOOL, bool_from_string),
    function("timestamp", (TIMESTAMP,), TIMESTAMP, identity),
    function("timestamp", (INT,), TIMESTAMP, timestamp_from_int),
    function("timestamp", (STRING,), TIMESTAMP, times.timestamp_from_string),
    function("duration", (DURATION,), DURATION, identity),
    function("duration", (STRING,), DURATION, times.duration_from_string),
)
