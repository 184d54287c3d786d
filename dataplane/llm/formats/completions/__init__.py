"""OpenAI's Chat Completions, and what many others have made like it."""

from dataplane.llm.formats.completions.answer import read_answer, read_error, write_answer
from dataplane.llm.formats.completions.fields import SHAPES
from dataplane.llm.formats.completions.request import read, write
from dataplane.llm.formats.completions.stream import reader, writer

__all__ = ["SHAPES", "read", "read_answer", "read_error", "reader", "write", "write_answer", "writer"]
