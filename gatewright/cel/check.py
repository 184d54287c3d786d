"""Tree to typed tree: every name resolved, every call's overloads found, every problem with its place.

`check` visits each node once, writes its `type` and `resolved`, and collects problems instead of stopping. A node with
a problem is `dyn`, so the planner can still plan it (an expression run unchecked fails while it runs, as the language
says). What cannot be known is dyn; the planner trusts everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gatewright.cel import patterns, tree
from gatewright.cel.environment import Access, Entry, Environment, Overload
from gatewright.cel.errors import Fault, Problem, problem_at
from gatewright.cel.functions import misc, network, times
from gatewright.cel.macros import dotted
from gatewright.cel.names import hint
from gatewright.cel.signatures import OPERATORS, TYPE_DENOTATIONS
from gatewright.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    TYPE,
    UINT,
    Bindings,
    ObjectType,
    Param,
    Type,
    join,
    list_of,
    map_of,
    optional_of,
)
from gatewright.cel.values import Uint

LITERALS: dict[type, Type] = {
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    bool: BOOL,
    type(None): NULL,
}
KEY_KINDS = frozenset(("bool", "int", "uint", "string", "dyn", "param"))
INDEX_KINDS = frozenset(("int", "dyn", "param"))


class Local:
    """What a name of a macro is resolved to."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "LOCAL"


LOCAL = Local()


def check(text: str, node: tree.Node, environment: Environment) -> tuple[Problem, ...]:
    """Type the tree. Answers all problems, first in the text first."""
    checker = Checker(text, environment)
    checker.visit(node)
    checker.finish()
    return tuple(sorted(checker.problems, key=lambda problem: (problem.line, problem.column)))


