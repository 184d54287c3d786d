"""What calls become: the implementation itself where one overload is certain, a choice at run time elsewhere."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from types import MethodDescriptorType
from typing import TYPE_CHECKING, Any

from gatewright.cel import budget, patterns, tree
from gatewright.cel.emit_values import refuse
from gatewright.cel.environment import Access, Entry
from gatewright.cel.errors import Fault
from gatewright.cel.functions import headers, json_text, optionals
from gatewright.cel.overloads import Overload
from gatewright.cel.types import STRING, Type
from gatewright.cel.values import NONE, type_name

if TYPE_CHECKING:
    from gatewright.cel.plan import Plan

Expr = ast.expr
ANYTHING = ("dyn", "param")


def call(plan: Plan, node: tree.Call) -> Expr:
    nodes = node.args if node.target is None else [node.target, *node.args]
    if node.resolved is None:
        return plan.call(refuse, plan.constant(f"no such overload: {node.function}"))
    overloads: tuple[Overload, ...] = node.resolved
    shortcut = SHORTCUTS.get(overloads[0].implementation)
    if shortcut is not None:
        found = shortcut(plan, nodes)
        if found is not None:
            return found
    args = [plan.emit(arg) for arg in nodes]
    if len(overloads) == 1 and _certain(overloads[0], nodes):
        return _direct(plan, overloads[0], args)
    quick = _quick_method(plan, overloads, nodes, args)
    return quick if quick is not None else _chosen(plan, overloads, args)


def _certain(overload: Overload, nodes: list[tree.Node]) -> bool:
    """Whether the arguments' types are exactly the overload's, as far as the implementation relies on them."""
    if overload.variadic:
        return True
    return all(
        param.kind in ANYTHING or param.kind == node.type.kind
        for param, node in zip(overload.params, nodes, strict=True)
    )


def _direct(plan: Plan, overload: Overload, args: list[Expr]) -> Expr:
    implementation = overload.implementation
    if overload.pure and not overload.charges and all(map(plan.known, args)):
        try:
            return plan.constant(implementation(*map(plan.value, args)))
        except Fault:
            return plan.call(implementation, *args)  # it fails each time it is evaluated
    if implementation is operator.contains:
        return plan.compare(args[1], ast.In(), args[0])
    if isinstance(implementation, MethodDescriptorType):
        return plan.method(args[0], implementation.__name__, *args[1:])
    return plan.call(implementation, *_hidden(plan, overload), *args)


def _hidden(plan: Plan, overload: Overload) -> list[Expr]:
    return [plan.name("c")] * overload.contextual + [plan.budget()] * overload.charges


def _quick_method(plan: Plan, overloads: tuple[Overload, ...], nodes: list[tree.Node], args: list[Expr]) -> Expr | None:
    """A method of str on a receiver that is not known to be one: looked at in line, since it almost always is."""
    text = [o for o in overloads if o.params and o.params[0] == STRING]
    if len(text) != 1 or nodes[0].type.kind not in ANYTHING:
        return None
    implementation = text[0].implementation
    if not isinstance(implementation, MethodDescriptorType) or any(node.type != STRING for node in nodes[1:]):
        return None
    others = [plan.once(arg) for arg in args[1:]]
    name = plan.fresh()
    kept = plan.at(ast.NamedExpr(plan.store(name), args[0]))
    is_text = plan.compare(plan.call(type, kept), ast.Is(), plan.bind(str))
    quick = plan.method(plan.name(name), implementation.__name__, *others)
    return plan.choose(is_text, quick, _chosen(plan, overloads, [plan.name(name), *map(plan.again, others)]))


def _chosen(plan: Plan, overloads: tuple[Overload, ...], args: list[Expr]) -> Expr:
    chooser = plan.named.get(id(overloads))
    if chooser is None:
        plan.names[f"f{plan.count}"] = Chooser(overloads)
        chooser = plan.named[id(overloads)] = f"f{plan.count}"
        plan.count += 1
    return plan.at(ast.Call(plan.name(chooser), [plan.name("c"), plan.budget(), *args], []))


class Chooser:
    """A function whose overload is chosen by the types of its arguments, which are remembered."""

    __slots__ = ("known", "overloads")

    def __init__(self, overloads: tuple[Overload, ...]) -> None:
        self.overloads = overloads
        self.known: dict[tuple[type, ...], Callable[..., Any]] = {}

    def __call__(self, context: Any, charge: budget.Budget, *args: Any) -> Any:
        kinds = tuple(map(type, args))
        found = self.known.get(kinds)
        if found is None:
            found = self.known[kinds] = _adapted(self._overload(args))
        return found(context, charge, *args)

    def _overload(self, args: tuple[Any, ...]) -> Overload:
        names = list(map(type_name, args))
        for overload in self.overloads:
            if overload.variadic or (len(overload.params) == len(names) and all(map(_takes, overload.params, names))):
                return overload
        raise Fault(f"no such overload: {self.overloads[0].name}({', '.join(names)})")


def _takes(param: Type, name: str) -> bool:
    return param.kind in ANYTHING or param.kind == name


def _adapted(overload: Overload) -> Callable[..., Any]:
    """The implementation as a function of context, budget and arguments."""
    implementation = overload.implementation
    if overload.contextual:
        return lambda context, charge, *args: implementation(context, *args)
    if overload.charges:
        return lambda context, charge, *args: implementation(charge, *args)
    return lambda context, charge, *args: implementation(*args)


# Calls that become something else


def _matches(plan: Plan, nodes: list[tree.Node]) -> Expr | None:
    """A literal pattern is compiled now. A long text is charged for, a short one outside loops is not; what is short
    depends on the pattern's price."""
    text, pattern = nodes
    if not isinstance(pattern, tree.Literal) or text.type != STRING:
        return None
    try:
        search, price = patterns.search_of(str(pattern.value)), patterns.price(str(pattern.value))
    except Fault as fault:
        return plan.call(refuse, plan.constant(fault.message))
    compiled, costs = plan.bind(search), plan.plain(price)
    subject = plan.emit(text)
    if plan.loops:
        return plan.charged(patterns.searched, compiled, subject, costs)
    name = plan.fresh()
    kept = plan.at(ast.NamedExpr(plan.store(name), subject))
    short = plan.compare(plan.call(len, kept), ast.LtE(), plan.plain(int(budget.LARGE * patterns.LEAST / price)))
    quick = plan.at(ast.Call(compiled, [plan.name(name)], []))
    return plan.choose(short, quick, plan.charged(patterns.searched, plan.bind(search), plan.name(name), costs))


