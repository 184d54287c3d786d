"""Random expressions that make sense: each has a type, and so has everything inside it.

`FORMS` says how an expression of a type is made of others; a hole `<int>` stands for any expression of that type. The
variables have random values. Whatever is drawn comes from one `Random`, so that hypothesis replays a case by its seed.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from gatewright.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, Type, list_of, map_of
from gatewright.cel.values import Duration, Timestamp, Uint
from tests.oracles.peers import Case

TYPES: dict[str, Type] = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "string": STRING,
    "bytes": BYTES,
    "ints": list_of(INT),
    "strings": list_of(STRING),
    "map": map_of(STRING, INT),
    "json": DYN,
    "time": TIMESTAMP,
    "span": DURATION,
}
# What both libraries know.
CORE: dict[str, tuple[str, ...]] = {
    "int": (
        *("(<int> + <int>)", "(<int> - <int>)", "(<int> * <int>)", "(<int> / <int>)", "(<int> % <int>)", "-(<int>)"),
        *("size(<string>)", "<strings>.size()", "size(<ints>)", "size(<map>)", "<bytes>.size()", "int(<string>)"),
        *("int(<uint>)", "int(<double>)", "<ints>[<int>]", "<map>[<string>]", "(<bool> ? <int> : <int>)"),
        *("<time>.getHours()", "<time>.getFullYear()", "<time>.getDayOfWeek()", "<time>.getDayOfYear()"),
        *("<time>.getMinutes('+05:30')", "<time>.getDate()", "<time>.getDayOfMonth()", "<time>.getMonth()"),
        *("<span>.getSeconds()", "<span>.getHours()", "<span>.getMinutes()", "int(<time>)"),
    ),
    "uint": (
        *("(<uint> + <uint>)", "(<uint> - <uint>)", "(<uint> * <uint>)", "(<uint> / <uint>)", "(<uint> % <uint>)"),
        *("uint(<int>)", "uint(<string>)", "(<bool> ? <uint> : <uint>)"),
    ),
    "double": (
        *("(<double> + <double>)", "(<double> - <double>)", "(<double> * <double>)", "(<double> / <double>)"),
        *("double(<int>)", "double(<uint>)", "-(<double>)", "(<bool> ? <double> : <double>)"),
    ),
    "bool": (
        *(
            "(<int> == <int>)",
            "(<int> < <int>)",
            "(<uint> >= <uint>)",
            "(<double> <= <double>)",
            "(<double> == <double>)",
        ),
        *("(<string> == <string>)", "(<string> != <string>)", "(<string> < <string>)", "(<bytes> == <bytes>)"),
        *("(<bool> && <bool>)", "(<bool> || <bool>)", "(<bool> && <bool> && <bool>)", "!(<bool>)"),
        *("(<bool> ? <bool> : <bool>)", "(<bool> == <bool>)", "(<time> < <time>)", "(<span> >= <span>)"),
        *("(<int> in <ints>)", "(<string> in <strings>)", "(<string> in <map>)", "(<ints> == <ints>)"),
        *(
            "(<strings> == <strings>)",
            "(<map> == <map>)",
            "<string>.startsWith(<string>)",
            "<string>.endsWith(<string>)",
        ),
        *("<string>.contains(<string>)", "<string>.matches(<pattern>)"),
        *("<ints>.exists(<i>, <bool>)", "<ints>.all(<i>, <bool>)", "<ints>.exists_one(<i>, <bool>)"),
        *("<strings>.exists(<s>, <bool>)", "<map>.all(<s>, <bool>)", "(<time> == <time>)", "(<bytes> < <bytes>)"),
    ),
    "string": (
        *("(<string> + <string>)", "string(<int>)", "string(<uint>)", "string(<bytes>)", "<strings>[<int>]"),
        "(<bool> ? <string> : <string>)",
    ),
    "bytes": ("(<bytes> + <bytes>)", "bytes(<string>)", "(<bool> ? <bytes> : <bytes>)"),
    "ints": (
        *("[<int>, <int>]", "(<ints> + <ints>)", "<ints>.map(<i>, <int>)", "<ints>.filter(<i>, <bool>)"),
        *("<strings>.map(<s>, <int>)", "(<bool> ? <ints> : <ints>)"),
    ),
    "strings": (
        *("[<string>, <string>]", "(<strings> + <strings>)", "<strings>.map(<s>, <string>)"),
        *("<strings>.filter(<s>, <bool>)", "<ints>.map(<i>, <string>)"),
    ),
    "map": ("{<string>: <int>}", "{<string>: <int>, <string>: <int>}", "(<bool> ? <map> : <map>)"),
    "time": ("(<time> + <span>)", "(<time> - <span>)", "(<bool> ? <time> : <time>)"),
    "span": ("(<time> - <time>)", "(<span> + <span>)", "(<span> - <span>)"),
}
# What cel-cpp has beside that.
MORE: dict[str, tuple[str, ...]] = {
    "int": (
        *("<string>.indexOf(<string>)", "<string>.lastIndexOf(<string>)", "math.greatest(<int>, <int>)"),
        *(
            "math.abs(<int>)",
            "math.bitAnd(<int>, <int>)",
            "math.bitShiftLeft(<int>, <int>)",
            "cel.bind(<i>, <int>, <int>)",
        ),
        *("<ints>[?<int>].orValue(<int>)", "<span>.getMilliseconds()", "math.sign(<int>)", "<json>.?n.orValue(<int>)"),
    ),
    "uint": ("math.least(<uint>, <uint>)", "uint(<double>)", "math.bitOr(<uint>, <uint>)"),
    "double": (
        *("math.ceil(<double>)", "math.round(<double>)", "math.trunc(<double>)", "math.sign(<double>)"),
        *("math.least(<double>, <double>)", "double(<string>)", "math.abs(<double>)"),
    ),
    "bool": (
        *(
            "has(<json>.a)",
            "has(<json>.b.c)",
            "math.isNaN(<double>)",
            "<map>[?<string>].hasValue()",
            "optional.of(<int>) == optional.of(<int>)",
        ),
        *("sets.contains(<ints>, <ints>)", "sets.intersects(<strings>, <strings>)", "(dyn(<int>) == dyn(<double>))"),
        *("(dyn(<int>) < dyn(<uint>))", "(dyn(<uint>) == dyn(<int>))", "(<json> == <json>)", "bool(<string>)"),
        *("<ints>.exists(k, <i>, <bool>)", "<map>.all(k, <i>, <bool>)", "cel.bind(<s>, <string>, <bool>)"),
    ),
    "string": (
        *("<string>.charAt(<int>)", "<string>.substring(<int>)", "<string>.substring(<int>, <int>)", "<string>.trim()"),
        *(
            "<string>.replace(<string>, <string>)",
            "<string>.lowerAscii()",
            "<string>.upperAscii()",
            "<strings>.join('-')",
        ),
        *("<string>.reverse()", "strings.quote(<string>)", "'%s %d'.format([<string>, <int>])", "string(<bool>)"),
        *("base64.encode(<bytes>)", "'%s'.format([<strings>])", "string(<time>)", "'%x'.format([<int>])"),
        *(
            "'%.2f'.format([<double>])",
            "<string>.replace(<string>, <string>, <int>)",
            "string(<span>)",
            "string(<double>)",
        ),
    ),
    "bytes": ("base64.decode(<base64>)",),
    "ints": (
        *(
            "<ints>.sort()",
            "<ints>.reverse()",
            "<ints>.distinct()",
            "<ints>.slice(<int>, <int>)",
            "lists.range(<small>)",
        ),
        *(
            "<ints>.transformList(k, <i>, <int>)",
            "[<ints>, <ints>].flatten()",
            "<ints>.sortBy(<i>, <int>)",
            "[?<ints>[?0]]",
        ),
    ),
    "strings": (
        *("<string>.split(<separator>)", "<string>.split(<separator>, <int>)", "<strings>.distinct()"),
        *("<strings>.sort()", "<map>.filter(<s>, <bool>).sort()"),
    ),
    "map": ("{?<string>: <ints>[?<int>]}",),
    "json": ("<json>.a", "<json>.b", "<json>['c']", "<json>[<int>]", "<json>[<string>]"),
    "time": ("timestamp(<int>)", "timestamp('0001-01-01T00:00:00Z')", "timestamp('9999-12-31T23:59:59.999Z')"),
}
LITERALS: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "2", "-1", "7", "9223372036854775807", "(-9223372036854775807 - 1)", "0x1f"),
    "uint": ("0u", "1u", "5u", "18446744073709551615u"),
    "double": ("0.0", "1.5", "-2.5", "1e308", "3.0", "0.5"),
    "bool": ("true", "false"),
    "string": ("''", "'a'", "'b'", "'-'", "'ab,c'", "'é'", "'12'", "'1.5'", "'😀x'", "' z '"),
    "bytes": ("b''", "b'ab'", "b'\\xff'"),
    "ints": ("[]", "[1, 2, 3]", "[3, 1, 3]"),
    "strings": ("[]", "['a', 'b']", "['c', 'a', 'c']"),
    "map": ("{}", "{'a': 1, 'b': 2}"),
    "json": ("dyn({'a': 1, 'b': {'c': 'x'}})",),
    "time": ("timestamp('2024-02-29T23:59:59Z')", "timestamp('2009-02-13T23:31:30Z')"),
    "span": ("duration('1s')", "duration('-90m')", "duration('1h30m')", "duration('0s')"),
    "pattern": ("'a+'", "'^[a-c]*$'", "'b|c'", "'.'"),
    "separator": ("'-'", "','", "'ab'"),
    "base64": ("'YWI='", "'YQ=='", "'YWI'", "'Y'", "'*'", "''"),
    "small": ("0", "1", "3"),
}
LOCALS = {"i": "int", "s": "string"}
HOLE = re.compile(r"<(\w+)>")


def expression(random: Random, kind: str, depth: int, forms: dict[str, tuple[str, ...]], scope: set[str]) -> str:
    """An expression of a type; `scope` are the macros' names that may be used."""
    if kind in LOCALS:
        return kind
    named = [name for name, of in LOCALS.items() if of == kind and name in scope]
    if depth <= 0 or kind not in forms or random.random() < 0.1:
        return random.choice([*LITERALS[kind], *([f"v_{kind}"] * 4 if kind in TYPES else []), *named * 4])
    form = random.choice(forms[kind])
    inside = set(scope)

    def fill(hole: re.Match[str]) -> str:
        found = expression(random, hole.group(1), depth - 1, forms, inside)
        inside.update({hole.group(1)} & LOCALS.keys())  # what comes behind the name may use it
        return found

    return HOLE.sub(fill, form)


