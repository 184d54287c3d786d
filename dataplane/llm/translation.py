"""A request of one API as a provider of another one gets it: which of the provider's formats, its body, and what it
takes to bring the answer back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from dataplane.llm import cache_points, errors, losses, names
from dataplane.llm.body import Malformed
from dataplane.llm.chat import Answer, Asked, Conversation, Failure
from dataplane.llm.deltas import Delta, Failed
from dataplane.llm.features import Feature
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.reading import of_client
from dataplane.llm.formats.registry import CLIENTS, PROVIDERS
from dataplane.llm.formats.streaming import MALFORMED
from dataplane.llm.pieces import Steps
from gatewright.turns import at_once

if TYPE_CHECKING:
    from dataplane.llm.formats.contract import StreamReader, StreamWriter
    from dataplane.llm.paths import Path
    from dataplane.llm.providers import Provider
    from dataplane.llm.routes import Format
    from dataplane.llm.shape import Caching


_BAD_GATEWAY: Final = 502
NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


def targets(source: Format, provider: Provider) -> tuple[Format, ...]:
    """The provider's formats that requests of another one can be written in, in its order."""
    if source not in CLIENTS:
        return ()
    return tuple(
        form for form, path in provider.paths.items() if form in PROVIDERS and form is not source and is_target(path)
    )


def is_target(path: Path) -> bool:
    """Whether requests of others are translated for it: one in the frames of another API is for its own clients."""
    return path.dialect is None or not (path.dialect.is_framed or path.dialect.shape)


class Translated(NamedTuple):
    """`dropped`: fields of the request that the provider does not get."""

    source: Format
    target: Format
    talk: Conversation
    body: bytes
    dropped: tuple[str, ...]
    names: Mapping[str, str] = NO_NAMES
    """The client's names of tools, by those that the provider gets in their place."""


def translated(
    source: Format,
    body: bytes,
    provider: Provider,
    drops: bool = False,
    caching: Caching | None = None,
    into: tuple[Format, ...] = (),
) -> Translated:
    """In the provider's first format that can carry it, `drops`: in its first; `caching`: with points up to which the
    prompt is to be cached, where the model does that; `into`: in one of these, whatever the provider has. Raises
    `Malformed` for a body that is none of its format's, and `losses.Inexpressible` where none can, with the reason of
    the first."""
    return at_once(in_pieces(source, body, provider, drops, caching, into))


def in_pieces(
    source: Format,
    body: bytes,
    provider: Provider,
    drops: bool = False,
    caching: Caching | None = None,
    into: tuple[Format, ...] = (),
) -> Steps[Translated]:
    """The same with pauses."""
    try:
        return (yield from _translated(source, body, provider, drops, caching, into or targets(source, provider)))
    except RecursionError:
        raise Malformed("", "the body is nested too deeply") from None


def _translated(
    source: Format, body: bytes, provider: Provider, drops: bool, caching: Caching | None, into: tuple[Format, ...]
) -> Steps[Translated]:
    found = yield from of_client(body)
    yield
    talk = CLIENTS[source].read(found)
    refused = ("", "")
    for target in into:
        yield
        verdict = losses.judge(talk, target, drops)
        if verdict.refused is None:
            fitted, named = names.fitted(talk if Feature.CACHE not in talk.said else cache_points.bounded(talk), target)
            if caching is not None and provider.caches(talk.model):
                fitted = cache_points.marked(fitted, caching)
            yield
            written = PROVIDERS[target].write(fitted, provider)
            beside = (talk.said[each] for each in written.dropped if each in talk.said)
            return Translated(source, target, talk, written.body, (*verdict.dropped, *beside), named)
        refused = refused if refused[0] else verdict.refused
    raise losses.Inexpressible(*refused)


# --- the way back


def answer(made: Translated, body: bytes, asked: Asked) -> tuple[Answer, bytes]:
    """A whole answer, and as the client gets it. Raises `contract.Unreadable`."""
    try:
        found = names.of_answer(PROVIDERS[made.target].read_answer(body), made.names)
        return found, CLIENTS[made.source].write_answer(found, asked)
    except RecursionError:
        raise Unreadable("the answer is nested too deeply") from None


def error(made: Translated, status: int, body: bytes) -> bytes:
    """An error answer, as the client gets it."""
    found = PROVIDERS[made.target].read_error(status, body)
    return errors.body(made.source, status, found.kind, found.message, found.field)


class Stream:
    """One stream on its way back. `feed` and `end` give what the client gets, and what it says."""

    def __init__(self, made: Translated, asked: Asked) -> None:
        self._names = made.names
        self._is_over = False
        self._reader: StreamReader = PROVIDERS[made.target].reader()
        self._writer: StreamWriter = CLIENTS[made.source].writer(asked)

    def feed(self, data: bytes) -> tuple[bytes, list[Delta]]:
        return self._given(lambda: self._reader.feed(data))

    def end(self) -> tuple[bytes, list[Delta]]:
        """Nothing more comes: a stream that is not complete ends with an error."""
        return self._given(self._reader.end)

    def _given(self, read: Callable[[], list[Delta]]) -> tuple[bytes, list[Delta]]:
        if self._is_over:
            return b"", []
        try:
            deltas = read()
            if self._names:
                deltas = names.of_deltas(deltas, self._names)
            return (self._writer.give(deltas) if deltas else b""), deltas
        except RecursionError:
            self._is_over = True
            failed: list[Delta] = [Failed(Failure(_BAD_GATEWAY, "an event is nested too deeply", MALFORMED))]
            return self._writer.give(failed), failed
