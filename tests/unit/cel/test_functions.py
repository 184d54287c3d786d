"""What the functions give, beyond the specification's own tests: helpers of the gateway, corners of the others."""

from __future__ import annotations

import pytest

from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.errors import CelError, Fault, OverBudget
from gatewright.cel.functions import STANDARD, json_text, optionals
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN, INT, STRING, ObjectType, list_of, map_of
from gatewright.cel.values import NONE, HeaderMap, Optional, Redacted, equals

HEADERS = HeaderMap(
    [("Accept", "a, b"), ("accept", "c"), ("Authorization", "Bearer x"), ("Cookie", 'one=1; two="2"; three=a=b')]
)
DEEP = '{"a":' * 2000 + "1" + "}" * 2000
VARIABLES = {
    "h": (map_of(STRING, STRING), HEADERS),
    "jwt": (map_of(STRING, DYN), {"rawToken": Redacted("secret"), "sub": "alice", "n": 2**53}),
    "deep": (STRING, DEEP),
    "nested": (DYN, {"a": {"b": [1, {"c": True}]}, "d": "e"}),
    "uri": (STRING, "/p?a=1&b=x%20y&a=2#f"),
    "surrogate": (STRING, "\ud800"),
}
ENVIRONMENT = Environment([Field(name, kind) for name, (kind, _) in VARIABLES.items()])
CONTEXT = Values({name: value for name, (_, value) in VARIABLES.items()})


