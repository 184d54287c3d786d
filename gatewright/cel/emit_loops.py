"""What loop macros become: loops written out, with the names of the expression as local variables."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gatewright.cel import budget, careful, loops, selection, tree
from gatewright.cel.functions.lists import sort_by
from gatewright.cel.total import cannot_fail_as_bool
from gatewright.cel.types import STRING

if TYPE_CHECKING:
    from gatewright.cel.plan import Plan

Expr = ast.expr


class Loop:
    """The parts of one loop: what it runs over, the Python names of its variables, and whether they come in pairs."""

    __slots__ = ("items", "names", "pairs", "source", "text_keys")

    def __init__(self, source: Expr, items: Expr, names: tuple[str, ...], text_keys: bool) -> None:
        self.source = source
        self.items = items
        self.names = names
        self.pairs = len(names) == 2
        self.text_keys = text_keys


def comprehension(plan: Plan, node: tree.Comprehension) -> Expr:
    if plan.blocks >= plan.MAX_BLOCKS:
        name = plan.lifted(node, lambda same: comprehension(plan, node))
        return plan.at(ast.Call(plan.name(name), plan.around(), []))
    source = _sequence(plan, node, plan.once(plan.emit(node.target)))
    loop = _loop(plan, node, source)
    _charge(plan, node, source, loop)
    # Of key and value, filterKeys sees the key and mapValues the value.
    seen = loop.names[:1] if node.kind == "filterKeys" else loop.names[-len(node.variables) :]
    with names_within(plan, dict(zip(node.variables, seen, strict=True))):
        plan.loops += 1
        result = KINDS[node.kind](plan, node, loop)
        plan.loops -= 1
    return result


def _sequence(plan: Plan, node: tree.Comprehension, source: Expr) -> Expr:
    """Something with a length: a list or map as it is, an unknown value looked at, a map's keys as a list."""
    kind = node.target.type
    if kind.kind == "list" or (kind.kind == "map" and kind.params[0] == STRING):
        return source
    if len(node.variables) == 2 or node.kind in ("mapValues", "filterKeys"):
        return source
    is_list = plan.compare(plan.call(type, source), ast.Is(), plan.bind(list))
    return plan.temporary(plan.choose(is_list, plan.again(source), plan.call(loops.items, plan.again(source))))


def _loop(plan: Plan, node: tree.Comprehension, source: Expr) -> Loop:
    """How to run over a value of the target's type. A map gives its keys, or pairs of key and value."""
    kind = node.target.type
    text_keys = kind.kind == "map" and kind.params[0] == STRING
    if node.kind in ("mapValues", "filterKeys"):
        names = (plan.fresh(), plan.fresh())
        items = plan.call(loops.raw_entries, plan.again(source))
        return Loop(source, items, names, text_keys)
    if len(node.variables) == 2:
        names = (plan.fresh(), plan.fresh())
        if kind.kind == "list":
            items = plan.call(enumerate, plan.again(source))
        elif text_keys:
            items = plan.method(plan.again(source), "items")
        else:
            items = plan.call(loops.pairs, plan.again(source))
        return Loop(source, items, names, text_keys)
    return Loop(source, plan.again(source), (plan.fresh(),), text_keys)


