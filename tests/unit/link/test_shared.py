"""Shared regions: two mappings of one memory, and what is not a region is refused."""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from collections.abc import Iterator

import pytest

from dataplane.link import shared
from dataplane.link.shared import PAGE, Region

pytestmark = pytest.mark.leaves("a region of shared memory is kept for the life of its process, as in the product")


@pytest.fixture
def region() -> Iterator[Region]:
    made = Region.create("test", {"slots": 100, "directory": 5000})
    yield made
    made.close()


def test_two_mappings_are_one_memory(region: Region) -> None:
    other = Region.attach(os.dup(region.fd))
    region.section("slots").cast("I")[3] = 7
    assert other.section("slots").cast("I")[3] == 7
    other.close()


def test_sections_have_their_size_and_pages_of_their_own(region: Region) -> None:
    assert (len(region.section("slots")), len(region.section("directory"))) == (100, 5000)
    region.section("slots")[:] = b"\xff" * 100
    assert bytes(region.section("directory")) == bytes(5000)
    assert os.fstat(region.fd).st_size == PAGE + PAGE + 2 * PAGE


def test_a_section_that_is_not_there_is_a_key_error(region: Region) -> None:
    with pytest.raises(KeyError):
        region.section("buckets")


def test_a_region_outlives_its_first_mapping() -> None:
    made = Region.create("test", {"slots": 8})
    fd = os.dup(made.fd)
    made.section("slots")[0] = 42
    made.close()
    assert Region.attach(fd).section("slots")[0] == 42
    os.close(fd)


def test_its_descriptor_is_given_back_once() -> None:
    made = Region.create("test", {"slots": 8})
    fd = made.fd
    made.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    other = os.open(os.devnull, os.O_RDONLY)  # it may have the number now
    made.close()
    os.fstat(other)
    os.close(other)
    made.section("slots")[0] = 1


def test_it_works_without_memfd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    made = Region.create("test", {"slots": 8})
    made.section("slots")[0] = 1
    assert Region.attach(made.fd).section("slots")[0] == 1
    made.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GWSHARED",
        bytes(PAGE),
        struct.pack("<8sIIQ", b"GWSHARED", shared.LAYOUT + 1, 0, PAGE).ljust(PAGE, b"\0"),
        struct.pack("<8sIIQ", b"GWSHARED", shared.LAYOUT, 0, PAGE * 2).ljust(PAGE, b"\0"),
        struct.pack("<8sIIQ", b"GWSHARED", shared.LAYOUT, 100_000, PAGE).ljust(PAGE, b"\0"),
        (struct.pack("<8sIIQ", b"GWSHARED", shared.LAYOUT, 1, PAGE) + struct.pack("<16sQQ", b"slots", 0, 2**40)).ljust(
            PAGE, b"\0"
        ),
    ],
    ids=["empty", "short", "zeros", "other layout", "other size", "too many sections", "section outside"],
)
def test_what_is_not_a_region_is_refused(content: bytes) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        with pytest.raises(ValueError, match="shared region"):
            Region.attach(file.fileno())


def test_too_many_sections_are_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        Region.create("test", {f"s{i}": 8 for i in range(shared.MAX_SECTIONS + 1)})


def test_a_name_of_a_section_has_sixteen_bytes_at_most() -> None:
    made = Region.create("test", {"n" * 16: 8})
    found = Region.attach(os.dup(made.fd))
    found.section("n" * 16)[0] = 7
    assert made.section("n" * 16)[0] == 7
    for each in (found, made):
        each.close()
    with pytest.raises(ValueError, match="names of 16 bytes"):
        Region.create("test", {"n" * 17: 8})


def test_pages_are_those_of_the_system() -> None:
    assert PAGE % mmap.ALLOCATIONGRANULARITY == 0


def test_one_section_outside_is_one_too_many() -> None:
    rows = struct.pack("<16sQQ", b"good", PAGE, 8) + struct.pack("<16sQQ", b"bad", PAGE, PAGE + 1)
    with tempfile.TemporaryFile() as file:
        file.write((struct.pack("<8sIIQ", b"GWSHARED", shared.LAYOUT, 2, 2 * PAGE) + rows).ljust(2 * PAGE, b"\0"))
        file.flush()
        with pytest.raises(ValueError, match="outside of it"):
            Region.attach(file.fileno())
