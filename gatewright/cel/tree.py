"""The nodes of an expression.

Made by the parser and the macros, typed by the checker (`type`, `resolved`), read by references and the planner.
Operator chains are flat, so a sum of 2,000 terms is one node and nothing recurses over it. `offset` counts code points.
"""

from __future__ import annotations

from typing import Any


class Node:
    """One piece of an expression. `type` and `resolved` are filled by the checker, once.

    `depth` is the longest way down, `size` the number of nodes.
    """

    __slots__ = ("depth", "offset", "resolved", "size", "type")
    depth: int
    size: int
    fields: tuple[str, ...] = ()

    def __init__(self, offset: int, children: tuple[Node, ...] | list[Node] = ()) -> None:
        self.offset = offset
        self.depth = 1 + max((child.depth for child in children), default=0)
        self.size = 1 + sum(child.size for child in children)
        self.type: Any = None  # a types.Type after the check
        self.resolved: Any = None  # a declaration, field or overloads after the check

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(getattr(self, name)) for name in self.fields)})"


class Literal(Node):
    """A constant: int, Uint, float, str, bytes, bool or None."""

    __slots__ = fields = ("value",)

    def __init__(self, offset: int, value: object) -> None:
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A name; `absolute` when written with a leading dot (neither loop variable nor container applies)."""

    __slots__ = fields = ("name", "absolute")

    def __init__(self, offset: int, name: str, absolute: bool = False) -> None:
        super().__init__(offset)
        self.name = name
        self.absolute = absolute


class Select(Node):
    """`operand.field`, or `operand.?field` when optional."""

    __slots__ = fields = ("operand", "field", "optional")

    def __init__(self, offset: int, operand: Node, field: str, optional: bool) -> None:
        super().__init__(offset, (operand,))
        self.operand = operand
        self.field = field
        self.optional = optional


class Index(Node):
    """`operand[index]`, or `operand[?index]` when optional."""

    __slots__ = fields = ("operand", "index", "optional")

    def __init__(self, offset: int, operand: Node, index: Node, optional: bool = False) -> None:
        super().__init__(offset, (operand, index))
        self.operand = operand
        self.index = index
        self.optional = optional


class Call(Node):
    """`function(args)` or `target.function(args)`; a namespaced function is known only after the check."""

    __slots__ = fields = ("function", "target", "args")

    def __init__(self, offset: int, function: str, target: Node | None, args: list[Node]) -> None:
        super().__init__(offset, args if target is None else [target, *args])
        self.function = function
        self.target = target
        self.args = args


class ListNode(Node):
    """`[a, ?b]`; `optional` holds the positions of the elements written with a question mark."""

    __slots__ = fields = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int]) -> None:
        super().__init__(offset, elements)
        self.elements = elements
        self.optional = optional


class MapNode(Node):
    """`{k: v, ?k: v}`; `optional` holds the positions of the entries written with a question mark."""

    __slots__ = fields = ("keys", "values", "optional")

    def __init__(self, offset: int, keys: list[Node], values: list[Node], optional: frozenset[int]) -> None:
        super().__init__(offset, [*keys, *values])
        self.keys = keys
        self.values = values
        self.optional = optional


class Message(Node):
    """`a.B{field: value}`: parsed so that it can be refused with its name; there are no messages here."""

    __slots__ = fields = ("name",)

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name


class Chain(Node):
    """Left-associative operators of one precedence: `first op term op term`. `offsets` are those of the operators."""

    __slots__ = fields = ("first", "operators", "offsets", "terms")

    def __init__(self, first: Node, operators: list[str], offsets: list[int], terms: list[Node]) -> None:
        super().__init__(offsets[0], [first, *terms])
        self.first = first
        self.operators = operators
        self.offsets = offsets
        self.terms = terms


class Logic(Node):
    """`a && b && c` or `a || b || c`."""

    __slots__ = fields = ("operator", "terms")

    def __init__(self, offset: int, operator: str, terms: list[Node]) -> None:
        super().__init__(offset, terms)
        self.operator = operator
        self.terms = terms


class Unary(Node):
    """`!operand` or `-operand`."""

    __slots__ = fields = ("operator", "operand")

    def __init__(self, offset: int, operator: str, operand: Node) -> None:
        super().__init__(offset, (operand,))
        self.operator = operator
        self.operand = operand


class Conditional(Node):
    """`c1 ? v1 : c2 ? v2 : otherwise`, flat."""

    __slots__ = fields = ("conditions", "values", "otherwise")

    def __init__(self, offset: int, conditions: list[Node], values: list[Node], otherwise: Node) -> None:
        super().__init__(offset, [*conditions, *values, otherwise])
        self.conditions = conditions
        self.values = values
        self.otherwise = otherwise


class Has(Node):
    """`has(a.b)`."""

    __slots__ = fields = ("select",)

    def __init__(self, offset: int, select: Select) -> None:
        super().__init__(offset, (select,))
        self.select = select


class Comprehension(Node):
    """A loop macro. `variables` are one or two names; `where` and `body` see them; `key` is for maps only.

    kind: all, exists, existsOne, map, filter, transformList, transformMap, transformMapEntry, mapValues, filterKeys,
    sortBy. With two variables they are index and element of a list, key and value of a map.
    """

    __slots__ = fields = ("kind", "target", "variables", "where", "body")

    def __init__(
        self, offset: int, kind: str, target: Node, variables: tuple[str, ...], where: Node | None, body: Node
    ) -> None:
        super().__init__(offset, (target, body) if where is None else (target, where, body))
        self.kind = kind
        self.target = target
        self.variables = variables
        self.where = where
        self.body = body


class Bind(Node):
    """`cel.bind(name, value, body)` and `value.with(name, body)`."""

    __slots__ = fields = ("name", "value", "body")

    def __init__(self, offset: int, name: str, value: Node, body: Node) -> None:
        super().__init__(offset, (value, body))
        self.name = name
        self.value = value
        self.body = body


class OptionalMap(Node):
    """`target.optMap(name, body)`; `flat` for `optFlatMap`, whose body is itself an optional."""

    __slots__ = fields = ("target", "name", "body", "flat")

    def __init__(self, offset: int, target: Node, name: str, body: Node, flat: bool) -> None:
        super().__init__(offset, (target, body))
        self.target = target
        self.name = name
        self.body = body
        self.flat = flat


class Coalesce(Node):
    """`coalesce(a, b, ...)` and `default(a, b)`: the first term that has a value other than null."""

    __slots__ = fields = ("function", "terms")

    def __init__(self, offset: int, function: str, terms: list[Node]) -> None:
        super().__init__(offset, terms)
        self.function = function
        self.terms = terms


class Block(Node):
    """`cel.block([a, b], result)`: values computed once, seen as names by the later ones and by the result."""

    __slots__ = fields = ("names", "values", "result")

    def __init__(self, offset: int, names: list[str], values: list[Node], result: Node) -> None:
        super().__init__(offset, [*values, result])
        self.names = names
        self.values = values
        self.result = result
