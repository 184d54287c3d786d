"""The rows of the specification's Errors and Limits tables, what each error answers, and who claims a row.

    @pytest.mark.claims("errors: Local or global rate limit exceeded")
    def test_the_fourth_request_is_refused(refused) -> None:
        ...
        refused(client.take())

A claim names a row by its first cell, or by a beginning of it that fits no other row. A test that claims a row of the
Errors table must hand the answer to the fixture `refused`, which compares it with the table here: statuses and texts
are written once. test_claims reads the claims of the whole suite; a row that no test claims is in LATER, with why.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True)
class Answer:
    """Status and body that a client gets."""

    status: int
    body: bytes


Cases = Mapping[str, Answer]

# Errors.

NOT_AUTHORIZED: Final = Answer(403, b"external authorization failed")
NONE: Final[Cases] = {}
"""Nothing that a client of the proxy is answered."""

ERRORS: Final[dict[str, Cases]] = {
    "External authorization denies the request, the authorization server returns a non-200 status (HTTP mode), or the "
    "client has no identity known to the daemon (for example connecting from localhost)": {"": NOT_AUTHORIZED},
    "External authorization server unavailable or erroring": {"": NOT_AUTHORIZED},
    "Daemon answers that it has no match for the connecting IP address and port": {"": NOT_AUTHORIZED},
    "Socket of the daemon missing or inaccessible": {"": NOT_AUTHORIZED},
    "MCP request lacking `text/event-stream` in its accept header": {
        "": Answer(406, b"Not Acceptable: Client must accept text/event-stream"),
    },
    "Local or global rate limit exceeded": {"": Answer(429, b"rate limit exceeded")},
    "Downstream CONNECT request while `frontend.connect` is unset or `Deny`": {
        "unset": Answer(405, b"method not allowed"),
        "deny": Answer(403, b"connect is not allowed"),
    },
    "Prompt guard regex with action `Reject` matches": {
        "": Answer(
            403,
            b'{"error":{"message":"The request was rejected due to inappropriate content","type":"permission_error",'
            b'"param":null,"code":"PromptRejected"}}',
        ),
    },
    "External processor body mode `Buffered` with a body larger than 8KB": {
        "request": Answer(413, b"request body is too large"),
        "response": Answer(502, b"response body is too large"),
    },
    "Authentication mode `Strict` with missing or invalid credentials (status code and body): not shown": {
        "jwt": Answer(401, b"authentication failed"),
        "basic": Answer(401, b"authentication failed"),
        "apiKey": Answer(401, b"authentication failed"),
    },
    "Body larger than `forwardBody.maxSize`": {"": Answer(413, b"request body is too large")},
    "MCP backend authorization fails for a get or call operation": {
        "": Answer(200, b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: echo"}}'),
    },
    "Error payload shape of control-plane resource validation: not shown": NONE,
}
"""First cell of each row: what is answered, by case where a row has several. Where the specification names no text or
status, ours."""

# Limits.

LIMITS: Final[tuple[str, ...]] = (
    "ShortString / TinyString / LongString",
    "CELExpression",
    "GatewayPolicy targetRefs / targetSelectors",
    "AI backend groups; providers per group",
    "MCP targets per backend",
    "Prompt guards per request list / response list",
    "FieldDefault lists (defaults, overrides), transformations, modelAliases",
    "Conditional policy items",
    "Local rate limits per policy",
    "Global rate limit descriptors; entries per descriptor",
    "Authorization matchExpressions per rule",
    "JWT providers; audiences",
    "Basic auth inline users",
    "JWKS inline size",
    "DirectResponse body; header count; status",
    "Transform set / add / remove / metadata",
    "ExtAuth header lists and maps",
    "ExtProc buffered body modes",
    "Buffer `maxBytes` default",
    "Frontend HTTP defaults",
    "TLS handshake timeout",
    "TCP keepalive",
    "Backend eviction",
    "Ports",
    "Metric label additions",
    "Prompt caching minimum tokens",
    "Shutdown `min` and `max`",
    "ALPN / key exchange lists",
    "Status conditions",
)
"""First cell of each row."""

ROWS: Final[tuple[str, ...]] = (*(f"errors: {row}" for row in ERRORS), *(f"limits: {row}" for row in LIMITS))

LATER: Final[dict[str, str]] = {
    "errors: Error payload shape of control-plane resource validation: not shown": "the API server makes it",
}
"""Rows that no test claims, and why. A row that gets a claim leaves this list."""


class UnknownRow(ValueError):
    """A claim that fits no row, or more than one."""


def row_of(claim: str) -> str:
    """The row that a claim means. Raises UnknownRow."""
    if claim in ROWS:
        return claim
    found = [row for row in ROWS if row.startswith(claim)] if len(claim) > len("errors: ") else []
    if len(found) != 1:
        raise UnknownRow(f"{claim!r} is the beginning of {len(found)} rows of tests/rules/claims.py")
    return found[0]


# What a test says.


def answer_of(given: Any) -> Answer:
    """Status and body of an answer: bytes of an HTTP/1 response, something with `status` and `body` (a Reply), or
    (status, body). Any: tests have answers of many kinds."""
    if isinstance(given, bytes):
        return _parsed(given)
    if isinstance(given, tuple):
        return Answer(given[0], given[1])
    return Answer(given.status, given.body)


def _parsed(message: bytes) -> Answer:
    head, found, rest = message.partition(b"\r\n\r\n")
    assert found and head.startswith(b"HTTP/1."), f"not a response: {message[:200]!r}"
    lines = head.lower().split(b"\r\n")
    (length,) = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
    assert len(rest) == length, f"content-length is {length}, {len(rest)} bytes of body were received"
    return Answer(int(lines[0].split()[1]), rest)


class Refused:
    """The fixture `refused`: compares answers with the table, and remembers of which rows."""

    def __init__(self, claims: Iterable[str]) -> None:
        self._claimed = tuple(row_of(claim) for claim in claims)
        self.asserted: set[str] = set()

    def __call__(self, answer: Any, claim: str = "", case: str = "") -> None:
        """Assert that an answer (see `answer_of`) is the one of a row: by default of the row that the test claims.

        `case` chooses where the row has several ("jwt", "unset").
        """
        row = row_of(claim) if claim else self._only()
        cases = ERRORS[row.removeprefix("errors: ")]
        assert case in cases, f"{row} has the cases {sorted(cases)}, not {case!r}"
        assert answer_of(answer) == cases[case]
        self.asserted.add(row)

    def _only(self) -> str:
        errors = [row for row in self._claimed if row.startswith("errors: ")]
        assert len(errors) == 1, f"the test claims {len(errors)} rows of the Errors table; say which one this is"
        return errors[0]

    def lacking(self) -> list[str]:
        """Rows of the Errors table that the test claims and compared no answer with."""
        return [row for row in self._claimed if row.startswith("errors: ") and row not in self.asserted]


# Who claims what.


@dataclass(frozen=True)
class Claim:
    """A claim as it stands in a test file."""

    where: str
    text: str
    """"" for one that is no literal text."""


def claims_in(tests: Path) -> Iterator[Claim]:
    """Every claim of the test files below a folder."""
    for file, tree in _trees(tests, "mark.claims"):
        helpers = set(_decorators_of_helpers(tree))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or node in helpers:
                continue
            if isinstance(node.func, ast.Attribute) and node.func.attr == "claims":
                yield from _texts(node, f"{file.relative_to(tests)}:{node.lineno}")


def cases_in(tests: Path) -> set[str]:
    """The cases of rows that test files compare answers with."""
    calls = (node for _, tree in _trees(tests, "refused(") for node in ast.walk(tree) if isinstance(node, ast.Call))
    named = (word for call in calls if ast.unparse(call.func) == "refused" for word in call.keywords)
    return {str(word.value.value) for word in named if word.arg == "case" and isinstance(word.value, ast.Constant)}


def _trees(tests: Path, with_text: str) -> Iterator[tuple[Path, ast.Module]]:
    """Test files that hold a text, read."""
    for file in sorted(tests.rglob("test_*.py")):
        source = file.read_text(encoding="utf-8")
        if with_text in source:
            yield file, ast.parse(source)


NAMED: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _decorators_of_helpers(tree: ast.Module) -> Iterator[ast.expr]:
    """What stands above functions and classes that pytest does not collect: nothing there is a claim."""
    for node in ast.walk(tree):
        if isinstance(node, NAMED) and not node.name.lower().startswith("test"):
            yield from node.decorator_list


def _texts(call: ast.Call, where: str) -> Iterator[Claim]:
    for argument in call.args:
        literal = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        yield Claim(where, argument.value if literal else "")  # type: ignore[attr-defined]
