"""What a format is: a client's, a provider's, or both. Pure.

Laws
- `write` is called for a conversation that `losses` has let pass: what it has no place for is left out.
- A stream's reader gives the same deltas however its bytes are split, and by `end` exactly one of `Stopped` and
`Failed`
  has been given. Its writer writes the end of its format for `Stopped` alone.
- Readers take any bytes: what a provider writes is not trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dataplane.llm.features import Feature

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.llm.chat import Answer, Asked, Conversation, Failure
    from dataplane.llm.deltas import Delta
    from dataplane.llm.providers import Provider

Shape = Mapping[str, Feature]
"""The fields of an object, and what each says."""


class Shapes(NamedTuple):
    """Tables that the reader of a format goes by, and that the losses are checked with. Names of shapes are the last
    part of a field's path, with its type: `content[image_url]`. `whole`: objects of a type that is carried as a whole,
    or not at all."""

    fields: Mapping[str, Shape]
    whole: Mapping[str, Feature]


class StreamReader(Protocol):
    def feed(self, data: bytes) -> list[Delta]: ...

    def end(self) -> list[Delta]:
        """Nothing more comes."""
        ...


class StreamWriter(Protocol):
    def give(self, deltas: Iterable[Delta]) -> bytes: ...


class Written(NamedTuple):
    """A request as a provider gets it. `dropped`: what it leaves out for the sake of something else
    (`losses.BESIDE`)."""

    body: bytes
    dropped: tuple[Feature, ...] = ()


class ProviderFormat(Protocol):
    """What is sent in this format. Its module is its instance."""

    def write(self, talk: Conversation, provider: Provider) -> Written: ...

    def read_answer(self, body: bytes) -> Answer:
        """Raises `Unreadable`."""
        ...

    def reader(self) -> StreamReader: ...

    def read_error(self, status: int, body: bytes) -> Failure: ...


class ClientFormat(Protocol):
    """What is received in this format. Its module is its instance. Errors are written by `llm/errors`."""

    def read(self, body: bytes | dict[str, Any]) -> Conversation:  # Any: JSON
        """`body`: as it came, or what `reading.of_client` made of it. Raises `Malformed`."""
        ...

    def write_answer(self, answer: Answer, asked: Asked) -> bytes: ...

    def writer(self, asked: Asked) -> StreamWriter: ...


class Unreadable(Exception):
    """An answer of a provider is not of its format; the text says what is wrong."""
