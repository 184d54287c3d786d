"""Citations of an answer as text, for formats that have no place for them: titles and addresses of the sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.llm.formats.reading import dicts, said

if TYPE_CHECKING:
    from dataplane.llm.formats.reading import Raw


def with_sources(citations: Any) -> str:  # Any: JSON of a provider
    """Behind the text that they belong to; "" where there are none."""
    sources = dict.fromkeys(filter(None, map(source, dicts(citations))))
    return f" [{'; '.join(sources)}]" if sources else ""


def source(citation: Raw) -> str:
    title = said(citation, "title") or said(citation, "document_title")
    where = said(citation, "url") or said(citation, "source")
    return f"{title} ({where})" if title and where else title or where
