"""Which API a request calls, by the end of its path (BackendAI `routes`). Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from dataplane.http.spellings import leniently_read

if TYPE_CHECKING:
    from collections.abc import Iterable


class Format(StrEnum):
    """An API that clients call and providers have."""

    COMPLETIONS = "Completions"
    MESSAGES = "Messages"
    RESPONSES = "Responses"
    EMBEDDINGS = "Embeddings"
    RERANK = "Rerank"
    TOKEN_COUNT = "TokenCount"
    REALTIME = "Realtime"
    GENERATE_CONTENT = "GenerateContent"
    """Google's native API of Gemini."""
    CONVERSE = "Converse"
    """Amazon Bedrock's."""


class Way(StrEnum):
    """What becomes of a request that is not read as a `Format`."""

    MODELS = "Models"
    """Answered here: the models that are configured."""
    PASSTHROUGH = "Passthrough"
    """Sent as it is."""
    DETECT = "Detect"
    """Sent as it is; what can be read of it is in log, metrics and expressions."""


RouteType = Format | Way

OF_PROVIDERS: Final = frozenset((Format.GENERATE_CONTENT, Format.CONVERSE))
"""Clients do not call them here: requests of others are translated for them."""
ROUTE_TYPES: Final[dict[str, RouteType]] = {each.value: each for each in (*Format, *Way) if each not in OF_PROVIDERS}
"""By name, as policies have them."""
CHATS: Final = frozenset((Format.COMPLETIONS, Format.MESSAGES, Format.RESPONSES))
"""Of which a body is a conversation."""
ANY: Final = "*"


ENDS: Final = {
    b"/chat/completions": Format.COMPLETIONS,
    b"/messages": Format.MESSAGES,
    b"/responses": Format.RESPONSES,
    b"/embeddings": Format.EMBEDDINGS,
    b"/rerank": Format.RERANK,
    b"/count_tokens": Format.TOKEN_COUNT,
    b":generatecontent": Format.GENERATE_CONTENT,
    b":streamgeneratecontent": Format.GENERATE_CONTENT,
    b":rawpredict": Format.MESSAGES,
    b":streamrawpredict": Format.MESSAGES,
    b"/converse": Format.CONVERSE,
    b"/invoke": Format.MESSAGES,
}
"""Of paths as providers have them, in lower case."""


def detected(path: bytes) -> Format:
    """What a request is that passes as it is, in whatever spelling a provider takes its path. Others are read as
    Completions, whose names of usage many have."""
    read = leniently_read(path) or path
    return next((form for end, form in ENDS.items() if read.endswith(end)), Format.COMPLETIONS)


_Rows = tuple[tuple[bytes, RouteType], ...]


class Routes:
    """The table of a policy: the longest suffix that the path ends with, `*` last, Completions where none does."""

    __slots__ = ("_fallback", "_lenient", "_suffixes")

    def __init__(self, rows: Iterable[tuple[str, RouteType]] = ()) -> None:
        found = dict(rows)
        self._fallback: RouteType = found.pop(ANY, Format.COMPLETIONS)
        ordered = sorted(found.items(), key=_longest_first)
        self._suffixes: _Rows = tuple((end.encode(), row) for end, row in ordered)
        self._lenient: _Rows = tuple((read, row) for end, row in self._suffixes if (read := leniently_read(end)))

    def of(self, path: bytes) -> RouteType:
        """`path`: without its query."""
        return next((row for end, row in self._suffixes if path.endswith(end)), self._fallback)

    def is_clear(self, path: bytes) -> bool:
        """Whether a provider that reads paths leniently takes it for the same row: `/chat/completions/` that passed as
        it is, unread, would be answered as `/chat/completions`. `path`: as of `of`."""
        read = leniently_read(path)
        return read is not None and next(
            (row for end, row in self._lenient if read.endswith(end)), self._fallback
        ) is self.of(path)

    @property
    def has_models(self) -> bool:
        return Way.MODELS in (self._fallback, *(row for _, row in self._suffixes))

    def __repr__(self) -> str:
        return f"Routes({len(self._suffixes)} suffixes, {self._fallback})"


def _longest_first(row: tuple[str, RouteType]) -> tuple[int, str]:
    return -len(row[0].encode()), row[0]


ALL_COMPLETIONS: Final = Routes()
"""Where no policy says it."""
