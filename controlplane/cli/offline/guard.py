"""`gatewright guard --policy FILE < TEXT`: what the guards of a file make of a text.

The guards are those of proxies: a process of the data plane judges the text, as the two planes share no code.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from controlplane.cli import children, exits
from gatewright import files
from gatewright.api.checks.parts import parts
from gatewright.api.decode.documents import decode
from gatewright.api.lint.lint import is_standalone
from gatewright.api.lower.lowering import lower
from gatewright.api.schema.camel import to_camel
from gatewright.api.standalone import standalone
from gatewright.api.text.problem import Problem, path_text
from gatewright.wire.v1 import ai_pb2

FIELD: Final = "prompt_guard"
MAX_TEXT: Final = 4_194_304
"""Bytes of the text that is tried: as of an answer that proxies judge."""
_MODULE: Final = "dataplane.guards.trial"
_SIZE: Final = 4
"""Bytes that say how long the guards are, as the module reads them."""

Found = tuple[str, ai_pb2.AiPromptGuard]
"""Where guards stand, and they."""


def run(arguments: argparse.Namespace) -> int:
    """0, also where the text is rejected. Failure: the file has no guards, or mistakes; the text is no UTF-8."""
    if importlib.util.find_spec("dataplane") is None:
        raise exits.Failure(exits.DEPENDENCY, "the proxy is not installed; `pip install gatewright` brings it")
    found = _guards(arguments.policy)
    text = sys.stdin.buffer.read(MAX_TEXT + 1)
    if len(text) > MAX_TEXT:
        raise exits.Failure(exits.CONFIG, f"the text is larger than {MAX_TEXT} bytes")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise exits.Failure(exits.CONFIG, "the text is not UTF-8") from error
    answers = {place: _judged(place, guards, arguments.scope, text) for place, guards in found}
    print(json.dumps(answers, indent=2) if arguments.output == "json" else "\n".join(_lines(answers)))
    return exits.OK


def _judged(place: str, guards: ai_pb2.AiPromptGuard, scope: str, text: bytes) -> dict[str, Any]:  # Any: JSON
    message = guards.SerializeToString()
    given = len(message).to_bytes(_SIZE) + message + text
    ended = subprocess.run(children.python(_MODULE, scope), input=given, capture_output=True, check=False)
    if ended.returncode:
        raise exits.Failure(exits.CONFIG, f"{place}: {ended.stderr.decode(errors='replace').strip()}")
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def _guards(name: str) -> list[Found]:
    try:
        content = files.read(Path(name)).decode("utf-8-sig")
    except OSError as error:
        raise exits.Failure(exits.DEPENDENCY, f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise exits.Failure(exits.CONFIG, f"{name} is not UTF-8 text") from error
    found = list(_of_file(content, name) if is_standalone(content) else _of_objects(content, name))
    if not found:
        raise exits.Failure(exits.CONFIG, f"{name} has no promptGuard")
    return found


def _of_file(content: str, name: str) -> Iterator[Found]:
    loaded = standalone.load(content, name)
    _refuse(loaded.problems)
    if loaded.content is not None:
        yield from _in(loaded.content, "")


def _of_objects(content: str, name: str) -> Iterator[Found]:
    for decoded in decode(content, name):
        _refuse(decoded.problems)
        if decoded.item is not None:
            yield from _in(decoded.item, f"{decoded.key} ")


def _refuse(problems: Iterable[Problem]) -> None:
    errors = [str(problem) for problem in problems if problem.severity == "error"]
    if errors:
        raise exits.Failure(exits.CONFIG, "the file has mistakes:\n" + "\n".join(f"  {line}" for line in errors))


def _in(value: BaseModel, owner: str) -> Iterator[Found]:
    """Guards wherever they stand: in policies, in backends, in the file of a proxy."""
    for path, part in parts(value):
        guards = getattr(part, FIELD, None)
        if guards is not None:
            yield owner + path_text((*path, to_camel(FIELD))), lower(guards, ai_pb2.AiPromptGuard())


def _lines(answers: dict[str, dict[str, Any]]) -> Iterator[str]:
    for place, phases in answers.items():
        yield place
        for phase, answer in phases.items():
            acted = ", ".join(f"{guard} {action}" for guard, action in answer["guards"].items())
            yield f"  {phase}: {acted or 'no guard judges texts of this scope'}"
            if rejected := answer.get("rejected"):
                yield f"    rejected by {rejected['guard']}: {rejected['statusCode']} {rejected['message']}"
            else:
                yield from (f"    | {line}" for line in answer["text"].splitlines())
            if stream := answer.get("stream"):
                same = "the same" if stream["text"] == answer.get("text") else f"another text: {stream['text']!r}"
                yield (
                    f"    on a stream: {same}; at most {stream['mostHeld']} bytes waited, "
                    f"{stream['heldAtEnd']} at the end (holdBack {stream['holdBack']})"
                )
