"""The controller's log: lines on standard error, as text or JSON with the keys of a proxy's log, times in UTC.

Called by `controller` and `up` before anything else. Lines are written by a thread (`lines`), so that a terminal that
takes nothing stops no event loop.
"""

from __future__ import annotations

import logging
from typing import Final

from controlplane.cli import exits
from controlplane.cli.serving import lines
from gatewright.api.schema.log_level import DEFAULT, parse_log_level
from gatewright.logs import LEVELS, formatter

STDERR: Final = 2

PROCESS: Final = "controller"
"""Value of the key `process` in each line."""

ROOT: Final = "controlplane"

MODULES: Final = (
    ROOT,
    "controlplane.admin",
    "controlplane.cli",
    "controlplane.sources",
    "controlplane.xds",
)
"""Names that `--log-level` takes."""


def configure(level: str = DEFAULT, form: str = "text", prefix: str = "") -> None:
    """Log to standard error. `level` is as `--log-level` takes it; libraries are heard from warnings on.

    Raises:
        Failure: the level cannot be read.
    """
    try:
        levels = parse_log_level(level, MODULES)
    except ValueError as error:
        raise exits.Failure(exits.USAGE, f"--log-level: {error}") from error
    handler = lines.Handler(STDERR)
    handler.setFormatter(formatter(form, PROCESS, prefix))
    logging.basicConfig(level=max(logging.WARNING, LEVELS[levels.default]), handlers=[handler], force=True)
    for name in MODULES:
        chosen = levels.modules.get(name, levels.default if name == ROOT else None)
        logging.getLogger(name).setLevel(logging.NOTSET if chosen is None else LEVELS[chosen])
