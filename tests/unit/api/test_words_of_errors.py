"""What is said of values that a field does not take: what must hold, what was given, and what people meant."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, StrictBool, StrictInt, ValidationError

from gatewright.api.checks.errors import MOST_SHOWN, findings
from gatewright.api.schema.fields import HOSTNAME_PATTERN
from gatewright.api.schema.model import Model

Hostname = Annotated[str, Field(pattern=HOSTNAME_PATTERN)]


class Part(Model):
    size: StrictInt = 0


class Thing(Model):
    """Every bound that a field may have."""

    name: str = ""
    number: StrictInt = 1
    flag: StrictBool = False
    choice: Literal["None", "Some", "Any"] = "Any"
    least: Annotated[StrictInt, Field(ge=2)] = 2
    most: Annotated[StrictInt, Field(le=9)] = 9
    between: Annotated[StrictInt, Field(ge=2, le=9)] = 2
    filled: Annotated[str, Field(min_length=1)] = "a"
    long: Annotated[str, Field(min_length=3)] = "abc"
    short: Annotated[str, Field(max_length=3)] = ""
    middling: Annotated[str, Field(min_length=1, max_length=3)] = "a"
    two: Annotated[tuple[StrictInt, ...], Field(min_length=2)] = (1, 2)
    few: Annotated[tuple[StrictInt, ...], Field(max_length=2)] = ()
    table: Annotated[dict[str, StrictInt], Field(min_length=1, max_length=2)] = {"a": 1}  # noqa: RUF012
    levels: tuple[Annotated[StrictInt, Field(ge=2, le=9)], ...] = ()
    rows: tuple[tuple[Annotated[StrictInt, Field(ge=2, le=9)], ...], ...] = ()
    hosts: tuple[Hostname, ...] = ()
    host: Hostname = "a.example"
    part: Part = Part()
    hidden: Annotated[StrictInt, Field(repr=False)] = 0
    vault: Annotated[Part, Field(repr=False)] = Part()


def said(secret: bool = False, **given: Any) -> dict[str, str]:
    """By path."""
    with pytest.raises(ValidationError) as caught:
        Thing.model_validate(given)
    found = findings(caught.value, Thing, given, secret=True) if secret else findings(caught.value, Thing, given)
    return {".".join(map(str, each.path)): each.message for each in found}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("least", 1, "must be at least 2, got 1"),
        ("most", 10, "must be at most 9, got 10"),
        ("between", 1, "must be between 2 and 9, got 1"),
        ("between", 10, "must be between 2 and 9, got 10"),
        ("filled", "", 'must not be empty, got ""'),
        ("long", "ab", 'must have at least 3 characters, got "ab"'),
        ("short", "abcd", 'must have at most 3 characters, got "abcd"'),
        ("middling", "", 'must have 1 to 3 characters, got ""'),
        ("middling", "abcd", 'must have 1 to 3 characters, got "abcd"'),
        ("two", [1], "must have at least 2 items, got 1 items"),
        ("few", [1, 2, 3], "must have at most 2 items, got 3 items"),
        ("table", {"a": 1, "b": 2, "c": 3}, "must have 1 to 2 items, got 3 items"),
        ("table", {}, "must have 1 to 2 items, got 0 items"),
        ("table", [1], "must be an object, got a list"),
        ("few", {}, "must be a list, got an object"),
        ("part", [], "must be an object, got a list"),
        ("part", None, "must be an object, got null"),
        ("number", "80", 'must be an integer, got "80": remove the quotes'),
        ("number", "${PORT}", 'must be an integer, got "${PORT}": variables are not filled in here; write the number'),
        ("number", "90%", 'must be an integer, got "90%": weights are shares of their sum, such as 90 and 10'),
        ("number", "many", 'must be an integer, got "many"'),
        ("number", True, "must be an integer, got true"),
        ("flag", "on", 'must be true or false, got "on"'),
        ("name", True, "must be a string, got true: YAML reads on, yes and true as a boolean; put it in quotes"),
        ("name", False, "must be a string, got false: YAML reads off, no and false as a boolean; put it in quotes"),
        ("name", 7, "must be a string, got 7: YAML reads it as a number; put it in quotes"),
        ("name", 1.5, "must be a string, got 1.5: YAML reads it as a number; put it in quotes"),
        ("name", [], "must be a string, got a list"),
        ("choice", "some", 'must be one of None, Some, Any, got "some"; did you mean "Some"?'),
        ("choice", "zzzzzz", 'must be one of None, Some, Any, got "zzzzzz"'),
        ("choice", 7, "must be one of None, Some, Any, got 7"),
    ],
)
def test_a_value_that_a_field_does_not_take(field: str, value: object, message: str) -> None:
    assert said(**{field: value}) == {field: message}


@pytest.mark.parametrize(
    ("host", "cure"),
    [
        ("*", ": leave it out for every host"),
        ("https://a.example", ": write the host alone"),
        ("a.example:80", ": a host has no port here"),
        ("~.*", ": regular expressions of hosts are not read"),
        ("shop.*", ": a wildcard is the first label"),
        ("A.example", ""),
    ],
)
def test_what_people_write_for_a_host(host: str, cure: str) -> None:
    """Of a field, and of an item of a list."""
    must = "must be a lower-case host name such as shop.example.com or *.example.com"
    assert said(host=host, hosts=["a.example", host]) == {
        "host": f'{must}, got "{host}"{cure}',
        "hosts.1": f'{must}, got "{host}"{cure}',
    }


def test_both_bounds_are_given_of_items_of_lists_too() -> None:
    assert said(levels=[2, 10], rows=[[2], [3, 1]]) == {
        "levels.1": "must be between 2 and 9, got 10",
        "rows.1.1": "must be between 2 and 9, got 1",
    }


def test_a_long_text_is_cut_behind_sixty_four_characters() -> None:
    for text, shown in (
        ("a" * 64, f'"{"a" * 64}"'),
        ("a" * 65, f'"{"a" * 60}…" (65 characters)'),
    ):
        assert said(short=text) == {"short": f"must have at most 3 characters, got {shown}"}


def test_a_problem_is_one_line() -> None:
    assert said(short="a\nb\u2028é\x1b") == {
        "short": 'must have at most 3 characters, got "a\\nb\\u2028é\\x1b"',
    }


def test_a_list_with_bad_items_is_not_too_short_and_what_comes_behind_it_is_said() -> None:
    assert said(two=[1, "b", {}], few=[1, 2, 3], host="*x") == {
        "two.1": 'must be an integer, got "b"',
        "two.2": "must be an integer, got an object",
        "few": "must have at most 2 items, got 3 items",
        "host": 'must be a lower-case host name such as shop.example.com or *.example.com, got "*x"',
    }


def test_what_is_hidden_is_not_shown() -> None:
    assert said(hidden="x", vault={"size": "7"}, part={"size": "8"}) == {
        "hidden": "must be an integer",
        "vault.size": "must be an integer",
        "part.size": 'must be an integer, got "8": remove the quotes',
    }
    assert said(secret=True, most=10) == {"most": "must be at most 9"}


def test_a_hundred_mistakes_are_explained() -> None:
    found = said(levels=[1] * (MOST_SHOWN + 2))
    assert [*found.values()] == ["must be between 2 and 9, got 1"] * 100 + ["has a mistake"] * 2


def test_a_field_that_nobody_knows_is_one_also_behind_a_hundred_mistakes() -> None:
    given = {"levels": [1] * MOST_SHOWN, "rows": [[1]], "sise": 1}
    with pytest.raises(ValidationError) as caught:
        Thing.model_validate(given)
    found = findings(caught.value, Thing, given)
    assert {each.path: each.unknown_field for each in found[100:]} == {("rows", 0, 0): False, ("sise",): True}
