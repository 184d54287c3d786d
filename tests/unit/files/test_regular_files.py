"""Regular files only, and no more of them than allowed: the same answer from everyone who reads configuration.

A reader that waited for a pipe would hang here: there is no limit of time in these tests but that of the run.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.lint import lint
from controlplane.sources import directory, file_state, tree
from controlplane.xds.trust.certificates import Certificates, Files
from controlplane.xds.trust.tokens import CredentialError, Tokens
from dataplane.agent import file_source, xds_access
from dataplane.agent.file_contents import Contents
from dataplane.agent.reader import LocalReader
from dataplane.settings import XdsAccess
from gatewright import files
from gatewright.api.standalone.secrets import Content, Unreadable


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def terminal(path: Path) -> None:
    path.symlink_to("/dev/ptmx")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def folder(path: Path) -> None:
    path.mkdir()


def link_to_a_folder(path: Path) -> None:
    path.symlink_to(path.parent)


def large(path: Path) -> None:
    """It has no content on the disk."""
    path.touch()
    os.truncate(path, 100_000_000)


SPECIAL: dict[Callable[[Path], None], str] = {
    pipe: "it is a named pipe, and no regular file",
    device: "it is a device, and no regular file",
    terminal: "it is a device, and no regular file",
    unix_socket: "it is a socket, and no regular file",
}
FOLDERS = dict.fromkeys((folder, link_to_a_folder), "it is a folder, and no regular file")
LARGE = {large: "it has 100000000 bytes; the limit is "}
ALL = SPECIAL | FOLDERS | LARGE


def contents(path: Path) -> str:
    with pytest.raises(Unreadable) as error:
        Contents(path.parent).read(Content(file=path.name))
    return str(error.value)


def standalone(path: Path) -> str:
    with pytest.raises(file_source.BadFile) as error:
        file_source.read(path, (), LocalReader())
    return str(error.value)


def token_of_a_proxy(path: Path) -> str:
    with pytest.raises(xds_access.Unusable) as error:
        xds_access.metadata(XdsAccess(token_file=path))
    return str(error.value)


def tokens_of_a_controller(path: Path) -> str:
    with pytest.raises(CredentialError) as error:
        Tokens(path)
    return str(error.value)


def certificate(path: Path) -> str:
    with pytest.raises(CredentialError) as error:
        Certificates(Files(path, path))
    return str(error.value)


READERS = (contents, standalone, token_of_a_proxy, tokens_of_a_controller, certificate)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("reader", READERS)
def test_who_reads_one_file_says_what_it_is(
    reader: Callable[[Path], str], make: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "file"
    make(path)
    assert str(path) in reader(path) and ALL[make] in reader(path)


@pytest.mark.parametrize("make", SPECIAL | LARGE)
@pytest.mark.parametrize("inside", [True, False], ids=["of a folder", "alone"])
def test_lint_says_what_it_is_and_judges_the_others(make: Callable[[Path], None], inside: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    make(path)
    (tmp_path / "b.yaml").write_text("a: [")
    first, second = lint.lint_paths([tmp_path] if inside else sorted(tmp_path.glob("*.yaml"))).errors
    assert (first.file, second.file) == (str(path), str(tmp_path / "b.yaml"))
    assert first.message.startswith(f"cannot be read: {ALL[make]}") and first.code == "unreadable"


@pytest.mark.parametrize("make", SPECIAL | LARGE)
def test_a_folder_says_what_it_is(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "a.yaml")
    source = directory.Directory(tmp_path, tree.Tree(lambda piece: file_state.Decoded(), lambda model, _: model))
    problem = source._text("a.yaml")
    assert not isinstance(problem, str) and problem is not None
    assert problem.file == "a.yaml" and ALL[make] in problem.message


def test_links_to_files_are_read_as_a_config_map_has_them(tmp_path: Path) -> None:
    (tmp_path / "..one").mkdir()
    (tmp_path / "..one/a.yaml").write_text("content")
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    assert files.read(tmp_path / "a.yaml") == b"content"
    with pytest.raises(OSError, match="the limit is 6"):
        files.read(tmp_path / "a.yaml", 6)
    assert files.read(tmp_path / "a.yaml", 7) == b"content"


def test_a_file_whose_size_nobody_knows_before_is_bounded() -> None:
    content = files.read("/proc/self/maps")
    assert content
    with pytest.raises(OSError, match="it is larger; the limit is 100"):
        files.read("/proc/self/maps", 100)


def test_what_takes_the_place_of_a_file_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    pipe(path)
    other.touch()
    status = os.stat(other)
    monkeypatch.setattr(os, "stat", lambda _: status)
    with pytest.raises(OSError, match="a named pipe"):
        files.read(path)
