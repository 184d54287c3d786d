"""Which files of a folder are configuration, and what says that one has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.sources import scan


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("a.yaml", True),
        ("a.yml", True),
        ("deep/er/a.json", True),
        ("a.YAML", False),
        ("a.txt", False),
        ("yaml", False),
        ("a.yaml~", False),
        (".a.yaml", False),
        (".git/a.yaml", False),
        ("..data/a.yaml", False),
        ("a/.b/c.yaml", False),
    ],
)
def test_what_is_configuration(name: str, counts: bool) -> None:
    assert scan.is_configuration(name) is counts


def test_a_scan_follows_links_once_and_leaves_out_folders_and_links_to_nothing(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    for folder in (outside, root / "b", root / ".hidden"):
        folder.mkdir(parents=True)
    for file in ("outside/o.yaml", "root/b/b.yaml", "root/.hidden/h.yaml", "root/z.yaml", "root/a.txt"):
        (tmp_path / file).touch()
    (root / "again").symlink_to(root / "b")
    (root / "circle").symlink_to(root)
    (root / "out").symlink_to(outside)
    (root / "link.yaml").symlink_to(outside / "o.yaml")
    (root / "dangling.yaml").symlink_to("nowhere")
    (root / "self.yaml").symlink_to("self.yaml")
    (root / "folder.yaml").mkdir()
    os.mkfifo(root / "pipe.yaml")
    assert list(scan.scan(str(root))) == ["again/b.yaml", "link.yaml", "out/o.yaml", "pipe.yaml", "z.yaml"]


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[str]:
    """A folder with one file, further down than the interpreter's stack is deep."""
    levels = sys.getrecursionlimit()
    descriptor = os.open(tmp_path, os.O_PATH)
    for _ in range(levels):
        os.mkdir("d", dir_fd=descriptor)
        above, descriptor = descriptor, os.open("d", os.O_PATH, dir_fd=descriptor)
        os.close(above)
    os.close(os.open("a.yaml", os.O_CREAT, dir_fd=descriptor))
    os.close(descriptor)
    yield "d/" * levels + "a.yaml"
    subprocess.run(["rm", "-r", tmp_path / "d"], check=True)  # pytest cannot


def test_a_folder_that_is_deeper_than_the_stack_is_read(deep: str, tmp_path: Path) -> None:
    assert list(scan.scan(str(tmp_path))) == [deep]


def test_a_file_that_was_written_or_replaced_is_another_one(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("1")
    os.utime(file, ns=(1, 1))
    (first,) = scan.scan(str(tmp_path)).values()
    assert scan.scan(str(tmp_path)) == {"a.yaml": first}
    assert (first.size, first.modified) == (1, 1)
    os.utime(file, ns=(1, 2))
    assert scan.scan(str(tmp_path))["a.yaml"] != first
    file.write_text("12")
    os.utime(file, ns=(1, 1))
    assert scan.scan(str(tmp_path))["a.yaml"] == first._replace(size=2)
    (tmp_path / "new").write_text("1")
    os.utime(tmp_path / "new", ns=(1, 1))
    (tmp_path / "new").rename(file)
    assert scan.scan(str(tmp_path))["a.yaml"].inode != first.inode


def test_a_root_that_is_absent_or_no_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("absent", "file"):
        with pytest.raises(OSError):
            scan.scan(str(tmp_path / name))
