"""Which addresses lead to the proxy's own admin pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataplane.upstream.own_pages import OwnPages

LOOPBACK, OTHER = OwnPages([("127.0.0.1", 15000)]), OwnPages([("10.1.2.3", 15000)])
ROWS = [
    (LOOPBACK, "127.0.0.1", 15000, True),
    (LOOPBACK, "127.0.0.2", 15000, True),
    (LOOPBACK, "0.0.0.0", 15000, True),
    (LOOPBACK, "::ffff:127.0.0.1", 15000, True),
    (LOOPBACK, "::1", 15000, True),
    (LOOPBACK, "::", 15000, True),
    (LOOPBACK, "127.0.0.1", 15001, False),
    (LOOPBACK, "10.1.2.3", 15000, False),
    (OTHER, "10.1.2.3", 15000, True),
    (OTHER, "::ffff:10.1.2.3", 15000, True),
    (OTHER, "10.1.2.4", 15000, False),
    (OTHER, "127.0.0.1", 15000, False),
    (OwnPages([("::", 15000)]), "127.0.0.1", 15000, True),
    (OwnPages(), "127.0.0.1", 15000, False),
    (OwnPages([("admin.internal", 15000)]), "admin.internal", 15000, True),  # as it is written, where it is no address
    (OwnPages([("admin.internal", 15000)]), "127.0.0.1", 15000, False),
]


@pytest.mark.parametrize(("pages", "address", "port", "expected"), ROWS)
def test_addresses(pages: OwnPages, address: str, port: int, expected: bool) -> None:
    assert pages.are_at(address, port, "") is expected


def test_a_path_is_found_behind_links_and_dots(tmp_path: Path) -> None:
    socket, link = tmp_path / "admin", tmp_path / "link"
    socket.touch()
    link.symlink_to(socket)
    pages = OwnPages([(str(socket), 0)])
    for path in (socket, link, tmp_path / "x" / ".." / "admin"):
        assert pages.are_at("", 0, str(path)), path
    assert not pages.are_at("", 0, str(tmp_path / "other"))
    assert not LOOPBACK.are_at("", 0, str(socket))
