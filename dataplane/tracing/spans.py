"""A span as this proxy records it: names and values, without a format.

Names follow OpenTelemetry's semantic conventions; `export/otlp` writes them. A span is made when what it is about has
ended, so that nothing of it is kept for a request that is not traced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataplane.tracing.context import SpanContext

SERVER: Final = 2
CLIENT: Final = 3
"""Kinds of spans, as OTLP numbers them."""

_OF_A_SPAN: Final = 2048

Attributes = list[tuple[str, Any]]
"""Names and values: text, numbers, bools, and what else expressions give."""


@dataclass(slots=True)
class Span:
    """`began`, `ended`: nanoseconds since 1970. `parent`: id of the span above, "" for none. `failure`: the cause in
    one word, "" where there is none."""

    context: SpanContext
    parent: str
    name: str
    kind: int
    began: int
    ended: int
    attributes: Attributes
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Traced:
    """What an exchange gives: its spans, and the attributes of the resource that they belong to."""

    resource: Attributes
    spans: list[Span]

    @property
    def weight(self) -> int:
        """About how many bytes it holds: text that clients chose, and what each span takes by itself."""
        texts = (len(value) for span in self.spans for _, value in span.attributes if isinstance(value, str | bytes))
        return sum(texts) + _OF_A_SPAN * len(self.spans)
