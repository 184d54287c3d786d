"""An address that cannot be listened on, in both ways in which the library says so."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.xds import listeners
from controlplane.xds.unix_socket import SocketError


class Library:
    """grpc.aio's server, as far as it binds. Older releases answer port 0, newer ones raise."""

    def __init__(self, answer: int | RuntimeError) -> None:
        self.answer = answer

    def add_insecure_port(self, address: str) -> int:
        if isinstance(self.answer, RuntimeError):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "told"),
    [(0, "cannot listen on host:1$"), (RuntimeError("in use"), "cannot listen on host:1: in use$")],
)
def test_what_cannot_be_bound_is_an_error_with_its_address(answer: int | RuntimeError, told: str) -> None:
    library: Any = Library(answer)
    with pytest.raises(SocketError, match=told):
        listeners.bind(library, "host:1")


def test_the_port_that_was_bound() -> None:
    library: Any = Library(18000)
    assert listeners.bind(library, "host:0") == 18000
