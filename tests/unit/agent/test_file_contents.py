"""Secrets that are in other files or in variables: what is read, what is told when they cannot be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dataplane.agent import file_contents, file_source
from dataplane.agent.file_contents import Contents
from dataplane.agent.file_reading import have_changed
from dataplane.agent.file_source import BadFile
from dataplane.agent.reader import LocalReader
from dataplane.link.messages import Record
from gatewright.api.standalone.secrets import Content, Unreadable
from gatewright.wire.v1 import resource_pb2

FILE = """
binds:
- port: 8080
  listeners:
  - name: front
    policies:
      basicAuthentication: {secretRef: {file: users.htpasswd}}
    routes:
    - name: shop
      policies:
        apiKeyAuthentication:
          secretRef:
            alice: {file: keys/alice}
            bob: {env: BOBS_KEY}
            carol: {value: carols-key}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BOBS_KEY", "bobs-key")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/alice").write_text("alices-key\r\n")
    (tmp_path / "users.htpasswd").write_text("ann:{SHA}0DPiKuNIrrVmD8IUCuw1hQxNqZc=\n\nben:x\n")
    path = tmp_path / "c.yaml"
    path.write_text(FILE)
    return path


def secrets(records: tuple[Record, ...]) -> dict[str, dict[str, bytes]]:
    found = (resource_pb2.Resource.FromString(record.value or b"") for record in records)
    return {each.key: dict(each.secret.data) for each in found if each.HasField("secret")}


def test_contents_become_secrets(file: Path) -> None:
    loaded = file_source.read(file, (), LocalReader())
    assert secrets(loaded.records) == {
        "secret/default/listener/front/basic_authentication": {
            ".htaccess": b"ann:{SHA}0DPiKuNIrrVmD8IUCuw1hQxNqZc=\n\nben:x"
        },
        "secret/default/route/shop/api_key_authentication": {
            "alice": b"alices-key",
            "bob": b"bobs-key",
            "carol": b"carols-key",
        },
    }
    assert set(loaded.stamps) == {file.parent / "users.htpasswd", file.parent / "keys/alice"}
    assert "key" not in repr(loaded).replace("keys", "")


def unset(folder: Path) -> None:
    del os.environ["BOBS_KEY"]


def pipe(folder: Path) -> None:
    (folder / "keys/alice").unlink()
    os.mkfifo(folder / "keys/alice")


ALICE = "binds[0].listeners[0].routes[0].policies.apiKeyAuthentication.secretRef.alice.file"
BOB = "binds[0].listeners[0].routes[0].policies.apiKeyAuthentication.secretRef.bob.env"


@pytest.mark.parametrize(
    ("spoil", "line", "path", "words"),
    [
        (lambda folder: (folder / "keys/alice").unlink(), 13, ALICE, 'keys/alice" cannot be read: No such file'),
        (lambda folder: (folder / "keys/alice").write_text("\n"), 13, ALICE, 'keys/alice" is empty'),
        (
            lambda folder: (folder / "keys/alice").write_bytes(b"x" * (1024 * 1024 + 1)),
            13,
            ALICE,
            "cannot be read: it has 1048577 bytes; the limit is 1048576",
        ),
        (pipe, 13, ALICE, "cannot be read: it is a named pipe, and no regular file"),
        (unset, 14, BOB, 'the variable "BOBS_KEY" is not set'),
    ],
    ids=["missing", "empty", "too-large", "pipe", "unset"],
)
def test_what_cannot_be_read_is_told_with_file_field_and_reason(
    file: Path, spoil: Callable[[Path], object], line: int, path: str, words: str
) -> None:
    spoil(file.parent)
    with pytest.raises(BadFile) as bad:
        file_source.read(file, (), LocalReader())
    (told,) = bad.value.args
    assert told.startswith(f"{file}:{line}: {path}: ")
    assert words in told


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (1024 * 1024))
    assert file_contents.Contents(tmp_path).read(Content(file="large")) == b"x" * (1024 * 1024)


def test_all_that_cannot_be_read_is_told_at_once_and_nothing_of_what_can(file: Path) -> None:
    (file.parent / "users.htpasswd").unlink()
    (file.parent / "keys/alice").unlink()
    with pytest.raises(BadFile) as bad:
        file_source.read(file, (), LocalReader())
    assert len(bad.value.args) == 2
    assert "bobs-key" not in str(bad.value) and "carols-key" not in str(bad.value)


def test_a_change_of_a_file_is_noticed(file: Path) -> None:
    contents = Contents(file.parent)
    assert contents.read(Content(file="keys/alice")) == b"alices-key"
    assert not have_changed(contents.stamps)
    (file.parent / "keys/alice").write_text("another-key")
    assert have_changed(contents.stamps)


def test_a_file_that_comes_later_is_noticed(file: Path) -> None:
    contents = Contents(file.parent)
    with pytest.raises(Unreadable):
        contents.read(Content(file="keys/dan"))
    assert not have_changed(contents.stamps)
    (file.parent / "keys/dan").write_text("dans-key")
    assert have_changed(contents.stamps)


def test_an_impossible_path_is_told() -> None:
    with pytest.raises(Unreadable, match="null"):
        Contents(Path("/")).read(Content(file="a\0b"))
