"""What one evaluation may cost: steps, bytes and time, with the place where it ended; never absorbed."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from gatewright.cel import budget
from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.errors import OverBudget
from gatewright.cel.operators import add
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN, STRING, list_of
from gatewright.cel.values import Redacted

ENVIRONMENT = Environment([Field("l", list_of(DYN)), *(Field(name, STRING) for name in ("s", "big", "deep", "many"))])
CONTEXT = Values(
    {
        "l": list(range(300)),
        "s": "ab",
        "big": "ab" * 1_000_000,
        "deep": "[" * 2000 + "]" * 2000,
        "many": f"[{'1,' * 300_000}1]",
    }
)


def shared(result: str) -> str:
    """Two lists of two lists of two lists ...: small in memory, 2 ** 26 numbers for who looks at all of them."""
    for level in range(26, 0, -1):
        for name in "vw":
            result = f"cel.bind({name}{level}, [{name}{level - 1}, {name}{level - 1}], {result})"
    return f"cel.bind(v0, l[0], cel.bind(w0, l[0], {result}))"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("l.map(a, l.map(b, l.map(c, c)))", "steps"),
        ("l.all(a, l.all(b, l.all(c, true)))", "steps"),
        ("lists.range(200000).size()", None),
        ("lists.range(200000).map(a, a)", "steps"),
        ("lists.range(100000000)", "bytes built"),
        ("cel.bind(a, big + big, cel.bind(b, a + a, b + b))", "bytes built"),
        ("big.replace('a', 'bbbbbbbbbbbbbbbbbbbb')", "bytes built"),
        ("big.split('')", "bytes built"),
        ("big + big + big + big + big + big", "bytes built"),
        ("l.map(a, big + 'x')", "bytes built"),
        ("l.map(a, big.substring(1))", "bytes built"),
        ("l.map(a, big.reverse())", "bytes built"),
        ("l.map(a, [big].join())", "bytes built"),
        ("l.map(a, toJson(big))", "bytes built"),
        ("l.map(a, base64.encode(bytes(big)))", "bytes built"),
        ("json(many)", "steps"),
        ("json(bytes(many))", "steps"),
        ("json(deep) == 1 || true", "nested too deeply"),
        ("toJson(json(deep.substring(0, 102) + deep.substring(3898))) != ''", "nested too deeply"),
        ("l.map(a, '%s'.format([big]))", "bytes built"),
        ("l.map(a, big.split(','))", "bytes built"),
        ("sets.contains(l + lists.range(5000), lists.range(5000))", "steps"),
        ("l.exists(a, big.matches('z.*' + s))", "steps"),
        ("l.all(a, !big.contains('q')) || true", "steps"),
        ("default(lists.range(100000000), [])", "bytes built"),
        ("'%s'.format([l.map(a, big)])", "bytes built"),
        ("toJson(l.map(a, big))", "bytes built"),
        ("cel.bind(r, lists.range(100000), l.map(a, r).flatten().size())", "bytes built"),
        (shared("v26 == w26"), "steps"),
        (shared("v26 in [w26]"), "steps"),
        (shared("[v26, w26].distinct()"), "steps"),
        (shared("optional.of(v26) != optional.of(w26)"), "steps"),
        (shared("sets.contains([v26], [w26])"), "steps"),
        (shared("v26.flatten(30)"), "bytes built"),
        (shared("'%s'.format([v26])"), "bytes built"),
        (shared("toJson(v26)"), "bytes built"),
    ],
)
def test_a_limit_ends_the_evaluation(text: str, part: str | None) -> None:
    program = compile_expression(text, ENVIRONMENT)
    if part is None:
        program.evaluate(CONTEXT)
        return
    with pytest.raises(OverBudget, match=part) as caught:
        program.evaluate(CONTEXT)
    assert caught.value.offset is not None


class Clocks:
    """Both clocks, moved by every look: the world's by 15 ms, the thread's by `share` of that."""

    def __init__(self, patch: pytest.MonkeyPatch, share: float) -> None:
        self.now = 0.0
        self.share = share
        patch.setattr(budget, "monotonic", self.monotonic)
        patch.setattr(budget, "thread_time", lambda: self.now * self.share)

    def monotonic(self) -> float:
        self.now += 0.015
        return self.now


@pytest.mark.usefixtures("seconds_of_an_evaluation")
def test_time_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    Clocks(monkeypatch, share=1.0)
    with pytest.raises(OverBudget, match="20 ms") as caught:
        compile_expression("l.map(a, l.map(b, b))", ENVIRONMENT).evaluate(CONTEXT)
    assert caught.value.offset is not None


@pytest.mark.usefixtures("seconds_of_an_evaluation")
def test_time_in_which_the_machine_did_something_else_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch, share=0.01)
    assert len(compile_expression("l.map(a, a)", ENVIRONMENT).evaluate(CONTEXT)) == 300
    assert clocks.now > 0.1


def test_the_clock_is_read_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading it costs as much as some ten steps."""
    looks: list[float] = []

    def look() -> float:
        looks.append(0.0)
        return 1.0

    monkeypatch.setattr(budget, "monotonic", look)
    spent = [*budget.START]
    for _ in range(90_000):
        budget.steps(spent, 1)
    assert len(looks) == 90_000 // (budget.EVERY_STEPS + 1)
    for _ in range(90_000):
        budget.built(spent, 100)
    assert len(looks) < 90_000 // budget.EVERY_STEPS + 9_000_000 // budget.EVERY_BUILT + 2


