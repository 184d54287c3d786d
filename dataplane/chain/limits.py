"""Limits on what lasts: an exchange that goes on for hours uses up tokens on its way, and is stopped when there are
none left. Who limits leaves a `Running` with the exchange; who knows what was used says so, and asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply

_RUNNING: Final = "limits.running"
_CHARGED: Final = "limits.charged"


class Running(Protocol):
    """The limits of one policy, for one exchange."""

    def used(self, tokens: int) -> None:
        """Take them, whatever is left."""

    def refusal(self) -> Reply | None:
        """What a new request would read; None: there is something left."""


class Limited(Protocol):
    """An exchange (`exchange.Exchange`)."""

    attributes: dict[str, object] | None

    def leave(self, path: str, value: object) -> None: ...


def _found(x: Limited, name: str) -> Any:  # Any: what is left under each name
    return None if x.attributes is None else x.attributes.get(name)


def add(x: Limited, running: Running) -> None:
    x.leave(_RUNNING, (*(_found(x, _RUNNING) or ()), running))


def used(x: Limited, tokens: int) -> None:
    """By now: it is not to be counted once more at the end."""
    if tokens:
        x.leave(_CHARGED, charged(x) + tokens)
        for each in _found(x, _RUNNING) or ():
            each.used(tokens)


def charged(x: Limited) -> int:
    """Tokens that were counted on the way."""
    found: int = _found(x, _CHARGED) or 0
    return found


def refusal(x: Limited) -> Reply | None:
    """Of the first policy that has nothing left."""
    found = (each.refusal() for each in _found(x, _RUNNING) or ())
    return next((reply for reply in found if reply is not None), None)
