"""Bedrock's Converse, for providers."""

from dataplane.llm.formats.converse.answer import read_answer, read_error
from dataplane.llm.formats.converse.request import write
from dataplane.llm.formats.converse.stream import reader

__all__ = ["read_answer", "read_error", "reader", "write"]
