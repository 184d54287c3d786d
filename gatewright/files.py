"""How both planes read files of configuration, and the files that these name: their author may not be trusted.

Called by the folder's source, lint, the standalone file's source and its reader. A file is read when it is a regular
one, or a link to one (Kubernetes mounts ConfigMaps by links), and no longer than its reader allows. Anything else is an
error that says what it is: a named pipe would be waited for without end, and opening a device may do something. Imports
the standard library only.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import Final

LARGEST: Final = 64 * 1024 * 1024
"""Bytes of one file of configuration: of a folder, of what is linted, of a proxy alone."""

_CHUNK: Final = 64 * 1024

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

KINDS: Final = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
"""What is no regular file, by its format bits."""

Path = str | os.PathLike[str]


def read(path: Path, most: int = LARGEST) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises OSError, whose `strerror` is for the author of the
    file: also for what is no regular file, and for one that is larger."""
    return read_with_status(path, most)[0]


def read_with_status(path: Path, most: int = LARGEST) -> tuple[bytes, os.stat_result]:
    """As `read`, with what the file was when it was opened."""
    _check(os.stat(path), path)  # a device is not even opened
    descriptor = os.open(path, _FLAGS)  # whatever took its place since: opened without waiting for a peer
    with open(descriptor, "rb", buffering=0) as stream:
        status = os.fstat(descriptor)
        _check(status, path)
        if status.st_size > most:
            raise _too_large(f"has {status.st_size} bytes", most, path)
        return _content(stream, status.st_size, most, path), status


def _content(stream: io.RawIOBase, expected: int, most: int, path: Path) -> bytes:
    """All that is in the file, also when it has grown, and when its size is not known before (as in /proc)."""
    parts: list[bytes] = []
    left = most
    while part := stream.read(min(max(expected, _CHUNK), left) + 1):
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise _too_large("is larger", most, path)
    return b"".join(parts)


def _check(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, and no regular file", os.fspath(path))


def _too_large(what: str, most: int, path: Path) -> OSError:
    return OSError(errno.EFBIG, f"it {what}; the limit is {most}", os.fspath(path))
