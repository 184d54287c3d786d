"""Values that functions of the expression language take longest for, by the type of a parameter: as large as a body or
a budget lets them be, and of many forms. A type that has none here has no place in a function."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, Final

from gatewright.cel.functions import network
from gatewright.cel.types import Type
from gatewright.cel.values import NONE, Duration, HeaderMap, Optional, Timestamp, Uint

LONG: Final = 1_000_000
MANY: Final = 170_000
"""Numbers in a body of a megabyte or two."""
UNITS: Final = (
    *("a", '"', "\\", "%41", "%", ",", "\u00e9", "\U0001f600", " ", "\u2003\n", "1", "1,", "[", '{"a":', "a&", "a=b;"),
    *("\n", "=", ".", "QUFB", "1:", "\ud800", "%s", "%.9f", "%%", "$1", "eyJh", "A\u00e9"),
)


def texts() -> dict[str, str]:
    found = {unit: (unit * (LONG // len(unit) + 1))[:LONG] for unit in UNITS}
    return found | {
        "nearly": "a" * (LONG // 2) + "b",
        "nearly, behind": "b" + "a" * (LONG // 2),
        "drawn": "".join(random.Random(1).choices('ab,\u00e9%&="\\ 1', k=LONG)),
        "array": f"[{'1,' * (LONG // 2)}1]",
        "array of texts": "[" + '"a",' * (LONG // 4) + "1]",
        "jwt": f"a.{'eyJh' * (LONG // 4)}.b",
        "cookies": "a=b; " * (LONG // 5),
        "": "",
        "short": "a",
    }


def deep(leaf: Any, *names: str) -> Any:
    """Ninety levels, each of which has the next one twice."""
    for _ in range(90):
        leaf = dict.fromkeys(names, leaf) if names else [leaf, leaf]
    return leaf


def lists() -> dict[str, list[Any]]:
    chance, text = random.Random(1), "a" * LONG
    return {
        "ints": [*range(MANY)],
        "equal": [1] * MANY,
        "texts": [str(number) for number in range(MANY)],
        "some texts": [str(chance.random()) for _ in range(20_000)],
        "doubles": [chance.random() for _ in range(MANY // 2)],
        "some doubles": [chance.random() for _ in range(24_000)],
        "unequal": [float("nan")] * MANY,
        "lists": [[number] for number in range(MANY)],
        "one list": [[*range(1000)]] * 1000,
        "maps": [{"a": number} for number in range(MANY // 4)],
        "one long text": [text] * MANY,
        "bytes": [b"%d" % number for number in range(MANY)],
        "optionals": [Optional(number) for number in range(MANY)],
        "moments": [Timestamp(number) for number in range(MANY)],
        "mixed": [number if number % 2 else str(number) for number in range(MANY)],
        "deep": deep(1),
        "empty": [],
    }


def maps() -> dict[str, dict[Any, Any]]:
    text = "a" * LONG
    return {
        "numbers": {f"k{number}": number for number in range(100_000)},
        "texts": {f"k{number}": "a, b" for number in range(50_000)},
        "maps": {f"k{number}": {"a": 1} for number in range(50_000)},
        "one long text": {f"k{number}": text for number in range(1000)},
        "long name": {text: "a"},
        "list": {"a": [*range(MANY)]},
        "deep": deep(1, "a", "b"),
        "headers": HeaderMap([(f"x-{number}", "a,b") for number in range(5000)]),
        "cookies": HeaderMap([("cookie", "a=b; " * (LONG // 5))]),
        "commas": HeaderMap([("x", "," * LONG)]),
        "empty": {},
    }


@cache
def of_type(name: str) -> dict[str, Any]:
    """Raises KeyError for a type that nobody has thought about."""
    return FORMS[name]()


def anything() -> dict[str, Any]:
    chosen = {f"text {name}": value for name, value in texts().items() if name in ("a", '"', "\U0001f600", "drawn")}
    chosen |= {f"list of {name}": value for name, value in lists().items()}
    return chosen | {f"map of {name}": value for name, value in maps().items()} | {"int": 1, "bytes": b"a" * LONG}


FORMS: Final[dict[str, Any]] = {
    "string": texts,
    "bytes": lambda: {name: text.encode("utf-8", "replace") for name, text in texts().items()},
    "list": lists,
    "map": maps,
    "int": lambda: {str(number): number for number in (-1, 0, 1, LONG // 2, MANY, 2**63 - 1)},
    "uint": lambda: {"least": Uint(0), "greatest": Uint(2**64 - 1)},
    "double": lambda: {"small": 1.5, "large": 1.7e308, "nan": float("nan")},
    "bool": lambda: {"true": True},
    "timestamp": lambda: {"now": Timestamp(10**18)},
    "duration": lambda: {"long": Duration(10**18)},
    "net.IP": lambda: {"v4": network.parse_ip("192.0.2.1"), "v6": network.parse_ip("2001:db8::1")},
    "net.CIDR": lambda: {"v4": network.parse_cidr("192.0.2.0/24"), "v6": network.parse_cidr("2001:db8::/32")},
    "optional": lambda: {"some": Optional([*range(MANY)]), "none": NONE},
    "A": anything,
    "dyn": anything,
}


def of(kind: Type) -> dict[str, Any]:
    """Values of a parameter, by name."""
    return of_type(str(kind).partition("(")[0])
