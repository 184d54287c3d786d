"""Memory that the processes of one proxy share: a file without a name, mapped by the agent and by the worker it is for.

A region begins with a header that names its sections, so that a reader finds them by name and sections can be added
without touching those that exist. The agent creates a region and passes its descriptor on; it outlives the worker that
writes it. What is in a section is the business of the module that owns it.

Header, little endian: 0 magic "GWSHARED" · 8 layout version u32 · 12 number of sections u32 · 16 size of the region
u64; then a row per section: name 16 bytes, padded with zeros · offset u64 · size u64. Sections begin on a page of their
own, so that two writers never share a cache line.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Mapping

MAGIC = b"GWSHARED"
LAYOUT = 1
PAGE = 4096
_HEAD = struct.Struct("<8sIIQ")
_ROW = struct.Struct("<16sQQ")
MAX_SECTIONS = (PAGE - _HEAD.size) // _ROW.size
_NAME_BYTES = 16


class Region:
    """A mapped region. `fd` may be passed to another process, which opens it with `Region.attach`."""

    def __init__(self, fd: int, memory: mmap.mmap, sections: Mapping[str, tuple[int, int]]) -> None:
        self.fd = fd
        self._memory = memory
        self._sections = dict(sections)

    @classmethod
    def create(cls, name: str, sizes: Mapping[str, int]) -> Region:
        """A new region, all zeros, with sections of these sizes in bytes. `name` is seen in /proc only."""
        sections, size = _laid_out(sizes)
        fd = _nameless_file(name)
        os.ftruncate(fd, size)
        memory = mmap.mmap(fd, size)
        _HEAD.pack_into(memory, 0, MAGIC, LAYOUT, len(sections), size)
        for index, (section, (offset, length)) in enumerate(sections.items()):
            _ROW.pack_into(memory, _HEAD.size + index * _ROW.size, section.encode(), offset, length)
        return cls(fd, memory, sections)

    @classmethod
    def attach(cls, fd: int) -> Region:
        """Map a region received from another process. Raises ValueError when it is not one of this layout."""
        available = os.fstat(fd).st_size
        if available < PAGE:
            raise ValueError(f"shared region of {available} bytes has no header")
        memory = mmap.mmap(fd, available)
        magic, layout, count, size = _HEAD.unpack_from(memory, 0)
        if (magic, layout) != (MAGIC, LAYOUT) or size != available or count > MAX_SECTIONS:
            memory.close()
            raise ValueError(f"shared region is not of layout {LAYOUT}: magic {magic!r}, layout {layout}")
        rows = (_ROW.unpack_from(memory, _HEAD.size + index * _ROW.size) for index in range(count))
        sections = {name.rstrip(b"\0").decode(): (offset, length) for name, offset, length in rows}
        if any(offset + length > size for offset, length in sections.values()):
            memory.close()
            raise ValueError("shared region has a section outside of it")
        return cls(fd, memory, sections)

    def section(self, name: str) -> memoryview:
        """The bytes of a section. Raises KeyError for one that this region does not have."""
        offset, length = self._sections[name]
        return memoryview(self._memory)[offset : offset + length]

    def close(self) -> None:
        """Give the descriptor back, once. The mapping itself goes with the last view of it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __repr__(self) -> str:
        return f"Region(fd={self.fd}, sections={self._sections})"


def own(size: int) -> memoryview:
    """Memory of this process alone, all zeros. A page of it costs nothing until somebody writes to it."""
    return memoryview(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def _laid_out(sizes: Mapping[str, int]) -> tuple[dict[str, tuple[int, int]], int]:
    """Name -> (offset, size), and the size of the whole."""
    if len(sizes) > MAX_SECTIONS or any(len(name.encode()) > _NAME_BYTES for name in sizes):
        raise ValueError(f"a region has at most {MAX_SECTIONS} sections with names of {_NAME_BYTES} bytes")
    sections, end = {}, PAGE
    for name, size in sizes.items():
        sections[name] = (end, size)
        end += -(-size // PAGE) * PAGE
    return sections, end


def _nameless_file(name: str) -> int:
    """A descriptor that no path leads to. memfd_create is Linux; elsewhere an unlinked temporary file does the same."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC)
    import tempfile  # here: with what it loads half a megabyte, which no worker needs

    fd, path = tempfile.mkstemp(prefix=name)
    os.unlink(path)
    return fd
