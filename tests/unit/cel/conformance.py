"""Runs the CEL specification's conformance tests, in their JSON form, through this compiler and through libraries."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from gatewright.cel import types
from gatewright.cel.selection import make_map
from gatewright.cel.types import Param, Type, list_of, map_of
from gatewright.cel.values import BoolKey, TypeValue, Uint, equals, type_name
from tests.oracles.peers import Case, Library, Signature, comparable, configured, ours

REPOSITORY = Path(__file__).parents[3]
PRIMITIVES = {
    "BOOL": types.BOOL,
    "INT64": types.INT,
    "UINT64": types.UINT,
    "DOUBLE": types.DOUBLE,
    "STRING": types.STRING,
    "BYTES": types.BYTES,
}


def folder() -> Path | None:
    """Where the data is that `scripts/specifications` fetches."""
    found = REPOSITORY / ".tools/specifications/cel-spec"
    return found if found.is_dir() else None


def tests(path: Path) -> list[dict[str, Any]]:
    """The tests of one file that need no protobuf messages."""
    return [test for test in json.loads(path.read_text())["tests"] if not test.get("needs_proto_messages")]


def identity(path: Path, test: dict[str, Any]) -> str:
    return f"{path.stem}/{test['section']}/{test['name']}"


def type_from(data: dict[str, Any], params: dict[str, Param]) -> Type:
    kind, value = next(iter(data.items()))
    if kind == "primitive":
        return PRIMITIVES[value]
    if kind == "type_param":
        return params.setdefault(value, Param(value))
    if kind == "list_type":
        return list_of(type_from(value["elem_type"], params))
    if kind == "map_type":
        return map_of(type_from(value["key_type"], params), type_from(value["value_type"], params))
    if kind == "abstract_type":
        return Type(value["name"], tuple(type_from(one, params) for one in value["parameter_types"]))
    return {"dyn": types.DYN, "null": types.NULL}[kind]


def case(test: dict[str, Any]) -> Case:
    """A test as a question for any library."""
    declared: dict[str, Type] = {}
    functions: dict[str, list[Signature]] = {}
    for entry in test.get("type_env", []):
        params: dict[str, Param] = {}
        if "ident" in entry:
            declared[entry["name"]] = type_from(entry["ident"]["type"], params)
            continue
        functions[entry["name"]] = [
            (tuple(type_from(one, params) for one in overload["params"]), type_from(overload["result_type"], params))
            for overload in entry["function"]["overloads"]
        ]
    values = {name: value_from(entry["value"]) for name, entry in test.get("bindings", {}).items()}
    return Case(
        test["expr"],
        declared | {name: types.DYN for name in values if name not in declared},
        values,
        functions,
        test.get("container", ""),
        not test.get("disable_check"),
        bool(test.get("check_only")),
    )


def value_from(data: dict[str, Any]) -> Any:
    kind, value = next(iter(data.items()))
    if kind == "list_value":
        return [value_from(one) for one in value.get("values", [])]
    if kind == "map_value":
        return make_map([(value_from(one["key"]), value_from(one["value"])) for one in value.get("entries", [])])
    readers: dict[str, Any] = {
        "int64_value": int,
        "uint64_value": lambda text: Uint(int(text)),
        "double_value": float,
        "bytes_value": base64.b64decode,
        "type_value": TypeValue,
    }
    return readers.get(kind, lambda plain: plain)(value)


def same(found: Any, wanted: Any) -> bool:
    """Equal with equal types, and NaN is NaN."""
    if isinstance(wanted, BoolKey) or isinstance(found, BoolKey):
        return found is wanted
    if type_name(found) != type_name(wanted):
        return False
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, dict):
        if len(found) != len(wanted):
            return False
        return all(any(same(key, one) and same(item, found[one]) for one in found) for key, item in wanted.items())
    if isinstance(wanted, float):
        return repr(found) == repr(wanted)
    return equals(found, wanted)


def deduced(test: dict[str, Any]) -> Type | None:
    data = test.get("typed_result", {}).get("deduced_type")
    return None if data is None else type_from(data, {})


def wanted(test: dict[str, Any]) -> Any:
    """The value that a test expects."""
    return value_from(test.get("value", test.get("typed_result", {}).get("result", {"bool_value": True})))


def run(test: dict[str, Any], library: Library = ours) -> str | None:
    """None when the test passes, else what went wrong.

    Where an error of the evaluation is expected, a refusal by the checker passes as well, for every library.
    """
    outcome = library(case(test))
    expected_type = deduced(test)
    if outcome.type is not None and expected_type is not None and outcome.type != str(expected_type):
        return f"type {outcome.type}, not {expected_type}"
    if outcome.kind == "syntax" or (outcome.kind == "refused" and "eval_error" not in test):
        return f"refused: {outcome.message}"
    if "eval_error" in test:
        return f"gave {outcome.value!r} instead of an error" if outcome.kind == "value" else None
    if outcome.kind == "error":
        return f"error: {outcome.message}"
    if test.get("check_only"):
        return None
    expected = wanted(test)
    found = outcome.value
    if library not in (ours, configured):
        found, expected = comparable(found), comparable(expected)
    return None if same(found, expected) else f"gave {found!r}, not {expected!r}"
