"""What functions charge for a long argument, in steps and in bytes built: the rules of `budget`, counted by hand."""

from __future__ import annotations

import pytest

from gatewright.cel import budget
from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN, INT, STRING, list_of, map_of

MILLION = 1_000_000
ENVIRONMENT = Environment(
    [
        Field("text", STRING),
        Field("blank", STRING),
        Field("q", STRING),
        Field("many", list_of(INT)),
        Field("few", list_of(INT)),
        Field("words", list_of(STRING)),
        Field("map", map_of(STRING, DYN)),
        Field("document", STRING),
        Field("fields", STRING),
        Field("escaped", STRING),
        Field("dots", STRING),
        Field("commas", STRING),
        Field("lines", map_of(STRING, STRING)),
        Field("headers", map_of(STRING, STRING)),
    ]
)
CONTEXT = Values(
    {
        "text": "ab" * (MILLION // 2),
        "escaped": "%41" * 20_000,
        "dots": "." * MILLION,
        "blank": " " * MILLION,
        "commas": "," * 4096,
        "q": "q",
        "many": list(range(20_000)),
        "few": list(range(300)),
        "words": ["word"] * 20_000,
        "map": {f"k{number}": number for number in range(10_000)},
        "document": f"[{'1,' * 9_999}1]",
        "lines": {f"x-{number}": "a, b, c" for number in range(1000)},
        "headers": {f"x-{number}": "" for number in range(5000)},
        "fields": "&".join(["ab"] * 20_000),
    }
)


@pytest.fixture
def charged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """Steps and bytes at each look; none of them ends an evaluation."""
    seen: list[tuple[float, float]] = []
    monkeypatch.setattr(budget, "look", lambda spent: seen.append((spent[budget.STEPS], spent[budget.BUILT])))
    return seen


@pytest.mark.parametrize(
    ("text", "steps", "built"),
    [
        # A search looks at 256 bytes in a step, a pattern that is not known before at 64.
        ("text.indexOf('q')", MILLION / 256, 0),
        ("text.indexOf('q', 1)", MILLION / 256, 0),
        ("text.lastIndexOf('q')", MILLION / 256, 0),
        ("text.lastIndexOf('q', 5)", MILLION / 256, 0),
        # From the back, more than a few characters: in the text turned around.
        ("text.lastIndexOf('q' + commas)", MILLION / 256, 4097 + 2 * MILLION),
        ("text.matches(q)", 1 + (MILLION + 1) / 64, 0),
        ("text.matches('q+')", 1 + MILLION / 64, 0),
        ("text.matches('q{2}')", 1 + MILLION / 64, 0),
        ("text.contains('q')", MILLION / 256, 0),
        # What a function makes of a text is as long, or says how much longer it is; what is put together counts twice.
        ("text + 'x'", 0, MILLION + 1),
        ("text + 'b' + text + 'b' + text + 'b' + text + 'b' + text", 0, 5 * MILLION + 4),
        ("bytes(text)", 0, MILLION),
        ("text.lowerAscii()", 0, MILLION),
        ("text.upperAscii()", 0, MILLION),
        ("text.trim()", 0, MILLION),
        ("text.reverse()", 0, MILLION),
        ("text.substring(1)", 0, MILLION - 1),
        ("text.substring(1, 600000)", 0, 599_999),
        ("text.replace('a', 'bbb')", 0, MILLION + 2 * MILLION // 2),
        ("text.replace('a', '')", 0, MILLION),
        ("text.replace('a', 'bb')", 0, MILLION + MILLION // 2),
        ("text.replace('', '-')", 0, MILLION + MILLION + 1),
        ("text.replace('a', 'bbb', 60000)", 0, MILLION + 2 * 60_000),
        ("text.replace('a', '', -9)", 0, MILLION),
        ("text.replace('a', 'bb', -9)", 0, MILLION + MILLION // 2),
        ("text.replace('a', 'bb', 9223372036854775807)", 0, MILLION + MILLION // 2),
        ("commas.split(',').size() + many.reverse().size()", 0, 4096 + 56 * 4097 + 8 * 20_000),
        ("text.split('a')", 0, MILLION + 56 * (MILLION // 2 + 1)),
        ("text.split('a', 9)", 0, MILLION + 56 * 9),
        ("text.split('a', -9)", 0, MILLION + 56 * (MILLION // 2 + 1)),
        ("text.split('a', 9223372036854775807)", 0, MILLION + 56 * (MILLION // 2 + 1)),
        ("text.split('')", 0, 9 * MILLION),
        ("text.split('', 9)", 0, 9 * MILLION),
        ("strings.quote(text)", MILLION / 64, 2 * MILLION),
        ("words.join('--')", 0, 6 * 20_000),
        ("base64.encode(text)", 0, MILLION * 4 // 3 + 4),
        # What is written with escapes: three characters in a step, and four steps for each escape that is read.
        ("url.encode(text)", MILLION / 3, 3 * MILLION),
        ("url.decode(text)", 0, MILLION),
        ("url.decode(escaped)", 4 * 20_000, 60_000),
        ("form.encode(text)", MILLION / 3, 3 * MILLION),
        ("form.encode({'a': text})", MILLION / 3, 56 + 3 + 3 * MILLION),
        ("form.decode(escaped)", 4 * 20_000, 60_000 + 64),
        ("('/?a=' + escaped).query('a')", 4 * 20_000, 60_004 + 60_002),
        ("('/?a=' + escaped).setQuery('a', 'b')", 4 * 20_000, 60_004 + 3 + 3 + 5),
        ("'%s'.format([text])", 0, 2 + 2 * MILLION),
        ("toJson(text)", 0, 2 + 2 * MILLION),
        ("toJson(many)", 0, 8 * 20_000 + 108_891),  # the list, then its text
        ("map.toJson()", 0, 64 * 10_000 + 127_781),
        # A map that is made flat: 64 for each entry, and its name; at every level, also for what was a level.
        ("map.flatten().size() + many.reverse().size()", 0, 10_000 * 64 + 48_890 + 8 * 20_000),
        ("map.flattenRecursive().size() + many.reverse().size()", 0, 64 + 10_000 * 64 + 48_890 + 8 * 20_000),
        ("sha256.encode(text)", 0, MILLION),
        ("base64.decode(text)", 0, MILLION),
        ("form.decode(fields)", 40_000, 3 * 20_000 - 1 + 64 * 20_000),
        ("form.encode(map)", 0, 10_000 * 56 + 3 * (10_000 * 2 + 2 * 38_890 - 10_000)),
        ("json(document)", 9_999 / 2, 4 * 20_001),  # every second comma is a step
        ("json(bytes(document))", 9_999 / 2, 20_001 + 4 * 20_001),
        ("text.regexReplace('q', 'x')", 1 + MILLION / 32, 0),
        ("text.regexReplace('^ab', 'xyz')", 1 + MILLION / 32, MILLION + 3),
        ("'/p'.addQuery('a', text)", MILLION / 3, 3 + 3 * MILLION + MILLION + 5),
        ("'/p'.setQuery('a', text)", MILLION / 3, 3 + 3 * MILLION + MILLION + 5),
        ("default(unvalidatedJwtPayload(dots), {})", 0, MILLION),
        # A list takes eight bytes for each item, a sorted one twice that; a map 64 for each entry.
        ("(many + [many]).flatten()", 0, 8 * (20_001 + 20_001 + 20_000 + 20_000)),
        ("map.map(k, k).distinct()", 10_000, 8 * 10_000),
        ("lists.range(20000)", 0, 36 * 20_000),
        ("many.reverse()", 0, 8 * 20_000),
        ("many.flatten()", 0, 8 * 20_000),
        ("[many].flatten()", 0, 8 + 8 * 20_000),
        ("many.slice(1, 20000)", 0, 8 * 19_999),
        ("many + [1]", 0, 8 * 20_001),
        # A pass of a loop is a step, and another for each eight parts of what is done in it.
        ("many.map(e, e)", 20_000, 0),
        ("many.map(e, e + 1 + 2 + 3)", 20_000, 0),
        ("many.map(e, e + 1 + 2 + 3 + 4 + 5 + 6 + 7)", 2 * 20_000, 0),
        ("many.map(e, e == 1 || e == 2 || e == 3, e == 4 || e == 5 || e == 6)", 3 * 20_000, 0),
        ("many.sort()", 20_000 * 15 / 4, 16 * 20_000),
        # What one call does in one go is charged by its time: 200 ns are a step.
        ("headers.join()", 5000 * 1500 / 200, 64 * 5000),
        ("map.merge({'a': 1})", 0, 64 * 10_001),
        # Looking for one: 64 elements in a step, and 16 where they have to be compared by the language's rules.
        ("dyn(-1) in many", 20_000 / 64 + 20_000 / 16, 0),
        ("few.distinct()", 300 + 300 * 299 / 2 / 8, 0),
        # Views of headers: 64 bytes for each value.
        ("headers.values('none')", 5000 * 1500 / 200, 16 * 5000),
        ("lines.split()", 0, 64 * 3000),
        ("lines.raw()", 0, 64 * 1000),
        ("lines.join()", 0, 64 * 1000),
        ("lines.redacted()", 0, 2 * 64 * 1000),
        # Comparing looks into each list and map: sixteen elements in a step.
        ("many == many", 1 + 20_000 / 16, 0),
        ("many != many", 1 + 20_000 / 16, 0),
        ("dyn(map) == map", 1 + 10_000 / 16, 0),
        ("dyn(many) in [many]", 1 / 64 + 1 + 20_000 / 16, 0),
        ("optional.of(many) == optional.of(many)", 1 + 1 + 20_000 / 16, 0),
        # Comparing each with each.
        ("sets.contains(few, few)", 300 * 301 / 8, 0),
        ("sets.intersects(many, [-1, -2])", 20_000 * 3 / 8, 0),
    ],
)
def test_what_a_function_charges(text: str, steps: float, built: float, charged: list[tuple[float, float]]) -> None:
    compile_expression(text, ENVIRONMENT).evaluate(CONTEXT)
    assert charged[-1] == (steps, built)
