"""Which files of a folder are configuration. One answer for the folder's source and for lint.

Looks at names and inode data only; never opens a file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

SUFFIXES: Final = frozenset((".yaml", ".yml", ".json"))


def is_configuration(relative: str) -> bool:
    """Hidden files and folders, and the `..data` folders of a Kubernetes volume, are not; other suffixes neither."""
    path = PurePosixPath(relative)
    return path.suffix in SUFFIXES and not any(part.startswith(".") for part in path.parts)


def walk(root: str) -> Iterator[tuple[str, os.stat_result | None]]:
    """Every configuration file under `root`, by its path relative to it with `/`, and its status (of what a link leads
    to; None when there is no such target). What is no regular file is among them: the reader reports it. Raises OSError
    for
    `root` itself.

    Links to folders are followed, each folder once, so that links in a circle end. What cannot be looked at below
    `root` is left out.
    """
    status = os.stat(root)
    with os.scandir(root):
        pass  # a root that cannot be listed is an error, not an empty folder
    visited = {(status.st_dev, status.st_ino)}
    levels = [_entries(root, "")]  # no recursion: a folder can be deeper than the interpreter's stack
    while levels:
        found = next(levels[-1], None)
        if found is None:
            levels.pop()
            continue
        relative, entry = found
        kind = _status(entry)
        if kind is not None and stat.S_ISDIR(kind.st_mode):
            if (kind.st_dev, kind.st_ino) not in visited:
                visited.add((kind.st_dev, kind.st_ino))
                levels.append(_entries(entry.path, f"{relative}/"))
        elif is_configuration(entry.name):
            yield relative, kind


def _entries(folder: str, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return iter(())
    return ((prefix + entry.name, entry) for entry in entries if not entry.name.startswith("."))


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except OSError:
        return None  # gone meanwhile, or a link without a target
