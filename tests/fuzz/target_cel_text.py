"""Target `cel_text`: any text as an expression.

Promises: a program, or CelSyntaxError or CelCheckError whose problems have a place in the text; nothing else, in
bounded time. A plan holds no word of the text: names are generated, bound to functions of ours, or attributes that were
declared, and constants are numbers.
"""

from __future__ import annotations

from time import thread_time

from gatewright.cel.environment import Environment, Field
from gatewright.cel.errors import ExpressionError
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN, INT, STRING, ObjectType, list_of, map_of
from tests.fuzz.rig import require
from tests.oracles.plans import foreign, module_of

REQUEST = ObjectType(
    "request",
    (
        Field("method", STRING, "request_method"),
        Field("headers", map_of(STRING, STRING), "request_headers", lookup="request_header", fold=True),
        Field("body", STRING, "request_body", parsed="request_json"),
    ),
)
ENVIRONMENT = Environment(
    [Field("request", REQUEST), Field("x", DYN, "x"), Field("i", INT), Field("l", list_of(INT)), Field("jwt", DYN)]
)
ATTRIBUTES = frozenset(("request_method", "request_headers", "request_header", "request_body", "request_json", "x"))
SECONDS = 5.0
"""Of CPU for one text, instrumented: what takes longer is a hang."""

SEEDS = (
    b"request.method == 'GET' && request.headers['X-Foo'].startsWith(\"b\")",
    b"l.map(a, a * 2).filter(b, b > i).exists(k, v, k == v) ? json(request.body).a.b : jwt.?sub.orValue('')",
    b"{'a': 1, ?'b': x[?0]}.transformMap(k, v, v == null, {k: v}) == {1u: b'\\xff', true: 0x1f}",
    b"cel.bind(v, timestamp('2024-01-01T00:00:00Z') - duration('1h'), v < v || !has(x.`a-b`.c))",
    b"r'\\d+' + '''a\n\"b''' + '\\u00e9' + string(1.5e3) + x.matches('(a+)+$')",
    b"((((((((((x))))))))))[[[[[0]]]]]" + b"-" * 300,
    b"x" + b".a" * 300 + b" + 1" * 300,
    b"a.b.C{d: 1}",
    "'\U0001f600'.size() == 1 // \u2028".encode(),
)
LONGEST = 4096


def check(data: bytes) -> None:
    if len(data) > LONGEST:
        return
    text = data.decode("utf-8", "replace")
    start = thread_time()
    try:
        compile_expression(text, ENVIRONMENT)
    except ExpressionError as error:
        for problem in error.problems:
            lines = text.split("\n")
            inside = 1 <= problem.line <= len(lines) and 1 <= problem.column <= len(lines[problem.line - 1]) + 1
            require(inside and bool(problem.message), f"{text!r}: {problem!r} is not in the text")
        require(bool(error.problems), f"{text!r} is refused without a reason")
        _time(start, text)
        return
    _time(start, text)
    for careful in (False, True):
        plan, module = module_of(text, ENVIRONMENT, careful=careful)
        found = next(foreign(plan, module, ATTRIBUTES), None)
        require(found is None, f"{text!r}: the plan has {found}")


def _time(start: float, text: str) -> None:
    seconds = thread_time() - start
    require(seconds < SECONDS, f"{text!r} took {seconds:.1f} s")
