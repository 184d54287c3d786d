"""The fields of requests as the SDKs publish them, in the environment of the SDKs (`llm-python`). It prints them as
JSON: for each API the shapes by name (`llm/formats/contract.Shapes`), each with its fields, and the shapes that a field
has."""

from __future__ import annotations

import collections.abc
import json
import types
import typing
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import typing_extensions
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

ROOTS: dict[str, Any] = {
    "Completions": CompletionCreateParamsStreaming,
    "Messages": MessageCreateParamsStreaming,
    "Responses": ResponseCreateParamsStreaming,
}
WRAPPERS = (typing_extensions.Required, typing_extensions.NotRequired, typing.Annotated, typing.Required)
LISTS = (list, tuple, collections.abc.Iterable, collections.abc.Sequence)


def arms(kind: Any) -> Iterator[Any]:
    """The objects that a value may be, also within lists."""
    origin = get_origin(kind)
    if hasattr(kind, "__value__"):
        yield from arms(kind.__value__)
    elif origin in WRAPPERS:
        yield from arms(get_args(kind)[0])
    elif origin in (typing.Union, types.UnionType):
        for each in get_args(kind):
            yield from arms(each)
    elif origin in LISTS or getattr(origin, "__name__", "") == "SequenceNotStr":
        yield from arms(get_args(kind)[0])
    elif typing_extensions.is_typeddict(kind):
        yield kind


def literals(kind: Any) -> list[str]:
    origin = get_origin(kind)
    if origin in WRAPPERS:
        return literals(get_args(kind)[0])
    if origin is typing.Union:
        return [name for each in get_args(kind) for name in literals(each)]
    return [str(each) for each in get_args(kind)] if origin is typing.Literal else []


def names(field: str, kind: Any) -> list[str]:
    """Of the shape of an object in a field: with its type, else its role."""
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    for tag in ("type", "role"):
        if tag in hints and literals(hints[tag]):
            return [f"{field}[{name}]" for name in literals(hints[tag])]
    return [field]


def walk(kind: Any, shape: str, found: dict[str, dict[str, list[str]]], seen: set[tuple[Any, str]]) -> None:
    if (kind, shape) in seen:
        return
    seen.add((kind, shape))
    fields = found.setdefault(shape, {})
    for field, value in typing_extensions.get_type_hints(kind, include_extras=True).items():
        shapes = fields.setdefault(field, [])
        for each in arms(value):
            for name in names(field, each):
                if name not in shapes:
                    shapes.append(name)
                walk(each, name, found, seen)


def main() -> None:
    every: dict[str, dict[str, dict[str, list[str]]]] = {}
    for api, root in ROOTS.items():
        walk(root, "", every.setdefault(api, {}), set())
    print(json.dumps(every), flush=True)


if __name__ == "__main__":
    main()