class Checker:
    def __init__(self, text: str, environment: Environment) -> None:
        self.text = text
        self.environment = environment
        self.problems: list[Problem] = []
        self.scope: dict[str, Type] = {}  # names of macros around the node being visited
        self.bindings = Bindings()
        self.open: list[tree.Node] = []  # nodes whose type has parameters

    def visit(self, node: tree.Node) -> Type:
        found = VISITORS[type(node)](self, node)
        node.type = found
        if found.open:
            self.open.append(node)
        return found

    def finish(self) -> None:
        """Parameters that nothing bound (the elements of `[]`) are dyn."""
        for node in self.open:
            node.type = self.bindings.resolve(node.type, free=DYN)

    def problem(
        self, node: tree.Node, message: str, *, offset: int | None = None, hint: str = "", length: int = 1
    ) -> Type:
        place = node.offset if offset is None else offset
        self.problems.append(problem_at(self.text, place, message, hint=hint, length=length))
        return DYN

    def shown(self, given: Type) -> Type:
        return self.bindings.resolve(given, free=DYN)

    def seen(self, given: Type) -> Type:
        """The type with its outermost parameter replaced, for looking at its kind."""
        return self.bindings.resolve(given) if given.open else given

    # Names

    def literal(self, node: tree.Literal) -> Type:
        return LITERALS[type(node.value)]

    def ident(self, node: tree.Ident) -> Type:
        if node.name in self.scope and not node.absolute:
            node.resolved = LOCAL
            return self.scope[node.name]
        return self._named(node, ("." if node.absolute else "") + node.name) or self._unknown(node)

    def _named(self, node: tree.Node, name: str) -> Type | None:
        """A declared variable or the name of a type."""
        access = self.environment.variable(name)
        if access is not None:
            node.resolved = access
            return access.field.type
        for full in self.environment.candidates(name):
            if full in TYPE_DENOTATIONS:
                node.resolved = TYPE_DENOTATIONS[full]
                return TYPE
        return None

    def _unknown(self, node: tree.Ident) -> Type:
        known = [*self.environment.variables, *self.scope]
        near = hint(node.name, known)
        if not near and known and len(known) <= 24:
            near = f"; known: {', '.join(sorted(known))}"
        return self.problem(node, f'unknown variable "{node.name}"', hint=near, length=len(node.name))

    def _qualified(self, node: tree.Node) -> str | None:
        """`a.b` as one name, unless it starts with a name of a macro."""
        name = dotted(node)
        if name is None or name.partition(".")[0] in self.scope:
            return None
        return name

    def select(self, node: tree.Select) -> Type:
        name = self._qualified(node)
        if name is not None:
            found = self._named(node, name)
            if found is not None:
                return found
        operand = self.seen(self.visit(node.operand))
        if node.optional:
            return optional_of(self._field(node, self._inside(operand), node.field))
        if operand.kind == "optional_type":
            return optional_of(self._field(node, self.seen(operand.params[0]), node.field))
        return self._field(node, operand, node.field)

    def _inside(self, given: Type) -> Type:
        return self.seen(given.params[0]) if given.kind == "optional_type" else given

    def _field(self, node: tree.Select | tree.Index, operand: Type, name: str) -> Type:
        if isinstance(operand, ObjectType):
            return self._object_field(node, operand, name)
        if operand.kind == "map":
            self._entry(node, name)
            return operand.params[1]
        if operand.kind in ("dyn", "param"):
            return DYN
        return self.problem(node, f"{self.shown(operand)} has no fields", length=len(name))

    def _object_field(self, node: tree.Select | tree.Index, operand: ObjectType, name: str) -> Type:
        found = operand.fields.get(name)
        if found is None:
            if operand.rest is not None:
                return operand.rest
            near = hint(name, operand.fields) or f"; fields: {', '.join(operand.fields)}"
            return self.problem(node, f'{operand.name} has no field "{name}"', hint=near, length=len(name))
        base = node.operand.resolved
        if isinstance(base, Access) and not node.optional:
            node.resolved = Access(f"{base.path}.{name}", found)
        return found.type

    def _entry(self, node: tree.Select | tree.Index, key: str) -> None:
        """A literal key of a declared map with a look-up."""
        base = node.operand.resolved
        if isinstance(base, Access) and base.field.lookup:
            node.resolved = Entry(base, key.lower() if base.field.fold else key)

    def index(self, node: tree.Index) -> Type:
        operand, key = self.seen(self.visit(node.operand)), self.seen(self.visit(node.index))
        inside = self._inside(operand)
        optional = node.optional or operand.kind == "optional_type"
        if (
            isinstance(node.index, tree.Literal)
            and isinstance(node.index.value, str)
            and inside.kind in ("map", "object")
        ):
            found = self._field(node, inside, node.index.value) if self._key_fits(inside, key) else DYN
        elif inside.kind == "list":
            if key.kind not in INDEX_KINDS:
                self.problem(node, f"a list has no index of type {self.shown(key)}")
            found = inside.params[0]
        elif inside.kind == "map":
            if not self.bindings.fits(inside.params[0], key):
                self.problem(node, f"{self.shown(inside)} has no key of type {self.shown(key)}")
            found = inside.params[1]
        else:
            found = DYN
            if inside.kind not in ("dyn", "param", "object"):
                self.problem(node, f"{self.shown(inside)} has no index")
        return optional_of(found) if optional else found

    def _key_fits(self, inside: Type, key: Type) -> bool:
        return inside.kind == "object" or self.bindings.fits(inside.params[0], key)

    # Calls

    def call(self, node: tree.Call) -> Type:
        overloads, args = self._function(node)
        types = [self.visit(arg) for arg in args]
        if overloads is None:
            return self._unknown_function(node)
        found = self._resolve(node, node.function, overloads, types)
        self._literals(node, args)
        return found

    def _literals(self, node: tree.Call, args: list[tree.Node]) -> None:
        """A pattern, network, address or time that is written out and wrong is refused now."""
        for overload in node.resolved or ():
            place, read = LITERAL_READERS.get(overload.implementation, (0, None))
            literal = args[place] if place < len(args) else None
            if read is None or not isinstance(literal, tree.Literal) or not isinstance(literal.value, str):
                continue
            try:
                read(literal.value)
            except Fault as fault:
                self.problem(literal, fault.message)

    def _function(self, node: tree.Call) -> tuple[tuple[Overload, ...] | None, list[tree.Node]]:
        """The overloads of a call's name and its arguments, the receiver first when it is a value."""
        if node.target is None:
            found = self.environment.overloads(node.function)
            return found and tuple(o for o in found if not o.receiver), node.args
        namespace = self._qualified(node.target)
        if namespace is not None:
            found = self.environment.overloads(f"{namespace}.{node.function}")
            if found is not None:
                node.target = None
                return found, node.args
        found = self.environment.overloads(node.function)
        return found and tuple(o for o in found if o.receiver), [node.target, *node.args]

    def _unknown_function(self, node: tree.Call) -> Type:
        near = hint(node.function, self.environment.functions)
        return self.problem(node, f'unknown function "{node.function}"', hint=near, length=len(node.function))

    def _resolve(self, node: tree.Node, name: str, overloads: tuple[Overload, ...], types: list[Type]) -> Type:
        fitting: list[Overload] = []
        result: Type | None = None
        kept = self.bindings
        for overload in overloads:
            trial = self.bindings.copy()
            one = _fit(trial, overload, types)
            if one is None:
                continue
            fitting.append(overload)
            kept = trial if len(fitting) == 1 else self.bindings
            result = one if result is None else join(trial.resolve(result), trial.resolve(one))
        if result is None:
            return self._no_overload(node, name, overloads, types)
        self.bindings = kept
        node.resolved = tuple(fitting)
        return result

    def _no_overload(self, node: tree.Node, name: str, overloads: tuple[Overload, ...], types: list[Type]) -> Type:
        shown = ", ".join(str(self.shown(one)) for one in types)
        if not overloads:
            style = (
                "a method" if any(isinstance(node, tree.Call) and node.target is None for _ in (0,)) else "a function"
            )
            return self.problem(node, f"{name} is {style}", length=len(name))
        forms = "; ".join(overload.signature() for overload in overloads[:4])
        return self.problem(node, f"{name} does not take ({shown})", hint=f"; it is {forms}", length=len(name))

    # Operators

    def chain(self, node: tree.Chain) -> Type:
        """The type after each operator; the planner wants them all, so they are kept in `resolved`."""
        left = self.visit(node.first)
        steps: list[Type] = []
        for operator, offset, term in zip(node.operators, node.offsets, node.terms, strict=True):
            left = self._operator(node, operator, offset, left, self.visit(term))
            steps.append(left)
        node.resolved = steps
        return left

    def _operator(self, node: tree.Chain, operator: str, offset: int, left: Type, right: Type) -> Type:
        one, two = self.seen(left), self.seen(right)
        quick = OPERATORS.get((operator, one.kind, two.kind))
        if quick is not None:
            return quick
        if operator in ("==", "!="):
            fits = self.bindings.copy().fits(one, two) or self.bindings.fits(two, one)
            if fits:
                self.bindings.fits(one, two)
                return BOOL
        elif operator == "in":
            found = self._membership(one, two)
            if found is not None:
                return found
        elif operator == "+" and one.kind == two.kind == "list":
            return list_of(join(self.shown(one.params[0]), self.shown(two.params[0])))
        elif "dyn" in (one.kind, two.kind) or "param" in (one.kind, two.kind):
            return self._with_unknown(node, operator, offset, one, two)
        shown = f"{self.shown(one)} {operator} {self.shown(two)}"
        self.problem(node, f"no such operation: {shown}", offset=offset, length=len(operator))
        return BOOL if operator in ("==", "!=", "in", "<", "<=", ">", ">=") else DYN

    def _membership(self, one: Type, two: Type) -> Type | None:
        if two.kind in ("dyn", "param", "object"):
            return BOOL
        if two.kind in ("list", "map") and self.bindings.fits(two.params[0], one):
            return BOOL
        return None

    def _with_unknown(self, node: tree.Chain, operator: str, offset: int, one: Type, two: Type) -> Type:
        """One side is dyn: the result is known only as far as all forms that fit agree."""
        unknown = ("dyn", "param")
        results = {
            result
            for (name, left, right), result in OPERATORS.items()
            if name == operator
            and (one.kind in unknown or one.kind == left)
            and (two.kind in unknown or two.kind == right)
        }
        if (
            operator == "+"
            and (one.kind in unknown or one.kind == "list")
            and (two.kind in unknown or two.kind == "list")
        ):
            results.add(list_of(DYN))
        if not results:
            return self.problem(node, f"no such operation: {one} {operator} {two}", offset=offset, length=len(operator))
        return results.pop() if len(results) == 1 else DYN

    def logic(self, node: tree.Logic) -> Type:
        for term in node.terms:
            self._want_bool(term, self.visit(term), node.operator)
        return BOOL

    def _want_bool(self, node: tree.Node, given: Type, where: str) -> None:
        if self.seen(given).kind not in ("bool", "dyn", "param"):
            self.problem(node, f"{where} needs bool, found {self.shown(given)}")

    def unary(self, node: tree.Unary) -> Type:
        given = self.seen(self.visit(node.operand))
        if node.operator == "!":
            self._want_bool(node, given, "!")
            return BOOL
        if given.kind in ("int", "double", "google.protobuf.Duration"):
            return given
        if given.kind in ("dyn", "param"):
            return DYN
        return self.problem(node, f"- does not take {self.shown(given)}")

    def conditional(self, node: tree.Conditional) -> Type:
        for condition in node.conditions:
            self._want_bool(condition, self.visit(condition), "?:")
        found = self.visit(node.otherwise)
        for value in reversed(node.values):
            found = self._joined(self.visit(value), found)
        return found

    def _joined(self, one: Type, two: Type) -> Type:
        """The common type of two; parameters inside (of `[]`, `optional.none()`) take what the other says."""
        trial = self.bindings.copy()
        if trial.fits(one, two):
            self.bindings = trial
        return join(self.seen(one), self.seen(two))

    # Literals

    def list_literal(self, node: tree.ListNode) -> Type:
        types = [self.visit(element) for element in node.elements]
        element = Param("E")
        joined: Type = element
        for position, (child, given) in enumerate(zip(node.elements, types, strict=True)):
            joined = self._joined(joined, self._unwrapped(child, given) if position in node.optional else given)
        return list_of(joined)

    def _unwrapped(self, node: tree.Node, given: Type) -> Type:
        seen = self.seen(given)
        if seen.kind == "optional_type":
            return seen.params[0]
        if seen.kind not in ("dyn", "param"):
            self.problem(node, f"expected an optional, found {self.shown(seen)}")
        return DYN

    def map_literal(self, node: tree.MapNode) -> Type:
        key: Type = Param("K")
        value: Type = Param("V")
        for position, (left, right) in enumerate(zip(node.keys, node.values, strict=True)):
            one, two = self.visit(left), self.visit(right)
            if self.seen(one).kind not in KEY_KINDS:
                self.problem(left, f"a map has no key of type {self.shown(one)}")
            key = self._joined(key, one)
            value = self._joined(value, self._unwrapped(right, two) if position in node.optional else two)
        return map_of(key, value)

    def message(self, node: tree.Message) -> Type:
        return self.problem(node, f"there are no messages: {node.name}", length=len(node.name))

    # Macros

    def has(self, node: tree.Has) -> Type:
        self.visit(node.select)
        return BOOL

    def _within(self, names: dict[str, Type], *nodes: tree.Node | None) -> list[Type]:
        outer = self.scope
        self.scope = {**outer, **names}
        types = [self.visit(node) for node in nodes if node is not None]
        self.scope = outer
        return types

    def comprehension(self, node: tree.Comprehension) -> Type:
        target = self.seen(self.visit(node.target))
        if target.kind not in LOOPS_OVER.get(node.kind, ("list", "map", "dyn", "param", "object")):
            self.problem(node, f"{node.kind} does not take {self.shown(target)}", length=len(node.kind))
            target = DYN
        names = dict(zip(node.variables, self._loop_types(node, target), strict=True))
        types = self._within(names, node.where, node.body)
        if node.where is not None:
            self._want_bool(node.where, types[0], node.kind)
        body = types[-1]
        if node.kind in PREDICATES:
            self._want_bool(node.body, body, node.kind)
        return COMPREHENSION_RESULTS[node.kind](target, body)

    def _loop_types(self, node: tree.Comprehension, target: Type) -> tuple[Type, ...]:
        if target.kind == "object":
            target = map_of(STRING, DYN)
        if node.kind == "mapValues":
            return (target.params[1] if target.kind == "map" else DYN,)
        if target.kind == "list":
            return (target.params[0],) if len(node.variables) == 1 else (INT, target.params[0])
        if target.kind == "map":
            return target.params[: len(node.variables)]
        return (DYN,) * len(node.variables)

    def bind(self, node: tree.Bind) -> Type:
        value = self.visit(node.value)
        return self._within({node.name: value}, node.body)[0]

    def optional_map(self, node: tree.OptionalMap) -> Type:
        target = self.seen(self.visit(node.target))
        inside = self._unwrapped(node.target, target)
        body = self._within({node.name: inside}, node.body)[0]
        if not node.flat:
            return optional_of(body)
        if self.seen(body).kind not in ("optional_type", "dyn", "param"):
            self.problem(node.body, f"optFlatMap needs an optional, found {self.shown(body)}")
        return body

    def coalesce(self, node: tree.Coalesce) -> Type:
        """A name that is not declared is no problem here: falling back is what the function is for."""
        before = self.problems
        found: Type | None = None
        for position, term in enumerate(node.terms):
            self.problems = []
            one = self.visit(term)
            if (
                self.problems
                and position < len(node.terms) - 1
                and isinstance(term, tree.Ident | tree.Select | tree.Index)
            ):
                one = DYN
            else:
                before.extend(self.problems)
            one = self.shown(one)
            found = one if found is None or found == NULL else join(found, one)
        self.problems = before
        return found or DYN

    def block(self, node: tree.Block) -> Type:
        outer = self.scope
        for name, value in zip(node.names, node.values, strict=True):
            self.scope = {**self.scope, name: self.visit(value)}
        found = self.visit(node.result)
        self.scope = outer
        return found