def test_the_budget_is_of_one_evaluation() -> None:
    program = compile_expression("l.map(a, a).size()", ENVIRONMENT)
    assert [program.evaluate(CONTEXT) for _ in range(500)] == [300] * 500


class Together(Values):
    """A context whose evaluations have their time together."""

    def __init__(self) -> None:
        super().__init__({"big": "ab" * 1_000_000, "s": "ab", "l": list(range(300))})
        self.end: float | None = None

    def evaluations_end(self, now: float, seconds: float) -> float:
        self.end = self.end or now + seconds
        return self.end

    def cut_off(self, error: OverBudget) -> Exception:
        return LookupError(str(error))


@pytest.mark.usefixtures("seconds_of_an_evaluation")
@pytest.mark.parametrize("text", ["l.map(a, a).size()", "big.lowerAscii()", "lists.range(100000000)", "big.split('')"])
def test_evaluations_of_one_context_have_their_time_together(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are too large, each at its first look; what is raised then is the context's own."""
    now = 0.0

    def look() -> float:
        nonlocal now
        now += 0.004
        return now

    monkeypatch.setattr(budget, "thread_time", look)
    monkeypatch.setattr(budget, "monotonic", lambda: now)
    program, context, ends = compile_expression(text, ENVIRONMENT), Together(), list[type[Exception] | None]()
    for _ in range(8):
        try:
            program.evaluate(context)
            ends.append(None)
        except (OverBudget, LookupError) as error:
            ends.append(type(error))
    assert ends[0] is not LookupError and ends[-1] is LookupError
    assert ends == sorted(ends, key=lambda each: each is LookupError)
    compile_expression("s == 'ab'", ENVIRONMENT).evaluate(context)  # what is short pays nothing


def test_plain_expressions_have_no_budget_at_all() -> None:
    for text in ("s == 'ab'", "s in ['a', 'b'] && s.startsWith('a')", "[1, 2].exists(x, x == 2)"):
        assert "b = [" not in compile_expression(text, ENVIRONMENT).source


class Word(str):
    """A text of a type of its own, as a policy may leave one."""


@pytest.mark.parametrize("sides", [(Word, Word), (Word, str), (str, Word), (Redacted, str), (str, str)])
def test_sums_of_texts_of_whatever_type_are_charged(sides: tuple[type[str], type[str]]) -> None:
    left, right = (side("x" * (budget.MAX_BUILT // 2 + 1)) for side in sides)
    with pytest.raises(OverBudget, match="bytes built") if Redacted not in sides else nullcontext():
        add(list(budget.START), left, right)
    assert add(list(budget.START), sides[0]("a"), sides[1]("b")) in ("ab", "<redacted>b")
