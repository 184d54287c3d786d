"""What pydantic found, in the words of this product.

Called by decoding: one Finding per error, with the path in API names, what must hold, what was given, and the near
name of a typo. Values of Secrets, and of fields that have no
repr, are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, get_args

import annotated_types
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from gatewright.api.checks.field_paths import Path, bare, field_of, model_at
from gatewright.api.checks.partial import broken_rules
from gatewright.api.checks.unknown_fields import meant
from gatewright.api.schema.fields import HOSTNAME_PATTERN, PATTERN_WORDS
from gatewright.api.schema.model import BROKEN_RULES, Broken
from gatewright.api.schema.near_names import near_name

MISSING: Final = "is required"
"""What is said of a field that must be there."""


MOST_SHOWN: Final = 100
"""How many mistakes of one object are explained; of the others only the fields are noted. A text of a few pages has
ten thousands, each of which would take as long as a good route."""


class Finding(NamedTuple):
    """One error: path in API names; `unknown_field` when the field has no business there."""

    path: Path
    message: str
    unknown_field: bool = False


def findings(failure: ValidationError, model: type[BaseModel], document: Any, *, secret: bool = False) -> list[Finding]:
    """All errors of `failure`, raised by validating `document` for `model`, and the rules between fields that pydantic
    did not come to. `secret`: show no values."""
    found: list[Finding] = []
    endings: dict[Path, str] = {}
    for error in failure.errors(include_url=False):
        path: Path = tuple(error["loc"])
        if error["type"] == BROKEN_RULES:
            broken: list[Broken] = error["ctx"][BROKEN_RULES]
            found += [Finding((*path, *rule.path), rule.message) for rule in broken]
        elif error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]:
            continue  # pydantic counts only the valid items; the invalid ones have errors of their own
        elif len(found) >= MOST_SHOWN:
            found.append(Finding(_shown(path), "has a mistake", error["type"] == "extra_forbidden"))
        elif error["type"] == "extra_forbidden":
            fields = tuple(part for part in path if isinstance(part, str))  # the same in each item of a list
            if fields not in endings:
                endings[fields] = meant(model, path)
            found.append(Finding(path, f"unknown field{endings[fields]}", True))
        else:
            found.append(Finding(_shown(path), _message(error, model, secret)))
    found += [Finding(rule.path, rule.message) for rule in broken_rules(model, document)]
    return list(dict.fromkeys(found))


def _message(error: Any, model: type[BaseModel], secret: bool) -> str:
    words = _WORDS.get(error["type"])
    path = tuple(error["loc"])
    items = next((depth for depth, part in enumerate(reversed(path)) if isinstance(part, str)), 0)
    field = _field_at(model, path[: len(path) - items])
    limits = _Limits(field, items=items)
    text = words(error.get("ctx", {}), limits) if words else str(error["msg"])
    quoted = True
    if error["type"] == "string_type" and (pattern := limits.pattern) in PATTERN_WORDS:
        quoted = re.search(pattern, str(error["input"]).lower()) is not None  # True, False: YAML's in lower case
        text = text if quoted else PATTERN_WORDS[pattern]
    if error["type"] == "missing" or secret or _hidden(model, path):
        return text
    near = ""
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        meant = near_name(error["input"], _expected(error["ctx"]))
        near = f'; did you mean "{meant}"?' if meant else ""
    if error["type"] == "string_pattern_mismatch" and (cure := _cure(error["input"], _CURES.get(limits.pattern, ()))):
        near = f": {cure}"
    return f"{text}, got {_given(error['input'], error['type'] if quoted else '')}{near}"


class _Limits:
    """The bounds declared for a value, of which pydantic reports only the broken one."""

    def __init__(self, field: FieldInfo | None, *, items: int) -> None:
        """`items`: how many lists deep in the field's value the bad one lies."""
        self._metadata = list(_constraints(field, items)) if field else []

    def of(self, kind: type[Any], name: str) -> Any:
        return next((getattr(item, name) for item in self._metadata if isinstance(item, kind)), None)

    @property
    def pattern(self) -> Any:
        """The pattern that a text must match; None without one."""
        return next((item.pattern for item in self._metadata if getattr(item, "pattern", None)), None)


def _constraints(field: FieldInfo, items: int) -> Iterator[Any]:
    annotation, metadata = bare(field.annotation, tuple(field.metadata))
    for _ in range(items):
        annotation, metadata = bare(next(iter(get_args(annotation)), None))
    for item in metadata:
        yield from item.metadata if isinstance(item, FieldInfo) else (item,)


def _number_bounds(context: Mapping[str, Any], limits: _Limits) -> str:
    low = limits.of(annotated_types.Ge, "ge") if "ge" not in context else context["ge"]
    high = limits.of(annotated_types.Le, "le") if "le" not in context else context["le"]
    if low is not None and high is not None:
        return f"must be between {low} and {high}"
    return f"must be at least {low}" if low is not None else f"must be at most {high}"


