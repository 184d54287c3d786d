"""Target `documents`: any text as a file of resources, and as a standalone file.

Promises: objects or problems, never an exception; each problem has a line of the file; what is called invalid says why
as an error; a cache changes nothing; what is accepted can be put on the wire.
"""

from __future__ import annotations

import re
from pathlib import Path

from gatewright.api.decode import documents
from gatewright.api.standalone import standalone
from gatewright.api.text.problem import Problem
from tests.fuzz.rig import require

_ROOT = Path(__file__).resolve().parents[2]
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""YAML 1.1 section 4.2: what ends a line."""
_FOLDERS = ("examples/quickstart", "examples/identity", "tests/golden")
SEEDS = (
    b"{}",
    b"[",
    b"a: &a [*a]\n",
    b'---\n...\n---\n{"apiVersion": "v1", "kind": "List", "items": [1, {}, {"kind": "List"}]}\n',
    b"apiVersion: v1\nkind: Service\nmetadata: {name: a, <<: {namespace: b}}\nspec: {ports: [{port: 0x50, name: ~}]}\n",
    b'{"a": ' + b"1" * 4400 + b"}",
    b'{"apiVersion": "v1", "kind": "\\ud800"}',
    b'{"a": 1e999, "b": [NaN, -0, 007]}\n',
    b'binds:\n- port: 8080\n  listeners:\n  - name: a\n    routes:\n    - backends: [{host: "127.0.0.1:9"}]\n',
    *(
        path.read_bytes()
        for folder in _FOLDERS
        for path in sorted((_ROOT / folder).rglob("*.yaml"))[:12]
        if path.stat().st_size < 4096
    ),
)
LONGEST = 4500


def check(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    last = len(_BREAK.findall(text)) + 1
    decoded = documents.decode(text, "file.yaml")
    for item in decoded:
        check_problems(item.problems, last)
        # What is valid and refused by every proxy is an error of lint as well, of an object that is translated.
        errors = [problem for problem in item.problems if problem.severity == "error" and not problem.refused]
        require(bool(errors) == (item.verdict != "valid"), f"{item.verdict} with the errors {errors}")
        require(item.verdict != "invalid" or item.item is None, "an invalid object")
    cache: documents.Cache = {}
    documents.decode(text, "file.yaml", cache)
    again = documents.decode(text, "file.yaml", cache)
    require(list(map(_said, again)) == list(map(_said, decoded)), f"with a cache: {again}, without: {decoded}")
    loaded = standalone.load(text, "file.yaml")
    check_problems(loaded.problems, last)
    for resource in loaded.resources:
        require(resource.key and resource.SerializeToString(), "a resource without a key")


def check_problems(problems: tuple[Problem, ...], last: int) -> None:
    for problem in problems:
        # libyaml sees what is missing at the end of a text on the line behind it
        require(problem.message and 1 <= problem.line <= last + 1, f"line {problem.line} of {last}: {problem}")
        str(problem).encode()


def _said(item: documents.Decoded) -> tuple[object, ...]:
    return item.key, item.verdict, item.line, tuple(map(str, item.problems))
