"""Anthropic's Messages."""

from dataplane.llm.formats.messages.answer import read_answer, read_error, write_answer
from dataplane.llm.formats.messages.fields import SHAPES
from dataplane.llm.formats.messages.request import read, write
from dataplane.llm.formats.messages.stream import reader, writer

__all__ = ["SHAPES", "read", "read_answer", "read_error", "reader", "write", "write_answer", "writer"]
