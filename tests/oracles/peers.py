"""One expression through this compiler and through two libraries, with the same question and comparable answers.

`Case` is the question, `Outcome` the answer: values are those of `gatewright.cel.values`, types are written as ours.
The libraries get what they need to do their best: every extension they have, declared types, values of their own
classes. What their Python interfaces cannot show (nanoseconds, the type of a map's keys) is not held against them.
"""

from __future__ import annotations

import datetime
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import celpy
import celpy.evaluation
from celpy import celtypes

from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.errors import CelCheckError, CelError, CelSyntaxError
from gatewright.cel.functions import STANDARD
from gatewright.cel.overloads import Overload
from gatewright.cel.program import compile_expression, typed
from gatewright.cel.types import DYN, Type
from gatewright.cel.values import BoolKey, Duration, Timestamp, TypeValue, Uint, as_key, from_key

try:
    from cel_expr_python import cel as cpp
except ImportError:  # there are wheels for Linux on x86-64 only
    cpp = None

Signature = tuple[tuple[Type, ...], Type]


@dataclass(frozen=True)
class Case:
    """`declared` says what a checker may know, `values` what the evaluation gets."""

    text: str
    declared: dict[str, Type] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, list[Signature]] = field(default_factory=dict)
    container: str = ""
    checked: bool = True
    check_only: bool = False


@dataclass(frozen=True)
class Outcome:
    """`kind`: value, error (of the evaluation), refused (before it), or syntax (refused as no expression at all, which
    only our own outcomes tell apart). `type` is None where a library has none.
    """

    kind: str
    value: Any = None
    type: str | None = None
    message: str = ""


Library = Callable[[Case], Outcome]


def unbound(*args: Any) -> Any:
    raise AssertionError("a declared function is only checked, never called")


def ours(case: Case) -> Outcome:
    functions = dict(STANDARD)
    for name, signatures in case.functions.items():
        functions[name] = tuple(Overload(name, params, result, unbound) for params, result in signatures)
    fields = [Field(name, kind) for name, kind in case.declared.items()]
    environment = Environment(fields, functions, case.container)
    kind = None
    try:
        if case.check_only:
            return Outcome("value", type=str(typed(case.text, environment).type))
        program = compile_expression(case.text, environment, checked=case.checked)
        kind = str(program.type)
        return Outcome("value", program.evaluate(Values(case.values)), kind)
    except CelError as error:
        return Outcome("error", type=kind, message=str(error))
    except CelSyntaxError as error:
        return Outcome("syntax", message=str(error))
    except CelCheckError as error:
        return Outcome("refused", message=str(error))


def configured(case: Case) -> Outcome:
    """As `ours`, and as expressions of policies are: all of them are checked, whatever a test says."""
    return ours(replace(case, checked=True))


# cel-expr-python: Google's cel-cpp

EXTENSIONS = ("bindings", "encoders", "lists", "math", "optional", "sets", "strings", "two-var-comprehensions")
CPP_NAMES = {
    "int": "INT",
    "uint": "UINT",
    "double": "DOUBLE",
    "bool": "BOOL",
    "string": "STRING",
    "bytes": "BYTES",
    "null_type": "NULL",
    "google.protobuf.Timestamp": "TIMESTAMP",
    "google.protobuf.Duration": "DURATION",
}
NAMES_OF_CPP = {cpp_name: name for name, cpp_name in CPP_NAMES.items()}


@cache
def cpp_config() -> Any:
    return cpp.NewEnvConfigFromYaml("name: t\nextensions:\n" + "".join(f"- name: {name}\n" for name in EXTENSIONS))


def cpp_type(kind: Type) -> Any:
    if kind.kind == "list":
        return cpp.Type.List(cpp_type(kind.params[0]))
    if kind.kind == "map":
        return cpp.Type.Map(*map(cpp_type, kind.params))
    if kind.kind in CPP_NAMES:
        return getattr(cpp.Type, CPP_NAMES[kind.kind])
    return cpp.Type.DYN