def value(text: str) -> object:
    return compile_expression(text, ENVIRONMENT).evaluate(CONTEXT)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("json('{\"a\": [1, 2.5, null, true]}').a", [1, 2.5, None, True]),
        ("json('[9223372036854775807, 9223372036854775808]')", [2**63 - 1, float(2**63)]),
        ("json(b'1') + 1", 2),
        ("toJson({'a': [1, 2u, 1.5, b'x', null, duration('1s')]})", '{"a":[1,2,1.5,"eA==",null,"1s"]}'),
        ("{true: 1, 2: 'é'}.toJson()", '{"true":1,"2":"é"}'),
        ("unvalidatedJwtPayload('x.eyJzdWIiOiJhIn0.y').sub", "a"),
        ("'a'.with(x, x + x)", "aa"),
        ("{'a': 1, 'b': 2}.mapValues(v, v * 10)", {"a": 10, "b": 20}),
        ("{'a': 1, 'b': 2}.filterKeys(k, k != 'a')", {"b": 2}),
        ("{'a': 1}.merge({'a': 2, 'b': 3})", {"a": 2, "b": 3}),
        ("nested.flatten()", {"a.b": [1, {"c": True}], "d": "e"}),
        ("nested.flattenRecursive()", {"a.b.0": 1, "a.b.1.c": True, "d": "e"}),
        ("variables().jwt.sub", "alice"),
        ("base64.encode('hi') + base64Encode(b'hi')", "aGk=aGk="),
        ("string(base64.decode('_-8')  + base64Decode('aGk=')) == ''", None),
        ("base64.decode('_-8=')", b"\xff\xef"),
        ("url.encode('a b/é')", "a%20b%2F%C3%A9"),
        ("url.decode('a%20b+c')", "a b+c"),
        ("form.encode({'a': 'b c', 'd': ['1', '2']})", "a=b+c&d=1&d=2"),
        ("form.decode('a=b+c&d=1&d=2')", {"a": "b c", "d": ["1", "2"]}),
        ("sha1.encode('a')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        ("sha256.encode(b'')", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("md5.encode('a')", "0cc175b9c0f1b6a831c399e269772661"),
        ("random() >= 0.0 && random() < 1.0", True),
        (
            "lists.range(60).all(i, uuid().matches("
            "'^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'))",
            True,
        ),
        ("lists.range(60).map(i, uuid()).distinct().size()", 60),
        ("default(jwt.nope, 'x')", "x"),
        ("default(null, 'x')", "x"),
        ("coalesce(jwt.nope, null, fail('no'), 7, fail('never'))", 7),
        ("'aXbX'.regexReplace('X(.?)', '<$1>')", "a<b>X"),
        ("'aXb'.regexReplace('X(.)', '<\\\\1>')", "a<b>"),
        ("'aXb'.regexReplace('X(?P<last>.)', '<${last}>')", "a<b>"),
        ("'aXb'.regexReplace('X(.)', '$$$2${none}.')", "a$."),
        ("'a1'.regexReplace('[0-9]', '')", "a"),
        ("'prefix-x'.stripPrefix('prefix-') + 'x.js'.stripSuffix('.js')", "xx"),
        ("h.accept", "a, b, c"),
        ("h.split()['accept']", ["a", "b", "c"]),
        ("h.raw()['accept']", ["a, b", "c"]),
        ("h.redacted()['authorization']", "<redacted>"),
        ("h.join()['accept']", "a, b, c"),
        ("[h.cookie('one'), h.cookie('two'), h.cookie('three')]", ["1", "2", "a=b"]),
        ("uri.query('b')", "x y"),
        ("uri.addQuery('c', 'd e')", "/p?a=1&b=x%20y&a=2&c=d%20e#f"),
        ("uri.setQuery('a', '3')", "/p?a=3&b=x%20y#f"),
        ("'/p'.setQuery('a', '3')", "/p?a=3"),
        ("'token: ' + jwt.rawToken", "token: <redacted>"),
        ("toJson(jwt.rawToken)", '"<redacted>"'),
        ("jwt.rawToken.unredacted()", "secret"),
        ("type(jwt.rawToken) == string", True),
        ("[3, 1, 2].sort() + [1, 1u, 1.0, 2].distinct()", [1, 2, 3, 1, 2]),
        ("['bb', 'a'].sortBy(x, x.size())", ["a", "bb"]),
        ("[[1], [2, [3]]].flatten()", [1, 2, [3]]),
        ("[[1], [2, [3]]].flatten(2)", [1, 2, 3]),
        ("[1, 2, 3].slice(1, 3) + lists.range(2) + [1, 2].reverse()", [2, 3, 0, 1, 2, 1]),
        ("[1, 2].first().value() + [1, 2].last().value()", 3),
        ("sets.contains([1, 2], [dyn(2.0)]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2])", True),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP('11.0.0.0')", True),
        ("cidr('10.0.0.0/8').containsIP('::ffff:0a01:0203')", True),
        ("isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33') && !isIP('1.2.3') && !isIP('01.2.3.4')", True),
        ("string(cidr('2001:DB8::1/32').masked())", "2001:db8::/32"),
        ("math.greatest([1, 2.5, 2u]) == 2.5 && math.least(1, 2u) == 1 && math.sqrt(9.0) == 3.0", True),
        ("[math.round(-0.4), math.round(2.5), math.trunc(-1.9)]", [-0.0, 3.0, -1.0]),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'aaa'.replace('', '-')", "-a-a-a-"),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'%5d'.size()", 3),
        ("timestamp('2024-02-29T12:00:00+02:00').getHours('+02:00')", 12),
        ("string(timestamp('0001-01-01T00:00:00Z'))", "0001-01-01T00:00:00Z"),
        ("string(duration('-1.5s')) + string(duration('1h1ms'))", "-1.5s3600.001s"),
        ("duration('1500ms').getMilliseconds()", 500),
        ("{1: 'a'}[dyn(1u)] + {1u: 'b'}[dyn(1.0)]", "ab"),
        ("true in {1: 2} || 1 in {true: 2}", None),
        ("dyn(true) == 1 || dyn(1) == true || dyn(timestamp(0)) == 0 || dyn('a') == b'a'", False),
        ("[true] == dyn([1])", False),
        ("optional.of(1) == optional.of(1.0) && optional.none() != optional.of(null)", None),
    ],
)
def test_the_value_of(text: str, wanted: object) -> None:
    if wanted is None:
        with pytest.raises((CelError, ValueError)):
            value(text)
        return
    found = value(text)
    assert equals(found, wanted), found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("json('{')", "not JSON"),
        ("json('NaN')", "not JSON"),
        ("json(deep)", "nested too deeply"),
        ("json(r'[\"\\ud800\"]')", "half of a surrogate pair"),
        ("json(r'{\"\\uDEAD\": 1}')", "half of a surrogate pair"),
        ("json(b'\\xff')", "UTF-8"),
        ("toJson(surrogate).size() + bytes(surrogate).size()", "not valid Unicode"),
        ("surrogate.matches('a+')", "not valid Unicode"),
        ("unvalidatedJwtPayload('a.b')", "not a JWT"),
        ("base64.decode('*')", "not base64"),
        ("h.cookie('none')", "no such cookie"),
        ("uri.query('none')", "no such query parameter"),
        ("url.decode('%ff')", "UTF-8"),
        ("[1, 'a'].sort()", "cannot be ordered"),
        ("[1].slice(0, 2)", "slice"),
        ("jwt.nope", "no such key: nope"),
        ("timestamp('2024-01-01T00:00:00Z').getHours('Mars/Olympus')", "not a time zone"),
        ("timestamp('2024-01-01T00:00:00Z').getHours('../../etc/passwd')", "not a time zone"),
        ("'%s %s'.format(['a'])", "no argument"),
        ("'%.2000f'.format([1.0])", "precision"),
        ("int('1_000')", "not an int"),
        ("int('9' + '9999999999999999999')", "not an int"),
        ("double('1e5x')", "not a double"),
        ("{1: 1, 1u: 2}", "repeated key"),
        ("optional.none().value()", "no value"),
        ("dyn(1) < 'a'", "no such overload: < of int, string"),
    ],
)
def test_the_error_of(text: str, message: str) -> None:
    with pytest.raises(CelError, match=message):
        value(text)


def test_every_row_of_the_tables_is_well_formed() -> None:
    for name, overloads in STANDARD.items():
        assert overloads, name
        for overload in overloads:
            assert callable(overload.implementation)
            assert not overload.receiver or overload.params, overload
            assert overload.name == name