def _fit(trial: Bindings, overload: Overload, types: list[Type]) -> Type | None:
    """The result type of an overload for arguments of these types, None when it does not take them."""
    params = overload.params
    if overload.variadic and len(types) >= len(params):
        params = params + (params[-1],) * (len(types) - len(params))
    if len(params) != len(types):
        return None
    fresh: dict[Type, Type] = {}
    for param, given in zip(params, types, strict=True):
        if not trial.widens(_fresh(param, fresh), given):
            return None
    return _fresh(overload.result, fresh)


def _fresh(given: Type, fresh: dict[Type, Type]) -> Type:
    """An overload's type with parameters of this call's own."""
    if not given.open:
        return given
    if isinstance(given, Param):
        if given not in fresh:
            fresh[given] = Param(given.name)
        return fresh[given]
    return Type(given.kind, tuple(_fresh(param, fresh) for param in given.params))


# Implementations that read a literal argument: its position, and what reads it.
LITERAL_READERS: dict[Any, tuple[int, Callable[[str], Any] | None]] = {
    patterns.matches: (1, patterns.search_of),
    misc.regex_replace: (1, patterns.replacer),
    network.parse_ip: (0, network.parse_ip),
    network.parse_cidr: (0, network.parse_cidr),
    times.timestamp_from_string: (0, times.timestamp_from_string),
    times.duration_from_string: (0, times.duration_from_string),
}
PREDICATES = frozenset(("all", "exists", "existsOne", "filter", "filterKeys"))
LOOPS_OVER: dict[str, tuple[str, ...]] = {
    "mapValues": ("map", "dyn", "param", "object"),
    "filterKeys": ("map", "dyn", "param", "object"),
    "sortBy": ("list", "dyn", "param"),
}


