"""Tokens of proxies: the file's form, the comparison, and what happens when the file changes."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from controlplane.xds.trust import tokens
from controlplane.xds.trust.tokens import CredentialError, Tokens

A, B = "a" * 16, "B0-._~+/" * 4 + "=="


def write(file: Path, text: str) -> None:
    """With another time, also when the clock of the file system is coarse."""
    before = file.stat().st_mtime_ns if file.exists() else 0
    file.write_text(text)
    os.utime(file, ns=(before + 1_000_000, before + 1_000_000))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write(tmp_path / "tokens", f"# of the fleet\n\n{A} shop/web shop/api # until June\n{B}\n")
    return tmp_path / "tokens"


def test_what_a_token_is_for(file: Path) -> None:
    known = Tokens(file)
    assert known.find(A) == (True, frozenset({"shop/web", "shop/api"}))
    assert known.find(B) == (True, None)
    for wrong in ("", A[:-1], A + "a", A.upper(), f"{A} shop/web", "#", "ä" * 16):
        assert known.find(wrong) == (False, None)


def test_lines_of_one_token_add_up_and_one_without_gateways_is_for_all() -> None:
    both = tokens.parse(f"{A} a/b\n{A} c/d")
    assert list(both.values()) == [frozenset({"a/b", "c/d"})]
    for text in (f"{A} a/b\n{A}", f"{A}\n{A} a/b"):
        assert list(tokens.parse(text).values()) == [None]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "holds no token"),
        ("# nothing\n", "holds no token"),
        (f"{A}\nshort", "line 2"),
        (f"{A} shop", "line 1"),
        (f"{A} shop/web,shop/api", "line 1"),
        (f"{A} Shop/Web", "line 1"),
        ("Bearer " + A, "line 1"),
        ("=" * 20, "line 1"),
    ],
)
def test_what_is_no_file_of_tokens(text: str, error: str, tmp_path: Path) -> None:
    write(tmp_path / "tokens", text)
    with pytest.raises(CredentialError, match=error) as raised:
        Tokens(tmp_path / "tokens")
    assert A not in str(raised.value) and "short" not in str(raised.value)
    assert str(tmp_path / "tokens") in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="cannot be read: No such file"):
        Tokens(tmp_path / "absent")


def test_a_changed_file_is_read_again(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    known = Tokens(file)
    assert known.generation == 1
    known.refresh()
    assert known.generation == 1
    with caplog.at_level(logging.INFO):
        write(file, f"{B} a/b\n")
        known.refresh()
        assert (known.generation, known.find(A), known.find(B)) == (2, (False, None), (True, frozenset({"a/b"})))
        file.unlink()
        known.refresh()
        assert (known.is_readable, known.find(B), known.generation) == (False, (False, None), 3)
        known.refresh()
        assert known.generation == 3
        write(file, "?")
        known.refresh()
        assert not known.is_readable
        write(file, f"{A}\n")
        known.refresh()
        assert known.is_readable and known.find(A) == (True, None)
    assert A not in caplog.text and B not in caplog.text
    assert A not in repr(known) and str(len(A)) not in repr(known).partition(" of ")[0]


def test_only_digests_are_kept(file: Path) -> None:
    known = Tokens(file)
    assert all(len(digest) == 32 for digest in known._known)
    assert A.encode() not in known._known and B.encode() not in known._known
