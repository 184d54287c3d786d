"""Random expressions for the tests: well-formed by a grammar, sensible or not by their types.

`VARIABLES` are declared with types in one environment and as dyn in the other, and offered by `CONTEXT`.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from hypothesis import strategies as st

from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, list_of, map_of
from gatewright.cel.values import FALSE_KEY, TRUE_KEY, Duration, Timestamp, Uint

VARIABLES: dict[str, tuple[Any, Any]] = {
    "i": (INT, 7),
    "z": (INT, 0),
    "u": (UINT, Uint(3)),
    "d": (DOUBLE, 1.5),
    "nan": (DOUBLE, float("nan")),
    "s": (STRING, "a,b,c"),
    "y": (BYTES, b"ab"),
    "t": (BOOL, True),
    "f": (BOOL, False),
    "when": (TIMESTAMP, Timestamp(1_700_000_000 * 10**9)),
    "span": (DURATION, Duration(90 * 10**9)),
    "li": (list_of(INT), [1, 2, 3]),
    "ls": (list_of(STRING), ["a", "bb", ""]),
    "lx": (list_of(DYN), [1, "a", True, None, 2.0, [1]]),
    "ms": (map_of(STRING, STRING), {"a": "b", "c": "1"}),
    "mx": (map_of(STRING, DYN), {"a": 1, "s": "x", "l": [1, 2], "m": {"k": True}}),
    "mi": (map_of(INT, STRING), {1: "one", 0: "zero"}),
    "mb": (map_of(BOOL, INT), {TRUE_KEY: 1, FALSE_KEY: 0}),
    "x": (DYN, {"a": [1, {"b": "c"}], "n": 5}),
    "n": (DYN, None),
    "w": (DYN, "text"),
    "q": (DYN, 4),
}
TYPED = Environment([Field(name, kind) for name, (kind, _) in VARIABLES.items()])
UNTYPED = Environment([Field(name, DYN) for name in VARIABLES])
CONTEXT = Values({name: value for name, (_, value) in VARIABLES.items()})

LEAVES = [
    *VARIABLES,
    *("0", "1", "-1", "2u", "1.0", "9223372036854775807", "true", "false", "null", '"a"', '""', 'b"a"', "[]", "{}"),
    *('duration("1s")', 'timestamp("2024-01-01T00:00:00Z")', "optional.none()", "optional.of(1)", "int", "string"),
    *('ip("10.0.0.1")', 'cidr("10.0.0.0/8")', "missing_variable"),
]
BINARY = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"]
METHODS_0 = [
    *("size()", "trim()", "reverse()", "lowerAscii()", "hasValue()", "value()", "getHours()", "getSeconds()"),
    *("distinct()", "sort()", "first()", "last()", "flatten()", "join()", "isLoopback()", "toJson()", "unredacted()"),
    *("upperAscii()", "getFullYear()", "family()", "masked()", "flattenRecursive()"),
]
METHODS_1 = [
    *("contains", "startsWith", "endsWith", "matches", "indexOf", "lastIndexOf", "split", "charAt", "substring", "or"),
    *("orValue", "join", "containsIP", "format", "flatten", "merge", "query", "stripPrefix", "getHours", "cookie"),
]
LOOPS = ["all", "exists", "exists_one", "map", "filter", "sortBy", "mapValues", "filterKeys", "optMap", "optFlatMap"]
LOOPS_2 = ["all", "exists", "existsOne", "transformList", "transformMap", "transformMapEntry"]
FUNCTIONS = [
    *("size", "int", "uint", "double", "string", "bytes", "bool", "type", "dyn", "timestamp", "duration", "json", "ip"),
    *("math.greatest", "math.abs", "math.ceil", "math.sign", "base64.encode", "base64.decode", "optional.of", "toJson"),
    *("lists.range", "optional.ofNonZeroValue", "sha256.encode", "url.encode", "fail", "strings.quote", "isIP", "cidr"),
]


# Forms of larger expressions: E any expression, the others one word of the list below.
FORMS = [
    *("(E B E)", "(E B E)", "(E B E)", "(E P E P E)", "(E && E && E)", "(E || E || E)", "!(E)", "-(E)", "(E ? E : E)"),
    *("E.S", "E.M(E)", "E.M(E)", "E[E]", "E[?E]", "F(E)", "F(E)", "has((E).a)", "[E, E]", "[E, ?E]", "{E: E}"),
    *("{E: E, ?E: E}", "E.L(N, E)", "E.L(N, E)", "E.T(k, v, E)", "E.map(N, E, E)", "cel.bind(N, E, E)"),
    *("default(E, E)", "coalesce(E, E, E)", "E.with(N, E)"),
]
WORDS = {
    "B": BINARY,
    "P": ["+", "-"],
    "S": ["a", "k", "?a", *METHODS_0],
    "M": METHODS_1,
    "F": FUNCTIONS,
    "L": LOOPS,
    "T": LOOPS_2,
    "N": ["v", "k", "i"],
}
HOLE = re.compile(r"\b[EBPSMFLTN]\b")


def expression(random: Random, depth: int) -> str:
    """An expression of at most `depth` levels."""
    if depth == 0 or random.random() < 0.15:
        return random.choice([*LEAVES, "v", "k"])

    def fill(hole: re.Match[str]) -> str:
        word = hole.group()
        return expression(random, depth - 1) if word == "E" else random.choice(WORDS[word])

    return HOLE.sub(fill, random.choice(FORMS))


EXPRESSIONS = st.builds(lambda seed, depth: expression(Random(seed), depth), st.integers(0, 2**48), st.integers(1, 4))