def _contains(plan: Plan, nodes: list[tree.Node]) -> Expr | None:
    """In text of unknown size the search is charged for when it is long or in a loop."""
    text = nodes[0]
    if any(node.type != STRING for node in nodes) or isinstance(text, tree.Literal) or isinstance(text.resolved, Entry):
        return None
    subject, part = plan.emit(text), plan.once(plan.emit(nodes[1]))
    if plan.loops:
        return plan.charged(patterns.contains, subject, part)
    name = plan.fresh()
    kept = plan.at(ast.NamedExpr(plan.store(name), subject))
    short = plan.compare(plan.call(len, kept), ast.LtE(), plan.plain(budget.LARGE))
    quick = plan.compare(part, ast.In(), plan.name(name))
    return plan.choose(short, quick, plan.charged(patterns.contains, plan.name(name), plan.again(part)))


def _json(plan: Plan, nodes: list[tree.Node]) -> Expr | None:
    """`json(request.body)`, also of `string(request.body)`, where the context keeps the parsed value."""
    node = nodes[0]
    if isinstance(node, tree.Call) and node.function == "string" and node.target is None and len(node.args) == 1:
        node = node.args[0]  # JSON of bytes is that of their text
    access = node.resolved
    if isinstance(access, Access) and access.field.parsed:
        return plan.attribute(plan.name("c"), access.field.parsed)
    return None


def _query(plan: Plan, nodes: list[tree.Node]) -> Expr | None:
    """`request.uri.query("a")` where the context keeps the parameters."""
    access = nodes[0].resolved
    if isinstance(access, Access) and access.field.parameters and nodes[1].type == STRING:
        found = plan.attribute(plan.name("c"), access.field.parameters)
        return plan.call(headers.parameter, found, plan.emit(nodes[1]))
    return None


def _or(plan: Plan, nodes: list[tree.Node]) -> Expr | None:
    return _otherwise(plan, nodes, lambda optional: optional, optionals.checked)


def _or_value(plan: Plan, nodes: list[tree.Node]) -> Expr | None:
    return _otherwise(plan, nodes, lambda optional: plan.attribute(optional, "value"), None)


def _otherwise(plan: Plan, nodes: list[tree.Node], taken: Callable[[Expr], Expr], check: Any) -> Expr | None:
    """The second argument is evaluated only where the optional is empty: `x.?a.orValue(fail("no a"))`."""
    if isinstance(nodes[1], tree.Literal):
        return None
    first = plan.emit(nodes[0])
    optional = plan.once(first if nodes[0].type.kind == "optional_type" else plan.call(optionals.checked, first))
    block, other = plan.apart(plan.emit, nodes[1])
    if check is not None and nodes[1].type.kind != "optional_type":
        other = plan.call(check, other)
    empty = plan.compare(optional, ast.Is(), plan.constant(NONE))
    value = taken(plan.again(optional))
    if not block:
        return plan.choose(empty, other, value)
    result = plan.fresh()
    with plan.into(block):
        plan.assign(result, other)
    with plan.into([]) as present:
        plan.assign(result, value)
    plan.when(empty, block, present)
    return plan.name(result)


SHORTCUTS: dict[Any, Callable[[Plan, list[tree.Node]], Expr | None]] = {
    patterns.matches: _matches,
    operator.contains: _contains,
    json_text.parse: _json,
    headers.query: _query,
    optionals.either: _or,
    optionals.or_value: _or_value,
}

CALLS: dict[type[tree.Node], Callable[[Plan, Any], Expr]] = {tree.Call: call}
