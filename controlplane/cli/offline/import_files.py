"""What `gatewright import` reads and writes, whatever the file is of."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from controlplane.cli import exits
from gatewright import files

LARGEST: Final = 1_048_576
"""Bytes of a file that is carried over."""


def read(file: Path) -> str:
    """Raises Failure."""
    try:
        return files.read(file, LARGEST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise exits.Failure(exits.DEPENDENCY, f"{file} cannot be read: {why}") from error


def write(output: Path | None, text: str) -> None:
    """To a file that is not there yet; None: to standard output. Raises Failure."""
    if output is None:
        sys.stdout.write(text)
        return
    try:
        with output.open("x") as stream:
            stream.write(text)
    except FileExistsError:
        raise exits.Failure(exits.USAGE, f"{output} exists; name another file") from None
    except OSError as error:
        raise exits.Failure(exits.DEPENDENCY, f"{output} cannot be written: {error.strerror or error}") from error
