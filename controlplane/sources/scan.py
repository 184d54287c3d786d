"""Which files of a folder are configuration, and whether they changed. Called by `directory`, also from a thread.

Looks at names and inode data only; never opens a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

SUFFIXES = frozenset((".yaml", ".yml", ".json"))


class Signature(NamedTuple):
    """Differs when a file was written, or replaced by another one under the same name (also through a symlink)."""

    device: int
    inode: int
    size: int
    modified: int


def is_configuration(relative: str) -> bool:
    """Hidden files and folders, and the `..data` folders of a Kubernetes volume, are not; other suffixes neither."""
    path = PurePosixPath(relative)
    return path.suffix in SUFFIXES and not any(part.startswith(".") for part in path.parts)


def scan(root: str) -> dict[str, Signature]:
    """Every configuration file under `root`, by its path relative to it with `/`. Raises OSError for `root` itself.

    Symlinks are followed, each folder once. What cannot be looked at below `root` is left out.
    """
    status = os.stat(root)
    with os.scandir(root):
        pass  # a root that cannot be listed is an error, not an empty folder
    return dict(_walk(root, "", {(status.st_dev, status.st_ino)}))


def _walk(folder: str, prefix: str, visited: set[tuple[int, int]]) -> Iterator[tuple[str, Signature]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        relative = prefix + entry.name
        try:
            if entry.is_dir():
                status = entry.stat()
                if (status.st_dev, status.st_ino) not in visited:
                    visited.add((status.st_dev, status.st_ino))
                    yield from _walk(entry.path, f"{relative}/", visited)
            elif is_configuration(entry.name) and entry.is_file():
                status = entry.stat()
                yield relative, Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        except OSError:
            continue  # gone meanwhile, or a dangling symlink
