"""OpenAI's Responses."""

from dataplane.llm.formats.responses.answer import read_answer, read_error, write_answer
from dataplane.llm.formats.responses.fields import SHAPES
from dataplane.llm.formats.responses.reader import reader
from dataplane.llm.formats.responses.request import read
from dataplane.llm.formats.responses.writer import writer
from dataplane.llm.formats.responses.written import write

__all__ = ["SHAPES", "read", "read_answer", "read_error", "reader", "write", "write_answer", "writer"]