def _same_map(target: Type, body: Type) -> Type:
    return target if target.kind == "map" else map_of(DYN, DYN)


def _keys_kept(target: Type, body: Type) -> Type:
    return map_of({"map": target.params[0] if target.params else DYN, "list": INT}.get(target.kind, DYN), body)


COMPREHENSION_RESULTS: dict[str, Callable[[Type, Type], Type]] = {
    "all": lambda target, body: BOOL,
    "exists": lambda target, body: BOOL,
    "existsOne": lambda target, body: BOOL,
    "map": lambda target, body: list_of(body),
    "filter": lambda target, body: list_of(target.params[0] if target.params else DYN),
    "transformList": lambda target, body: list_of(body),
    "transformMap": _keys_kept,
    "transformMapEntry": lambda target, body: body if body.kind == "map" else map_of(DYN, DYN),
    "mapValues": lambda target, body: map_of(target.params[0] if target.kind == "map" else DYN, body),
    "filterKeys": _same_map,
    "sortBy": lambda target, body: list_of(target.params[0] if target.params else DYN),
}

VISITORS: dict[type[tree.Node], Callable[[Checker, Any], Type]] = {
    tree.Literal: Checker.literal,
    tree.Ident: Checker.ident,
    tree.Select: Checker.select,
    tree.Index: Checker.index,
    tree.Call: Checker.call,
    tree.ListNode: Checker.list_literal,
    tree.MapNode: Checker.map_literal,
    tree.Message: Checker.message,
    tree.Chain: Checker.chain,
    tree.Logic: Checker.logic,
    tree.Unary: Checker.unary,
    tree.Conditional: Checker.conditional,
    tree.Has: Checker.has,
    tree.Comprehension: Checker.comprehension,
    tree.Bind: Checker.bind,
    tree.OptionalMap: Checker.optional_map,
    tree.Coalesce: Checker.coalesce,
    tree.Block: Checker.block,
}