STRINGS = ("", "a", "b", "ab", "a,b", "x-y", "é", "10", "-3", "Ab c")
NUMBERS = (0, 1, 2, 3, -1, 12, 2**31, 2**63 - 1, -(2**63))


def json_value(random: Random, depth: int) -> Any:
    choice = random.randrange(8 if depth else 4)
    if choice < 4:
        return (None, True, random.choice(STRINGS), float(random.randrange(-3, 9)) / 2)[choice]
    if choice == 4:
        return [json_value(random, depth - 1) for _ in range(random.randrange(4))]
    return {name: json_value(random, depth - 1) for name in "abcn" if random.random() < 0.6}


def context(random: Random) -> dict[str, Any]:
    """A value for each variable."""
    return {
        "v_int": random.choice(NUMBERS),
        "v_uint": Uint(random.choice((0, 1, 4, 2**64 - 1))),
        "v_double": random.choice((0.0, -0.0, 1.25, -3.5, 1e300, 100.0)),
        "v_bool": random.random() < 0.5,
        "v_string": random.choice(STRINGS),
        "v_bytes": random.choice(STRINGS).encode(),
        "v_ints": [random.choice(NUMBERS) for _ in range(random.randrange(4))],
        "v_strings": [random.choice(STRINGS) for _ in range(random.randrange(4))],
        "v_map": {random.choice(STRINGS): random.choice(NUMBERS) for _ in range(random.randrange(4))},
        "v_json": json_value(random, 2),
        "v_time": Timestamp(random.randrange(-(10**9), 4 * 10**9) * 10**9),
        "v_span": Duration(random.randrange(-(10**5), 10**5) * 10**9),
    }


DECLARED = {f"v_{name}": kind for name, kind in TYPES.items()}
FULL = {kind: CORE.get(kind, ()) + MORE.get(kind, ()) for kind in TYPES}


def case(seed: int, depth: int, forms: dict[str, tuple[str, ...]]) -> Case:
    """The random case of a seed."""
    random = Random(seed)
    kind = random.choice(list(forms))
    text = expression(random, kind, depth, forms, set())
    return Case(text, DECLARED, context(random))
