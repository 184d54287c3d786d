"""Google's native API of Gemini (generateContent), for providers."""

from dataplane.llm.formats.gemini.answer import read_answer, read_error
from dataplane.llm.formats.gemini.request import write
from dataplane.llm.formats.gemini.stream import reader

__all__ = ["read_answer", "read_error", "reader", "write"]
