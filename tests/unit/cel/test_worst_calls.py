"""Every function of the expression language, looked up in its table, with the largest values that it may get: a call is
over within the time of an evaluation, or is refused. Which values are the worst is drawn anew in each run."""

from __future__ import annotations

import itertools
import math
import random
from time import thread_time
from typing import Any, Final

import pytest

from gatewright.cel.budget import START
from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.errors import CelError
from gatewright.cel.functions import STANDARD
from gatewright.cel.overloads import Overload
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN
from tests.harness import seeds
from tests.unit.cel import worst_values

DRAWN: Final = 6
"""Calls of each overload."""
MOST: Final = 0.05
"""Seconds: the time of an evaluation, and what one piece of work takes on a machine that does other things."""


class Context:
    """Variables of a request, of which there are none."""

    def variables(self) -> dict[str, Any]:
        return {}


def calls(overload: Overload, chance: random.Random) -> list[tuple[str, ...]]:
    """Names of arguments."""
    values = [worst_values.of(kind) for kind in overload.params]
    if math.prod(map(len, values)) <= DRAWN:
        return [*itertools.product(*values)]
    return [tuple(chance.choice([*each]) for each in values) for _ in range(DRAWN)]


def seconds(overload: Overload, names: tuple[str, ...]) -> float:
    """The least of three calls: others use the machine, too."""
    arguments = [worst_values.of(kind)[name] for kind, name in zip(overload.params, names, strict=True)]
    least = 1.0
    for _ in range(3):
        given: list[Any] = [Context()] if overload.contextual else []
        if overload.charges:
            given.append([*START])
        began = thread_time()
        try:
            overload.implementation(*given, *arguments)
        except CelError:
            pass
        least = min(least, thread_time() - began)
        if least < MOST / 2:
            break
    return least


@pytest.mark.usefixtures("seconds_of_an_evaluation")
@pytest.mark.parametrize("name", STANDARD)
def test_no_call_of_a_function_takes_longer_than_an_evaluation_may(name: str) -> None:
    chance = seeds.rolls("calls", name)
    slow = {
        f"{overload.signature()} of {names}": spent
        for overload in STANDARD[name]
        for names in calls(overload, chance)
        if (spent := seconds(overload, names)) > MOST
    }
    assert not slow


FOUND: Final = [
    # what a search has found that took longer
    ("split", ("one long text",)),
    ("toJson", ("list of moments",)),
    ("toJson", ("list of bytes",)),
    ("toJson", ("list of doubles",)),
    ("toJson", ("map of numbers",)),
    ("matches", ("a", "[")),
    ("regexReplace", ("a", ".", "a")),
    ("redacted", ("texts",)),
    ("raw", ("texts",)),
    ("values", ("texts", "\ud800")),
    ("values", ("long name", "drawn")),
    ("cookie", ("cookies", "short")),
    ("flattenRecursive", ("list",)),
    ("sets.contains", ("optionals", "one long text")),
    ("sets.intersects", ("ints", "texts")),
    ("strings.quote", ("drawn",)),
    ("strings.quote", ("\\",)),
    ("lowerAscii", ("A\u00e9",)),
    ("lowerAscii", ("\ud800",)),
    ("upperAscii", ("\u00e9",)),
    ("flatten", ("one list", str(2**63 - 1))),
    ("math.greatest", ("doubles",)),
    ("math.least", ("ints",)),
    ("distinct", ("texts",)),
    ("format", ("%%", "ints")),
    ("format", ("%s", "ints")),
    ("sort", ("some texts",)),
    ("sort", ("optionals",)),
    ("sort", ("some doubles",)),
    ("getMonth", ("now", "\U0001f600")),
    ("trim", ("\u2003\n",)),
    ("split", ("\U0001f600", "")),
    ("unvalidatedJwtPayload", (".",)),
]


@pytest.mark.usefixtures("seconds_of_an_evaluation")
@pytest.mark.parametrize(("name", "names"), FOUND)
def test_what_a_search_has_found_is_no_longer_slow(name: str, names: tuple[str, ...]) -> None:
    fitting = [each for each in STANDARD[name] if _takes(each, names)]
    assert fitting
    assert max(seconds(each, names) for each in fitting) < MOST


def _takes(overload: Overload, names: tuple[str, ...]) -> bool:
    return len(overload.params) == len(names) and all(
        name in worst_values.of(kind) for kind, name in zip(overload.params, names, strict=True)
    )


OPERATIONS: Final = {
    "text + text": "text + text + text + text",
    "text == other": "text == other",
    "text < other": "text < other",
    "contains": "text.contains(other)",
    "contains, drawn": "drawn.contains(drawn.substring(500000))",
    "startsWith": "text.startsWith(other)",
    "endsWith": "text.endsWith(other)",
    "list + list": "ints + ints + ints",
    "list == list": "ints == others",
    "in": "-1 in ints",
    "sortBy": "ints.sortBy(each, -each)",
    "map": "ints.map(each, text)",
    "mapped and joined": "ints.map(each, text).join()",
    "texts of a list": "ints.map(each, string(each))",
    "matches": "drawn.matches('(a|b)*a(a|b|,)(a|b|,)(a|b|,)(a|b|,)(a|b|,)(a|b|,)(a|b|,)(a|b|,)(a|b|,)c')",
}
ENVIRONMENT = Environment([Field(name, DYN) for name in ("text", "other", "drawn", "ints", "others")])


@pytest.mark.usefixtures("seconds_of_an_evaluation")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_operator_takes_longer_than_an_evaluation_may(operation: str) -> None:
    texts, lists = worst_values.of_type("string"), worst_values.of_type("list")
    given = {"text": texts["a"], "other": texts["nearly"], "drawn": texts["drawn"]}
    given |= {"ints": lists["ints"], "others": [*lists["ints"][:-1], -1]}
    program, least = compile_expression(OPERATIONS[operation], ENVIRONMENT), 1.0
    for _ in range(3):
        began = thread_time()
        try:
            program.evaluate(Values(given))
        except CelError:
            pass
        least = min(least, thread_time() - began)
    assert least < MOST