def _charge(plan: Plan, node: tree.Comprehension, source: Expr, loop: Loop) -> None:
    """Steps for the whole loop before it starts, and an eye on the clock; small outermost loops are free of both."""
    if plan.known(source) and not plan.loops and _is_short(plan.value(source)):
        return
    inside = node.body.size + (node.where.size if node.where is not None else 0)
    weight = plan.plain(1 + inside // 8)
    size = plan.call(len, plan.again(source))  # what has no length has no items either, and these are asked for first
    items = plan.fresh()
    if plan.loops:
        plan.assign(items, plan.charged(loops.counted, loop.items, size, weight))
    else:
        plan.assign(items, loop.items)
        length = plan.temporary(size)
        with plan.into([]) as many:
            plan.assign(items, plan.charged(loops.counted, plan.name(items), plan.again(length), weight))
        plan.when(plan.compare(length, ast.Gt(), plan.plain(budget.FREE_PASSES)), many)
    loop.items = plan.name(items)


def _is_short(value: Any) -> bool:
    return isinstance(value, list | tuple | dict) and len(value) <= budget.FREE_PASSES


@contextmanager
def names_within(plan: Plan, names: dict[str, str]) -> Iterator[None]:
    outer = plan.locals
    plan.locals = {**outer, **names}
    yield
    plan.locals = outer


def _for(plan: Plan, loop: Loop, body: list[ast.stmt]) -> None:
    target: Expr = plan.store(loop.names[0])
    if loop.pairs:
        target = plan.at(ast.Tuple([plan.store(name) for name in loop.names], ast.Store()))
    plan.block.append(plan.at(ast.For(target, loop.items, body, [])))


def _quantifier(decisive: bool) -> Callable[[Plan, tree.Comprehension, Loop], Expr]:
    """`exists` (decided by a true) and `all` (decided by a false)."""

    def emit(plan: Plan, node: tree.Comprehension, loop: Loop) -> Expr:
        if plan.doubtful or not cannot_fail_as_bool(node.body):
            if plan.careful:
                return _careful_quantifier(plan, node, loop, decisive)
            plan.absorbs = True
        result = plan.fresh()
        plan.assign(result, plan.plain(not decisive))
        with plan.into([], nested=True) as body:
            test = plan.truth(node.body)
            with plan.into([]) as found:
                plan.assign(result, plan.plain(decisive))
                plan.block.append(plan.at(ast.Break()))
            plan.when(test if decisive else plan.negated(test), found)
        _for(plan, loop, body)
        return plan.name(result)

    return emit


def _careful_quantifier(plan: Plan, node: tree.Comprehension, loop: Loop, decisive: bool) -> Expr:
    """The predicate as a function whose last parameters are the loop's variables."""
    term = plan.name(plan.lifted(node.body, plan.truth, loop.names))
    args = plan.tuple_of(plan.around(loop.names))
    function = careful.any_item if decisive else careful.all_items
    return plan.call(function, term, loop.items, args, plan.plain(loop.pairs))


def exists_one(plan: Plan, node: tree.Comprehension, loop: Loop) -> Expr:
    """Runs to the end: an error in any pass is an error."""
    count = plan.fresh()
    plan.assign(count, plan.plain(0))
    with plan.into([], nested=True) as body:
        test = plan.truth(node.body)
        with plan.into([]) as found:
            plan.assign(count, plan.at(ast.BinOp(plan.name(count), ast.Add(), plan.plain(1))))
        plan.when(test, found)
    _for(plan, loop, body)
    return plan.compare(plan.name(count), ast.Eq(), plan.plain(1))


Step = Callable[["Plan", tree.Comprehension, Loop, str], None]


def _collecting(empty: Callable[[Plan], Expr], step: Step) -> Callable[[Plan, tree.Comprehension, Loop], Expr]:
    """A loop that adds to a list or map, for the passes where the condition holds."""

    def emit(plan: Plan, node: tree.Comprehension, loop: Loop) -> Expr:
        result = plan.fresh()
        plan.assign(result, empty(plan))
        with plan.into([], nested=True) as body:
            if node.where is None:
                step(plan, node, loop, result)
            else:
                test = plan.truth(node.where)
                with plan.into([]) as then:
                    step(plan, node, loop, result)
                plan.when(test, then)
        _for(plan, loop, body)
        return plan.name(result)

    return emit


def _empty_list(plan: Plan) -> Expr:
    return plan.at(ast.List([], ast.Load()))


def _empty_map(plan: Plan) -> Expr:
    return plan.at(ast.Dict([], []))


def _append_body(plan: Plan, node: tree.Comprehension, loop: Loop, result: str) -> None:
    value = plan.emit(node.body)
    plan.statement(plan.method(plan.name(result), "append", value))


def _append_if(plan: Plan, node: tree.Comprehension, loop: Loop, result: str) -> None:
    test = plan.truth(node.body)
    with plan.into([]) as then:
        plan.statement(plan.method(plan.name(result), "append", plan.name(loop.names[0])))
    plan.when(test, then)


def _put_body(plan: Plan, node: tree.Comprehension, loop: Loop, result: str) -> None:
    value = plan.emit(node.body)
    key = plan.name(loop.names[0])
    if loop.text_keys or node.kind == "mapValues":
        plan.block.append(_set(plan, result, key, value))
    else:
        plan.statement(plan.call(selection.put, plan.name(result), key, value))


def _set(plan: Plan, result: str, key: Expr, value: Expr) -> ast.stmt:
    target = plan.at(ast.Subscript(plan.name(result), key, ast.Store()))
    return plan.at(ast.Assign([target], value))


def _put_entries(plan: Plan, node: tree.Comprehension, loop: Loop, result: str) -> None:
    value = plan.emit(node.body)
    plan.statement(plan.call(loops.put_all, plan.name(result), value))


def _keep_entry(plan: Plan, node: tree.Comprehension, loop: Loop, result: str) -> None:
    """filterKeys: the variable is the key as a value; what is stored is the entry as it was."""
    raw = plan.fresh()
    key, item = loop.names
    plan.assign(raw, plan.name(key))
    plan.assign(key, plan.call(loops.from_key, plan.name(raw)))
    test = plan.truth(node.body)
    with plan.into([]) as then:
        plan.block.append(_set(plan, result, plan.name(raw), plan.name(item)))
    plan.when(test, then)


def _sorted(plan: Plan, node: tree.Comprehension, loop: Loop) -> Expr:
    order = _collecting(_empty_list, _append_body)(plan, node, loop)
    return plan.charged(sort_by, plan.again(loop.source), order)


KINDS: dict[str, Callable[[Plan, tree.Comprehension, Loop], Expr]] = {
    "all": _quantifier(decisive=False),
    "exists": _quantifier(decisive=True),
    "existsOne": exists_one,
    "map": _collecting(_empty_list, _append_body),
    "filter": _collecting(_empty_list, _append_if),
    "transformList": _collecting(_empty_list, _append_body),
    "transformMap": _collecting(_empty_map, _put_body),
    "transformMapEntry": _collecting(_empty_map, _put_entries),
    "mapValues": _collecting(_empty_map, _put_body),
    "filterKeys": _collecting(_empty_map, _keep_entry),
    "sortBy": _sorted,
}


LOOPS: dict[type[tree.Node], Callable[[Plan, Any], Expr]] = {tree.Comprehension: comprehension}
