"""Tokens to tree: precedence climbing by hand, macros expanded on the way.

`parse` is the only entry. It never recurses with the length of a text, only with its nesting, and refuses nesting
deeper than MAX_DEPTH: every later pass may recurse over the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from gatewright.cel import macros, tree
from gatewright.cel.errors import CelSyntaxError, problem_at
from gatewright.cel.lexer import Token, tokens
from gatewright.cel.names import OTHER_LANGUAGES
from gatewright.cel.values import MAX_INT
from gatewright.turns import pause

MAX_DEPTH = 200
"""Levels to which an expression may be nested."""

# Binding strength of the operators between two terms, weakest first. `?:` is weaker than all, signs are stronger.
CONDITIONAL, OR, AND, RELATION, SUM, PRODUCT = 1, 2, 3, 4, 5, 6
STRENGTH = {
    "||": OR,
    "&&": AND,
    **dict.fromkeys(("<", "<=", "==", "!=", ">", ">=", "in"), RELATION),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys("*/%", PRODUCT),
}
SIGNS = ("!", "-")
RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)


def parse(text: str) -> tree.Node:
    """The tree of an expression. Raises CelSyntaxError; never RecursionError, whatever the text."""
    try:
        return Parser(text, macros.MACROS).whole()
    except RecursionError:  # the caller's own stack was nearly full
        raise CelSyntaxError((problem_at(text, 0, "nested too deeply"),)) from None


class Parser:
    """A cursor over the tokens of one text."""

    def __init__(self, text: str, table: macros.Table) -> None:
        self.text = text
        self.table = table
        self.tokens = tokens(text)
        self.position = 0
        self.current = self.tokens[0]
        self.nesting = 0

    def whole(self) -> tree.Node:
        node = self.expression(0)
        if self.current.kind != "end":
            self.refuse(self.current.offset, f"unexpected {self._shown()}", self._meant())
        return node

    # Cursor

    def refuse(self, offset: int, message: str, hint: str = "") -> NoReturn:
        raise CelSyntaxError((problem_at(self.text, offset, message, hint=hint),))

    def advance(self) -> Token:
        token = self.current
        self.position += 1
        self.current = self.tokens[self.position]
        return token

    def take(self, op: str) -> bool:
        """Whether the next token was this operator; if so it is consumed."""
        if self.current.kind == "op" and self.current.text == op:
            self.advance()
            return True
        return False

    def expect(self, op: str) -> None:
        if not self.take(op):
            self.refuse(self.current.offset, f'expected "{op}" before {self._shown()}')

    def made(self, node: tree.Node) -> tree.Node:
        if node.depth > MAX_DEPTH:
            self.refuse(node.offset, f"nested more than {MAX_DEPTH} deep")
        return node

    def _shown(self) -> str:
        return self.current.text if self.current.kind == "end" else f'"{self.current.text}"'

    def _meant(self) -> str:
        return OTHER_LANGUAGES.get(self.current.text, "")

    # Grammar

    def expression(self, strength: int) -> tree.Node:
        """Operators at least as strong as `strength`; 0 is the inside of a bracket and takes a conditional too.

        One frame does it all, because a frame for each rule of the grammar would not fit 200 levels on Python's stack.
        """
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            self.refuse(self.current.offset, f"nested more than {MAX_DEPTH} deep")
        pause()
        left = self.operand()
        conditions: list[tree.Node] = []
        values: list[tree.Node] = []
        question = 0
        while self.current.kind == "op":
            found = STRENGTH.get(self.current.text, 0)
            if found and found >= strength:
                operators, offsets, terms = [], [], []
                while self.current.kind == "op" and STRENGTH.get(self.current.text) == found:
                    token = self.advance()
                    operators.append(token.text)
                    offsets.append(token.offset)
                    terms.append(self.expression(found + 1))
                left = self._joined(found, left, operators, offsets, terms)
            elif strength == 0 and self.current.text == "?":
                token = self.advance()
                question = question or token.offset
                conditions.append(left)
                values.append(self.expression(CONDITIONAL))
                self.expect(":")
                left = self.operand()
            else:
                break
        if conditions:
            left = self.made(tree.Conditional(question, conditions, values, left))
        self.nesting -= 1
        return left

    def _joined(
        self, strength: int, first: tree.Node, operators: list[str], offsets: list[int], terms: list[tree.Node]
    ) -> tree.Node:
        if strength in (OR, AND):
            return self.made(tree.Logic(offsets[0], operators[0], [first, *terms]))
        return self.made(tree.Chain(first, operators, offsets, terms))

    def operand(self) -> tree.Node:
        """Signs, a primary, and what follows it: `.field`, `[index]`, `.call()`."""
        token = self.current
        sign, count = "", 0
        if token.kind == "op" and token.text in SIGNS:
            sign, offset = token.text, token.offset
            while self.take(sign):
                count += 1
            token = self.current
        if token.kind == "literal":
            node, count = self._literal(sign, count)
        elif token.kind == "ident":
            node = self._name(absolute=False)
        else:
            reader = PRIMARIES.get(token.text) if token.kind != "end" else None
            if reader is None:
                self.refuse(token.offset, f"expected a value before {self._shown()}", self._meant())
            self.advance()
            node = reader(self, token)
        while self.current.kind == "op":
            step = STEPS.get(self.current.text)
            following = step(self, node) if step is not None else None
            if following is None:
                break
            node = self.made(following)
        # An even number of signs is two, an odd one is one: what they mean stays, types included.
        for _ in range(2 - count % 2 if count else 0):
            node = self.made(tree.Unary(offset, sign, node))
        return node

    def _literal(self, sign: str, count: int) -> tuple[tree.Node, int]:
        """A minus directly before a number belongs to it: so -9223372036854775808 can be written."""
        token = self.advance()
        value = token.value
        if type(value) is int or type(value) is float:
            if sign == "-" and count:
                return tree.Literal(token.offset, -value), count - 1
            if value > MAX_INT and type(value) is int:
                self.refuse(token.offset, "int literal out of range")
        return tree.Literal(token.offset, value), count

    def _name(self, absolute: bool) -> tree.Node:
        token = self.advance()
        if token.text in RESERVED:
            self.refuse(token.offset, f'"{token.text}" is a reserved word')
        if self.take("("):
            name = f".{token.text}" if absolute else token.text
            return self.call(token.offset, name, None)
        return tree.Ident(token.offset, token.text, absolute)

    def call(self, offset: int, name: str, target: tree.Node | None) -> tree.Node:
        """After the opening parenthesis: arguments, then the macro of that name if there is one."""
        args: list[tree.Node] = []
        while not self.take(")"):
            if args:
                self.expect(",")
            args.append(self.expression(0))
        call = tree.Call(offset, name, target, args)
        self.made(call)
        macro = self.table.get((name, target is not None, len(call.args))) or self.table.get(
            (name, target is not None, macros.ANY)
        )
        expanded = macro(call, self.refuse) if macro is not None else None
        return call if expanded is None else self.made(expanded)

    # Primaries, called after their first token

    def constant(self, keyword: Token) -> tree.Node:
        return tree.Literal(keyword.offset, keyword.value)

    def parenthesis(self, opening: Token) -> tree.Node:
        node = self.expression(0)
        self.expect(")")
        return node

    def list_literal(self, opening: Token) -> tree.Node:
        elements: list[tree.Node] = []
        optional = set()
        while not self.take("]"):
            if elements:
                self.expect(",")
                if self.take("]"):
                    break
            if self.take("?"):
                optional.add(len(elements))
            elements.append(self.expression(0))
        return self.made(tree.ListNode(opening.offset, elements, frozenset(optional)))

    def map_literal(self, opening: Token) -> tree.Node:
        keys: list[tree.Node] = []
        values: list[tree.Node] = []
        optional = set()
        while not self.take("}"):
            if keys:
                self.expect(",")
                if self.take("}"):
                    break
            if self.take("?"):
                optional.add(len(keys))
            keys.append(self.expression(0))
            self.expect(":")
            values.append(self.expression(0))
        return self.made(tree.MapNode(opening.offset, keys, values, frozenset(optional)))

    def absolute(self, dot: Token) -> tree.Node:
        if self.current.kind != "ident":
            self.refuse(self.current.offset, f"expected a name before {self._shown()}")
        return self._name(absolute=True)

    # Steps after a primary; None when the token does not continue it

    def member(self, operand: tree.Node) -> tree.Node | None:
        self.advance()
        optional = self.take("?")
        token = self.current
        if token.kind not in ("ident", "quoted"):
            self.refuse(token.offset, f"expected a field name before {self._shown()}")
        self.advance()
        if token.kind == "ident" and not optional and self.take("("):
            return self.call(token.offset, token.text, operand)
        return tree.Select(token.offset, operand, str(token.value), optional)

    def index(self, operand: tree.Node) -> tree.Node | None:
        opening = self.advance()
        optional = self.take("?")
        index = self.expression(0)
        self.expect("]")
        return tree.Index(opening.offset, operand, index, optional)

    def message(self, operand: tree.Node) -> tree.Node | None:
        """`Name{field: value}`; the fields are parsed and forgotten, the check refuses the message."""
        name = macros.dotted(operand)
        if name is None:
            return None
        self.advance()
        first = True
        while not self.take("}"):
            if not first:
                self.expect(",")
                if self.take("}"):
                    break
            first = False
            self.take("?")
            if self.current.kind not in ("ident", "quoted"):
                self.refuse(self.current.offset, f"expected a field name before {self._shown()}")
            self.advance()
            self.expect(":")
            self.expression(0)
        while isinstance(operand, tree.Select):
            operand = operand.operand
        return tree.Message(operand.offset, name)


PRIMARIES: dict[str, Callable[[Parser, Token], tree.Node]] = {
    "(": Parser.parenthesis,
    "[": Parser.list_literal,
    "{": Parser.map_literal,
    ".": Parser.absolute,
    **dict.fromkeys(("true", "false", "null"), Parser.constant),
}
STEPS: dict[str, Callable[[Parser, tree.Node], tree.Node | None]] = {
    ".": Parser.member,
    "[": Parser.index,
    "{": Parser.message,
}