def cpp_value(value: Any) -> Any:
    """A value as the library takes it. Only declared uints, timestamps and durations arrive as such."""
    if isinstance(value, list | tuple):
        return [cpp_value(one) for one in value]
    if isinstance(value, dict):
        return {cpp_value(from_key(key)): cpp_value(item) for key, item in value.items()}
    if isinstance(value, Timestamp):
        return EPOCH + datetime.timedelta(microseconds=int(value) // 1000)
    if isinstance(value, Duration):
        return datetime.timedelta(microseconds=int(value) // 1000)
    return int(value) if isinstance(value, Uint) else value


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def microseconds(span: datetime.timedelta) -> int:
    return span // datetime.timedelta(microseconds=1)


def from_cpp(found: Any) -> Any:
    """A Value of the library as one of ours; a plain Python value is the key of a map."""
    if not isinstance(found, cpp.Value):
        return as_key(found)
    kind, value = found.type().name(), found.value()
    if isinstance(value, list):
        return [from_cpp(one) for one in value]
    if isinstance(value, dict):
        return {from_cpp(key): from_cpp(item) for key, item in value.items()}
    if isinstance(value, cpp.Type):
        name = value.name().partition("<")[0]
        return TypeValue(NAMES_OF_CPP.get(name, {"LIST": "list", "MAP": "map", "TYPE": "type"}.get(name, name)))
    return FROM_CPP.get(kind, lambda plain: plain)(value)


FROM_CPP: dict[str, Callable[[Any], Any]] = {
    "UINT": Uint,
    "BYTES": bytes,
    "TIMESTAMP": lambda value: Timestamp(microseconds(value - EPOCH) * 1000),
    "DURATION": lambda value: Duration(microseconds(value) * 1000),
}


def cpp_type_text(text: str) -> str:
    """The text of a type of the library in our spelling."""
    name, _, inside = text.partition("<")
    if not inside:
        return OUR_NAMES.get(name, name.lower())
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(inside[:-1]):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            parts.append(inside[start:position])
            start = position + 1
    parts.append(inside[start:-1])
    return f"{name.lower()}({', '.join(cpp_type_text(part.strip()) for part in parts)})"


OUR_NAMES = {"NULL": "null_type"}


def cel_cpp(case: Case) -> Outcome:
    """`cel-expr-python`."""
    kind = None
    try:
        program = cpp_program(case)
        kind = cpp_type_text(str(program.return_type()))
        if case.check_only:
            return Outcome("value", type=kind)
    except (RuntimeError, TypeError, ValueError) as error:
        return Outcome("refused", message=str(error))
    try:
        found = program.eval(data={name: cpp_value(value) for name, value in case.values.items()})
        if found.type().name() in ("ERROR", "UNKNOWN"):
            return Outcome("error", type=kind, message=str(found.value()))
        return Outcome("value", from_cpp(found), kind)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        return Outcome("error", type=kind, message=f"the binding: {error}")


def cpp_program(case: Case) -> Any:
    functions = tuple((name, tuple(signatures)) for name, signatures in case.functions.items())
    environment = cpp_environment(tuple(case.declared.items()), functions, case.container)
    return environment.compile(case.text, disable_check=not case.checked)


@lru_cache(maxsize=64)
def cpp_environment(
    declared: tuple[tuple[str, Type], ...], functions: tuple[tuple[str, tuple[Signature, ...]], ...], container: str
) -> Any:
    """Made once for each set of declarations: it takes milliseconds."""
    declarations = [
        cpp.FunctionDecl(
            name, [cpp.Overload(f"{name}_{n}", cpp_type(result), list(map(cpp_type, params)), False, unbound)]
        )
        for name, signatures in functions
        for n, (params, result) in enumerate(signatures)
    ]
    variables = {name: cpp_type(kind) for name, kind in declared}
    return cpp.NewEnv(config=cpp_config(), variables=variables, container=container, functions=declarations or None)


# cel-python

CEL_PYTHON_TYPES: dict[str, Any] = {
    "int": celtypes.IntType,
    "uint": celtypes.UintType,
    "double": celtypes.DoubleType,
    "bool": celtypes.BoolType,
    "string": celtypes.StringType,
    "bytes": celtypes.BytesType,
    "list": celtypes.ListType,
    "map": celtypes.MapType,
    "google.protobuf.Timestamp": celtypes.TimestampType,
    "google.protobuf.Duration": celtypes.DurationType,
    "null_type": type(None),
    "type": celtypes.TypeType,
}
NAMES_OF_CEL_PYTHON = {made: name for name, made in CEL_PYTHON_TYPES.items()} | {type: "type"}


@contextmanager
def quiet() -> Iterator[None]:
    """The library raises Python's recursion limit for good and logs each error: neither must reach other tests."""
    limit = sys.getrecursionlimit()
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        logging.disable(logging.NOTSET)


def celpy_value(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return None if value is None else celtypes.BoolType(value)
    if isinstance(value, Timestamp):
        return celtypes.TimestampType(cpp_value(value))
    if isinstance(value, Duration):
        return celtypes.DurationType(cpp_value(value))
    if isinstance(value, list | tuple):
        return celtypes.ListType(map(celpy_value, value))
    if isinstance(value, dict):
        return celtypes.MapType({celpy_value(from_key(key)): celpy_value(item) for key, item in value.items()})
    makers = {Uint: celtypes.UintType, int: celtypes.IntType, float: celtypes.DoubleType, bytes: celtypes.BytesType}
    return makers.get(type(value), celtypes.StringType)(value)


def from_celpy(value: Any) -> Any:
    if isinstance(value, type):
        return TypeValue(NAMES_OF_CEL_PYTHON.get(value, value.__name__))
    if isinstance(value, dict):
        return {as_key(from_celpy(key)): from_celpy(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [from_celpy(one) for one in value]
    if isinstance(value, Exception):
        raise value  # it leaves errors inside maps and lists
    for made, convert in FROM_CELPY:
        if isinstance(value, made):
            return convert(value)
    return value


FROM_CELPY: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (bool, bool),
    (celtypes.BoolType, bool),
    (celtypes.UintType, Uint),
    (celtypes.IntType, int),
    (float, float),
    (bytes, bytes),
    (str, str),
    (datetime.datetime, lambda value: Timestamp(microseconds(value - EPOCH) * 1000)),
    (datetime.timedelta, lambda value: Duration(microseconds(value) * 1000)),
)


def cel_python(case: Case) -> Outcome:
    """`cel-python` with its interpreter, which gets more right than its compiler."""
    if case.check_only:
        return Outcome("refused", message="the library has no checker")
    annotations = {
        name: CEL_PYTHON_TYPES[kind.kind] for name, kind in case.declared.items() if kind.kind in CEL_PYTHON_TYPES
    }
    with quiet():
        environment = celpy.Environment(package=case.container or None, annotations=annotations)
        try:
            program = environment.program(environment.compile(case.text))
        except Exception as error:  # whatever it is: the library refuses the text
            return Outcome("refused", message=str(error))
        try:
            found = program.evaluate({name: celpy_value(value) for name, value in case.values.items()})
            if isinstance(found, Exception):
                return Outcome("error", message=str(found))
            return Outcome("value", from_celpy(found))
        except Exception as error:  # its own errors and those of Python alike
            return Outcome("error", message=str(error))


def comparable(value: Any) -> Any:
    """A value without what the libraries' Python interfaces do not show: nanoseconds, the types of keys."""
    if isinstance(value, Timestamp | Duration):
        return type(value)(int(value) // 1000 * 1000)
    if isinstance(value, list | tuple):
        return [comparable(one) for one in value]
    if isinstance(value, dict):
        return {int(key) if isinstance(key, Uint) else key: comparable(item) for key, item in value.items()}
    return value


LIBRARIES: dict[str, Library] = {"cel-python": cel_python, **({"cel-expr-python": cel_cpp} if cpp is not None else {})}
__all__ = ["DYN", "LIBRARIES", "BoolKey", "Case", "Outcome", "comparable", "ours"]
