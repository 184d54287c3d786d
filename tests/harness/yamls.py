"""YAML for tests, by libyaml: PyYAML's own reader and writer take ten times as long, and longer than what is tested."""

from __future__ import annotations

from functools import partial
from typing import Any

import yaml

load = partial(yaml.load, Loader=yaml.CSafeLoader)


def load_all(text: str) -> list[Any]:
    """Every document; None for an empty one."""
    return list(yaml.load_all(text, yaml.CSafeLoader))


def dump(value: object, **options: Any) -> str:
    return str(yaml.dump(value, Dumper=yaml.CSafeDumper, **options))


def dump_all(documents: Any, **options: Any) -> str:
    return str(yaml.dump_all(documents, Dumper=yaml.CSafeDumper, **options))
