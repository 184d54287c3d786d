"""The secrets that a standalone file does not hold itself: read from files and variables, for `reader`.

It remembers which files it read and how they were then, so that `file_source` notices a change. What it reads goes into
resources only: no text of an error, of a log line or of a repr holds any of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dataplane.agent.file_reading import Stamp, stamp_or_none
from gatewright import files, invisible
from gatewright.api.standalone.secrets import Content, Unreadable

MOST: Final = 1024 * 1024
"""Bytes of one file (a Secret of Kubernetes has no more)."""


class Contents:
    """Reads contents whose paths are relative to `folder`, that of the standalone file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.stamps: dict[Path, Stamp] = {}
        """The files that were asked for, as they were before they were read."""

    def __repr__(self) -> str:
        return f"Contents({len(self.stamps)} files)"

    def read(self, content: Content) -> bytes:
        """A content, without line breaks at its end and a byte order mark before it: editors put them there. Raises
        `Unreadable`."""
        if content.env is not None:
            return _whole("env", f'the variable "{content.env}"', _variable(content.env))
        assert content.file is not None  # one that is written in the file itself is not read
        path = self._folder / content.file
        self.stamps[path] = stamp_or_none(path)
        return _whole("file", f'"{path}"', _file(path))


def _variable(name: str) -> bytes:
    value = os.environ.get(name)
    if value is None:
        raise Unreadable("env", f'the variable "{name}" is not set')
    return value.encode("utf-8", "surrogateescape")


def _file(path: Path) -> bytes:
    try:
        return files.read(path, MOST)
    except OSError as error:
        raise Unreadable("file", f'"{path}" cannot be read: {error.strerror or error}') from None
    except ValueError as error:
        raise Unreadable("file", f"{str(path)!r} cannot be read: {error}") from None


def _whole(form: str, what: str, data: bytes) -> bytes:
    text = invisible.without_mark(data).rstrip(b"\r\n")
    if not text:
        raise Unreadable(form, f"{what} is empty")
    return text
