"""Rules between the fields of a part, as data, which both an API server and the models evaluate.

A rule stands in its model (`RuledModel.cel_rules`) and nowhere else. The generator writes its CEL into the CRD. Here
the product's own engine evaluates it, so both say the same of an object. What most objects need is asked of the
attributes: whether fields are set, and the plain questions about items (`Check`), each of which has its CEL beside it.
So an object that has nothing to ask about costs nothing, and the language is loaded with the first rule that needs it.
Fields are named as in the API.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from gatewright.api.schema.checks import Check, Kinds, OfKinds
from gatewright.api.schema.part_values import Path, answer, fields_of, is_set, items_of, json_of, read


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule over `self`, the part, and what must hold. `one_of`: it says that exactly one of these fields is set,
    `apart`: that no two of these are. `path`: the field to blame, below the part; the message begins with it.
    `given`: it says something only where this field is set; `unless`: where this one is not."""

    cel: str
    message: str
    one_of: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    path: Path = ()
    given: str = ""
    unless: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Fields without which it says nothing: an object that has not even one of them is not asked about."""
        return (self.given,) if self.given else ()

    def broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        """Where it does not hold and what must hold; nothing when it holds."""
        if self.given and not is_set(part, self.given):
            return
        if not (self.unless and is_set(part, self.unless)):
            yield from self._broken(part)

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        if not holds(self, part):
            yield self.path, self.message.removeprefix(".".join(map(str, self.path)) + " ")


class OneOf(Rule):
    """Exactly one of the fields is set; `{}` counts as set."""

    __slots__ = ()

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        chosen = [name for name in self.one_of if is_set(part, name)]
        if not chosen:
            yield (), self.message
        for name in chosen[1:]:
            yield (name,), f"{self.message}; {chosen[0]} is set already"


class Present(Rule):
    """The field of `path` is set."""

    __slots__ = ()

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        if not is_set(part, str(self.path[0])):
            yield self.path, self.message.removeprefix(f"{self.path[0]} ")


class Apart(Rule):
    """Two fields are not set together; the second is to blame."""

    __slots__ = ()

    @property
    def needs(self) -> tuple[str, ...]:
        return self.apart

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        one, other = self.apart
        if is_set(part, one) and is_set(part, other):
            yield (other,), self.message.removeprefix(f"{other} ")


@dataclass(frozen=True, slots=True)
class When:
    """A field of the part, as a path of names, is set; with `value`: it has that value."""

    path: str
    value: str = ""

    @property
    def cel(self) -> str:
        names = self.path.split(".")
        is_there = " && ".join(f"has(self.{'.'.join(names[: length + 1])})" for length in range(len(names)))
        return f"{is_there} && self.{self.path} == '{self.value}'" if self.value else is_there

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.path.partition(".")[0],)

    def holds(self, part: BaseModel) -> bool:
        """Whether it says something of a part."""
        value: Any = part  # what a model holds
        for name in self.path.split("."):
            if not is_set(value, name):
                return False
            value = read(value, name)
        return not self.value or bool(value == self.value)


@dataclass(frozen=True, slots=True)
class Absent(Rule):
    """A field is not set where another has a value."""

    when: When | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.given, *(self.when.needs if self.when is not None else ()))

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        if self.when is not None and self.when.holds(part):
            yield self.path, self.message.removeprefix(f"{self.given} ")


@dataclass(frozen=True, slots=True)
class Is(Rule):
    """Something holds of the part itself."""

    check: Check | None = None

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        if self.check is not None and not self.check.holds(part):
            yield self.path, self.message.removeprefix(".".join(map(str, self.path)) + " ")


@dataclass(frozen=True, slots=True)
class Each(Rule):
    """Something holds of each item of a list, or of each key of a map; those of which it does not are to blame."""

    items: tuple[str, ...] = ()
    """The list, and the list in each of its items."""
    what: Check | str = ""
    """What must hold: of the item, or of its field `asked`; or in CEL over `self` and `item`."""
    asked: str = ""
    at: str = ""
    """The field of an item that is to blame; "" is the item itself."""
    when: When | None = None
    text: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        given = (self.given,) if self.given else ()
        return (*given, self.items[0], *(self.when.needs if self.when is not None else ()))

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        if self.when is not None and not self.when.holds(part):
            return
        for path, item in items_of(part, self.items, ()):
            if not self._holds(part, item):
                yield (*path, self.at) if self.at else path, self.text

    def _holds(self, part: BaseModel, item: Any) -> bool:  # Any: an item of whatever kind
        if not isinstance(self.what, str):
            return self.what.holds(read(item, self.asked) if self.asked else item)
        return answer(self.what, {"self": fields_of(part, fields_read(self)), "item": json_of(item)}) is True


@dataclass(frozen=True, slots=True)
class Distinct(Rule):
    """No two items of all lists together have the same in a field; all but the first are to blame."""

    items: tuple[str, str] = ("", "")
    text: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.items[0],)

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        seen = set()
        for path, item in items_of(part, self.items, ()):
            value = read(item, str(self.path[0]))
            if value in seen:
                yield (*path, *self.path), self.text
            seen.add(value)


@dataclass(frozen=True, slots=True)
class Alone(Rule):
    """In some lists a value stands alone."""

    value: str = ""

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        (name,) = self.path
        items = read(part, str(name)) or ()
        if self.value in items and len(items) > 1:
            yield self.path, self.message.removeprefix(f"{name} ")


def exactly_one(*names: str) -> Rule:
    """Exactly one of the fields is set."""
    each_set = ", ".join(f"has(self.{name})" for name in names)
    message = f"exactly one of {', '.join(names)} must be set"
    return OneOf(f"[{each_set}].filter(x, x).size() == 1", message, names)


def not_both(one: str, other: str, message: str = "") -> Rule:
    """At most one of two fields is set."""
    cel = f"!(has(self.{one}) && has(self.{other}))"
    return Apart(cel, message or f"{other} must be absent when {one} is set", apart=(one, other))


def where_set(field: str, condition: str, message: str, *, blame: str = "") -> Rule:
    """Where the field is set `condition` holds; `blame`: another field that is to blame."""
    blamed = blame or field
    return Rule(f"!has(self.{field}) || {condition}", f"{blamed} {message}", path=(blamed,), given=field)


def absent_where(name: str, field: str, value: str) -> Rule:
    """The field is not set where another field has this value."""
    when = When(field, value)
    message = f"{name} must be absent when {field} is {value}"
    return Absent(f"!({when.cel}) || !has(self.{name})", message, path=(name,), given=name, when=when)


def required_where(name: str, condition: str, message: str) -> Rule:
    """The field must be set where `condition` holds."""
    return Rule(f"!({condition}) || has(self.{name})", f"{name} {message}", path=(name,), unless=name)


def is_one_of(kinds: Kinds, message: str, *path: str) -> Rule:
    """The part is a reference to one of these."""
    check = OfKinds(kinds)
    return Is(check.cel.replace("{}", "self"), message, path=path, check=check)


def alone(name: str, value: str) -> Rule:
    """In the list the value stands alone."""
    cel = f"!has(self.{name}) || !('{value}' in self.{name}) || self.{name}.size() == 1"
    return Alone(cel, f'{name} must not contain "{value}" beside other values', path=(name,), value=value)


def each(items: str, what: Check | str, message: str, *, of: str = "", at: str = "", when: When | None = None) -> Rule:
    """Something holds of each item of a list, such as `headers` or `groups[].providers`; of a map, of each key. `of`:
    the field of an item that is asked, and to blame; `at`: the one that is to blame for the whole item."""
    names = tuple(items.split("[]."))
    loops = [*(f"i{depth}" for depth in range(len(names) - 1)), "item"]
    lists = [f"{holder}.{name}" for holder, name in zip(("self", *loops), names, strict=False)]
    cel = what.cel.replace("{}", f"item.{of}" if of else "item") if not isinstance(what, str) else what
    for variable, held in reversed([*zip(loops, lists, strict=True)]):
        cel = f"{held}.all({variable}, {cel})"
    cel = f"!has({lists[0]}) || {cel}"
    blamed = of or at
    return Each(
        f"!({when.cel}) || {cel}" if when else cel,
        f"{items}[]{f'.{blamed}' if blamed else ''} {message}",
        given=names[0],
        items=names,
        what=what,
        asked=of,
        at=blamed,
        when=when,
        text=message,
    )


def distinct(outer: str, inner: str, field: str) -> Rule:
    """The field differs between the items of `inner` of all items of `outer`."""
    alike = f"self.{outer}.map(o, o.{inner}.filter(i, i.{field} == item.{field}).size()).filter(n, n > 0)"
    cel = f"!has(self.{outer}) || self.{outer}.all(each, each.{inner}.all(item, {alike} == [1]))"
    text = f"must be unique over all {outer}"
    message = f"{outer}[].{inner}[].{field} {text}"
    return Distinct(cel, message, path=(field,), given=outer, items=(outer, inner), text=text)


def unless(field: str, rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules, saying nothing where a field is set."""
    return tuple(_unless(field, rule) for rule in rules)


def _unless(field: str, rule: Rule) -> Rule:
    if rule.unless:
        raise ValueError(f"it says nothing where {rule.unless} is set: {rule.cel}")
    return replace(rule, cel=f"has(self.{field}) || ({rule.cel})", unless=field)


def fields_read(rule: Rule) -> set[str]:
    """The fields of the part that a rule asks for."""
    return set(re.findall(r"\bself\.(\w+)\b(?!\()", rule.cel))


def holds(rule: Rule, part: BaseModel) -> bool:
    """Whether a rule holds of a part. Raises TypeError where it has no answer, as of a value that is not valid itself.

    As for an API server a field is there when it is set or has a default; an absent list is not there.
    """
    return answer(rule.cel, {"self": fields_of(part, fields_read(rule))}) is True