def _length_bounds(unit: str) -> Callable[[Mapping[str, Any], _Limits], str]:
    def words(context: Mapping[str, Any], limits: _Limits) -> str:
        low = context.get("min_length", limits.of(annotated_types.MinLen, "min_length"))
        high = context.get("max_length", limits.of(annotated_types.MaxLen, "max_length"))
        if low and high is not None:
            return f"must have {low} to {high} {unit}"
        if high is not None:
            return f"must have at most {high} {unit}"
        return "must not be empty" if low == 1 else f"must have at least {low} {unit}"

    return words


def _pattern(context: Mapping[str, Any], _: _Limits) -> str:
    pattern = context["pattern"]
    return PATTERN_WORDS.get(pattern, f"must match {pattern}")


def _choices(context: Mapping[str, Any], _: _Limits) -> str:
    return f"must be one of {', '.join(_expected(context))}"


def _expected(context: Mapping[str, Any]) -> list[str]:
    return [part.strip("'\"") for part in str(context["expected"]).replace(" or ", ", ").split(", ")]


def _fixed(text: str) -> Callable[[Mapping[str, Any], _Limits], str]:
    return lambda context, limits: text


_WORDS: Final[dict[str, Callable[[Mapping[str, Any], _Limits], str]]] = {
    "missing": _fixed(MISSING),
    "int_type": _fixed("must be an integer"),
    "bool_type": _fixed("must be true or false"),
    "string_type": _fixed("must be a string"),
    "model_type": _fixed("must be an object"),
    "model_attributes_type": _fixed("must be an object"),
    "dict_type": _fixed("must be an object"),
    "tuple_type": _fixed("must be a list"),
    "greater_than_equal": _number_bounds,
    "less_than_equal": _number_bounds,
    "string_too_short": _length_bounds("characters"),
    "string_too_long": _length_bounds("characters"),
    "too_short": _length_bounds("items"),
    "too_long": _length_bounds("items"),
    "string_pattern_mismatch": _pattern,
    "literal_error": _choices,
}


def _given(value: Any, error_type: str) -> str:
    """The value as the user sees it; a type error names the type, because `got 80` for a text "80" says nothing."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        shown = "true" if value else "false"
    elif isinstance(value, str):
        line = _one_line(value[:64])
        shown = f'"{line[:60]}…" ({len(value)} characters)' if len(value) > 64 else f'"{line}"'
    elif isinstance(value, int | float):
        shown = str(value)
    elif error_type in ("too_short", "too_long"):
        shown = f"{len(value)} items"
    else:
        shown = "an object" if isinstance(value, dict) else "a list"
    if error_type == "string_type" and isinstance(value, bool | int | float):
        return f"{shown}: {_OF_UNQUOTED.get(shown, 'YAML reads it as a number')}; put it in quotes"
    if error_type == "int_type" and isinstance(value, str):
        return f"{shown}: {_cure(value, _OF_INTEGERS)}" if _cure(value, _OF_INTEGERS) else shown
    return shown


def _one_line(text: str) -> str:
    """Control characters escaped: a problem is one line."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


_OF_UNQUOTED: Final = {
    "true": "YAML reads on, yes and true as a boolean",
    "false": "YAML reads off, no and false as a boolean",
}
"""What YAML makes of words without quotes (1.1, https://yaml.org/type/bool.html, which its common readers follow)."""

Cures = tuple[tuple[re.Pattern[str], str], ...]

_OF_INTEGERS: Final[Cures] = (
    (re.compile(r"[0-9]+"), "remove the quotes"),
    (re.compile(r"[^{]*\{.+\}.*"), "variables are not filled in here; write the number"),
    (re.compile(r"[0-9.]+%"), "weights are shares of their sum, such as 90 and 10"),
)
_OF_HOSTS: Final[Cures] = (
    (re.compile(r"\*"), "leave it out for every host"),
    (re.compile(r"\w+://.*"), "write the host alone"),
    (re.compile(r"[^:]+:[0-9]+"), "a host has no port here"),
    (re.compile(r"[~/].*"), "regular expressions of hosts are not read"),
    (re.compile(r".*\.\*"), "a wildcard is the first label"),
)
_CURES: Final[dict[str, Cures]] = {HOSTNAME_PATTERN: _OF_HOSTS}
"""Pattern that a value must match to what people write instead, and what to do then."""


def _cure(value: str, cures: Cures) -> str:
    return next((cure for pattern, cure in cures if pattern.fullmatch(value)), "")


def _shown(path: Path) -> Path:
    """Without what pydantic adds to a path: `[key]` after a map's bad key, names of union members."""
    return tuple(part for part in path if part not in _ADDED)


_ADDED: Final = frozenset({"[key]", "str", "int", "constrained-int", "constrained-str"})


def _field_at(model: type[BaseModel], path: Path) -> FieldInfo | None:
    """The field that a path of the model ends in."""
    if not path:
        return None
    parent = model_at(model, path[:-1])
    return field_of(parent, path[-1]) if parent else None


def _hidden(model: type[BaseModel], path: Path) -> bool:
    """Whether a field on the path has no repr: what is below it is not shown either."""
    fields = (_field_at(model, path[:length]) for length in range(1, len(path) + 1))
    return any(field is not None and field.repr is False for field in fields)
