"""The configuration files of a folder, and whether they changed. Called by `directory`, also from a thread.

Looks at names and inode data only (`gatewright.folders`); never opens a file.
"""

from __future__ import annotations

from typing import NamedTuple

from gatewright import folders
from gatewright.folders import is_configuration

__all__ = ["Signature", "is_configuration", "scan"]


class Signature(NamedTuple):
    """Differs when a file was written, or replaced by another one under the same name (also through a symlink)."""

    device: int
    inode: int
    size: int
    modified: int


def scan(root: str) -> dict[str, Signature]:
    """Every configuration file under `root`, by its path relative to it with `/`; also what is no regular file, so that
    it is reported. Raises OSError for `root` itself."""
    return {
        relative: Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        for relative, status in folders.walk(root)
        if status is not None
    }
