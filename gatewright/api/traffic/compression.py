"""`traffic.compression`, a Gatewright extension: responses are compressed for clients that take it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.schema.fields import ByteSize
from gatewright.api.schema.model import Model, unique

_MEDIA_TYPE: Final = r"^[A-Za-z0-9!#$&^_.+-]+/([A-Za-z0-9!#$&^_.+-]+|\*)$"
USUAL_TYPES: Final = (
    *("text/html", "text/css", "text/plain", "text/javascript", "text/xml", "text/csv"),
    *("application/json", "application/javascript", "application/xml", "application/x-ndjson", "image/svg+xml"),
)
"""What is compressed where nothing is said: text of the web. Events (`text/event-stream`) are not among them."""


class Compression(Model):
    """Which responses are compressed, and how. Gatewright extension."""

    encodings: Annotated[
        tuple[Literal["br", "zstd", "gzip"], ...],
        Field(min_length=1, max_length=3),
        unique(lambda each: each, field=None),
    ] = ("zstd", "br", "gzip")
    """Codings that may be used. Of those that a client likes as well, the first."""
    content_types: Annotated[
        tuple[Annotated[str, Field(min_length=3, max_length=255, pattern=_MEDIA_TYPE)], ...],
        Field(min_length=1, max_length=64),
    ] = USUAL_TYPES
    """Media types of responses that are compressed, without parameters; `text/*` is all of text."""
    min_size: ByteSize = "1Ki"
    """Responses with a smaller Content-Length pass as they are."""