def test_two_forms_never_take_the_same_arguments() -> None:
    for overloads in STANDARD.values():
        seen = [(one.receiver, one.variadic, tuple(map(str, one.params))) for one in overloads]
        assert len(seen) == len(set(seen)), overloads[0].name


def test_deep_values_are_compared_or_refused_but_never_overflow() -> None:
    inner: list[object] = []
    for _ in range(5000):
        inner = [inner]
    context = Values({"a": inner, "b": [inner]})
    program = compile_expression("a == b || '%s'.format([a]) == ''", Environment([Field("a", DYN), Field("b", DYN)]))
    with pytest.raises(CelError, match="nested too deeply"):
        program.evaluate(context)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{'a': 1}[?'a'].orValue(1 / z)", 1),
        ("dyn({'a': 1})[?'a'].orValue(fail('no a'))", 1),
        ("{'a': 1}[?'a'].or(optional.of(1 / z)).value()", 1),
        ("{'a': 1}[?'b'].or({'a': 1}[?'a']).orValue([1, 2].map(x, x / z)[0])", 1),
        ("optional.none().orValue([4].map(x, x + z)[0])", 4),
    ],
)
def test_what_stands_for_an_empty_optional_is_evaluated_only_then(text: str, wanted: int) -> None:
    environment = Environment([Field("z", INT)])
    assert compile_expression(text, environment).evaluate(Values({"z": 0})) == wanted


@pytest.mark.parametrize(("levels", "left"), [(65, 1), (66, {"a": 1}), (67, {"a": {"a": 1}})])
def test_flattening_ends_after_64_levels_below_the_first(levels: int, left: object) -> None:
    nested: object = 1
    for _ in range(levels):
        nested = {"a": nested}
    environment = Environment([Field("m", map_of(STRING, DYN))])
    found = compile_expression("m.flattenRecursive()", environment).evaluate(Values({"m": nested}))
    assert found == {".".join("a" * min(levels, 65)): left}


def test_alternatives_of_optionals_as_functions() -> None:
    """Plans mostly decide them without a call."""
    one, two = Optional(1), Optional(2)
    assert [optionals.either(one, two), optionals.either(NONE, two), optionals.either(one, NONE)] == [one, two, one]
    assert [optionals.or_value(one, 2), optionals.or_value(NONE, 2)] == [1, 2]
    for wrong in ((1, two), (NONE, 2)):
        with pytest.raises(Fault):
            optionals.either(*wrong)


@pytest.mark.parametrize("kind", [list, dict])
def test_json_has_a_hundred_levels(kind: type) -> None:
    def nested(levels: int) -> object:
        value: object = 1
        for _ in range(levels):
            value = [value] if kind is list else {"a": value}
        return value

    program = compile_expression("toJson(m)", Environment([Field("m", DYN)]))
    opening, closing = ("[", "]") if kind is list else ('{"a":', "}")
    assert program.evaluate(Values({"m": nested(100)})) == opening * 100 + "1" + closing * 100
    with pytest.raises(CelError, match="toJson: nested too deeply"):
        program.evaluate(Values({"m": nested(101)}))


@pytest.mark.parametrize("text", ["a == b", "a != b", "a in [b]", "optional.of(a) == optional.of(b)"])
def test_what_is_nested_too_deeply_is_not_compared(text: str) -> None:
    """Neither is it taken for equal, nor for different."""
    one: list[object] = []
    two: list[object] = []
    for _ in range(5000):
        one, two = [one], [two]
    program = compile_expression(text, Environment([Field("a", DYN), Field("b", DYN)]))
    with pytest.raises(OverBudget, match="values nested too deeply to compare"):
        program.evaluate(Values({"a": one, "b": two}))


def test_json_that_is_kept_for_several_expressions() -> None:
    good = json_text.read(b'[{"a": 1}]', 2)
    assert good.text == b'[{"a": 1}]' and good.result() == [{"a": 1}] and good.result() is good.result()
    for text, most, error in ((b"[", 2, "not JSON"), (b"[1, 2, 3]", 2, "JSON of more than 2 keys")):
        bad = json_text.read(text, most)
        raised = []
        for _ in range(2):
            with pytest.raises(CelError, match=error) as caught:
                bad.result()
            raised.append(caught.value)
        assert raised[0] is not raised[1] and type(raised[0]) is type(bad.error)


def test_types_of_objects_are_themselves_alone() -> None:
    one, two = ObjectType("a", []), ObjectType("a", [])
    assert one in [one] and one != two and len({one, two, one}) == 2 and list_of(one) != list_of(two)


def test_optionals_as_values_of_python() -> None:
    """What compares them there finds what the language finds."""
    null = Optional(None)
    assert null not in [NONE] and NONE not in [null] and Optional(NONE) not in [NONE, null]
    assert Optional(1) == Optional(1.0) and Optional(1) != Optional(2) and Optional(1) != 1
