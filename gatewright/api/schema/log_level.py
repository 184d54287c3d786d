"""The `logging.level` setting: `info,dataplane.http=debug,xds=off`.

Called by the standalone file, GatewayParameters and both planes' process settings. It decides only what was meant;
the caller passes the modules that exist and applies the answer to its logger.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from gatewright.api.schema.near_names import did_you_mean

LEVELS: Final = ("off", "error", "warn", "info", "debug")
"""From the quietest to the most talkative; `warning` is accepted for `warn`."""

_PART: Final = rf"\\s*([^,=]*=\\s*)?(?i:{'|'.join((*LEVELS, 'warning'))})\\s*"
PATTERN: Final = f"{_PART}(,{_PART})*"
"""What `parse_log_level` reads without names of modules, as a regular expression in a CEL text."""

DEFAULT: Final = "info"


@dataclass(frozen=True, slots=True)
class LogLevels:
    """One of LEVELS for everything, and one per module that differs."""

    default: str = DEFAULT
    modules: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def parse_log_level(text: str, known_modules: Collection[str] | None) -> LogLevels:
    """Read comma-separated parts, each a level or `module=level`; the last of equal parts wins.

    `known_modules` None: the caller cannot know the modules (lint, for another process); any name passes.

    Raises ValueError naming the part, with the near names, for an unknown level or module.
    """
    default = DEFAULT
    modules: dict[str, str] = {}
    for part in (piece.strip() for piece in text.split(",")):
        module, equals, level = (piece.strip() for piece in part.partition("="))
        if not equals:
            default = _level(module)
            continue
        if known_modules is not None and module not in known_modules:
            raise ValueError(f'unknown module "{module}"{did_you_mean(module, known_modules)}')
        modules[module] = _level(level)
    return LogLevels(default, MappingProxyType(modules))


def _level(word: str) -> str:
    level = "warn" if word.lower() == "warning" else word.lower()
    if level not in LEVELS:
        raise ValueError(f'unknown level "{word}"{did_you_mean(word, LEVELS, label="levels")}')
    return level
